"""Exact nearest-neighbor search over all rows: the native kernel (cpp/search.cpp) and its NumPy twin.

A score is the dot product of row and query, times the row's scale if given (1/|row| makes it a cosine), or minus the
squared distance. Rows are float32 or float16.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

FloatArray = NDArray[np.float32]


class SearchResult(NamedTuple):
    """The k best rows per query, best first; ties go to the lower row. Missing rows are −1."""

    scores: FloatArray  # queries × k
    rows: NDArray[np.int64]


class QuantizedRows(NamedTuple):
    """An int8 copy of a matrix that lets a search rule out most rows: row r is about `steps[r] * codes[r]`."""

    codes: NDArray[np.int8]  # rows × dim, zero-padded to a multiple of 4 columns
    steps: FloatArray
    sums: NDArray[np.int32]  # of each row's codes, needed by the AVX-512 kernel
    errors: FloatArray  # upper bound of |row − steps · codes|
    norms: FloatArray  # upper bound of |row|


def quantize_rows(matrix: FloatArray) -> QuantizedRows:
    """Quantize each row to int8, in steps of 1/127 of its largest absolute value."""
    rows, dim = matrix.shape
    steps, errors, norms = (np.empty(rows, dtype=np.float32) for _ in range(3))
    codes = np.empty((rows, -(-dim // 4) * 4), dtype=np.int8)
    sketch = QuantizedRows(codes, steps, np.empty(rows, dtype=np.int32), errors, norms)
    _native.code_rows(np.ascontiguousarray(matrix), *sketch)
    return sketch


def quantize_twin(matrix: FloatArray) -> QuantizedRows:
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
    queries: FloatArray,
    k: int,
    *,
    scales: FloatArray | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
    quantized: QuantizedRows | None = None,
    threads: int = 1,
) -> SearchResult:
    """Return the `k` best rows of a float32 or float16 matrix for each query.

    `listed` (ascending) restricts the search to these rows. `quantized` does not change the result: it rules
    out most rows by their int8 codes (cpp/sift.cpp), and only the rest is read in full.
    """
    result = _empty_result(len(queries), k)
    bits = matrix.view(np.uint16) if matrix.dtype == np.float16 else matrix
    _native.search(bits, np.ascontiguousarray(queries), scales, listed, squared, quantized, *result, threads)
    return result


def _empty_result(queries: int, k: int) -> SearchResult:
    return SearchResult(np.empty((queries, k), dtype=np.float32), np.empty((queries, k), dtype=np.int64))


def search_twin(
    matrix: NDArray[Any],
    queries: FloatArray,
    k: int,
    *,
    scales: FloatArray | None = None,
    listed: NDArray[np.int64] | None = None,
    squared: bool = False,
) -> SearchResult:
    """`search_rows` in NumPy."""
    rows = np.arange(len(matrix)) if listed is None else listed
    candidates = matrix[rows].astype(np.float32)
    scores = -((candidates[None] - queries[:, None]) ** 2).sum(axis=2) if squared else queries @ candidates.T
    scores = scores if scales is None else scores * scales[rows]
    order = np.argsort(-scores, axis=1, kind="stable")[:, :k]
    result = _empty_result(len(queries), k)
    result.scores[:], result.rows[:] = -np.inf, -1
    result.scores[:, : order.shape[1]] = np.take_along_axis(scores, order, axis=1)
    result.rows[:, : order.shape[1]] = rows[order]
    return result
