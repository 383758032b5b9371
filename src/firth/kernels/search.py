"""The rows nearest to queries, by looking at every row: cpp/search.cpp, and the same in NumPy.

A score is the product of row and query, times the row's scale where rows have one (1/|row| makes it a cosine), or minus
the squared distance. Rows are float32, float16, or codes of one byte: row ≈ scale · code, the query coded likewise.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

Numbers = NDArray[np.float32]


class Found(NamedTuple):
    """The best of each query, best first, of equal scores the lower row; −1 where there are fewer rows than asked."""

    scores: Numbers  # queries × k
    rows: NDArray[np.int64]


class Codes(NamedTuple):
    """A matrix in bytes: row r is about `scales[r] * codes[r]`, zero beyond its width up to a multiple of 4."""

    codes: NDArray[np.int8]
    scales: Numbers
    sums: NDArray[np.int32]  # of each row's codes, which the kernel of AVX-512 needs


def encode_rows(matrix: NDArray[Any]) -> Codes:
    """Each row in steps of a 127th of its largest number."""
    rows, dim = matrix.shape
    largest = np.abs(matrix).max(axis=1, initial=0).astype(np.float64)
    codes = np.zeros((rows, -(-dim // 4) * 4), dtype=np.int8)
    codes[:, :dim] = np.rint(matrix * (127 / np.where(largest == 0, 1, largest))[:, None])
    return Codes(codes, (largest / 127).astype(np.float32), codes.sum(axis=1, dtype=np.int32))


def search_rows(
    matrix: NDArray[Any],
    queries: Numbers,
    k: int,
    *,
    scales: Numbers | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
    threads: int = 1,
) -> Found:
    """The `k` best rows of a float32 or float16 matrix; `listed`, rising, names the only rows to look at."""
    found = _room(len(queries), k)
    bits = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    _native.search(bits, np.ascontiguousarray(queries), scales, listed, squared, *found, threads)
    return found


def search_codes(
    matrix: Codes,
    queries: Numbers,
    k: int,
    *,
    scales: Numbers | None = None,
    offsets: Numbers | None = None,
    listed: NDArray[np.int64] | None = None,
    threads: int = 1,
) -> Found:
    """The same for codes: product · scale + offset. `scales` takes the place of the codes' own."""
    found = _room(len(queries), k)
    coded = encode_rows(queries)
    scales = matrix.scales if scales is None else scales
    _native.search_codes(matrix.codes, matrix.sums, scales, offsets, coded.codes, coded.scales, listed, *found, threads)
    return found


def _room(queries: int, k: int) -> Found:
    return Found(np.empty((queries, k), dtype=np.float32), np.empty((queries, k), dtype=np.int64))


def search_twin(
    matrix: NDArray[Any],
    queries: Numbers,
    k: int,
    *,
    scales: Numbers | None = None,
    offsets: Numbers | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
) -> Found:
    """`search_rows` in NumPy; `search_codes` on rows and queries that were coded and turned back."""
    rows = np.arange(len(matrix)) if listed is None else listed
    some = matrix[rows].astype(np.float32)
    scores = -((some[None] - queries[:, None]) ** 2).sum(axis=2) if squared else queries @ some.T
    scores = scores if scales is None else scores * scales[rows]
    scores = scores if offsets is None else scores + offsets[rows]
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = _room(len(queries), k)
    found.scores[:], found.rows[:] = -np.inf, -1
    found.scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    found.rows[:, : order.shape[1]] = rows[order]
    return found
