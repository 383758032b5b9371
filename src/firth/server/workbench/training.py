"""/api/methods and /api/train: forms generated from the options of the methods, and training runs."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel

import firth
from firth.core import registry
from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.options import Option, build_settings, options_of
from firth.core.run import Run
from firth.data.readers import format_and_compression
from firth.server.errors import RequestError
from firth.server.workspace import Workspace

router = APIRouter()


@router.get("/methods")
def methods() -> dict[str, Any]:
    """Return what the forms need: all methods with their options, and the options of a run."""
    return {"methods": forms(), "run": [form(option) for option in options_of(Run)]}


@cache
def forms() -> list[dict[str, Any]]:
    """Describe the methods, with their options and the data they read."""
    methods = []
    for name in sorted(registry.method_classes()):
        method = registry.method(name)
        methods.append(
            {
                "name": name,
                "class": method.__name__,
                "summary": method.summary,
                "family": registry.family_of(name),
                "data": python_name(method.data),
                "needs_start": method.needs_start,
                "options": [form(option) for option in options_of(method)],
                "fields": [field(option) for option in method.data.file_options],
            }
        )
    return methods


def form(option: Option) -> dict[str, Any]:
    """Describe an option as a field of the form."""
    kinds = {bool: "flag", int: "whole", float: "number"}
    return {
        "name": option.name,
        "kind": "choice" if option.choices else "path" if option.path else kinds.get(option.kind, "text"),
        "default": option.default,
        "help": option.help,
        "low": option.low,
        "high": None if option.high is not None and option.high >= 2**31 else option.high,
        "choices": option.choices or (),
    }


def field(option: FileOption) -> dict[str, Any]:
    """Return the form field of an option of a data file: `name` is its flag, `keyword` that of the constructor."""
    return {
        "name": option.flag,
        "keyword": option.name,
        "help": option.help,
        "role": option.role,
        "default": option.default,
        "choices": option.choices,
        "needed": option.needed,
        "empty": ",".join(option.default) if option.role == "columns" and option.default else option.empty,
    }


def python_name(data: type[Data]) -> dict[str, str]:
    """Return the module and the name under which Python code imports a type of data."""
    public = getattr(firth, data.__name__, None) is data
    return {"module": "firth" if public else data.__module__, "class": data.__name__}


class TrainBody(BaseModel):
    """A training run."""

    method: str
    name: str
    source: str
    options: dict[str, bool | int | float | str] = {}
    run: dict[str, bool | int | float | str] = {}
    data: dict[str, bool | str] = {}
    start: str | None = None


@router.post("/train")
def train(request: Request, body: TrainBody) -> dict[str, Any]:
    """Start a training run. Options are validated before it starts."""
    workspace: Workspace = request.app.state.workspace
    folder = workspace.output(body.name, resumes=True)

    def register(_: Any) -> dict[str, Any]:
        workspace.models.add(body.name, folder)
        return {}

    job = workspace.jobs.start(
        [*arguments(workspace, body), "-o", str(folder), "--json"],
        body.name,
        {"method": body.method, "model": body.name, "source": body.source},
        register,
        folder,
    )
    return job.to_json()


def arguments(workspace: Workspace, body: TrainBody) -> list[str]:
    """Return the command line of a training, after checking names."""
    method = registry.method(body.method)
    if body.name in workspace.models.names():
        raise RequestError(
            409, f"The model {body.name!r} exists; choose another name.", field="name", code="output_exists"
        )
    if method.needs_start and not body.start:
        raise FirthError("missing_start", "{method} starts from a trained model; choose one.", method=body.method)
    build_settings(method, body.options)
    build_settings(Run, body.run)
    source = workspace.source(body.source)
    start = [str(workspace.models.path(body.start))] if body.start else []
    command = [*command_words(method), *(start if method.needs_start else []), str(source)]
    command += data_flags(workspace, method, source, body.data)
    paths = {option.name for option in options_of(method) if option.path}
    for name, value in {**body.options, **body.run}.items():
        if name in paths and value:
            value = str(workspace.inside(str(value), name))
        command += flag(name, value)
    return [*command, "--start", *start] if start and not method.needs_start else command


def data_flags(workspace: Workspace, method: type[Method], source: Path, values: Mapping[str, bool | str]) -> list[str]:
    """Return the flags that say how the data file is read."""
    options = {option.flag: option for option in method.data.file_options}
    records = bool(format_and_compression(source)[0])  # text has no columns to name
    missing = [name for name, option in options.items() if option.needed and records and not values.get(name)]
    unknown = sorted(set(values) - set(options))
    if missing or unknown:
        name = method.method_name()
        detail = f"{name} needs: {', '.join(missing)}." if missing else f"Unknown field: {unknown[0]!r}."
        raise FirthError(
            "unknown_option",
            "{detail} The fields of its data are: {fields}.",
            detail=detail,
            fields=", ".join(options) or "none",
        )
    flags = []
    for name, value in values.items():
        if options[name].role == "flag":
            flags += [f"--{name}"] if value else []
        else:
            flags += flag(name, source_paths(workspace, options[name], str(value)))
    return flags


def source_paths(workspace: Workspace, option: FileOption, value: str) -> str:
    """Return the value of an option as the command takes it: names of data files become paths."""
    if option.role != "source":
        return value
    paths = [str(workspace.source(name)) for name in (value.split(",") if option.several else [value])]
    if option.several and any("," in path for path in paths):  # the command would split it into other paths
        raise FirthError("wrong_input", "A path of {option} must not contain a comma.", option=option.flag)
    return ",".join(paths)


def command_words(method: type[Method]) -> list[str]:
    """Return the command that trains a method: `firth train METHOD` or `firth finetune TASK`."""
    name = method.method_name()
    return ["finetune" if registry.family_of(name) == "finetuning" else "train", name]


def flag(name: str, value: bool | int | float | str) -> list[str]:
    """Return an option as arguments of the command line."""
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}={value}"]  # as one argument, because a value may begin with a dash
