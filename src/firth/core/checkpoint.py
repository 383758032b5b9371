"""Checkpoints of long work: what a killed run goes on from."""

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
    """Arrays and a small state, saved every so often; whole or the one before, never half.

    `identity` says what is being learned from what: a checkpoint of something else is refused.
    """

    def __init__(self, folder: str | Path | None, every: float, identity: Mapping[str, Any]) -> None:
        self.folder = Path(folder) if folder is not None and every > 0 else None
        self.every = every
        self.identity = dict(identity)
        self.last = time.monotonic()

    def load(self) -> tuple[dict[str, NDArray[Any]], dict[str, Any]] | None:
        """The last checkpoint, or None when there is none."""
        if self.folder is None or not (self.folder / STATE).exists():
            return None
        with self.restoring():
            record = read_json(self.folder / STATE)
            identity, name, state, hashes = (record.get(key) for key in ("identity", "arrays", "state", "sha256"))
            if not isinstance(identity, dict) or not isinstance(state, dict) or Path(name).name != name:
                raise FirthError("damaged_checkpoint", "{name} has no identity, arrays and state", name=STATE)
        if identity != self.identity:
            raise FirthError(
                "other_run",
                "{folder} holds an unfinished run with other settings ({difference}); run that command again to "
                "resume it, or overwrite it.",
                folder=self.folder,
                difference=difference(record, self.identity),
            )
        with self.restoring():
            path = self.folder / name
            if hashes is not None and hashes != hashes_of(path, identity, state):  # earlier versions wrote none
                raise FirthError("damaged_checkpoint", "{name} or {state} was changed", name=name, state=STATE)
            arrays = read_arrays(path, in_memory=True)
            check_finite({name: array for name, array in arrays.items() if array.dtype.kind == "f"})
        return arrays, state

    @contextlib.contextmanager
    def restoring(self) -> Iterator[None]:
        """Around what takes a checkpoint up again: whatever its files make fail is told with the way out."""
        try:
            yield
        except (FirthError, *DAMAGE) as error:
            raise FirthError(
                "damaged_checkpoint",
                "The checkpoint in {folder} is damaged ({reason}). Delete this folder to start over; a finished model "
                "beside it is not touched.",
                folder=self.folder,
                reason=str(error) if isinstance(error, FirthError) else f"{type(error).__name__}: {error}",
            ) from error

    def due(self) -> bool:
        return self.folder is not None and time.monotonic() - self.last >= self.every

    def save(self, arrays: Mapping[str, NDArray[Any]], state: Mapping[str, Any]) -> None:
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
                # The state names the arrays it belongs to: replacing it is the moment the new checkpoint counts.
                write_json(self.folder / "next.json", record | {"sha256": hashes})
                (self.folder / "next.json").replace(self.folder / STATE)
            except BaseException:  # a full disk: what there is of it goes, the checkpoint before stays
                for half in ("next.json", name):
                    (self.folder / half).unlink(missing_ok=True)
                raise
            sync(self.folder)
            for path in old:
                path.unlink()
        self.last = time.monotonic()


@contextlib.contextmanager
def interrupts_held() -> Iterator[None]:
    """Ctrl-C within the block is answered at its end: a step that changes tables and then says how far it came must
    not be cut in between, or a checkpoint would hold tables that are ahead of their state."""
    if threading.current_thread() is not threading.main_thread():
        yield  # signals are answered by the main thread alone
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
    """Of the arrays and of what is said of them."""
    text = json.dumps([identity, state], sort_keys=True).encode()
    return {"arrays": fingerprint(path)["sha256"], "state": hashlib.sha256(text).hexdigest()}


def difference(record: Mapping[str, Any], identity: Mapping[str, Any]) -> str:
    """The first thing in which two identities differ, in words."""
    old = flat(record.get("identity") or {})
    new = flat(identity)
    for name in [*new, *old]:
        if old.get(name) != new.get(name):
            if name == "data":  # a fingerprint says nothing to anyone
                return "of other data, or of the same read in another way"
            return f"{name} was {old.get(name)!r}, now {new.get(name)!r}"
    return "of another version"


def flat(values: Mapping[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for name, value in values.items():
        found |= flat(value) if isinstance(value, Mapping) else {name: value}
    return found
