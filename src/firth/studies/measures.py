"""Measures of models: one value per item, so that the same items can be resampled for all models."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, unit_rows
from firth.evaluate.nodes import label_scores
from firth.index.words import SegmentPostings, bm25, make_postings

Floats = NDArray[np.float64]
Ids = NDArray[np.int64]
BATCH = 512  # queries scored at a time
DIGITS = 6  # scores are rounded, so that rounding errors do not break ties
STARTS = 10  # initializations of k-means, of which the best is used


def known_item_ranks(queries: Matrix, targets: Matrix) -> Floats:
    """Return the rank (from 1) of target i among all targets for query i by cosine; ties get their mean rank."""
    unit_queries, unit_targets = unit_rows(queries), unit_rows(targets)
    ranks = np.empty(len(unit_queries))
    for first in range(0, len(unit_queries), BATCH):
        scores = np.round(unit_queries[first : first + BATCH] @ unit_targets.T, DIGITS)
        ranks[first : first + BATCH] = ranks_in(scores, first)
    return ranks


def word_ranks(queries: Sequence[str], targets: Sequence[str]) -> Floats:
    """Return the ranks of the targets by BM25, a lexical search without vectors."""
    postings = make_postings(targets)
    pool = [SegmentPostings(postings.arrays(), postings.terms)]
    return np.array([ranks_in(bm25(pool, query)[0][None], row)[0] for row, query in enumerate(queries)])


def ranks_in(scores: NDArray[np.float32], first: int) -> Floats:
    """Return the rank of column first + i in row i."""
    rows = np.arange(len(scores))
    target = scores[rows, first + rows][:, None]
    return np.asarray(1 + (scores > target).sum(axis=1) + ((scores == target).sum(axis=1) - 1) / 2, dtype=np.float64)


def probe(rows: Matrix, labels: Ids, seed: int) -> Floats:
    """Return 1 for each row of a random half whose label is predicted by logistic regression trained on the other
    half, else 0."""
    train, test = halves(len(rows), seed)
    deviations = rows[train].std(axis=0)
    varied = deviations > 1e-12  # other columns would have the weight 0
    scaled = (rows[:, varied] - rows[train][:, varied].mean(axis=0)) / deviations[varied]
    scaled = narrowed(scaled.astype(np.float64))
    truth = labels[:, None] == np.arange(labels.max() + 1)
    scores = label_scores(scaled[train], truth[train], scaled[test])
    return np.asarray(scores.argmax(axis=1) == labels[test], dtype=np.float64)


def most_frequent(labels: Ids, seed: int) -> Floats:
    """Return the baseline of `probe`: always the most frequent label of the training half."""
    train, test = halves(len(labels), seed)
    return np.asarray(labels[test] == np.bincount(labels[train]).argmax(), dtype=np.float64)


def halves(rows: int, seed: int) -> tuple[Ids, Ids]:
    """Split row numbers into two random halves."""
    order = np.random.default_rng(seed).permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def clusters(rows: Matrix, number: int, seed: int) -> Ids:
    """Return the cluster of each row by k-means on unit vectors, the best of several initializations."""
    from scipy.cluster.vq import kmeans2

    unit = narrowed(unit_rows(rows).astype(np.float64))
    best, lowest = np.zeros(len(unit), dtype=np.int64), np.inf
    for start in range(STARTS):
        centers, ids = kmeans2(unit, initial_centers(unit, number, [seed, start]), minit="matrix", iter=30)
        inertia = float(((unit - centers[ids]) ** 2).sum())
        if inertia < lowest:
            best, lowest = np.asarray(ids, dtype=np.int64), inertia
    return best


def narrowed(rows: Floats) -> Floats:
    """Return rows in at most as many columns as there are rows, with the same dot products, hence the same distances.

    The rows of a tf-idf model have as many columns as there are words; k-means and logistic regression, which give the
    same results after a rotation, would take minutes on them.
    """
    if rows.shape[1] <= len(rows):
        return rows
    values, vectors = np.linalg.eigh(rows @ rows.T)
    return np.asarray(vectors * np.sqrt(np.maximum(values, 0)), dtype=np.float64)


def initial_centers(rows: Floats, number: int, seed: list[int]) -> Floats:
    """Return the initial centers of k-means++ (Arthur & Vassilvitskii 2007)."""
    random = np.random.default_rng(seed)
    center_rows = [int(random.integers(len(rows)))]
    distances = np.full(len(rows), np.inf)  # squared, to the nearest center
    while len(center_rows) < number:
        distances = np.minimum(distances, ((rows - rows[center_rows[-1]]) ** 2).sum(axis=1))
        total = float(distances.sum())
        center_rows.append(int(random.choice(len(rows), p=distances / total if total else None)))
    centers: Floats = rows[center_rows]
    return centers


def purity(ids: Ids, labels: Ids) -> Floats:
    """Return 1 for each row whose label is the most frequent one of its cluster, else 0; the mean is the purity."""
    table = np.zeros((ids.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(table, (ids, labels), 1)
    return np.asarray(table.argmax(axis=1)[ids] == labels, dtype=np.float64)


def overlap(a: Matrix, b: Matrix, k: int = 10) -> Floats:
    """Return, for each row, the share of its `k` nearest in `a` (by cosine) that are among its `k` nearest in `b`."""
    if len(a) != len(b) or not 1 <= k < len(a):
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to {limit}, and both matrices must have the same rows; got {got} for {n_a:,} and "
            "{n_b:,} rows.",
            option="k",
            limit=len(a) - 1,
            got=k,
            n_a=len(a),
            n_b=len(b),
        )
    pairs = zip(nearest(a, k), nearest(b, k), strict=True)
    return np.array([len(np.intersect1d(left, right)) / k for left, right in pairs])


def nearest(matrix: Matrix, k: int) -> Ids:
    """Return the k nearest other rows of each row, (rows, k); of ties the first."""
    unit = unit_rows(matrix)
    neighbor_rows = np.empty((len(unit), k), dtype=np.int64)
    for first in range(0, len(unit), BATCH):
        scores = np.round(unit[first : first + BATCH] @ unit.T, DIGITS)
        rows = np.arange(len(scores))
        scores[rows, first + rows] = -np.inf
        neighbor_rows[first : first + BATCH] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return neighbor_rows
