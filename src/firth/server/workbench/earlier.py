"""Models, indexes and runs under --root from before this server process started."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.options import options_of
from firth.core.run import Run
from firth.core.storage import CONFIG, TRAINING, read_json
from firth.core.train import COMMAND, UNFINISHED
from firth.index.folder import MANIFEST
from firth.server.workbench.training import command_words
from firth.server.workspace import Workspace, folders_under
from firth.transformers.huggingface_folder import MODULES

MAX_BYTES = 4 << 20  # of a file that describes a run
FLAG = re.compile(r"--(?:no-)?([a-z][a-z0-9-]*)(?:=(.*))?", re.DOTALL)


def restore(workspace: Workspace) -> None:
    """Add the models, indexes and runs under the root, without opening them."""
    if workspace.root is None:
        return
    runs = list[tuple[float, dict[str, Any]]]()
    for folder, files in folders_under(workspace.root):
        if folder == workspace.root:
            continue
        name = folder.relative_to(workspace.root).as_posix()
        if is_model(files):
            workspace.models.add_found(name, folder, "model", workspace.root.name)
            runs += finished_run(name, folder / TRAINING)
        elif MANIFEST in files:
            workspace.models.add_found(name, folder, "index", workspace.root.name)
        elif (folder / UNFINISHED).is_dir():
            runs += stopped_run(workspace, name, folder)
    for _, fields in sorted(runs, key=lambda run: run[0]):
        workspace.jobs.remember(**fields)


def is_model(files: Iterable[str]) -> bool:
    """Return whether a folder with these files is a model; many programs write config.json."""
    return MODULES in files or (
        CONFIG in files and any(name == TRAINING or name.endswith(".safetensors") for name in files)
    )


def read_record(path: Path) -> dict[str, Any]:
    """Read a JSON object; empty if that is not possible."""
    try:
        record = read_json(path) if path.is_file() and path.stat().st_size <= MAX_BYTES else None
    except (FirthError, OSError):
        record = None
    return record if isinstance(record, dict) else {}


def finished_run(name: str, path: Path) -> list[tuple[float, dict[str, Any]]]:
    """Return the time and the fields of a finished run; nothing if the folder does not record it."""
    training = read_record(path)
    command = training.get("command")
    if not isinstance(command, dict):
        return []
    epochs = training.get("epochs")
    losses = [epoch.get("loss") for epoch in epochs if isinstance(epoch, dict)] if isinstance(epochs, list) else []
    fields: dict[str, Any] = {
        "verb": "train",
        "title": name,
        "details": {"method": str(command.get("method")), "model": name, "earlier": True},
        "status": "finished",
        "total": 1.0,
        "done": 1.0,
        "first": 1.0,  # its speed is unknown
        "seconds": number(training.get("seconds")) or 0.0,
        "metrics": {"loss": loss} if (loss := number(training.get("loss"))) is not None else {},
        "curve": [(position, loss) for position, value in enumerate(losses, 1) if (loss := number(value)) is not None],
    }
    return [(path.stat().st_mtime, fields)]


def number(value: Any) -> float | None:
    """Return a number as float; None if the value is not one."""
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else None


def stopped_run(workspace: Workspace, name: str, folder: Path) -> list[tuple[float, dict[str, Any]]]:
    """Return the time and the fields of an unfinished run. It can be resumed if all its paths are inside the root."""
    record = read_record(folder / UNFINISHED / COMMAND)
    identity = record.get("identity")
    method = identity.get("method") if isinstance(identity, dict) else None
    if method is None:
        return []
    arguments = own_arguments(workspace, folder, record.get("typed"))

    def register(_: Any) -> dict[str, Any]:
        workspace.models.add(name, folder)
        return {}

    note = (
        f"It was not started here. Resume it in a terminal: {record.get('typed') or 'use the command that started it.'}"
    )
    fields: dict[str, Any] = {
        "verb": "train",
        "title": name,
        "arguments": arguments,
        "details": {"method": str(method), "model": name, "earlier": True},
        "on_done": register,
        "output": folder,
        "status": "stopped",
        "notes": [] if arguments else [note],
    }
    return [(folder.stat().st_mtime, fields)]


def own_arguments(workspace: Workspace, folder: Path, typed: Any) -> list[str]:
    """Return the arguments of a command in the form that `training.train` writes, if all its paths are inside the root;
    otherwise nothing. A folder may come from elsewhere and must not decide what the server runs."""
    try:
        words = shlex.split(typed) if isinstance(typed, str) else []
        program, verb, method_name, *rest = words
        method = registry.method(method_name)
        fields = {option.flag: option for option in method.data.file_options}
        options = {option.name.replace("_", "-"): option.path for option in (*options_of(method), *options_of(Run))}
        started = program == "firth" and [verb, method_name] == command_words(method)
        if not started or rest[-3:] != ["-o", str(folder), "--json"]:
            return []
        if method.needs_start:
            start, source, *flags = rest[:-3]
            starts = [start]
        else:
            source, *flags = rest[:-3]
            starts = [flags[-1]] if flags[-2:-1] == ["--start"] else []
            flags = flags[:-2] if starts else flags
        served = [str(workspace.models.path(name)) for name in workspace.models.names()]
        paths = [source, *(start for start in starts if start not in served)]
        for flag in flags:
            match = FLAG.fullmatch(flag)
            if match is None or match[1] not in {**fields, **options}:
                return []
            if match[2] and match[1] in fields and fields[match[1]].role == "source":
                paths += match[2].split(",") if fields[match[1]].several else [match[2]]
            elif match[2] and options.get(match[1]):
                paths.append(match[2])
        inside = [Path(path).is_absolute() and workspace.inside(path, "data") for path in paths]
    except (ValueError, OSError):  # FirthError is a ValueError
        return []
    return words[1:] if all(inside) else []
