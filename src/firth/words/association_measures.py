"""Association measures computed from co-occurrence counts: PMI, PPMI, NPMI and shifted PMI.

n(w, c) is the count of a pair, n(w) and n(c) are the sums of its row and column, and N is the total. In bits:

    PMI  = log₂ p(w, c) / (p(w) p(c)) = h(w) + h(c) − h(w, c),   h = log₂ N/n      (Church & Hanks 1990)
    NPMI = PMI / h(w, c) = (h(w) + h(c)) / h(w, c) − 1                            (Bouma 2009)

Computed from h, a pair that always occurs together has an NPMI of exactly 1. The PMI of a pair that never occurs would
be −∞; the sparse matrix stores no entry for it, which reads as 0.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.training.truncated_svd import truncated_svd

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

VARIANTS = ("pmi", "ppmi", "npmi", "shifted")
CHUNK = 1 << 20  # pairs processed at a time

FloatArray = NDArray[np.float64]


class MarginalCounts(NamedTuple):
    """Marginal counts n(w) and n(c), and the total N."""

    words: FloatArray
    contexts: FloatArray
    total: float


class PairScores(NamedTuple):
    """PMI (in bits) and NPMI of some pairs."""

    pmi: FloatArray
    npmi: FloatArray


def marginal_counts(counts: csr_matrix) -> MarginalCounts:
    """Return row sums, column sums and the total. float64 sums of integer counts are exact."""
    words, contexts = counts.shape
    rows = np.zeros(words)
    columns = np.zeros(contexts)
    for first, last, row in chunks(counts.indptr):
        weights = counts.data[first:last]
        np.add(rows, np.bincount(row, weights, minlength=words), out=rows)
        np.add(columns, np.bincount(counts.indices[first:last], weights, minlength=contexts), out=columns)
    return MarginalCounts(rows, columns, float(rows.sum()))


def chunks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Yield ranges of entries of a CSR matrix, with the row of each entry."""
    for first in range(0, int(indptr[-1]), CHUNK):
        last = min(first + CHUNK, int(indptr[-1]))
        low, high = np.searchsorted(indptr, [first, last - 1], side="right") - 1
        ends = np.clip(indptr[low : high + 2], first, last)
        yield first, last, np.repeat(np.arange(low, high + 1), np.diff(ends))


def information(counts: FloatArray, total: float) -> FloatArray:
    """Return the self-information h = log₂ N/n; 0 where the count is 0, which occurs in no pair."""
    return np.log2(np.divide(total, counts, out=np.ones_like(counts), where=counts > 0))


def pair_scores(counts: FloatArray, words: FloatArray, contexts: FloatArray, total: float) -> PairScores:
    """Return PMI and NPMI of pairs with these counts, row sums and column sums."""
    joint = information(counts, total)
    marginal = information(words, total) + information(contexts, total)
    # h(w, c) = 0 if this is the only pair: the words always occur together, so NPMI is 1.
    npmi = np.divide(marginal, joint, out=np.full_like(joint, 2.0), where=joint > 0) - 1
    return PairScores(marginal - joint, np.clip(npmi, -1.0, 1.0))


def association_matrix(
    counts: csr_matrix, sums: MarginalCounts, variant: str = "ppmi", smoothing: float = 1.0, shift: float = 1.0
) -> csr_matrix:
    """Return the association matrix of a variant as float32, with entries only for observed pairs.

    `smoothing` raises context counts to a power in p(c), which lowers the weight of rare contexts (Levy et al. 2015,
    3.2). NPMI always uses the unsmoothed p(c), because it would not be bounded otherwise. "ppmi" keeps positive
    entries only. "shifted" subtracts log₂ `shift` first.
    """
    from scipy.sparse import csr_matrix

    smoothed = sums.contexts**smoothing
    word, context = information(sums.words, sums.total), information(smoothed, float(smoothed.sum()))
    values = np.empty(counts.nnz, dtype=np.float32)
    for first, last, row in chunks(counts.indptr):
        pair_counts, columns = np.asarray(counts.data[first:last]), counts.indices[first:last]
        if variant == "npmi":
            values[first:last] = pair_scores(pair_counts, sums.words[row], sums.contexts[columns], sums.total).npmi
        else:
            values[first:last] = word[row] + context[columns] - information(pair_counts, sums.total)
    if variant == "shifted":
        values -= np.float32(np.log2(shift))
    if variant not in ("ppmi", "shifted"):
        return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
    positive = values > 0
    positive_before = np.concatenate([[0], np.cumsum(positive)])
    return csr_matrix((values[positive], counts.indices[positive], positive_before[counts.indptr]), shape=counts.shape)


def drop_rare_pairs(counts: csr_matrix, min_count: float) -> csr_matrix:
    """Return the matrix without the pairs that occur less than `min_count` times."""
    from scipy.sparse import csr_matrix

    frequent = counts.data >= min_count
    if frequent.all():
        return counts
    frequent_before = np.concatenate([[0], np.cumsum(frequent)])
    return csr_matrix(
        (counts.data[frequent], counts.indices[frequent], frequent_before[counts.indptr]), shape=counts.shape
    )


def factorize(matrix: csr_matrix, dim: int, weight: float, run: Run) -> tuple[Matrix, Matrix, FloatArray]:
    """Return U Σ^p, V Σ^p and Σ of the truncated SVD U Σ Vᵀ of rank `dim`, or of the matrix's rank if that is lower."""
    if not matrix.nnz:
        run.report.note(
            "No pair of words occurs more often than expected by chance, so all vectors are zero.", code="zero_vectors"
        )
        words, contexts = (np.zeros((size, 1), dtype=np.float32) for size in matrix.shape)
        return words, contexts, np.zeros(1)
    svd = truncated_svd(matrix, dim, run)
    scale = (svd.values**weight).astype(np.float32)
    return svd.left * scale, svd.right * scale, svd.values
