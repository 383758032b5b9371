"""One commit of an index: which rows there are, and where."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix
from firth.index.segment import KEY, Positions, Segment, Space, key_hashes, python_value


class Snapshot:
    """Segments in the order of their rows, and the deleted rows. It never changes: a search that began with a snapshot
    ends with it, whatever other threads commit meanwhile.

    A position is a row counted through all segments: it stays, until rows are dropped, which begins a new epoch.
    """

    def __init__(self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any]) -> None:
        self.segments, self.deleted, self.manifest = tuple(segments), deleted, manifest
        self.space = Space(*(manifest[name] for name in Space._fields))
        self.starts = np.cumsum([0, *map(len, segments)])  # the position of each segment's first row
        self._living: dict[int, Positions | None] = {}

    @property
    def rows(self) -> int:
        """Deleted ones among them."""
        return int(self.starts[-1])

    def __len__(self) -> int:
        return self.rows - len(self.deleted)

    @property
    def columns(self) -> dict[str, Any]:
        """The attributes' names and Arrow types."""
        schema = self.segments[0].table.schema if self.segments else ()
        return {column.name: column.type for column in schema if column.name != KEY}

    def positions(self, keys: Sequence[str]) -> dict[str, int]:
        """Where keys stand, of those that are there."""
        hashes, found = key_hashes(keys), dict[str, int]()
        for first, segment in zip(self.starts.tolist(), self.segments, strict=False):
            for place, row in segment.rows_of(keys, hashes):
                if not self._is_deleted(first + row):
                    found[keys[place]] = first + row
        return found

    def position(self, key: str) -> int:
        found = self.positions([key]) if isinstance(key, str) else {}
        if not found:
            raise FirthError("unknown_key", "The index has no key {key!r:.80}.", key=key)
        return found[key]

    def _is_deleted(self, position: int) -> bool:
        place = int(np.searchsorted(self.deleted, position))
        return place < len(self.deleted) and int(self.deleted[place]) == position

    def vectors(self, positions: Positions) -> Matrix:
        """As they are stored."""
        found = np.empty((len(positions), self.space.dim), dtype=np.float32)
        owners = np.searchsorted(self.starts, positions, side="right") - 1
        for owner in np.unique(owners).tolist():
            mine = owners == owner
            found[mine] = self.segments[owner].array("vectors")[positions[mine] - self.starts[owner]]
        return found

    def row(self, position: int) -> tuple[str, dict[str, Any]]:
        """Key and attributes."""
        owner = int(np.searchsorted(self.starts, position, side="right")) - 1
        row = position - int(self.starts[owner])
        table = self.segments[owner].table
        values = {name: python_value(table.column(name)[row], name) for name in table.column_names}
        return values.pop(KEY), values

    def alive(self, number: int) -> NDArray[np.bool_] | None:
        """Which rows of a segment are not deleted; None for all."""
        first, last = self.starts[number], self.starts[number + 1]
        gone = self.deleted[slice(*np.searchsorted(self.deleted, (first, last)))]
        if not len(gone):
            return None
        alive = np.ones(last - first, dtype=bool)
        alive[gone - first] = False
        return alive

    def living(self, number: int) -> Positions | None:
        """The rows of a segment that are not deleted, rising; None for all. Made once."""
        if number not in self._living:
            alive = self.alive(number)
            self._living[number] = None if alive is None else np.flatnonzero(alive)
        return self._living[number]
