"""Checkpoints, from which an interrupted run resumes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.processes import Alone, on_each, on_first
from firth.core.storage import (
    DAMAGE,
    fingerprint,
    read_arrays,
    read_json,
    saying_where,
    sync,
    write_arrays,
    write_json,
)
from firth.core.stored import check_finite

STATE = "checkpoint.json"


class RowShards(Mapping[str, "NDArray[Any]"]):
    """The arrays of a checkpoint whose rows are divided among files, concatenated when they are used."""

    def __init__(self, files: Sequence[Mapping[str, NDArray[Any]]]) -> None:
        self.files = files

    def __getitem__(self, name: str) -> NDArray[Any]:
        shards = [arrays[name] for arrays in self.files]
        return np.concatenate(shards) if shards[0].ndim else shards[0]

    def __iter__(self) -> Iterator[str]:
        return iter(self.files[0])

    def __len__(self) -> int:
        return len(self.files[0])


class Checkpoints:
    """Arrays and a small state, saved at intervals and replaced atomically.

    `identity` describes the run (method, options, data); checkpoints of other runs are refused. Each process of a group
    writes its rows of every array to a file of its own, and rank 0 writes the state, which names the files. A
    checkpoint can be read by another number of processes.
    """

    def __init__(
        self, folder: str | Path | None, every: float, identity: Mapping[str, Any], group: Alone | None = None
    ) -> None:
        self.folder = Path(folder) if folder is not None and every > 0 else None
        self.every = every
        self.identity = dict(identity)
        self.group = group or Alone()
        self.last = time.monotonic()

    def load(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]] | None:
        """The last checkpoint, or None. Every process of a group calls it and returns all arrays."""
        if self.folder is None:
            return None
        folder = self.folder
        self.check_shared(folder)
        record = on_first(self.group, self.read_record)
        if record is None:
            return None
        names, hashes, state = record

        def verify() -> None:
            for number in range(self.group.rank, len(names), self.group.world):
                path = folder / names[number]
                if hashes and hashes[number] != fingerprint(path)["sha256"]:
                    raise FirthError("damaged_checkpoint", "{name} was changed", name=names[number])
                arrays = read_arrays(path)
                check_finite({name: array for name, array in arrays.items() if array.dtype.kind == "f"})

        with self.restoring():
            on_each(self.group, verify)
            files = [read_arrays(folder / name, in_memory=len(names) == 1) for name in names]
        return RowShards(files) if len(files) > 1 else files[0], state

    def read_record(self) -> tuple[list[str], list[str], dict[str, Any]] | None:
        """Return the files, their hashes (none of earlier versions) and the state of the checkpoint, or None."""
        if self.folder is None or not (self.folder / STATE).exists():
            return None
        with self.restoring():
            record = read_json(self.folder / STATE)
            identity, files, state, hashes = (record.get(key) for key in ("identity", "arrays", "state", "sha256"))
            names = [files] if isinstance(files, str) else files
            if not isinstance(identity, dict) or not isinstance(state, dict) or not names:
                raise FirthError("damaged_checkpoint", "{name} lacks the identity, arrays or state", name=STATE)
            if any(Path(name).name != name for name in names):
                raise FirthError("damaged_checkpoint", "{name} names files of other folders", name=STATE)
        if identity != self.identity:
            raise FirthError(
                "other_run",
                "{folder} contains an unfinished run with other settings ({difference}). Repeat that command to "
                "resume it, or overwrite it.",
                folder=self.folder,
                difference=difference(record, self.identity),
            )
        if hashes is None:
            return names, [], state
        with self.restoring():
            if hashes["state"] != hash_of(identity, state):
                raise FirthError("damaged_checkpoint", "{state} was changed", state=STATE)
            of_files = [hashes["arrays"]] if isinstance(hashes["arrays"], str) else hashes["arrays"]
            if len(of_files) != len(names):
                raise FirthError("damaged_checkpoint", "{state} was changed", state=STATE)
        return names, of_files, state

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """A context for restoring a checkpoint: any failure is reported as damage, with what to do."""
        try:
            yield
        except (FirthError, *DAMAGE) as error:
            raise FirthError(
                "damaged_checkpoint",
                "The checkpoint in {folder} is damaged ({reason}). Delete this folder to start over; a finished model "
                "beside it is not affected.",
                folder=self.folder,
                reason=str(error) if isinstance(error, FirthError) else f"{type(error).__name__}: {error}",
            ) from error

    def due(self) -> bool:
        """Whether it is time for the next checkpoint."""
        return self.folder is not None and time.monotonic() - self.last >= self.every

    def check_shared(self, folder: Path) -> None:
        """Raise not_shared if a process does not see the folder that rank 0 sees."""
        self.group.gather(None)  # rank 0 has created the folder when it gets here
        seen = self.group.gather(folder.exists())
        if seen[0] and not all(seen):
            raise FirthError(
                "not_shared",
                "Process {rank} of {processes} does not see {folder}, where all processes write checkpoints. Choose "
                "an output folder on a file system that all machines share.",
                rank=seen.index(False),
                processes=len(seen),
                folder=folder,
            )

    def save(self, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
        """Replace the checkpoint. Each process of a group passes its own rows of the arrays; all return together."""
        if self.folder is None:
            return
        folder, rank, world = self.folder, self.group.rank, self.group.world

        def begin() -> tuple[str, set[Path]]:
            folder.mkdir(parents=True, exist_ok=True)
            old = set(folder.glob("checkpoint-*.safetensors"))
            used = {path.name.split(".")[0].split("-")[1] for path in old}
            return next(number for number in map(str, range(len(used) + 1)) if number not in used), old

        with saying_where(folder):
            number, old = on_first(self.group, begin)
            part = f"-{rank + 1:05d}-of-{world:05d}" if world > 1 else ""
            name = f"checkpoint-{number}{part}.safetensors"

            def write() -> tuple[str, str]:
                write_arrays(folder / name, arrays)
                return name, fingerprint(folder / name)["sha256"]

            def commit() -> None:
                names, hashes = ([each[item] for each in written] for item in (0, 1))
                record = {
                    "identity": self.identity,
                    "arrays": names[0] if world == 1 else names,
                    "state": dict(state),
                    "sha256": {
                        "arrays": hashes[0] if world == 1 else hashes,
                        "state": hash_of(self.identity, dict(state)),
                    },
                }
                # The state names its files, so replacing the state commits the new checkpoint.
                with removed_on_failure(folder / "next.json", folder / name):
                    write_json(folder / "next.json", record)
                (folder / "next.json").replace(folder / STATE)
                sync(folder)
                for path in old:
                    path.unlink()

            with removed_on_failure(folder / name):
                written = on_each(self.group, write)
            on_first(self.group, commit)
        self.last = time.monotonic()


@contextlib.contextmanager
def removed_on_failure(*paths: Path) -> Iterator[None]:
    """Remove partial files if the block fails, for example because the disk is full."""
    try:
        yield
    except BaseException:
        for path in paths:
            path.unlink(missing_ok=True)
        raise


@contextlib.contextmanager
def interrupts_held() -> Iterator[list[tuple[int, Any]]]:
    """Defer Ctrl-C and SIGTERM to the end of the block. A step that updates tables and then records its progress must
    not be interrupted in between, or a checkpoint would contain tables that do not match its state. Yields the
    deferred signals."""
    caught: list[tuple[int, Any]] = []
    if threading.current_thread() is not threading.main_thread():
        yield caught  # only the main thread handles signals
        return
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda *call: caught.append(call))
    try:
        yield caught
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    for first, frame in caught[:1]:
        held[signal.Signals(first)](first, frame)


def hash_of(identity: Mapping[str, Any], state: Mapping[str, Any]) -> str:
    """The hash of identity and state."""
    return hashlib.sha256(json.dumps([identity, state], sort_keys=True).encode()).hexdigest()


def difference(record: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """A description of the first difference between two identities."""
    old = flat(record.get("identity") or {})
    new = flat(identity)
    for name in [*new, *old]:
        if old.get(name) != new.get(name):
            if name == "data":  # a fingerprint means nothing to users
                return "the data differ, or are read in another way"
            return f"{name} was {old.get(name)!r}, now {new.get(name)!r}"
    return "written by another version"


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    """Nested mappings as one level."""
    flattened: dict[str, Any] = {}
    for name, value in values.items():
        flattened |= flat(value) if isinstance(value, Mapping) else {name: value}
    return flattened
