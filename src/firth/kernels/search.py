"""The rows nearest to queries, by looking at every row: cpp/search.cpp, and the same in NumPy.

A score is the product of row and query, times the row's scale where rows have one (1/|row| makes it a cosine), or minus
the squared distance. Rows are float32 or float16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

Numbers = NDArray[np.float32]


class SearchResult(NamedTuple):
    """The best of each query, best first, of equal scores the lower row; −1 where there are fewer rows than asked."""

    scores: Numbers  # queries × k
    rows: NDArray[np.int64]


class QuantizedRows(NamedTuple):
    """A matrix in bytes: row r is about `steps[r] * codes[r]`, which rules out most rows of a search."""

    codes: NDArray[np.int8]  # zero beyond the matrix's width up to a multiple of 4
    steps: Numbers
    sums: NDArray[np.int32]  # of each row's codes, which the kernel of AVX-512 needs
    errors: Numbers  # at least the length of what row and codes differ by
    norms: Numbers  # at least the row's length


def quantize_rows(matrix: Numbers) -> QuantizedRows:
    """Each row in steps of a 127th of its largest number."""
    rows, dim = matrix.shape
    steps, errors, norms = (np.empty(rows, dtype=np.float32) for _ in range(3))
    codes = np.empty((rows, -(-dim // 4) * 4), dtype=np.int8)
    found = QuantizedRows(codes, steps, np.empty(rows, dtype=np.int32), errors, norms)
    _native.code_rows(np.ascontiguousarray(matrix), *found)
    return found


def quantize_twin(matrix: Numbers) -> QuantizedRows:
    """`sketch_rows` in NumPy."""
    rows, dim = matrix.shape
    steps = np.abs(matrix).max(axis=1, initial=0) / np.float32(127)
    exact = matrix.astype(np.float64)
    codes = np.zeros((rows, -(-dim // 4) * 4), dtype=np.int8)
    codes[:, :dim] = np.clip(np.rint(exact / np.where(steps > 0, steps, np.inf)[:, None]), -127, 127)
    errors = np.linalg.norm(exact - steps.astype(np.float64)[:, None] * codes[:, :dim], axis=1)
    norms = np.linalg.norm(exact, axis=1)
    sums = codes.sum(axis=1, dtype=np.int32)
    return QuantizedRows(codes, steps, sums, errors.astype(np.float32), norms.astype(np.float32))


def search_rows(
    matrix: NDArray[Any],
    queries: Numbers,
    k: int,
    *,
    scales: Numbers | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
    quantized: QuantizedRows | None = None,
    threads: int = 1,
) -> SearchResult:
    """The `k` best rows of a float32 or float16 matrix; `listed`, rising, names the only rows to look at. The same with
    a sketch of the matrix, but most rows are then ruled out by their bytes (cpp/sift.cpp) and only the rest is read."""
    found = _room(len(queries), k)
    bits = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    _native.search(bits, np.ascontiguousarray(queries), scales, listed, squared, quantized, *found, threads)
    return found


def _room(queries: int, k: int) -> SearchResult:
    return SearchResult(np.empty((queries, k), dtype=np.float32), np.empty((queries, k), dtype=np.int64))


def search_twin(
    matrix: NDArray[Any],
    queries: Numbers,
    k: int,
    *,
    scales: Numbers | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
) -> SearchResult:
    """`search_rows` in NumPy."""
    rows = np.arange(len(matrix)) if listed is None else listed
    some = matrix[rows].astype(np.float32)
    scores = -((some[None] - queries[:, None]) ** 2).sum(axis=2) if squared else queries @ some.T
    scores = scores if scales is None else scores * scales[rows]
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    found = _room(len(queries), k)
    found.scores[:], found.rows[:] = -np.inf, -1
    found.scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    found.rows[:, : order.shape[1]] = rows[order]
    return found
