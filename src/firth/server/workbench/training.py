"""/api/methods and /api/train: forms generated from the options of the methods, and training runs."""

from __future__ import annotations

from functools import cache
from typing import Any, NamedTuple

from fastapi import APIRouter, Request
from pydantic import BaseModel

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.options import Option, build_settings, options_of
from firth.core.run import Run
from firth.server.errors import RequestError
from firth.server.workspace import Workspace

router = APIRouter()


class Field(NamedTuple):
    """A flag of `firth train` that describes the data."""

    name: str
    help: str
    kind: str = "column"  # "column", "columns" (separated by commas), "choice", "flag", or "source" (another file)
    choices: tuple[str, ...] = ()
    needed: bool = False
    empty: str = "none"  # meaning of an empty value


UNIT = Field("unit", "Unit of a text file that is one document.", "choice", ("line", "block", "file"))
TEXT = Field("column", "Column of the texts.")
DEV = Field(
    "dev", "Dev data for model selection and early stopping; by default a part of the data is held out.", "source"
)
EXAMPLES = (
    Field("column", "Column of the texts.", needed=True),
    Field("other", "Column of the second texts, for text pairs."),
    Field("label", "Column to predict.", needed=True),
    Field("columns", "Further input columns.", "columns"),
    DEV,
)
#: Fields by the kind of data of a method. Methods of other kinds cannot be trained in the workbench.
FIELDS: dict[str, tuple[Field, ...]] = {
    "text": (UNIT, TEXT),
    "optional text": (UNIT, TEXT),
    "tagged": (UNIT, TEXT, Field("key", "Column of document names."), Field("tags", "Columns of tags.", "columns")),
    "labelled": (TEXT, Field("label", "Column of the labels.")),
    "table": (
        Field("columns", "Use only these columns.", "columns", empty="all"),
        Field("categories", "Numeric columns that are categorical.", "columns"),
    ),
    "graph": (
        Field("columns", "Columns from,to or from,to,weight.", "columns", empty="from,to,weight in this order"),
        Field("directed", "Edges are directed.", "flag"),
        Field("layout", "Each line is an edge, or a node and its neighbors.", "choice", ("edges", "adjacency")),
    ),
    "ratings": tuple(
        Field(name, f"Column of the {what}.")
        for name, what in (("user", "users"), ("item", "items"), ("value", "ratings"), ("time", "times"))
    ),
    "pairs": (
        Field("source", "Column of the source texts.", needed=True),
        Field("target", "Column of the target texts.", needed=True),
    ),
    "alike": (
        Field("column", "Column of the texts."),
        Field("other", "Pairs: column of the similar texts."),
        Field("negative", "Pairs: column of dissimilar texts."),
        Field("score", "Pairs: column of similarity scores."),
    ),
    "examples": EXAMPLES,
    "questions": (
        *(
            Field(f"{name}-column", f"Column of the {name}s.", needed=True)
            for name in ("question", "passage", "answer")
        ),
        DEV,
    ),
    "tagged words": (
        Field("column", "Column of the words.", needed=True),
        Field("tags", "Column of the tags.", needed=True),
        DEV,
    ),
}


@router.get("/methods")
def methods() -> dict[str, Any]:
    """Return what the forms need: all methods with their options, and the options of a run."""
    return {"methods": forms(), "run": [form(option) for option in options_of(Run)]}


@cache
def forms() -> list[dict[str, Any]]:
    methods = []
    for name in sorted(registry.method_classes()):
        method = registry.method(name)
        methods.append(
            {
                "name": name,
                "class": method.__name__,
                "summary": method.summary,
                "family": registry.family_of(name),
                "kind": method.kind,
                "needs_start": method.needs_start,
                "options": [form(option) for option in options_of(method)],
                "fields": [field._asdict() for field in FIELDS.get(method.kind, ())],
            }
        )
    return methods


def form(option: Option) -> dict[str, Any]:
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
    method = registry.method(body.method)
    if body.name in workspace.models.names():
        raise RequestError(
            409, f"The model {body.name!r} exists; choose another name.", field="name", code="output_exists"
        )
    if method.needs_start and not body.start:
        raise FirthError("missing_start", "{method} starts from a trained model; choose one.", method=body.method)
    fields = {field.name: field for field in FIELDS.get(method.kind, ())}
    build_settings(method, body.options)
    build_settings(Run, body.run)
    paths = {option.name for option in options_of(method) if option.path}
    missing = [name for name, field in fields.items() if field.needed and not body.data.get(name)]
    unknown = sorted(set(body.data) - set(fields))
    if missing or unknown:
        detail = f"{body.method} needs: {', '.join(missing)}." if missing else f"Unknown field: {unknown[0]!r}."
        raise FirthError(
            "unknown_option",
            "{detail} The fields of its data are: {fields}.",
            detail=detail,
            fields=", ".join(fields) or "none",
        )
    start = [str(workspace.models.path(body.start))] if body.start else []
    command = [*command_words(method), *(start if method.needs_start else []), str(workspace.source(body.source))]
    for name, value in {**body.data, **body.options, **body.run}.items():
        if name in fields and fields[name].kind == "source":
            value = str(workspace.source(str(value)))
        elif name in paths and value:
            value = str(workspace.inside(str(value), name))
        command += flag(name, value)
    return [*command, "--start", *start] if start and not method.needs_start else command


def command_words(method: type[Method]) -> list[str]:
    """Return the command that trains a method: `firth train METHOD` or `firth finetune TASK`."""
    name = method.method_name()
    return ["finetune" if registry.family_of(name) == "finetuning" else "train", name]


def flag(name: str, value: bool | int | float | str) -> list[str]:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}={value}"]  # as one argument, because a value may begin with a dash
