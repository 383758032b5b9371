"""Sparse matrices in compressed rows (CSR): the native functions of cpp/sparse.cpp, and the same in NumPy.

Row r holds values[k] in column columns[k], for k from starts[r] to starts[r + 1]; columns ascend within a row.
"""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

Room = Callable[[int, Any], NDArray[Any]]  # an array of so many numbers of a kind: in memory, or mapped from a file


class Rows(NamedTuple):
    """A sparse matrix; how many columns it has is said elsewhere."""

    starts: NDArray[np.int64]
    columns: NDArray[np.int32]
    values: NDArray[np.float32]


def count_words(
    ids: NDArray[np.int32], starts: NDArray[np.int64], words: int, threads: int = 1, room: Room = np.empty
) -> Rows:
    """How often each of `words` words stands in each document: a row a document. The documents are read twice, once
    for the sizes of the rows and once for the rows, which are written where `room` says."""
    ids, starts = np.ascontiguousarray(ids), np.ascontiguousarray(starts)
    different = np.zeros(len(starts) - 1, dtype=np.int64)
    _native.count_different(ids, starts, words, different, threads)
    rows = np.concatenate([[0], np.cumsum(different)]).astype(np.int64)
    columns, counts = room(int(rows[-1]), np.int32), room(int(rows[-1]), np.float32)
    _native.count_words(ids, starts, words, rows, columns, counts, threads)
    return Rows(rows, columns, counts)


def count_words_twin(ids: NDArray[np.int32], starts: NDArray[np.int64]) -> Rows:
    """`count_words` in NumPy."""
    found = [np.unique(ids[a:b], return_counts=True) for a, b in pairwise(starts)]
    rows = np.concatenate([[0], np.cumsum([len(words) for words, _ in found])]).astype(np.int64)
    columns = np.concatenate([np.zeros(0), *(words for words, _ in found)]).astype(np.int32)
    return Rows(rows, columns, np.concatenate([np.zeros(0), *(counts for _, counts in found)]).astype(np.float32))


def multiply(sparse: Rows, dense: NDArray[np.float32], threads: int = 1) -> NDArray[np.float32]:
    """sparse × dense in single precision; the same bytes for any number of threads."""
    out = np.empty((len(sparse.starts) - 1, dense.shape[1]), dtype=np.float32)
    _native.multiply(*sparse, np.ascontiguousarray(dense), out, threads)
    return out


def multiply_twin(sparse: Rows, dense: NDArray[np.float32]) -> NDArray[np.float32]:
    """`multiply` in NumPy: row r is Σ values[k] · dense[columns[k]]."""
    out = np.zeros((len(sparse.starts) - 1, dense.shape[1]), dtype=np.float32)
    for row in range(len(out)):
        part = slice(sparse.starts[row], sparse.starts[row + 1])
        out[row] = sparse.values[part] @ dense[sparse.columns[part]]
    return out
