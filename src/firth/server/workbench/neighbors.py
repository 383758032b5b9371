"""/api/neighbors and /api/analogy: nearest neighbors of a word, in several models and by several metrics."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.core.vectors import METRICS, Hits, Vectors
from firth.evaluate import parallelogram
from firth.server.workbench.asking import MAX_KEY, MAX_MODELS, model_with

router = APIRouter()

MAX_KEYS = 12
MAX_RANK = 200  # neighbors whose ranks by the other metrics are returned


class NeighborsBody(BaseModel):
    """A word and the models to compare."""

    models: list[str] = Field(min_length=1, max_length=MAX_MODELS)
    word: str = Field(min_length=1, max_length=MAX_KEY)
    k: int = Field(10, ge=1, le=100)
    table: str = Field("", max_length=MAX_KEY)  # models without a table of this name use their main table


class AnalogyBody(BaseModel):
    """An analogy, a is to b as c is to ?, and the models to compare."""

    models: list[str] = Field(min_length=1, max_length=MAX_MODELS)
    a: str = Field(min_length=1, max_length=MAX_KEY)
    b: str = Field(min_length=1, max_length=MAX_KEY)
    c: str = Field(min_length=1, max_length=MAX_KEY)
    k: int = Field(5, ge=1, le=20)


def vectors_of(request: Request, name: str, table: str = "") -> tuple[str, Vectors]:
    """Return the name and the vectors of a model's table; of its main table if it has none of that name."""
    tables = model_with(request, name, "vectors", "models of words, nodes or items have vectors").tables
    name_used = table if table in tables else next(iter(tables))
    return name_used, tables[name_used]


@router.post("/neighbors")
def neighbors(body: NeighborsBody, request: Request) -> dict[str, Any]:
    """Return the neighbors of a word in each model by each metric, with their ranks by the others; or the error."""
    return {"models": [model_neighbors(name, *vectors_of(request, name, body.table), body) for name in body.models]}


def model_neighbors(name: str, table: str, vectors: Vectors, body: NeighborsBody) -> dict[str, Any]:
    """Return the neighbors of a word in one model, by each metric."""
    description: dict[str, Any] = {"name": name, "table": table, "rows": len(vectors), "dim": vectors.dim}
    try:
        hits_by_metric = {
            metric: vectors.neighbors(body.word, max(body.k, MAX_RANK), metric=metric) for metric in METRICS
        }
    except FirthError as error:
        return description | {"error": str(error), "close": vectors.close_keys(body.word)}
    ranks = {metric: {hit.key: rank for rank, hit in enumerate(hits, 1)} for metric, hits in hits_by_metric.items()}
    return description | {
        "hits": {
            metric: [
                {**hit._asdict(), "ranks": {other: by_key.get(hit.key) for other, by_key in ranks.items()}}
                for hit in hits[: body.k]
            ]
            for metric, hits in hits_by_metric.items()
        }
    }


@router.get("/keys")
def keys(model: str, request: Request, begin: str = "", table: str = "") -> dict[str, Any]:
    """Return keys with a prefix, the most frequent first; without a prefix, some examples."""
    all_keys = vectors_of(request, model, table)[1].keys
    if begin:
        return {"keys": list(islice((key for key in all_keys if key.startswith(begin)), MAX_KEYS))}
    words = (key for key in all_keys[: len(all_keys) // 2 + 1] if len(key) > 3 and key.isalpha())
    return {"keys": list(islice(words, MAX_KEYS)) or list(all_keys[:MAX_KEYS])}  # keys of users have digits


@router.post("/analogy")
def analogy(body: AnalogyBody, request: Request) -> dict[str, Any]:
    """Compute b − a + c in each model: the steps, the answers, and the four corners on their plane."""
    return {"models": [model_analogy(name, vectors_of(request, name)[1], body) for name in body.models]}


def model_analogy(name: str, vectors: Vectors, body: AnalogyBody) -> dict[str, Any]:
    """Return the answer of one model to an analogy."""
    try:
        result = parallelogram(vectors, body.a, body.b, body.c, body.k)
    except FirthError as error:
        unknown = [word for word in (body.a, body.b, body.c) if word not in vectors]
        return {"name": name, "error": str(error), "close": vectors.close_keys(unknown[0]) if unknown else []}
    return {
        "name": name,
        "steps": [{"name": step, "hits": hit_list(hits)} for step, hits in result.steps],
        "answers": hit_list(result.answers),
        "given": [asdict(corner) for corner in result.inputs],
        "target": asdict(result.target),
        "projected": [asdict(corner) for corner in result.answer_corners],
    }


def hit_list(hits: Hits) -> list[dict[str, Any]]:
    """Return hits as JSON."""
    return [hit._asdict() for hit in hits]
