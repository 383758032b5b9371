"""Training into a folder: interrupted runs resume, finished runs are not repeated, other files are not touched.

The state of a run is in FOLDER/.unfinished: command.json identifies the run, and checkpoints hold its progress. An
older model in FOLDER stays usable until the new one replaces it.
"""

from __future__ import annotations

import contextlib
import dataclasses
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator, Set
from pathlib import Path
from typing import Any, Generic

import numpy as np

from firth.core.card import CARD
from firth.core.checkpoint import STATE, difference
from firth.core.errors import FirthError
from firth.core.method import Method, check_cluster
from firth.core.model import Model, merged
from firth.core.options import options_of
from firth.core.processes import is_first_process, refuse_processes
from firth.core.remote import AnyPath, RemotePath, as_path
from firth.core.run import Run
from firth.core.saved import M, Trains, load
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


@dataclasses.dataclass(frozen=True)
class Trained(Generic[M]):
    """The result of `train`; `status` is "trained", "resumed" or "already finished"."""

    model: M
    folder: AnyPath
    status: str


def train(
    method: Trains[M],
    data: Any,
    folder: str | os.PathLike[str],
    *,
    run: Run = Run(),
    start: Model | None = None,
    overwrite: bool = False,
    command: str = "",
    license: str = "",
) -> Trained[M]:
    """Train with `method.fit(data, run, start)` and save the model in `folder`, with checkpoints on the way.

    An unfinished run in `folder` with the same method, options, data, start and run settings is resumed; the model of a
    finished one is returned. Other models are refused, or replaced with `overwrite` once the new model is complete.
    `command` is the user's command line, for `firth info`; `license` is that of the data, for the model card.
    """
    assert isinstance(method, Method)
    target = as_path(folder)
    if isinstance(target, RemotePath):
        return train_to_url(method, data, target, run, start, overwrite, license)
    check_first(method, run, target)
    identity = identity_of(method, data, run, start)
    identified = data is None or identity["data"] is not None  # data may be None: Distil needs none
    if not overwrite and identified and finished_identity(target) == identity:
        return Trained(load(target, type(method)), target, "already finished")
    if not is_first_process():  # rank 0 writes the model; checkpoints are written by all
        shared = dataclasses.replace(run, checkpoint_folder=target / UNFINISHED)
        return Trained(method.fit(data, shared, start), target, "trained")
    check_target(target, identity, overwrite)
    with session(target) as work:
        check_target(target, identity, overwrite)  # again, now that the folder is locked
        resumed = unfinished_identity(target) == identity and (work / STATE).exists()
        if not resumed:
            begin(work, identity, command)
        model = method.fit(data, dataclasses.replace(run, checkpoint_folder=work), start)
        model.training = {**model.training, "command": identity, **({"license": license} if license else {})}
        model.save(target, overwrite=True)
    return Trained(model, target, "resumed" if resumed else "trained")


def train_to_url(
    method: Trains[M], data: Any, folder: RemotePath, run: Run, start: Model | None, overwrite: bool, license: str
) -> Trained[M]:
    """Train without checkpoints, which need a folder of this machine, and upload the model."""
    assert isinstance(method, Method)
    check_first(method, run, folder)
    identity = identity_of(method, data, run, start)
    if not overwrite and (folder / CONFIG).is_file():
        model = load(str(folder), type(method))
        if data is not None and identity["data"] is not None and model.training.get("command") == identity:
            return Trained(model, folder, "already finished")
        raise FirthError(
            "other_run",
            "{folder} contains another model ({reason}). Choose another folder, or overwrite it (--overwrite).",
            folder=folder,
            reason="trained by another command or on other data",
        )
    model = method.fit(data, run, start)
    if is_first_process():
        model.training = {**model.training, "command": identity, **({"license": license} if license else {})}
        model.save(str(folder), overwrite=True)
    return Trained(model, folder, "trained")


def check_first(method: Method, run: Run, folder: AnyPath) -> None:
    """Check device, processes and output folder before any data are read."""
    check_cluster(method, run)
    method.check_run(run)
    if not method.in_processes:
        refuse_processes(type(method).__name__)
    if not isinstance(folder, RemotePath):
        check_folder(folder)
        return
    if run.checkpoint_every:
        raise FirthError(
            "conflicting_options",
            "Checkpoints cannot be written to {folder}. Train into a folder of this machine and copy the model "
            "(`firth convert FOLDER {folder}`), or train without checkpoints (checkpoint_every=0, "
            "--checkpoint-every 0).",
            folder=folder,
        )
    (folder / CONFIG).check_writable()


def identity_of(method: Method, data: Any, run: Run, start: Model | None) -> dict[str, Any]:
    """What identifies a run: equal identities give the same model, or an equivalent one without `deterministic`. `data`
    is None if they have no fingerprint, or if a tokenizer function reads them, whose name does not identify it."""
    by_function = any(callable(getattr(method, item.name)) for item in options_of(method))
    fingerprint = None if by_function else getattr(data, "fingerprint", None)
    identity = {
        "method": type(method).method_name(),
        "options": method.options(),
        "data": fingerprint() if callable(fingerprint) else fingerprint,
        "start": None if start is None else model_hash(start),
        **{name: getattr(run, name) for name in ("seed", "deterministic", "budget", "memory")},
    }
    return dict(json.loads(json.dumps(identity)))  # as it is after reading


def model_hash(model: Model) -> str:
    """Return a hash of a model's options, documents and arrays."""
    parts = merged(model).parts()
    documents = {name: parts.documents[name] for name in sorted(parts.documents)}
    digest = hashlib.sha256(json.dumps([model.method.options(), documents]).encode())
    for name in sorted(parts.arrays):
        digest.update(name.encode())
        digest.update(np.ascontiguousarray(parts.arrays[name]).data)
    return digest.hexdigest()


def finished_identity(folder: Path) -> dict[str, Any] | None:
    """The identity of the run that trained the model in `folder`; None if there is none."""
    return read_identity(folder / TRAINING, "command") if (folder / CONFIG).is_file() else None


def unfinished_identity(folder: Path) -> dict[str, Any] | None:
    """The identity of the unfinished run in `folder`; None if there is none."""
    work, identity = folder / UNFINISHED, None
    with contextlib.suppress(FirthError):
        identity = read_identity(work / COMMAND, "identity")
    if identity is None and (work / STATE).exists():
        raise FirthError(
            "damaged_checkpoint",
            "{folder} contains a checkpoint, but {command} does not identify its run. Delete this folder to start "
            "over; a finished model beside it is not affected.",
            folder=work,
            command=COMMAND,
        )
    return identity


def read_identity(path: Path, name: str) -> dict[str, Any] | None:
    """Return the identity of a run in a stored record; None if there is none."""
    record = read_json(path) if path.is_file() else None
    identity = record.get(name) if isinstance(record, dict) else None
    return identity if isinstance(identity, dict) else None


def check_folder(folder: Path) -> set[str]:
    """Check that a folder can be written and contains nothing but a model; return the names in it."""
    with saying_where(folder):
        check_writable(folder)
        if folder.exists() and not folder.is_dir():
            raise FirthError("unsafe_output", "{folder} is a file. Choose another folder for the model.", folder=folder)
        names = {path.name for path in folder.iterdir()} if folder.exists() else set()
    listed = listed_files(folder)
    others = sorted(name for name in names if name not in (UNFINISHED, MAPS) and not is_part(folder / name, listed))
    if others or (names and not names & {CONFIG, UNFINISHED}):
        some = ", ".join(others[:3] or sorted(names)[:3])
        raise FirthError(
            "unsafe_output",
            "{folder} contains other files ({examples}), which Firth does not replace. Choose another folder.",
            folder=folder,
            examples=some,
        )
    return names


def check_target(folder: Path, identity: dict[str, Any], overwrite: bool) -> None:
    """Check that a folder contains no other model or run, unless it may be overwritten."""
    names = check_folder(folder)
    unfinished = unfinished_identity(folder)
    if overwrite or unfinished == identity:
        return
    if unfinished is not None:
        raise FirthError(
            "other_run",
            "{folder} contains an unfinished run of another command ({difference}). Repeat that command to resume it "
            "(`firth info {folder}` shows it), or overwrite it (--overwrite).",
            folder=folder,
            difference=difference({"identity": unfinished}, identity),
        )
    if CONFIG in names:
        finished = finished_identity(folder)
        reason = difference({"identity": finished}, identity) if finished else "saved with save()"
        if finished == identity:
            reason = "it is not known whether its data were the same"
        raise FirthError(
            "other_run",
            "{folder} contains another model ({reason}). Choose another folder, or overwrite it (--overwrite).",
            folder=folder,
            reason=reason,
        )


def is_part(path: Path, listed: Set[Path]) -> bool:
    """Whether a file or folder may belong to a model, so that --overwrite may delete it. Those in `listed` do."""
    if path.is_dir():  # a part with files of its own, such as the pooling or the base of a linear model
        files = {file for file in path.rglob("*") if not file.is_dir()}
        return bool(files) and (files <= listed or {*path.iterdir()} == {path / CONFIG})
    return path.suffix in (".json", ".safetensors") or path.name == CARD


def listed_files(folder: Path) -> Set[Path]:
    """Return the files that the model in `folder` lists as its own."""
    config: Any = None
    with contextlib.suppress(FirthError):
        config = read_json(folder / CONFIG)
    files = config.get("files") if isinstance(config, dict) else None
    return {folder / name for name in files} if isinstance(files, dict) else set()


def begin(work: Path, identity: dict[str, Any], command: str) -> None:
    """Start a new run: remove checkpoints of others."""
    with saying_where(work):
        for path in work.iterdir():
            if path.name != LOCK:
                path.unlink()
        write_json(work / "next.json", {"identity": identity, "typed": command})
        (work / "next.json").replace(work / COMMAND)


@contextlib.contextmanager
def session(folder: Path) -> Iterator[Path]:
    """FOLDER/.unfinished, locked by this process. It is removed at the end unless it contains a checkpoint."""
    work, handle = folder / UNFINISHED, None
    try:
        with saying_where(folder):
            work.mkdir(parents=True, exist_ok=True)
            handle = lock(work, folder)
        with temporary(folder.resolve(), tempfile.mkdtemp):
            pass  # check now that the model can be written beside the folder later
        yield work
    finally:
        if handle is not None and not (work / STATE).exists():
            shutil.rmtree(work, ignore_errors=True)
        for path in (work, folder):
            with contextlib.suppress(OSError):  # not empty: a checkpoint, a lock or an older model
                path.rmdir()
        if handle is not None:
            os.close(handle)


def lock(work: Path, folder: Path) -> int:
    """Lock the folder until this process ends."""
    try:
        return hold(work / LOCK, os.O_RDWR | os.O_CREAT)
    except (BlockingIOError, FileNotFoundError):  # locked, or removed by a run that just ended
        raise FirthError(
            "locked", "Another process is training into {folder}. Wait for it, or choose another folder.", folder=folder
        ) from None
