"""`groups`: clusters of vectors, with names."""

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

SAMPLE = 20_000  # rows for k-means; then every row is assigned to the nearest center
NAMED = 3  # words in a name
FREQUENT = 50  # most frequent keys of a group, of which its name is made: the nearest keys are often too rare
LEAST = 3  # texts of a group in which a word of its name must occur


class Groups(NamedTuple):
    """Clusters of rows, the largest first."""

    rows: NDArray[np.int64]  # (rows,): the group of each row
    names: list[str]
    sizes: list[int]


def groups(vectors: Vectors, k: int = 12, *, texts: Sequence[str] | None = None, seed: int = 1) -> Groups:
    """Cluster vectors by direction with k-means and name the clusters.

    A group's name has the words that are characteristic of its `texts`, or else those of its most frequent keys that
    are nearest to its center.
    """
    if not 2 <= k <= len(vectors):
        raise FirthError(
            "invalid_value",
            "{option} must be from 2 to {limit:,}, the number of rows; got {got}.",
            option="k",
            limit=len(vectors),
            got=k,
        )
    unit = unit_rows(vectors.matrix)
    sample = np.sort(np.random.default_rng(seed).permutation(len(unit))[:SAMPLE])
    ids = clusters(unit[sample], k, seed)
    means = [unit[sample[ids == cluster]].mean(axis=0) for cluster in np.unique(ids)]
    centers = unit_rows(np.array(means, dtype=np.float32))
    cosines = unit @ centers.T
    nearest = cosines.argmax(axis=1)
    order = np.argsort(-np.bincount(nearest, minlength=len(centers)), kind="stable")
    rows = np.argsort(order)[nearest]
    if texts is None:
        names = [name_by_keys(vectors, cosines[:, group], nearest == group) for group in order]
    else:
        names = names_by_texts(texts, rows, len(order))
    return Groups(rows, names, np.bincount(rows, minlength=len(order)).tolist())


def name_by_keys(vectors: Vectors, cosines: Matrix, inside: NDArray[np.bool_]) -> str:
    """Return the keys nearest to the center among the most frequent ones of a group."""
    first = np.flatnonzero(inside)[:FREQUENT]
    return ", ".join(vectors.keys[int(row)] for row in first[np.argsort(-cosines[first], kind="stable")[:NAMED]])


def names_by_texts(texts: Sequence[str], rows: NDArray[np.int64], number: int) -> list[str]:
    """Return the words with the highest p · log(p / q), where p and q are their shares of the group's and of all texts.

    Of words with equal scores the longer is preferred.
    """
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
        scores = within * np.log(within / overall) if words else within
        best = sorted(zip((-scores).round(6).tolist(), (-len(word) for word in words), words, strict=True))
        names.append(", ".join(word for _, _, word in best[:NAMED]))
    return names
