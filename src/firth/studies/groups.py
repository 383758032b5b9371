"""`groups`: what vectors gather in, and what each gathering is about."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.index.words import word_tokens
from firth.studies.measures import clusters

SAMPLE = 20_000  # rows that the centres are found from; all rows then go to the nearest one
NAMED = 3  # words of a name
KNOWN = 50  # first keys of a group that may name it: the nearest of all are often too rare to tell anything
LEAST = 3  # texts of a group that must have a word before the word may name it


class Groups(NamedTuple):
    """The largest first."""

    rows: NDArray[np.int64]  # which group each row is in
    names: list[str]
    sizes: list[int]


def groups(vectors: Vectors, k: int = 12, *, texts: Sequence[str] | None = None, seed: int = 1) -> Groups:
    """k-means by direction. A group is named by the words that stand out in its texts, where there are texts, else by
    those of its first keys (the most frequent) that are nearest to its middle."""
    if not 2 <= k <= len(vectors):
        raise FirthError(
            "invalid_value",
            "{option} must be from 2 to the {n_vectors:,} rows there are; got {got}.",
            option="k",
            n_vectors=len(vectors),
            got=k,
        )
    unit = unit_rows(vectors.matrix)
    some = np.sort(np.random.default_rng(seed).permutation(len(unit))[:SAMPLE])
    found = clusters(unit[some], k, seed)
    centres = unit_rows(np.array([unit[some[found == one]].mean(axis=0) for one in np.unique(found)], dtype=np.float32))
    near = unit @ centres.T
    own = near.argmax(axis=1)
    order = np.argsort(-np.bincount(own, minlength=len(centres)), kind="stable")
    rows = np.argsort(order)[own]
    if texts is None:
        names = [names_at(vectors, near[:, one], own == one) for one in order]
    else:
        names = names_from(texts, rows, len(order))
    return Groups(rows, names, np.bincount(rows, minlength=len(order)).tolist())


def names_at(vectors: Vectors, near: Matrix, inside: NDArray[np.bool_]) -> str:
    first = np.flatnonzero(inside)[:KNOWN]
    return ", ".join(vectors.keys[int(row)] for row in first[np.argsort(-near[first], kind="stable")[:NAMED]])


def names_from(texts: Sequence[str], rows: NDArray[np.int64], number: int) -> list[str]:
    """The words whose share of a group's texts is high, and higher than in all texts: p · log(p / q); of equals the
    longer."""
    every: Counter[str] = Counter()
    inside = [Counter[str]() for _ in range(number)]
    for text, group in zip(texts, rows.tolist(), strict=True):
        own = {word for word in word_tokens(text) if len(word) > 2 and not word.isdecimal()}
        every.update(own)
        inside[group].update(own)
    sizes = np.bincount(rows, minlength=number)
    names = []
    for group, counts in enumerate(inside):
        words = [word for word, count in counts.items() if count >= min(LEAST, sizes[group])]
        within = np.array([counts[word] for word in words]) / max(1, sizes[group])
        overall = np.array([every[word] for word in words]) / max(1, len(texts))
        standing = within * np.log(within / overall) if words else within
        best = sorted(zip((-standing).round(6).tolist(), (-len(word) for word in words), words, strict=True))
        names.append(", ".join(word for _, _, word in best[:NAMED]))
    return names
