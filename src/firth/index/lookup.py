"""What the searches of an index share: which rows may be found, by words, and the answers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firth.core.errors import FirthError
from firth.core.vectors import top_rows
from firth.index.hits import Hit, Hits
from firth.index.segment import KEY, TEXT, Positions
from firth.index.snapshot import Snapshot
from firth.index.where import mask, parse
from firth.index.words import SegmentPostings, bm25


def allowed(state: Snapshot, where: str | None) -> list[Positions | None]:
    """For each segment the rows that may be found; None for all."""
    if where is None:
        return [state.living(number) for number in range(len(state.segments))]
    condition = parse(where, [KEY, *state.columns])
    listed: list[Positions | None] = []
    for number, segment in enumerate(state.segments):
        true, alive = mask(condition, segment.table), state.alive(number)
        listed.append(np.flatnonzero(true if alive is None else true & alive))
    return listed


def hits(state: Snapshot, ranking: Sequence[tuple[int, float]]) -> Hits:
    found = Hits()
    for position, score in ranking:
        key, attributes = state.row(position)
        found.append(Hit(key, score, attributes))
    return found


def by_words(state: Snapshot, text: str, k: int, where: str | None) -> list[tuple[int, float]]:
    """Positions by BM25, best first; those without any word of the text are none."""
    if state.segments and state.segments[0].terms is None:
        raise FirthError(
            "unknown_column",
            "The index has no column {text!r} to search for words; mode='vector' needs none.",
            text=TEXT,
        )
    parts = [
        SegmentPostings(segment.words, segment.terms, state.alive(number))
        for number, segment in enumerate(state.segments)
    ]
    scores = [np.zeros(0, dtype=np.float32), *bm25(parts, text)]
    for own, rows in zip(scores[1:], allowed(state, where), strict=True):
        if rows is not None:
            kept = own[rows]
            own[:] = 0
            own[rows] = kept
    every = np.concatenate(scores)
    return [(int(row), float(every[row])) for row in top_rows(every, k) if every[row] > 0]


def zero_query(place: int, queries: int) -> FirthError:
    which = f" (number {place + 1})" if queries > 1 else ""
    return FirthError(
        "zero_vector",
        "The query{which} is a zero vector, which has no direction: no word of it may be known.",
        which=which,
    )
