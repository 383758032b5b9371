"""/api/indexes and /api/search: creating and searching indexes, with explanations."""

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
from firth.index.words import word_tokens
from firth.server.errors import RequestError
from firth.server.models import Models
from firth.server.workspace import Workspace

MAX_VALUES = 24  # different values of a column that are offered as filters
WORDS = re.compile(r"\w+")

router = APIRouter()


@router.get("/indexes")
def indexes(request: Request) -> dict[str, Any]:
    """List all indexes with their columns and the values for filters."""
    models: Models = request.app.state.models
    descriptions: list[dict[str, Any]] = []
    for name in models.index_names():
        description: dict[str, Any] = {"name": name, "path": str(models.index_path(name))}
        try:
            description |= models.describe_index(name, index_description)
        except FirthError as error:
            description["error"] = str(error)
        descriptions.append(description)
    return {"indexes": descriptions}


def index_description(index: Index) -> dict[str, Any]:
    """Describe an index: its model, columns and ways of searching."""
    identity = index.store.manifest.get("model") or {}
    model = identity.get("path")
    model = model if model and Path(model).exists() else None
    # Word search needs texts; similarity search needs the model.
    words = ["words"] if TEXT in index.columns else []
    return {
        "rows": len(index),
        "dim": index.space.dim,
        "method": identity.get("method"),
        "model": model,
        "modes": [*(["both"] if words and model else []), *(["vector"] if model else []), *words],
        "columns": [column(index, each) for each in index.columns if each != TEXT],
    }


def column(index: Index, name: str) -> dict[str, Any]:
    """Describe a column for the form of filters."""
    import pyarrow.compute as pc
    import pyarrow.types as arrow_types

    column_type = index.columns[name]
    parts = [segment.table.column(name) for segment in index.store.state.segments]
    if arrow_types.is_integer(column_type) or arrow_types.is_floating(column_type):
        ranges = [pc.min_max(part).as_py() for part in parts]
        low = min((end["min"] for end in ranges if end["min"] is not None), default=None)
        high = max((end["max"] for end in ranges if end["max"] is not None), default=None)
        return {"name": name, "written": written(name), "kind": "number", "low": low, "high": high}
    values = sorted({value for part in parts for value in values_of(pc.unique(part), name) if isinstance(value, str)})
    return {
        "name": name,
        "written": written(name),
        "kind": "text",
        "values": values if len(values) <= MAX_VALUES else [],
    }


class SearchBody(BaseModel):
    """The options of `firth search`."""

    index: str
    query: str = Field(min_length=1, max_length=10_000)
    k: int = Field(10, ge=1, le=100)
    mode: str = "both"
    where: str | None = None


@router.post("/search")
def search(request: Request, body: SearchBody) -> dict[str, Any]:
    """Search an index."""
    index = request.app.state.models.index(body.index)
    hits = index.search(body.query, body.k, where=body.where or None, mode=body.mode)
    return {"hits": [hit_json(index, body, hit) for hit in hits]}


def hit_json(index: Index, body: SearchBody, hit: Hit) -> dict[str, Any]:
    """Describe a hit, with the words that contributed to it."""
    values = json.loads(json.dumps(dict(hit.attributes), default=str))
    text = str(values.pop(TEXT, None) or "")
    contributions = reasons(index, body.query, text) if body.mode != "words" else []
    words = content_words(word_tokens(body.query))
    similar = content_words([reason["text"].lower() for reason in contributions if reason["query"].lower() in words])
    return {
        "key": hit.key,
        "score": hit.score,
        "text": text,
        "attributes": values,
        "spans": match_spans(text, words, similar),
        "contributions": contributions,
    }


def reasons(index: Index, query: str, text: str) -> list[dict[str, Any]]:
    """Return the word pairs that contribute most to the match; none if the model is not a mean of word vectors."""
    try:
        return [share._asdict() for share in explain(index.model, query, text)] if index.model else []
    except FirthError:
        return []


def content_words(words: list[str]) -> set[str]:
    """Return words without the shortest, such as "of" and "a", unless there are no others."""
    return {word for word in words if len(word) > 2} or set(words)


def match_spans(text: str, words: set[str], similar: set[str]) -> list[dict[str, Any]]:
    """Return the spans of the query's words in a text ("same"), and of words that are similar to them ("near")."""
    spans = []
    for match in WORDS.finditer(text):
        word = match.group().lower()
        if word in words or word in similar:
            kind = "same" if word in words else "near"
            spans.append({"start": match.start(), "end": match.end(), "kind": kind})
    return spans


class IndexBody(BaseModel):
    """The options of `firth index build`."""

    model: str
    source: str
    name: str
    unit: str = "line"
    column: str = ""
    key: str = ""
    attributes: list[str] = []


@router.post("/index")
def make(request: Request, body: IndexBody) -> dict[str, Any]:
    """Start a job that builds an index."""
    workspace: Workspace = request.app.state.workspace
    if body.name in workspace.models.index_names():
        raise RequestError(
            409, f"The index {body.name!r} exists; choose another name.", field="name", code="output_exists"
        )
    folder = workspace.output(body.name)
    arguments = ["index", "build", str(workspace.models.path(body.model)), str(workspace.source(body.source))]
    arguments += ["-o", str(folder), f"--unit={body.unit}", "--json"]
    arguments += [f"--{name}={value}" for name in ("column", "key") if (value := getattr(body, name))]
    arguments += [f"--attributes={','.join(body.attributes)}"] if body.attributes else []

    def register(_: Any) -> dict[str, Any]:
        workspace.models.add_index(body.name, folder)
        return {"index": body.name}

    details = {"model": body.model, "source": body.source}
    return workspace.jobs.start(arguments, body.name, details, register, folder).to_json()
