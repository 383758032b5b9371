"""`Snapshot`: the immutable state of an index after one commit."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix
from firth.index.segment import KEY, Positions, Segment, Space, key_hashes, python_value


class Snapshot:
    """The segments and the deleted rows of one commit. A snapshot never changes: a search uses one snapshot throughout,
    whatever other threads commit in the meantime.

    A position counts rows across all segments. Positions are stable until deleted rows are dropped, which begins a new
    epoch.
    """

    def __init__(self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any]) -> None:
        self.segments, self.deleted, self.manifest = tuple(segments), deleted, manifest
        self.space = Space.from_json(manifest)
        self.starts = np.cumsum([0, *map(len, segments)])  # the position of each segment's first row
        self._living: dict[int, Positions | None] = {}

    @property
    def rows(self) -> int:
        """The number of rows, including deleted ones."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        return self.rows - len(self.deleted)

    @property
    def columns(self) -> dict[str, Any]:
        """The names and Arrow types of the attributes."""
        schema = self.segments[0].table.schema if self.segments else ()
        return {column.name: column.type for column in schema if column.name != KEY}

    def positions(self, keys: Sequence[str]) -> dict[str, int]:
        """Return the positions of the keys that exist."""
        hashes, positions = key_hashes(keys), dict[str, int]()
        for first, segment in zip(self.starts.tolist(), self.segments, strict=False):
            for position, row in segment.rows_of(keys, hashes):
                if not self._is_deleted(first + row):
                    positions[keys[position]] = first + row
        return positions

    def position(self, key: str) -> int:
        """Return the position of a key."""
        positions = self.positions([key]) if isinstance(key, str) else {}
        if not positions:
            raise FirthError("unknown_key", "The index has no key {key!r:.80}.", key=key)
        return positions[key]

    def _is_deleted(self, position: int) -> bool:
        insertion = int(np.searchsorted(self.deleted, position))
        return insertion < len(self.deleted) and int(self.deleted[insertion]) == position

    def vectors(self, positions: Positions) -> Matrix:
        """Return the stored vectors of positions as float32."""
        rows = np.empty((len(positions), self.space.dim), dtype=np.float32)
        owners = np.searchsorted(self.starts, positions, side="right") - 1
        for owner in np.unique(owners).tolist():
            selected = owners == owner
            rows[selected] = self.segments[owner].array("vectors")[positions[selected] - self.starts[owner]]
        return rows

    def row(self, position: int) -> tuple[str, dict[str, Any]]:
        """Return the key and the attributes of a position."""
        owner = int(np.searchsorted(self.starts, position, side="right")) - 1
        row = position - int(self.starts[owner])
        table = self.segments[owner].table
        values = {name: python_value(table.column(name)[row], name) for name in table.column_names}
        return values.pop(KEY), values

    def alive(self, number: int) -> NDArray[np.bool_] | None:
        """Return a mask of a segment's rows that are not deleted; None if none is."""
        first, last = self.starts[number], self.starts[number + 1]
        deleted = self.deleted[slice(*np.searchsorted(self.deleted, (first, last)))]
        if not len(deleted):
            return None
        alive = np.ones(last - first, dtype=bool)
        alive[deleted - first] = False
        return alive

    def living(self, number: int) -> Positions | None:
        """Return the sorted rows of a segment that are not deleted, cached; None if none is deleted."""
        if number not in self._living:
            alive = self.alive(number)
            self._living[number] = None if alive is None else np.flatnonzero(alive)
        return self._living[number]
