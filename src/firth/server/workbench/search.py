"""/api/indexes and /api/search: make an index, ask it, see why."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.index import Hit, Index
from firth.index.explain import explain
from firth.index.segment import TEXT, values_of
from firth.index.where import written
from firth.index.words import words_of
from firth.server.errors import RequestError
from firth.server.models import Models
from firth.server.workspace import Workspace

VALUES = 24  # different values of a column that are offered to choose from
WORDS = re.compile(r"\w+")

router = APIRouter()


@router.get("/indexes")
def indexes(request: Request) -> dict[str, Any]:
    """Each with its columns, and what they can be filtered by."""
    models: Models = request.app.state.models
    found: list[dict[str, Any]] = []
    for name in models.index_names():
        about: dict[str, Any] = {"name": name, "path": str(models.index_path(name))}
        try:
            about |= models.describe_index(name, description)
        except FirthError as error:
            about["error"] = str(error)
        found.append(about)
    return {"indexes": found}


def description(index: Index) -> dict[str, Any]:
    made = index.store.manifest.get("model") or {}
    model = made.get("path")
    model = model if model and Path(model).exists() else None
    # By words where it has texts, by meaning where its model is at hand.
    words = ["words"] if TEXT in index.columns else []
    return {
        "rows": len(index),
        "dim": index.space.dim,
        "method": made.get("method"),
        "model": model,
        "modes": [*(["both"] if words and model else []), *(["vector"] if model else []), *words],
        "columns": [column(index, each) for each in index.columns if each != TEXT],
    }


def column(index: Index, name: str) -> dict[str, Any]:
    import pyarrow.compute as pc
    import pyarrow.types as kinds

    kind = index.columns[name]
    parts = [segment.table.column(name) for segment in index.store.state.segments]
    if kinds.is_integer(kind) or kinds.is_floating(kind):
        ends = [pc.min_max(part).as_py() for part in parts]
        low = min((end["min"] for end in ends if end["min"] is not None), default=None)
        high = max((end["max"] for end in ends if end["max"] is not None), default=None)
        return {"name": name, "written": written(name), "kind": "number", "low": low, "high": high}
    values = sorted({value for part in parts for value in values_of(pc.unique(part), name) if isinstance(value, str)})
    return {"name": name, "written": written(name), "kind": "text", "values": values if len(values) <= VALUES else []}


class Searching(BaseModel):
    """As `firth search` has it."""

    index: str
    query: str = Field(min_length=1, max_length=10_000)
    k: int = Field(10, ge=1, le=100)
    mode: str = "both"
    where: str | None = None


@router.post("/search")
def search(request: Request, asked: Searching) -> dict[str, Any]:
    index = request.app.state.models.index(asked.index)
    hits = index.search(asked.query, asked.k, where=asked.where or None, mode=asked.mode)
    return {"hits": [found(index, asked, hit) for hit in hits]}


def found(index: Index, asked: Searching, hit: Hit) -> dict[str, Any]:
    values = json.loads(json.dumps(dict(hit.attributes), default=str))
    text = str(values.pop(TEXT, None) or "")
    because = reasons(index, asked.query, text) if asked.mode != "words" else []
    words = telling(words_of(asked.query))
    near = telling([reason["text"].lower() for reason in because if reason["query"].lower() in words])
    return {
        "key": hit.key,
        "score": hit.score,
        "text": text,
        "attributes": values,
        "marks": marks(text, words, near),
        "because": because,
    }


def reasons(index: Index, query: str, text: str) -> list[dict[str, Any]]:
    """Pairs of words that made the match; none where the model is no mean of word vectors."""
    try:
        return [share._asdict() for share in explain(index.model, query, text)] if index.model else []
    except FirthError:
        return []


def telling(words: list[str]) -> set[str]:
    """Without the shortest, such as "of" and "a", unless there are no others."""
    return {word for word in words if len(word) > 2} or set(words)


def marks(text: str, words: set[str], near: set[str]) -> list[dict[str, Any]]:
    """Where the query's words stand in a text ("same"), and words that are near to them ("near")."""
    told = []
    for match in WORDS.finditer(text):
        word = match.group().lower()
        if word in words or word in near:
            kind = "same" if word in words else "near"
            told.append({"start": match.start(), "end": match.end(), "kind": kind})
    return told


class Indexing(BaseModel):
    """As `firth index build` has it."""

    model: str
    source: str
    name: str
    unit: str = "line"
    column: str = ""
    key: str = ""
    attributes: list[str] = []


@router.post("/index")
def make(request: Request, asked: Indexing) -> dict[str, Any]:
    workspace: Workspace = request.app.state.workspace
    if asked.name in workspace.models.index_names():
        raise RequestError(
            409, f"There is an index {asked.name!r} already; give another name.", field="name", code="output_exists"
        )
    folder = workspace.output(asked.name)
    arguments = ["index", "build", str(workspace.models.path(asked.model)), str(workspace.source(asked.source))]
    arguments += ["-o", str(folder), f"--unit={asked.unit}", "--json"]
    arguments += [f"--{name}={value}" for name in ("column", "key") if (value := getattr(asked, name))]
    arguments += [f"--attributes={','.join(asked.attributes)}"] if asked.attributes else []

    def done(_: Any) -> dict[str, Any]:
        workspace.models.add_index(asked.name, folder)
        return {"index": asked.name}

    about = {"model": asked.model, "source": asked.source}
    return workspace.jobs.start(arguments, asked.name, about, done, folder).to_json()
