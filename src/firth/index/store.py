"""`Store`: commits to an index, each of which replaces the current snapshot."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.remote import refuse_url
from firth.core.storage import saying_where, sync
from firth.index import folder as disk
from firth.index.segment import KEY, Positions, Segment, Space, in_memory, merge_segments
from firth.index.segment_files import check_columns, open_segment, read_deleted, write_deleted, write_segment
from firth.index.snapshot import Snapshot
from firth.version import __version__

FANOUT = 8  # segments of similar size that are merged into one


class Store:
    """The snapshots of an index. `state` is the last commit, which a reader takes once. Writing threads take turns."""

    def __init__(self, folder: Path | None, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self._threads = threading.RLock()  # between threads; between processes, the lock file
        self._lock: disk.Lock | None = None
        self.url: str | None = None  # of which the folder is a copy
        self.state = self._load(manifest)

    @property
    def manifest(self) -> dict[str, Any]:
        """The manifest of the last commit."""
        return self.state.manifest

    def _load(self, manifest: dict[str, Any]) -> Snapshot:
        if self.folder is None:
            return Snapshot([], np.zeros(0, dtype=np.int64), manifest)
        space = Space.from_json(manifest)
        segments = [open_segment(self.folder, record, space) for record in manifest["segments"]]
        check_columns(self.folder, segments)
        rows = sum(map(len, segments))
        return Snapshot(segments, read_deleted(self.folder, manifest.get("deleted"), rows), manifest)

    @classmethod
    def create(cls, folder: Path | None, space: Space, **properties: Any) -> Store:
        """Create an empty store in a new folder, or in memory; `properties` go into the manifest."""
        manifest = {
            "format": disk.FORMAT,
            "firth": __version__,
            "id": secrets.token_hex(8),  # distinguishes this index from others
            **space.to_json(),
            **properties,
            "commit": 0,
            "epoch": 0,
            "segments": [],
            "deleted": None,
            "graph": None,
        }
        if folder is not None:
            refuse_url(folder)
            with saying_where(folder):
                if folder.exists() and (not folder.is_dir() or any(folder.iterdir())):
                    hint = ", or open the index in it with Index.open" if disk.is_index(folder) else ""
                    raise FirthError(
                        "output_exists", "{folder} exists. Choose another folder{hint}.", folder=folder, hint=hint
                    )
                folder.mkdir(parents=True, exist_ok=True)
            disk.write_manifest(folder, manifest)
        return cls(folder, manifest)

    @classmethod
    def open(cls, folder: Path) -> Store:
        """Open the last commit in a folder. If a writer replaces files meanwhile, try again with the new manifest."""
        while True:
            manifest = disk.read_manifest(folder, check=False)
            try:
                disk.check_files(folder, manifest)
                return cls(folder, manifest)
            except (FirthError, FileNotFoundError):
                if disk.read_manifest(folder, check=False)["commit"] == manifest["commit"]:
                    raise
            # a writer has replaced the files

    # ---- commits ----

    @contextlib.contextmanager
    def writing(self) -> Iterator[Snapshot]:
        """Make this thread the only writer, across all processes, starting from the last commit."""
        with self._threads:
            self._begin()
            yield self.state

    def _begin(self) -> None:
        if self._lock and self._lock.process != os.getpid():
            self.release()  # inherited by a fork: the lock belongs to the parent process
        if self.folder is None or self._lock:
            return
        if self.url is not None:
            raise FirthError(
                "unsafe_output",
                "The index at {url} was opened to be searched. Change an index in a folder of this machine, and copy "
                "the folder to the URL.",
                url=self.url,
            )
        self._lock = disk.Lock(self.folder)
        try:
            manifest = disk.read_manifest(self.folder)
            if manifest["id"] != self.manifest["id"]:
                raise FirthError(
                    "other_run",
                    "{folder} was replaced by another index since it was opened. Open it again.",
                    folder=self.folder,
                )
            if manifest["commit"] != self.manifest["commit"]:
                self.state = self._load(manifest)
            disk.sweep(self.folder, manifest)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Let another process write, once other threads have finished writing."""
        with self._threads:
            if self._lock:
                self._lock.release()
                self._lock = None

    def commit(
        self, new_segment: Segment | None = None, deleted_positions: Sequence[int] = (), **properties: Any
    ) -> None:
        """Append rows, mark rows as deleted and change manifest properties in one commit."""
        with self._committing() as state:
            segments, deleted = list(state.segments), state.deleted
            number = state.manifest["commit"] + 1
            manifest = {**state.manifest, **properties}
            if new_segment is not None and len(new_segment):
                merged_count = segments_to_merge([*map(len, segments), len(new_segment)])
                if merged_count > 1:
                    tail = [*segments[len(segments) - merged_count + 1 :], new_segment]
                    new_segment = merge_segments(tail, [None] * merged_count)
                    del segments[len(segments) - merged_count + 1 :]
                segments.append(self._store(number, new_segment))
            if deleted_positions:
                deleted = np.union1d(deleted, np.array(deleted_positions, dtype=np.int64))
                if self.folder:
                    manifest["deleted"] = write_deleted(self.folder, f"deleted-{number}", deleted)
            self._accept(segments, deleted, manifest)

    def adopt(self, folder: Path, records: Sequence[Mapping[str, Any]]) -> None:
        """Append segments that other processes have written to `folder` (`write_segment`), in one commit.

        Their files are moved. The numbers in their names are those of the next commits.
        """
        with self._committing() as state:
            assert self.folder is not None
            segments = [*state.segments, *(open_segment(folder, record, state.space) for record in records)]
            check_columns(folder, segments)
            check_unique(segments)
            with saying_where(self.folder):
                for record in records:
                    for name in record["files"]:
                        (folder / name).replace(self.folder / name)
            added = [open_segment(self.folder, record, state.space) for record in records]
            number = state.manifest["commit"] + len(records) - 1
            self._accept([*state.segments, *added], state.deleted, {**state.manifest}, number)

    def compact(self) -> None:
        """Merge all segments into one, without the deleted rows."""
        with self._committing() as state:
            if len(state.segments) < 2 and not len(state.deleted):
                return
            keep = [state.alive(number) for number in range(len(state.segments))]
            merged = merge_segments(state.segments, keep)
            epoch = state.manifest["epoch"] + bool(len(state.deleted))
            segments = [self._store(state.manifest["commit"] + 1, merged)] if len(merged) else []
            self._accept(segments, np.zeros(0, dtype=np.int64), {**state.manifest, "epoch": epoch, "deleted": None})

    @contextlib.contextmanager
    def _committing(self) -> Iterator[Snapshot]:
        """Release the lock if a commit fails: it may have reached the disk or not, so the next writer reads it
        again."""
        with self._threads:
            try:
                yield self.state
            except BaseException:
                self.release()
                raise

    def _store(self, number: int, segment: Segment) -> Segment:
        if self.folder is None:
            return in_memory(segment)
        return write_segment(self.folder, number, segment, self.state.space)

    def _accept(
        self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any], last: int | None = None
    ) -> None:
        """Write the manifest and replace the snapshot, which makes the commit take effect. `last` is the number of the
        commit before it, if others are skipped."""
        last = self.manifest["commit"] if last is None else last
        manifest |= {"commit": last + 1, "segments": [segment.record for segment in segments]}
        if self.folder:
            with saying_where(self.folder):
                sync(self.folder)  # the new files must be on disk before the manifest that names them
            disk.write_manifest(self.folder, manifest)
        self.state = Snapshot(segments, deleted, manifest)
        if self.folder:
            disk.sweep(self.folder, manifest)


def check_unique(segments: Sequence[Segment]) -> None:
    """Refuse segments that have a key in common."""
    hashes = np.sort(np.concatenate([segment.array("hashes") for segment in segments]))
    repeated = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    keys = Counter[str]()
    for segment in segments:
        rows = segment.array("hash_rows")[np.isin(segment.array("hashes"), repeated)]
        keys.update(segment.table.column(KEY).take(rows).to_pylist())
    repeated_keys = [key for key, count in keys.items() if count > 1]
    if repeated_keys:
        raise FirthError(
            "duplicate_name",
            "{count:,} keys occur more than once ({examples}). Keys must be unique in an index.",
            count=len(repeated_keys),
            examples=", ".join(map(repr, repeated_keys[:3])),
        )


def segments_to_merge(sizes: Sequence[int]) -> int:
    """Return how many of the last segments to merge: those of a size tier that has FANOUT segments."""
    count, total = 1, sizes[-1]
    while True:
        size_tier = tier(total)
        more = 0
        while count + more < len(sizes) and tier(sizes[-1 - count - more]) <= size_tier:
            more += 1
        if more < FANOUT - 1:
            return count
        total += sum(sizes[len(sizes) - count - more : len(sizes) - count])
        count += more


def tier(rows: int) -> int:
    """Return the size class of a segment, in powers of 8."""
    return max(0, rows).bit_length() // 3
