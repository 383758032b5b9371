"""Training into a folder: what was killed goes on, what is finished is not done twice, nothing else is touched.

While a run is under way its state stands in FOLDER/.unfinished: command.json says what is being learned from what,
the checkpoints beside it how far it is. An older model in FOLDER can be used until the new one takes its place.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firth.core.card import CARD
from firth.core.checkpoint import STATE, difference
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model
from firth.core.options import options_of
from firth.core.processes import is_first_process, refuse_processes
from firth.core.run import Run
from firth.core.saved import load
from firth.core.storage import (
    CONFIG,
    MAPS,
    TRAINING,
    check_writable,
    hold,
    read_json,
    saying_where,
    temporary,
    write_json,
)

UNFINISHED = ".unfinished"
COMMAND = "command.json"
LOCK = "lock"


class Trained(NamedTuple):
    """`status` is "trained", "resumed" (a run that was broken off went on) or "already finished"."""

    model: Model
    folder: Path
    status: str


def train(
    method: Method,
    data: Any,
    folder: str | os.PathLike[str],
    *,
    run: Run = Run(),
    start: Model | None = None,
    overwrite: bool = False,
    command: str = "",
    license: str = "",
) -> Trained:
    """`method.fit(data, run, start)`, saved in `folder`, with checkpoints there on the way.

    If `folder` holds an unfinished run of the same method, options, data, start and run settings, that one goes on; if
    it holds its finished model, that one is given back. Anything else in it is refused, or with `overwrite` replaced
    once the new model is complete (`overwrite` also trains a finished model again). `command` is what the user typed,
    for `firth info`; `license` is that of the data, for the model card.
    """
    place = Path(folder)
    check_first(method, run, place)
    identity = identity_of(method, data, run, start)
    told = data is None or identity["data"] is not None  # None: the method needs none
    if not overwrite and told and finished_identity(place) == identity:
        return Trained(load(place), place, "already finished")
    if not is_first_process():  # of several under torchrun, one writes
        return Trained(method.fit(data, run, start), place, "trained")
    check_target(place, identity, overwrite)
    with sitting(place) as work:
        check_target(place, identity, overwrite)  # again, now that no other process can change it
        resumed = unfinished_identity(place) == identity and (work / STATE).exists()
        if not resumed:
            begin(work, identity, command)
        model = method.fit(data, dataclasses.replace(run, checkpoint_folder=work), start)
        model.training = {**model.training, "command": identity, **({"license": license} if license else {})}
        model.save(place, overwrite=True)
    return Trained(model, place, "resumed" if resumed else "trained")


def check_first(method: Method, run: Run, folder: Path) -> None:
    """Refuses what can be refused without reading data: a device, processes or an output folder that cannot be used."""
    method.check_run(run)
    if not method.in_processes:
        refuse_processes(type(method).__name__)
    check_folder(folder)


def identity_of(method: Method, data: Any, run: Run, start: Model | None) -> dict[str, Any]:
    """What makes two runs the same one: equal identities give the same model (of threads that race, an equally good
    one). `data` is None where it can't be told without reading it, or where a function reads it, whose name does not
    say what it does."""
    by_function = any(callable(getattr(method, item.name)) for item in options_of(method))
    fingerprint = None if by_function else getattr(data, "fingerprint", None)
    identity = {
        "method": type(method).method_name(),
        "options": method.options(),
        "data": fingerprint() if callable(fingerprint) else fingerprint,
        "start": None if start is None else model_hash(start),
        **{name: getattr(run, name) for name in ("seed", "deterministic", "budget", "memory")},
    }
    return dict(json.loads(json.dumps(identity)))  # as it is read back


def model_hash(model: Model) -> str:
    parts = model.parts()
    documents = {name: parts.documents[name] for name in sorted(parts.documents)}
    digest = hashlib.sha256(json.dumps([model.method.options(), documents]).encode())
    for name in sorted(parts.arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(parts.arrays[name]).data)
    return digest.hexdigest()


def finished_identity(folder: Path) -> dict[str, Any] | None:
    """The identity of the run that made the model in `folder`; None where there is no such model."""
    return read_identity(folder / TRAINING, "command") if (folder / CONFIG).is_file() else None


def unfinished_identity(folder: Path) -> dict[str, Any] | None:
    """The identity of the run under way in `folder`; None where there is none."""
    work, found = folder / UNFINISHED, None
    with contextlib.suppress(FirthError):
        found = read_identity(work / COMMAND, "identity")
    if found is None and (work / STATE).exists():
        raise FirthError(
            "damaged_checkpoint",
            "{folder} holds a checkpoint, and {command} no longer says of what. Delete this folder to start over; a "
            "finished model beside it is not touched.",
            folder=work,
            command=COMMAND,
        )
    return found


def read_identity(path: Path, name: str) -> dict[str, Any] | None:
    record = read_json(path) if path.is_file() else None
    found = record.get(name) if isinstance(record, dict) else None
    return found if isinstance(found, dict) else None


def check_folder(folder: Path) -> set[str]:
    """Refuses a folder that cannot be written or holds files that are no model's; the names in it."""
    with saying_where(folder):
        check_writable(folder)
        if folder.exists() and not folder.is_dir():
            raise FirthError(
                "unsafe_output", "{folder} is a file; choose another place for the model's folder.", folder=folder
            )
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    others = sorted(name for name in names if name not in (UNFINISHED, MAPS) and not is_part(folder / name))
    if others or (names and not names & {CONFIG, UNFINISHED}):
        some = ", ".join(others[:3] or sorted(names)[:3])
        raise FirthError(
            "unsafe_output",
            "{folder} holds other files ({examples}), which Firth does not replace; choose another folder.",
            folder=folder,
            examples=some,
        )
    return names


def check_target(folder: Path, identity: dict[str, Any], overwrite: bool) -> None:
    """Refuses a folder that holds another model or run, unless it may be overwritten."""
    names = check_folder(folder)
    unfinished = unfinished_identity(folder)
    if overwrite or unfinished == identity:
        return
    if unfinished is not None:
        raise FirthError(
            "other_run",
            "{folder} holds an unfinished run of another command ({difference}); repeat that command to go on "
            "with it (`firth info {folder}` shows it), or overwrite it (--overwrite).",
            folder=folder,
            difference=difference({"identity": unfinished}, identity),
        )
    if CONFIG in names:
        finished = finished_identity(folder)
        why = difference({"identity": finished}, identity) if finished else "saved by hand"
        if finished == identity:
            why = "whether from the same data can't be told"
        raise FirthError(
            "other_run",
            "{folder} holds another model ({reason}); choose another folder, or overwrite it (--overwrite).",
            folder=folder,
            reason=why,
        )


def is_part(path: Path) -> bool:
    """Whether models are made of such files: --overwrite must not empty a folder of other work."""
    if path.is_dir():  # as sentence-transformers keeps the pooling
        return {file.name for file in path.iterdir()} == {"config.json"}
    return path.suffix in (".json", ".safetensors") or path.name == CARD


def begin(work: Path, identity: dict[str, Any], command: str) -> None:
    """A new run: checkpoints of another one go."""
    with saying_where(work):
        for path in work.iterdir():
            if path.name != LOCK:
                path.unlink()
        write_json(work / "next.json", {"identity": identity, "typed": command})
        (work / "next.json").replace(work / COMMAND)


@contextlib.contextmanager
def sitting(folder: Path) -> Iterator[Path]:
    """FOLDER/.unfinished, for this process alone. It stays while it holds a checkpoint; else nothing is left of it."""
    work, handle = folder / UNFINISHED, None
    try:
        with saying_where(folder):
            work.mkdir(parents=True, exist_ok=True)
            handle = lock(work, folder)
        with temporary(folder.resolve(), tempfile.mkdtemp):
            pass  # the model will be written beside the folder: better to know now than in an hour that it can't be
        yield work
    finally:
        if handle is not None and not (work / STATE).exists():
            shutil.rmtree(work, ignore_errors=True)
        for path in (work, folder):
            with contextlib.suppress(OSError):  # holds a checkpoint, the lock of another process or an older model
                path.rmdir()
        if handle is not None:
            os.close(handle)


def lock(work: Path, folder: Path) -> int:
    """An open lock file: gone with the process, however it ends."""
    try:
        return hold(work / LOCK, os.O_RDWR | os.O_CREAT)
    except (BlockingIOError, FileNotFoundError):  # held, or removed with the run that just ended
        raise FirthError(
            "locked", "Another process is training into {folder}; wait for it, or choose another folder.", folder=folder
        ) from None
