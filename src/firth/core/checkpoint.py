"""Checkpoints, from which an interrupted run resumes."""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import threading
import time
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from numpy.typing import NDArray

from firth.core.errors import FirthError
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


class Checkpoints:
    """Arrays and a small state, saved at intervals and replaced atomically.

    `identity` describes the run (method, options, data); checkpoints of other runs are refused.
    """

    def __init__(self, folder: str | Path | None, every: float, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder) if folder is not None and every > 0 else None
        self.every = every
        self.identity = dict(identity)
        self.last = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The last checkpoint, or None."""
        if self.folder is None or not (self.folder / STATE).exists():
            return None
        with self.restoring():
            record = read_json(self.folder / STATE)
            identity, name, state, hashes = (record.get(key) for key in ("identity", "arrays", "state", "sha256"))
            if not isinstance(identity, dict) or not isinstance(state, dict) or Path(name).name != name:
                raise FirthError("damaged_checkpoint", "{name} lacks the identity, arrays or state", name=STATE)
        if identity != self.identity:
            raise FirthError(
                "other_run",
                "{folder} contains an unfinished run with other settings ({difference}). Repeat that command to "
                "resume it, or overwrite it.",
                folder=self.folder,
                difference=difference(record, self.identity),
            )
        with self.restoring():
            path = self.folder / name
            if hashes is not None and hashes != hashes_of(path, identity, state):  # earlier versions stored no hashes
                raise FirthError("damaged_checkpoint", "{name} or {state} was changed", name=name, state=STATE)
            arrays = read_arrays(path, in_memory=True)
            check_finite({name: array for name, array in arrays.items() if array.dtype.kind == "f"})
        return arrays, state

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

    def save(self, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
        """Write a checkpoint, then remove the previous one."""
        if self.folder is None:
            return
        with saying_where(self.folder):
            self.folder.mkdir(parents=True, exist_ok=True)
            old = set(self.folder.glob("checkpoint-*.safetensors"))
            name = next(name for n in range(3) if self.folder / (name := f"checkpoint-{n}.safetensors") not in old)
            try:
                write_arrays(self.folder / name, arrays)
                record = {"identity": self.identity, "arrays": name, "state": dict(state)}
                hashes = hashes_of(self.folder / name, self.identity, state)
                # The state names its arrays file, so replacing the state commits the new checkpoint.
                write_json(self.folder / "next.json", record | {"sha256": hashes})
                (self.folder / "next.json").replace(self.folder / STATE)
            except BaseException:  # such as a full disk: remove the partial checkpoint, keep the previous one
                for partial in ("next.json", name):
                    (self.folder / partial).unlink(missing_ok=True)
                raise
            sync(self.folder)
            for path in old:
                path.unlink()
        self.last = time.monotonic()


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Defer Ctrl-C and SIGTERM to the end of the block. A step that updates tables and then records its progress must
    not be interrupted in between, or a checkpoint would contain tables that do not match its state."""
    if threading.current_thread() is not threading.main_thread():
        yield  # only the main thread handles signals
        return
    caught: list[tuple[int, Any]] = []
    handlers = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    held = {number: handler for number, handler in handlers.items() if callable(handler)}
    for number in held:
        signal.signal(number, lambda *call: caught.append(call))
    try:
        yield
    finally:
        for number, handler in held.items():
            signal.signal(number, handler)
    for first, frame in caught[:1]:
        held[signal.Signals(first)](first, frame)


def hashes_of(path: Path, identity: Mapping[str, Any], state: Mapping[str, Any]) -> dict[str, str]:
    """Hashes of the arrays, and of identity and state."""
    text = json.dumps([identity, state], sort_keys=True).encode()
    return {"arrays": fingerprint(path)["sha256"], "state": hashlib.sha256(text).hexdigest()}


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
