"""What models are measured by: one number for each item, so that the same items can be drawn again for all of them."""

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
DIGITS = 6  # equal vectors are equally near, whatever the last bit of a sum says
STARTS = 10  # of k-means; the tightest is kept


def known_item_ranks(queries: Matrix, targets: Matrix) -> Floats:
    """The rank, from 1, of target i among all targets for query i by cosine; equal scores share their mean rank."""
    asked, pool = unit_rows(queries), unit_rows(targets)
    found = np.empty(len(asked))
    for first in range(0, len(asked), BATCH):
        scores = np.round(asked[first : first + BATCH] @ pool.T, DIGITS)
        found[first : first + BATCH] = ranks_in(scores, first)
    return found


def word_ranks(queries: Sequence[str], targets: Sequence[str]) -> Floats:
    """The same by the words that both have (BM25): what a search without vectors finds."""
    postings = make_postings(targets)
    pool = [SegmentPostings(postings.arrays(), postings.terms)]
    return np.array([ranks_in(bm25(pool, query)[0][None], row)[0] for row, query in enumerate(queries)])


def ranks_in(scores: NDArray[np.float32], first: int) -> Floats:
    """Of row i, the rank of column first + i."""
    rows = np.arange(len(scores))
    right = scores[rows, first + rows][:, None]
    return np.asarray(1 + (scores > right).sum(axis=1) + ((scores == right).sum(axis=1) - 1) / 2, dtype=np.float64)


def probe(rows: Matrix, labels: Ids, seed: int) -> Floats:
    """1 for each row of the second half, in a drawn order, whose label logistic regression tells that was trained on
    the first half, else 0."""
    train, test = halves(len(rows), seed)
    scaled = (rows - rows[train].mean(axis=0)) / np.maximum(rows[train].std(axis=0), 1e-12)
    truth = labels[:, None] == np.arange(labels.max() + 1)
    scores = label_scores(scaled[train].astype(np.float64), truth[train], scaled[test].astype(np.float64))
    return np.asarray(scores.argmax(axis=1) == labels[test], dtype=np.float64)


def most_frequent(labels: Ids, seed: int) -> Floats:
    """`probe` of one who knows no vectors and always says the most frequent label."""
    train, test = halves(len(labels), seed)
    return np.asarray(labels[test] == np.bincount(labels[train]).argmax(), dtype=np.float64)


def halves(rows: int, seed: int) -> tuple[Ids, Ids]:
    order = np.random.default_rng(seed).permutation(rows)
    return order[: rows // 2], order[rows // 2 :]


def clusters(rows: Matrix, number: int, seed: int) -> Ids:
    """k-means of the directions of rows, the tightest of several starts."""
    from scipy.cluster.vq import kmeans2

    unit = unit_rows(rows).astype(np.float64)
    best, tightest = np.zeros(len(unit), dtype=np.int64), np.inf
    for start in range(STARTS):
        centers, found = kmeans2(unit, spread_rows(unit, number, [seed, start]), minit="matrix", iter=30)
        spread = float(((unit - centers[found]) ** 2).sum())
        if spread < tightest:
            best, tightest = np.asarray(found, dtype=np.int64), spread
    return best


def spread_rows(rows: Floats, number: int, seed: list[int]) -> Floats:
    """Centres to start from: each drawn the likelier, the farther it lies from those before (Arthur & Vassilvitskii
    2007)."""
    random = np.random.default_rng(seed)
    chosen = [int(random.integers(len(rows)))]
    apart = np.full(len(rows), np.inf)
    while len(chosen) < number:
        apart = np.minimum(apart, ((rows - rows[chosen[-1]]) ** 2).sum(axis=1))
        total = float(apart.sum())
        chosen.append(int(random.choice(len(rows), p=apart / total if total else None)))
    found: Floats = rows[chosen]
    return found


def purity(found: Ids, labels: Ids) -> Floats:
    """1 for each row whose label is the most frequent one of its cluster, else 0; their mean is the purity."""
    table = np.zeros((found.max() + 1, labels.max() + 1), dtype=np.int64)
    np.add.at(table, (found, labels), 1)
    return np.asarray(table.argmax(axis=1)[found] == labels, dtype=np.float64)


def overlap(a: Matrix, b: Matrix, k: int = 10) -> Floats:
    """For each row the share of its `k` nearest in `a` (by cosine) that are among its `k` nearest in `b`."""
    if len(a) != len(b) or not 1 <= k < len(a):
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to {n_a} for {n_a_2:,} and {n_b:,} rows; got {got}.",
            option="k",
            n_a=len(a) - 1,
            n_a_2=len(a),
            n_b=len(b),
            got=k,
        )
    pairs = zip(nearest(a, k), nearest(b, k), strict=True)
    return np.array([len(np.intersect1d(left, right)) / k for left, right in pairs])


def nearest(matrix: Matrix, k: int) -> Ids:
    """The k nearest others of each row; of equally near ones the first."""
    unit = unit_rows(matrix)
    found = np.empty((len(unit), k), dtype=np.int64)
    for first in range(0, len(unit), BATCH):
        scores = np.round(unit[first : first + BATCH] @ unit.T, DIGITS)
        rows = np.arange(len(scores))
        scores[rows, first + rows] = -np.inf
        found[first : first + BATCH] = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    return found
