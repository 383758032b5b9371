"""Baselines for recommenders: popularity and item-kNN."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from firth.core.arguments import check_choice
from firth.core.model import Histories
from firth.core.report import Report, Silence
from firth.core.vectors import Matrix

Scorer = Callable[[Sequence[Sequence[int]]], Matrix]  # histories as item rows -> scores (histories, items)
WEIGHTINGS = ("cosine", "bm25")
BM25_K1, BM25_B = 1.2, 0.75  # Robertson & Zaragoza 2009
ENTRIES = 1 << 20  # similarities computed at once, at about 25 bytes each


def popularity(history: Histories, items: int) -> Scorer:
    """Return a scorer that gives every user the number of users of each item."""
    counts = np.bincount(history.items, minlength=items).astype(np.float32)
    return lambda histories: np.tile(counts, (len(histories), 1))


def item_knn(
    history: Histories, items: int, neighbors: int = 100, weighting: str = "cosine", report: Report = Silence()
) -> Scorer:
    """Return a scorer that sums an item's similarities to the items of the history, over the nearest `neighbors`.

    Similarity is the cosine of the items' user columns ("cosine"), or of columns weighted by BM25 with users as
    documents ("bm25"), in which a user with many items counts less.
    """
    check_choice("weighting", weighting, WEIGHTINGS)
    similarity = item_similarity(history, items, neighbors, weighting, report)

    def score(histories: Sequence[Sequence[int]]) -> Matrix:
        starts = np.concatenate([[0], np.cumsum([len(h) for h in histories])])
        user_items = incidence(starts, np.concatenate([*histories, []]), items)
        scores: Matrix = (user_items @ similarity).toarray().astype(np.float32)
        return scores

    return score


def incidence(starts: Any, columns: Any, items: int) -> Any:
    """Return a sparse matrix of ones in CSR format with `items` columns."""
    from scipy.sparse import csr_array

    ones = np.ones(len(columns), dtype=np.float32)
    ids = np.int32 if len(columns) < 1 << 31 else np.int64
    return csr_array((ones, np.asarray(columns, dtype=ids), np.asarray(starts, dtype=ids)), (len(starts) - 1, items))


def unit_columns(history: Histories, items: int, weighting: str) -> Any:
    """Return the weighted sparse matrix (users, items) with columns of length 1."""
    matrix = incidence(history.starts, history.items, items)
    if weighting == "bm25":
        lengths = np.diff(history.starts)
        long = BM25_K1 * (1 - BM25_B + BM25_B * lengths / max(lengths.mean(), 1e-9))
        rarity = np.log1p(len(lengths) / (1 + np.bincount(history.items, minlength=items)))
        weights = np.repeat((BM25_K1 + 1) / (long + 1), lengths) * rarity[matrix.indices]
        matrix.data = weights.astype(np.float32)
    norms = np.sqrt(np.asarray(matrix.power(2).sum(axis=0)).ravel())
    matrix.data = matrix.data / np.maximum(norms[matrix.indices], 1e-12)
    return matrix


def item_similarity(
    history: Histories, items: int, neighbors: int, weighting: str = "cosine", report: Report = Silence()
) -> Any:
    """Return the sparse matrix (items, items) of each item's similarities to its nearest neighbors, ties included.

    Rows are computed in blocks of at most `ENTRIES` similarities (or one item), which bounds the memory.
    """
    from scipy.sparse import csr_array, vstack

    matrix = unit_columns(history, items, weighting)
    columns, parts = matrix.T.tocsr(), [csr_array((0, items), dtype=np.float32)]
    most = incidence(columns.indptr, columns.indices, len(history.starts) - 1) @ np.diff(
        history.starts
    )  # entries of a row
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
    """Keep the `neighbors` highest entries of each row, ties included; row i is item `first` + i and never its own
    neighbor."""
    from scipy.sparse import csr_array

    rows = np.repeat(np.arange(block.shape[0]), np.diff(block.indptr))
    selected = block.indices != first + rows
    least = np.zeros(block.shape[0], dtype=block.dtype)
    for row in np.flatnonzero(np.diff(block.indptr) > neighbors):
        part = slice(block.indptr[row], block.indptr[row + 1])
        others = block.data[part][selected[part]]
        if len(others) > neighbors:
            least[row] = np.partition(others, len(others) - neighbors)[len(others) - neighbors]
    selected &= block.data >= least[rows]
    starts = np.concatenate([[0], np.cumsum(np.bincount(rows[selected], minlength=block.shape[0]))])
    return csr_array((block.data[selected], block.indices[selected], starts.astype(block.indices.dtype)), block.shape)
