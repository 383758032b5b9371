"""What every recommender must beat: the most used items, and those most like what the user had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import Histories
from firth.core.vectors import Matrix

Scorer = Callable[[Sequence[Sequence[int]]], Matrix]  # histories, as rows of items -> histories × items
WEIGHTINGS = ("cosine", "bm25")
BM25_K1, BM25_B = 1.2, 0.75  # Robertson & Zaragoza 2009
CHUNK = 256  # items whose likeness to all others is written out at once


def popularity(seen: Histories, items: int) -> Scorer:
    """The same for everyone: how many users had each item."""
    counts = np.bincount(seen.items, minlength=items).astype(np.float32)
    return lambda histories: np.tile(counts, (len(histories), 1))


def item_knn(seen: Histories, items: int, neighbors: int = 100, weighting: str = "cosine") -> Scorer:
    """The sum of an item's likeness to each item of the history; of every item only its nearest `neighbors` count.

    Items are alike by who had them: the cosine of their columns ("cosine"), or of columns in which a user with many
    items says less about each ("bm25", users as documents).
    """
    if weighting not in WEIGHTINGS:
        raise FirthError(
            "invalid_value",
            "item-kNN weighs by one of {choices}; got {got!r}.",
            choices=", ".join(WEIGHTINGS),
            got=weighting,
        )
    likeness = item_likeness(seen, items, neighbors, weighting)

    def score(histories: Sequence[Sequence[int]]) -> Matrix:
        had = incidence(
            np.concatenate([[0], np.cumsum([len(h) for h in histories])]), np.concatenate([*histories, []]), items
        )
        found: Matrix = (had @ likeness).toarray().astype(np.float32)
        return found

    return score


def incidence(starts: Any, columns: Any, items: int) -> Any:
    from scipy.sparse import csr_array

    ones = np.ones(len(columns), dtype=np.float32)
    return csr_array(
        (ones, np.asarray(columns, dtype=np.int64), np.asarray(starts, dtype=np.int64)), (len(starts) - 1, items)
    )


def item_likeness(seen: Histories, items: int, neighbors: int, weighting: str) -> Any:
    """items × items: row i holds the likeness of i to its nearest others."""
    from scipy.sparse import csr_array, vstack

    matrix = incidence(seen.starts, seen.items, items)
    if weighting == "bm25":
        lengths = np.diff(seen.starts)
        long = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(lengths.mean(), 1e-9))
        rarity = np.log1p(len(lengths) / (1 + np.bincount(seen.items, minlength=items)))
        weights = np.repeat((BM25_K1 + 1) / (long + 1), lengths) * rarity[matrix.indices]
        matrix.data = weights.astype(np.float32)
    norms = np.sqrt(np.asarray(matrix.power(2).sum(axis=0)).ravel())
    matrix.data = matrix.data / np.maximum(norms[matrix.indices], 1e-12)
    columns, parts = matrix.T.tocsr(), []
    for start in range(0, items, CHUNK):
        block = (columns[start : start + CHUNK] @ matrix).toarray()
        block[np.arange(len(block)), start + np.arange(len(block))] = 0
        if neighbors < items:
            least = np.partition(block, items - neighbors, axis=1)[:, items - neighbors, None]
            block[block < least] = 0
        parts.append(csr_array(block.astype(np.float32)))
    return vstack(parts, format="csr") if parts else csr_array((0, items), dtype=np.float32)
