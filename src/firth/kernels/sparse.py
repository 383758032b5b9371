"""Sparse matrices in compressed rows (CSR): the native functions (cpp/sparse.cpp) and their NumPy twins.

Row r holds values[k] in column columns[k], for k from starts[r] to starts[r + 1]; columns ascend within a row.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

Allocate = Callable[[int, Any], NDArray[Any]]  # returns an array of a size and dtype, in memory or memory-mapped


class CSRMatrix(NamedTuple):
    """A CSR matrix; the number of columns is not stored."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]


def count_words(
    ids: NDArray[np.int32], starts: NDArray[np.int64], words: int, threads: int = 1, allocate: Allocate = np.empty
) -> CSRMatrix:
    """Count the words of each document: one row per document, one column per word of a vocabulary of `words`.

    The documents are read twice, first for the sizes of the rows, then for the rows. `allocate` makes the result's
    arrays.
    """
    ids, starts = np.ascontiguousarray(ids), np.ascontiguousarray(starts)
    distinct = np.zeros(len(starts) - 1, dtype=np.int64)
    _native.count_distinct(ids, starts, words, distinct, threads)
    rows = np.concatenate([[0], np.cumsum(distinct)]).astype(np.int64)
    columns, counts = allocate(int(rows[-1]), np.int32), allocate(int(rows[-1]), np.float32)
    _native.count_words(ids, starts, words, rows, columns, counts, threads)
    return CSRMatrix(rows, columns, counts)


def count_words_twin(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> CSRMatrix:
    """`count_words` in NumPy."""
    documents = [np.unique(ids[a:b], return_counts=True) for a, b in pairwise(starts)]
    rows = np.concatenate([[0], np.cumsum([len(words) for words, _ in documents])]).astype(np.int64)
    columns = np.concatenate([np.zeros(0), *(words for words, _ in documents)]).astype(np.int32)
    return CSRMatrix(
        rows, columns, np.concatenate([np.zeros(0), *(counts for _, counts in documents)]).astype(np.float32)
    )


def multiply(sparse: CSRMatrix, dense: NDArray[np.float32], threads: int = 1) -> NDArray[np.float32]:
    """Return sparse × dense in float32; bitwise equal for any number of threads."""
    out = np.empty((len(sparse.starts) - 1, dense.shape[1]), dtype=np.float32)
    _native.multiply(*sparse, np.ascontiguousarray(dense), out, threads)
    return out


def multiply_twin(sparse: CSRMatrix, dense: NDArray[np.float32]) -> NDArray[np.float32]:
    """`multiply` in NumPy: row r is Σ values[k] · dense[columns[k]]."""
    out = np.zeros((len(sparse.starts) - 1, dense.shape[1]), dtype=np.float32)
    for row in range(len(out)):
        part = slice(sparse.starts[row], sparse.starts[row + 1])
        out[row] = sparse.values[part] @ dense[sparse.columns[part]]
    return out
