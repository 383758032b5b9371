"""The rows of an index and how they change: segments, what is deleted, commits."""

from __future__ import annotations

import secrets
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import saying_where, sync
from firth.core.vectors import Matrix
from firth.index import folder as disk
from firth.index.segment import KEY, Positions, Segment, Space, in_memory, key_hashes, merge_segments
from firth.version import __version__

FANOUT = 8  # segments of about one size become one


class Store:
    """Segments in the order of their rows. A position is a row counted through all of them: it stays, until rows are
    dropped, which begins a new epoch."""

    def __init__(self, folder: Path | None, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self.space = Space(*(manifest[name] for name in Space._fields))
        self._lock: disk.Lock | None = None
        self._load(manifest)

    def _load(self, manifest: dict[str, Any]) -> None:
        segments, deleted = list[Segment](), np.zeros(0, dtype=np.int64)
        if self.folder:
            segments = [disk.open_segment(self.folder, record) for record in manifest["segments"]]
            deleted = disk.read_deleted(self.folder, manifest.get("deleted"))
        self._set(segments, deleted, manifest)

    def _set(self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any]) -> None:
        self.segments, self.deleted, self.manifest = list(segments), deleted, manifest
        self.starts = np.cumsum([0, *map(len, segments)])  # the position of each segment's first row
        self._living: dict[int, Positions | None] = {}

    @classmethod
    def create(cls, folder: Path | None, space: Space, **facts: Any) -> Store:
        manifest = {
            "format": disk.FORMAT,
            "firth": __version__,
            "id": secrets.token_hex(8),  # what tells this index from others
            **space._asdict(),
            **facts,
            "commit": 0,
            "epoch": 0,
            "segments": [],
            "deleted": None,
            "graph": None,
        }
        if folder is not None:
            with saying_where(folder):
                if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                    opened = ", or open its index with Index.open" if disk.is_index(folder) else ""
                    raise FirthError(
                        "output_exists", "{folder} exists; choose another folder{opened}.", folder=folder, opened=opened
                    )
                folder.mkdir(parents=True, exist_ok=True)
            disk.write_manifest(folder, manifest)
        return cls(folder, manifest)

    @classmethod
    def open(cls, folder: Path) -> Store:
        manifest = disk.read_manifest(folder, check=False)
        try:
            disk.check_files(folder, manifest)
            return cls(folder, manifest)
        except (FirthError, FileNotFoundError):
            if disk.read_manifest(folder, check=False)["commit"] == manifest["commit"]:
                raise
        return cls.open(folder)  # a writer put other files in the place of these

    # ---- what stands where ----

    @property
    def rows(self) -> int:
        """Deleted ones among them."""
        return int(self.starts[-1])

    def positions(self, keys: Sequence[str]) -> dict[str, int]:
        """Where keys stand, of those that are there."""
        hashes, found = key_hashes(keys), dict[str, int]()
        for first, segment in zip(self.starts.tolist(), self.segments, strict=False):
            for place, row in segment.rows_of(keys, hashes):
                if not self._is_deleted(first + row):
                    found[keys[place]] = first + row
        return found

    def position(self, key: str) -> int:
        found = self.positions([key])
        if not found:
            raise FirthError("unknown_key", "The index has no key {key!r}.", key=key)
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
        values = {name: table.column(name)[row].as_py() for name in table.column_names}
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

    # ---- commits ----

    def write(self) -> None:
        """From here on this is the one writer, and starts from the last commit."""
        if self.folder is None or self._lock:
            return
        self._lock = disk.Lock(self.folder)
        try:
            manifest = disk.read_manifest(self.folder)
            if manifest["commit"] != self.manifest["commit"]:
                self._load(manifest)
            disk.sweep(self.folder, manifest)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        if self._lock:
            self._lock.release()
            self._lock = None

    def commit(self, added: Segment | None = None, gone: Sequence[int] = (), **facts: Any) -> None:
        """Rows added behind all others, rows marked as deleted, facts changed, in one step."""
        segments, deleted = list(self.segments), self.deleted
        number = self.manifest["commit"] + 1
        manifest = {**self.manifest, **facts}
        if added is not None and len(added):
            some = together([*map(len, segments), len(added)])
            if some > 1:
                tail = [*segments[len(segments) - some + 1 :], added]
                added = merge_segments(tail, [None] * some)
                del segments[len(segments) - some + 1 :]
            segments.append(self._stored(number, added))
        if gone:
            deleted = np.union1d(deleted, np.array(gone, dtype=np.int64))
            if self.folder:
                manifest["deleted"] = disk.write_deleted(self.folder, f"deleted-{number}", deleted)
        self._accept(segments, deleted, manifest)

    def compact(self) -> None:
        """One segment in the place of all, without the deleted rows."""
        if len(self.segments) < 2 and not len(self.deleted):
            return
        keep = [self.alive(number) for number in range(len(self.segments))]
        merged = merge_segments(self.segments, keep)
        epoch = self.manifest["epoch"] + bool(len(self.deleted))
        segments = [self._stored(self.manifest["commit"] + 1, merged)] if len(merged) else []
        self._accept(segments, np.zeros(0, dtype=np.int64), {**self.manifest, "epoch": epoch, "deleted": None})

    def _stored(self, number: int, segment: Segment) -> Segment:
        return in_memory(segment) if self.folder is None else disk.write_segment(self.folder, number, segment)

    def _accept(self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any]) -> None:
        """The moment from which the change counts."""
        manifest |= {"commit": self.manifest["commit"] + 1, "segments": [segment.record for segment in segments]}
        if self.folder:
            sync(self.folder)  # the new files' names come before the manifest that counts on them
            disk.write_manifest(self.folder, manifest)
        self._set(segments, deleted, manifest)
        if self.folder:
            disk.sweep(self.folder, manifest)


def together(sizes: Sequence[int]) -> int:
    """How many of the last segments become one with the last: once FANOUT of them are of its order of size."""
    some, total = 1, sizes[-1]
    while True:
        order = tier(total)
        more = 0
        while some + more < len(sizes) and tier(sizes[-1 - some - more]) <= order:
            more += 1
        if more < FANOUT - 1:
            return some
        total += sum(sizes[len(sizes) - some - more : len(sizes) - some])
        some += more


def tier(rows: int) -> int:
    return max(0, rows).bit_length() // 3  # powers of 8
