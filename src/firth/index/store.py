"""How the rows of an index change: commits, each a snapshot that takes the place of the one before."""

from __future__ import annotations

import contextlib
import os
import secrets
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.storage import saying_where, sync
from firth.index import folder as disk
from firth.index.segment import Positions, Segment, Space, in_memory, merge_segments
from firth.index.segment_files import check_columns, open_segment, read_deleted, write_deleted, write_segment
from firth.index.snapshot import Snapshot
from firth.version import __version__

FANOUT = 8  # segments of about one size become one


class Store:
    """`state` is the last commit; readers take it once and keep it. Threads change a store one after another."""

    def __init__(self, folder: Path | None, manifest: dict[str, Any]) -> None:
        self.folder = folder
        self._threads = threading.RLock()  # within the process; between processes the folder's lock
        self._lock: disk.Lock | None = None
        self.state = self._loaded(manifest)

    @property
    def manifest(self) -> dict[str, Any]:
        return self.state.manifest

    def _loaded(self, manifest: dict[str, Any]) -> Snapshot:
        if self.folder is None:
            return Snapshot([], np.zeros(0, dtype=np.int64), manifest)
        space = Space(*(manifest[name] for name in Space._fields))
        segments = [open_segment(self.folder, record, space) for record in manifest["segments"]]
        check_columns(self.folder, segments)
        rows = sum(map(len, segments))
        return Snapshot(segments, read_deleted(self.folder, manifest.get("deleted"), rows), manifest)

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
        while True:
            manifest = disk.read_manifest(folder, check=False)
            try:
                disk.check_files(folder, manifest)
                return cls(folder, manifest)
            except (FirthError, FileNotFoundError):
                if disk.read_manifest(folder, check=False)["commit"] == manifest["commit"]:
                    raise
            # a writer put other files in the place of these

    # ---- commits ----

    @contextlib.contextmanager
    def writing(self) -> Iterator[Snapshot]:
        """Within the block this thread is the only writer, of any process, and starts from the last commit."""
        with self._threads:
            self._begin()
            yield self.state

    def _begin(self) -> None:
        if self._lock and self._lock.process != os.getpid():
            self.release()  # inherited by a fork: it is the parent's
        if self.folder is None or self._lock:
            return
        self._lock = disk.Lock(self.folder)
        try:
            manifest = disk.read_manifest(self.folder)
            if manifest["id"] != self.manifest["id"]:
                raise FirthError(
                    "other_run",
                    "{folder} holds another index than when it was opened; open it again.",
                    folder=self.folder,
                )
            if manifest["commit"] != self.manifest["commit"]:
                self.state = self._loaded(manifest)
            disk.sweep(self.folder, manifest)
        except BaseException:
            self.release()
            raise

    def release(self) -> None:
        """Lets another process write, after what other threads are writing."""
        with self._threads:
            if self._lock:
                self._lock.release()
                self._lock = None

    def commit(self, added: Segment | None = None, gone: Sequence[int] = (), **facts: Any) -> None:
        """Rows added behind all others, rows marked as deleted, facts changed, in one step."""
        with self._committing() as state:
            segments, deleted = list(state.segments), state.deleted
            number = state.manifest["commit"] + 1
            manifest = {**state.manifest, **facts}
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
                    manifest["deleted"] = write_deleted(self.folder, f"deleted-{number}", deleted)
            self._accept(segments, deleted, manifest)

    def compact(self) -> None:
        """One segment in the place of all, without the deleted rows."""
        with self._committing() as state:
            if len(state.segments) < 2 and not len(state.deleted):
                return
            keep = [state.alive(number) for number in range(len(state.segments))]
            merged = merge_segments(state.segments, keep)
            epoch = state.manifest["epoch"] + bool(len(state.deleted))
            segments = [self._stored(state.manifest["commit"] + 1, merged)] if len(merged) else []
            self._accept(segments, np.zeros(0, dtype=np.int64), {**state.manifest, "epoch": epoch, "deleted": None})

    @contextlib.contextmanager
    def _committing(self) -> Iterator[Snapshot]:
        """A commit that fails may have reached the disk or not: the next writer reads what is there."""
        with self._threads:
            try:
                yield self.state
            except BaseException:
                self.release()
                raise

    def _stored(self, number: int, segment: Segment) -> Segment:
        if self.folder is None:
            return in_memory(segment)
        return write_segment(self.folder, number, segment, self.state.space)

    def _accept(self, segments: Sequence[Segment], deleted: Positions, manifest: dict[str, Any]) -> None:
        """The moment from which the change counts."""
        manifest |= {"commit": self.manifest["commit"] + 1, "segments": [segment.record for segment in segments]}
        if self.folder:
            with saying_where(self.folder):
                sync(self.folder)  # the new files' names come before the manifest that counts on them
            disk.write_manifest(self.folder, manifest)
        self.state = Snapshot(segments, deleted, manifest)
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
