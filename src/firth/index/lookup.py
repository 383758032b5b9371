"""Helpers shared by the searches of an index: filters, word search and results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.model import Embeds, Model
from firth.core.vectors import Matrix, top_rows
from firth.index.hits import Hit, Hits
from firth.index.segment import KEY, TEXT, Positions
from firth.index.snapshot import Snapshot
from firth.index.where import mask, parse
from firth.index.words import SegmentPostings, bm25


def embedded_queries(model: Model, texts: Sequence[str], prompt: str | None, prompt_text: str | None) -> Matrix:
    """Return the vectors of query texts, with a prompt: the given one, or the model's own for queries."""
    given = {"prompt": prompt, "prompt_text": prompt_text}
    settings: dict[str, Any] = {name: value for name, value in given.items() if value is not None}
    if not settings and isinstance(model, EmbedsTexts):
        settings = model.role_settings("query")
    if not isinstance(model, Embeds):
        raise FirthError(
            "unsupported_model",
            "{method} models do not embed texts; search with vectors.",
            method=type(model.method).method_name(),
        )
    return model.embed(list(texts), **settings)


def allowed(state: Snapshot, where: str | None) -> list[Positions | None]:
    """Return, for each segment, the rows that pass the filter and are not deleted; None for all."""
    if where is None:
        return [state.living(number) for number in range(len(state.segments))]
    condition = parse(where, [KEY, *state.columns])
    listed: list[Positions | None] = []
    for number, segment in enumerate(state.segments):
        true, alive = mask(condition, segment.table), state.alive(number)
        listed.append(np.flatnonzero(true if alive is None else true & alive))
    return listed


def hits(state: Snapshot, ranking: Sequence[tuple[int, float]]) -> Hits:
    """Return the hits of (position, score) pairs."""
    results = Hits()
    for position, score in ranking:
        key, attributes = state.row(position)
        results.append(Hit(key, score, attributes))
    return results


def by_words(state: Snapshot, text: str, k: int, where: str | None) -> list[tuple[int, float]]:
    """Return the positions and BM25 scores of rows with a word of the text, best first."""
    if state.segments and state.segments[0].terms is None:
        raise FirthError(
            "unknown_column",
            "Word search needs the column {column!r}, which the index does not have. Use mode='vector'.",
            column=TEXT,
        )
    parts = [
        SegmentPostings(segment.words, segment.terms, state.alive(number))
        for number, segment in enumerate(state.segments)
    ]
    scores = [np.zeros(0, dtype=np.float32), *bm25(parts, text)]
    for segment_scores, rows in zip(scores[1:], allowed(state, where), strict=True):
        if rows is not None:
            allowed_scores = segment_scores[rows]
            segment_scores[:] = 0
            segment_scores[rows] = allowed_scores
    all_scores = np.concatenate(scores)
    return [(int(row), float(all_scores[row])) for row in top_rows(all_scores, k) if all_scores[row] > 0]


def zero_query(position: int) -> FirthError:
    """Return the error for a query with a zero vector."""
    return FirthError(
        "zero_vector",
        "Query {number} is a zero vector, which has no direction. Its words may all be out of vocabulary.",
        number=position + 1,
    )
