"""/api/neighbors and /api/analogy: what is near to a word, in several models and by several measures."""

from __future__ import annotations

from dataclasses import asdict
from itertools import islice
from typing import Any

from fastapi import APIRouter, Request
from pydantic import BaseModel, Field

from firth.core.errors import FirthError
from firth.core.vectors import METRICS, Hits, Vectors
from firth.evaluate import parallelogram
from firth.server.workbench.asking import MOST_KEY, MOST_MODELS, model_that

router = APIRouter()

SOME = 12
RANKED = 200  # neighbours whose places by the other measures are told


class Asked(BaseModel):
    models: list[str] = Field(min_length=1, max_length=MOST_MODELS)
    word: str = Field(min_length=1, max_length=MOST_KEY)
    k: int = Field(10, ge=1, le=100)
    table: str = Field("", max_length=MOST_KEY)  # of the models that have one of this name; of others the main one


class Analogy(BaseModel):
    models: list[str] = Field(min_length=1, max_length=MOST_MODELS)
    a: str = Field(min_length=1, max_length=MOST_KEY)
    b: str = Field(min_length=1, max_length=MOST_KEY)
    c: str = Field(min_length=1, max_length=MOST_KEY)
    k: int = Field(5, ge=1, le=20)


def vectors_of(request: Request, name: str, table: str = "") -> tuple[str, Vectors]:
    """The table of that name where the model has it, else its main one; with its name."""
    tables = model_that(request, name, "vectors", "models of words, nodes and items have vectors").tables
    found = table if table in tables else next(iter(tables))
    return found, tables[found]


@router.post("/neighbors")
def neighbors(asked: Asked, request: Request) -> dict[str, Any]:
    """Of each model its answers by each measure, with the place each has by the others; or why there are none."""
    return {"models": [near(name, *vectors_of(request, name, asked.table), asked) for name in asked.models]}


def near(name: str, table: str, vectors: Vectors, asked: Asked) -> dict[str, Any]:
    told: dict[str, Any] = {"name": name, "table": table, "rows": len(vectors), "dim": vectors.dim}
    try:
        by = {metric: vectors.neighbors(asked.word, max(asked.k, RANKED), metric=metric) for metric in METRICS}
    except FirthError as error:
        return told | {"error": str(error), "close": vectors.close_keys(asked.word)}
    places = {metric: {hit.key: place for place, hit in enumerate(hits, 1)} for metric, hits in by.items()}
    return told | {
        "hits": {
            metric: [
                {**hit._asdict(), "places": {each: found.get(hit.key) for each, found in places.items()}}
                for hit in hits[: asked.k]
            ]
            for metric, hits in by.items()
        }
    }


@router.get("/keys")
def keys(model: str, request: Request, begin: str = "", table: str = "") -> dict[str, Any]:
    """Some keys that begin so, the most frequent first; without a beginning, some that are worth trying."""
    found = vectors_of(request, model, table)[1].keys
    if begin:
        return {"keys": list(islice((key for key in found if key.startswith(begin)), SOME))}
    words = (key for key in found[: len(found) // 2 + 1] if len(key) > 3 and key.isalpha())
    return {"keys": list(islice(words, SOME)) or list(found[:SOME])}  # names of users have digits


@router.post("/analogy")
def analogy(asked: Analogy, request: Request) -> dict[str, Any]:
    """b − a + c in each model: the steps, the answers, and the four corners on their plane."""
    return {"models": [drawn(name, vectors_of(request, name)[1], asked) for name in asked.models]}


def drawn(name: str, vectors: Vectors, asked: Analogy) -> dict[str, Any]:
    try:
        found = parallelogram(vectors, asked.a, asked.b, asked.c, asked.k)
    except FirthError as error:
        unknown = [word for word in (asked.a, asked.b, asked.c) if word not in vectors]
        return {"name": name, "error": str(error), "close": vectors.close_keys(unknown[0]) if unknown else []}
    return {
        "name": name,
        "steps": [{"name": step, "hits": listed(hits)} for step, hits in found.steps],
        "answers": listed(found.answers),
        "given": [asdict(corner) for corner in found.inputs],
        "target": asdict(found.target),
        "found": [asdict(corner) for corner in found.answer_corners],
    }


def listed(hits: Hits) -> list[dict[str, Any]]:
    return [hit._asdict() for hit in hits]
