"""What every recommender must beat: the most used items, and those most like what the user had."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import Histories
from firth.core.report import Report, Silence
from firth.core.vectors import Matrix

Scorer = Callable[[Sequence[Sequence[int]]], Matrix]  # histories, as rows of items -> histories × items
WEIGHTINGS = ("cosine", "bm25")
BM25_K1, BM25_B = 1.2, 0.75  # Robertson & Zaragoza 2009
ENTRIES = 1 << 20  # likenesses computed at once, at about 25 bytes each


def popularity(seen: Histories, items: int) -> Scorer:
    """The same for everyone: how many users had each item."""
    counts = np.bincount(seen.items, minlength=items).astype(np.float32)
    return lambda histories: np.tile(counts, (len(histories), 1))


def item_knn(
    seen: Histories, items: int, neighbors: int = 100, weighting: str = "cosine", report: Report = Silence()
) -> Scorer:
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
    likeness = item_likeness(seen, items, neighbors, weighting, report)

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
    ids = np.int32 if len(columns) < 1 << 31 else np.int64
    return csr_array((ones, np.asarray(columns, dtype=ids), np.asarray(starts, dtype=ids)), (len(starts) - 1, items))


def unit_columns(seen: Histories, items: int, weighting: str) -> Any:
    """users × items, sparse: weighted, and each column of length 1."""
    matrix = incidence(seen.starts, seen.items, items)
    if weighting == "bm25":
        lengths = np.diff(seen.starts)
        long = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(lengths.mean(), 1e-9))
        rarity = np.log1p(len(lengths) / (1 + np.bincount(seen.items, minlength=items)))
        weights = np.repeat((BM25_K1 + 1) / (long + 1), lengths) * rarity[matrix.indices]
        matrix.data = weights.astype(np.float32)
    norms = np.sqrt(np.asarray(matrix.power(2).sum(axis=0)).ravel())
    matrix.data = matrix.data / np.maximum(norms[matrix.indices], 1e-12)
    return matrix


def item_likeness(
    seen: Histories, items: int, neighbors: int, weighting: str = "cosine", report: Report = Silence()
) -> Any:
    """items × items, sparse: row i holds the likeness of i to its nearest others, and to all as near as the last.

    Blocks of rows are multiplied one after the other, so that no more than `ENTRIES` likenesses (or those of one item)
    wait to be selected from.
    """
    from scipy.sparse import csr_array, vstack

    matrix = unit_columns(seen, items, weighting)
    columns, parts = matrix.T.tocsr(), [csr_array((0, items), dtype=np.float32)]
    most = incidence(columns.indptr, columns.indices, len(seen.starts) - 1) @ np.diff(seen.starts)  # entries of a row
    ends = np.cumsum(np.minimum(most, items))
    report.begin("item-kNN baseline", items, "items")
    first = 0
    while first < items:
        before = ends[first - 1] if first else 0
        last = max(first + 1, int(np.searchsorted(ends, before + ENTRIES, side="right")))
        parts.append(nearest_entries(columns[first:last] @ matrix, first, neighbors))
        first = last
        report.step(first)
    report.end()
    return vstack(parts, format="csr")


def nearest_entries(block: Any, first: int, neighbors: int) -> Any:
    """The rows of a block, of items from `first` on, without the items themselves and what is less near than the
    nearest `neighbors`."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    keep = block.indices != first + rows
    least = np.zeros(block.shape[0], dtype=block.dtype)
    for row in np.flatnonzero(np.diff(block.indptr) > neighbors):
        part = slice(block.indptr[row], block.indptr[row + 1])
        others = block.data[part][keep[part]]
        if len(others) > neighbors:
            least[row] = np.partition(others, len(others) - neighbors)[len(others) - neighbors]
    keep &= block.data >= least[rows]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[keep], minlength=block.shape[0]))])
    return csr_array((block.data[keep], block.indices[keep], starts.astype(block.indices.dtype)), block.shape)
