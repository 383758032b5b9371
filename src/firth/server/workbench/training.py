"""/api/methods and /api/train: forms from the methods' options, and runs of them."""

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
    """What has to be known of a file before it is read: a flag of `firth train`."""

    name: str
    help: str
    kind: str = "column"  # one column, "columns" with commas between, "choice", "flag", "source" (another file)
    choices: tuple[str, ...] = ()
    needed: bool = False
    empty: str = "none"  # what no columns mean


UNIT = Field("unit", "What one document of a text file is.", "choice", ("line", "block", "file"))
TEXT = Field("column", "The text's column.")
DEV = Field("dev", "Data to choose and stop by; else a part is held out.", "source")
EXAMPLES = (
    Field("column", "The texts' column.", needed=True),
    Field("other", "The column of the second texts, for text pairs."),
    Field("label", "The column to be learned.", needed=True),
    Field("columns", "Other columns to learn from.", "columns"),
    DEV,
)
#: By the methods' kind of data; a kind that is not here can't be trained in the workbench.
FIELDS: dict[str, tuple[Field, ...]] = {
    "text": (UNIT, TEXT),
    "optional text": (UNIT, TEXT),
    "tagged": (UNIT, TEXT, Field("key", "The documents' names."), Field("tags", "Columns with tags.", "columns")),
    "labelled": (TEXT, Field("label", "The labels' column.")),
    "table": (
        Field("columns", "Only these columns.", "columns", empty="all"),
        Field("categories", "Columns that look like numbers and are categories.", "columns"),
    ),
    "graph": (
        Field("columns", "Columns from,to or from,to,weight.", "columns", empty="from,to,weight by place"),
        Field("directed", "Links lead one way.", "flag"),
        Field("layout", "A line is an edge, or a node and all it is linked to.", "choice", ("edges", "adjacency")),
    ),
    "ratings": tuple(
        Field(name, f"The column of {what}.")
        for name, what in (("user", "users"), ("item", "items"), ("value", "ratings"), ("time", "times"))
    ),
    "pairs": (
        Field("source", "The sources' column.", needed=True),
        Field("target", "The targets' column.", needed=True),
    ),
    "alike": (
        Field("column", "The texts' column."),
        Field("other", "Pairs: the texts that are like them."),
        Field("negative", "Pairs: texts that are not."),
        Field("score", "Pairs: how alike they are."),
    ),
    "examples": EXAMPLES,
    "questions": (
        *(Field(f"{name}-column", f"The {name}s' column.", needed=True) for name in ("question", "passage", "answer")),
        DEV,
    ),
    "tagged words": (
        Field("column", "The words' column.", needed=True),
        Field("tags", "The tags' column.", needed=True),
        DEV,
    ),
}


@router.get("/methods")
def methods() -> dict[str, Any]:
    """Everything a form needs."""
    return {"methods": forms(), "run": [form(option) for option in options_of(Run)]}


@cache
def forms() -> list[dict[str, Any]]:
    found = []
    for name in sorted(registry.method_classes()):
        method = registry.method(name)
        found.append(
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
    return found


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


class Training(BaseModel):
    """One run."""

    method: str
    name: str
    source: str
    options: dict[str, bool | int | float | str] = {}
    run: dict[str, bool | int | float | str] = {}
    data: dict[str, bool | str] = {}
    start: str | None = None


@router.post("/train")
def train(request: Request, asked: Training) -> dict[str, Any]:
    """Begins it. What is wrong with it that can be told now is told now."""
    workspace: Workspace = request.app.state.workspace
    folder = workspace.output(asked.name, resumes=True)

    def done(_: Any) -> dict[str, Any]:
        workspace.models.add(asked.name, folder)
        return {}

    job = workspace.jobs.start(
        [*arguments(workspace, asked), "-o", str(folder), "--json"],
        asked.name,
        {"method": asked.method, "model": asked.name, "source": asked.source},
        done,
        folder,
    )
    return job.to_json()


def arguments(workspace: Workspace, asked: Training) -> list[str]:
    method = registry.method(asked.method)
    if asked.name in workspace.models.names():
        raise RequestError(
            409, f"There is a model {asked.name!r} already; give another name.", field="name", code="output_exists"
        )
    if method.needs_start and not asked.start:
        raise FirthError(
            "missing_start", "{method} goes on from a trained model: choose one to begin with.", method=asked.method
        )
    fields = {field.name: field for field in FIELDS.get(method.kind, ())}
    build_settings(method, asked.options)
    build_settings(Run, asked.run)
    paths = {option.name for option in options_of(method) if option.path}
    missing = [name for name, field in fields.items() if field.needed and not asked.data.get(name)]
    strange = sorted(set(asked.data) - set(fields))
    if missing or strange:
        what = f"{asked.method} has to be told: {', '.join(missing)}." if missing else f"It has no {strange[0]!r}."
        raise FirthError(
            "unknown_option",
            "{detail} Its data is described by {fields}.",
            detail=what,
            fields=", ".join(fields) or "nothing",
        )
    start = [str(workspace.models.path(asked.start))] if asked.start else []
    found = [*command_words(method), *(start if method.needs_start else []), str(workspace.source(asked.source))]
    for name, value in {**asked.data, **asked.options, **asked.run}.items():
        if name in fields and fields[name].kind == "source":
            value = str(workspace.source(str(value)))
        elif name in paths and value:
            value = str(workspace.inside(str(value), name))
        found += flag(name, value)
    return [*found, "--start", *start] if start and not method.needs_start else found


def command_words(method: type[Method]) -> list[str]:
    """Return the command that trains a method: `firth train METHOD` or `firth finetune TASK`."""
    name = method.method_name()
    return ["finetune" if registry.family_of(name) == "finetuning" else "train", name]


def flag(name: str, value: bool | int | float | str) -> list[str]:
    name = name.replace("_", "-")
    if isinstance(value, bool):
        return [f"--{name}" if value else f"--no-{name}"]
    return [f"--{name}={value}"]  # in one word: a value may begin with a dash
