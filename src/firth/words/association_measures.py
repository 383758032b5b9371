"""How strongly words go together: pointwise mutual information and its remedies, from counted pairs.

With n(w, c) the count of a pair, n(w) and n(c) the sums of its row and column and N the sum of all, in bits:

    PMI  = log₂ p(w, c) / (p(w) p(c)) = h(w) + h(c) − h(w, c),   h = log₂ N/n      (Church & Hanks 1990)
    NPMI = PMI / h(w, c) = (h(w) + h(c)) / h(w, c) − 1                            (Bouma 2009)

Written in h, a pair that always occurs together has NPMI exactly 1. A pair never met has no entry: its PMI would be
−∞, and the matrix says 0, "nothing known".
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
CHUNK = 1 << 20  # pairs at a time

Numbers = NDArray[np.float64]


class Sums(NamedTuple):
    """n(w), n(c) and N."""

    words: Numbers
    contexts: Numbers
    total: float


class Strength(NamedTuple):
    """Of some pairs, in bits."""

    pmi: Numbers
    npmi: Numbers


def sums_of(counts: csr_matrix) -> Sums:
    """Row sums, column sums and the sum of all; float64 sums of whole counts are exact."""
    words, contexts = counts.shape
    rows = np.zeros(words)
    columns = np.zeros(contexts)
    for first, last, row in chunks(counts.indptr):
        weights = counts.data[first:last]
        np.add(rows, np.bincount(row, weights, minlength=words), out=rows)
        np.add(columns, np.bincount(counts.indices[first:last], weights, minlength=contexts), out=columns)
    return Sums(rows, columns, float(rows.sum()))


def chunks(indptr: NDArray[np.int64]) -> Iterator[tuple[int, int, NDArray[np.int64]]]:
    """Stretches of the records, with the row of each record."""
    for first in range(0, int(indptr[-1]), CHUNK):
        last = min(first + CHUNK, int(indptr[-1]))
        low, high = np.searchsorted(indptr, [first, last - 1], side="right") - 1
        ends = np.clip(indptr[low : high + 2], first, last)
        yield first, last, np.repeat(np.arange(low, high + 1), np.diff(ends))


def information(counts: Numbers, total: float) -> Numbers:
    """h = log₂ N/n, 0 for what does not occur (it has no pairs)."""
    return np.log2(np.divide(total, counts, out=np.ones_like(counts), where=counts > 0))


def strength(counts: Numbers, words: Numbers, contexts: Numbers, total: float) -> Strength:
    """PMI and NPMI of pairs with these counts, row sums and column sums."""
    pair = information(counts, total)
    single = information(words, total) + information(contexts, total)
    # h(w, c) = 0 where there is no other pair: together always.
    npmi = np.divide(single, pair, out=np.full_like(pair, 2.0), where=pair > 0) - 1
    return Strength(single - pair, np.clip(npmi, -1.0, 1.0))


def association_matrix(
    counts: csr_matrix, sums: Sums, variant: str = "ppmi", smoothing: float = 1.0, shift: float = 1.0
) -> csr_matrix:
    """The matrix of a variant, as float32 with entries only for pairs that were met.

    `smoothing` raises context counts to a power for p(c) (Levy et al. 2015, 3.2): rare contexts weigh less. NPMI keeps
    the plain p(c), or it would not be bounded. "ppmi" leaves out what is not positive; "shifted" takes log₂ `shift`
    off first.
    """
    from scipy.sparse import csr_matrix

    smoothed = sums.contexts**smoothing
    word, context = information(sums.words, sums.total), information(smoothed, float(smoothed.sum()))
    values = np.empty(counts.nnz, dtype=np.float32)
    for first, last, row in chunks(counts.indptr):
        part, columns = np.asarray(counts.data[first:last]), counts.indices[first:last]
        if variant == "npmi":
            values[first:last] = strength(part, sums.words[row], sums.contexts[columns], sums.total).npmi
        else:
            values[first:last] = word[row] + context[columns] - information(part, sums.total)
    if variant == "shifted":
        values -= np.float32(np.log2(shift))
    if variant not in ("ppmi", "shifted"):
        return csr_matrix((values, counts.indices, counts.indptr), shape=counts.shape)
    positive = values > 0
    before = np.concatenate([[0], np.cumsum(positive)])
    return csr_matrix((values[positive], counts.indices[positive], before[counts.indptr]), shape=counts.shape)


def at_least(counts: csr_matrix, least: float) -> csr_matrix:
    """The pairs with a count of at least `least`."""
    from scipy.sparse import csr_matrix

    enough = counts.data >= least
    if enough.all():
        return counts
    before = np.concatenate([[0], np.cumsum(enough)])
    return csr_matrix((counts.data[enough], counts.indices[enough], before[counts.indptr]), shape=counts.shape)


def factors(matrix: csr_matrix, dim: int, weight: float, run: Run) -> tuple[Matrix, Matrix, Numbers]:
    """U Σ^p, V Σ^p and Σ of the best approximation U Σ Vᵀ of rank `dim`, or of the matrix's rank where that is less."""
    if not matrix.nnz:
        run.report.note("No pair of words goes together more than by chance: all vectors are zero.")
        words, contexts = (np.zeros((size, 1), dtype=np.float32) for size in matrix.shape)
        return words, contexts, np.zeros(1)
    found = truncated_svd(matrix, dim, run)
    scale = (found.values**weight).astype(np.float32)
    return found.left * scale, found.right * scale, found.values
