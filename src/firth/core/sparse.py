"""`SparseVectors`: `Vectors` with a sparse matrix, such as counts."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.core.notebook import html_lines
from firth.core.vectors import Hits, Matrix, Vectors, divide_rows, unit_rows

MOST_DENSE = 1 << 28  # most elements of a dense copy: 1 GiB


class SparseVectors(Vectors):
    """Keys and `sparse`, a float32 matrix in scipy's CSR format.

    Queries use the sparse rows. `matrix` and `unit` are dense copies, available up to `MOST_DENSE` elements. Instances
    are immutable and can be shared between threads.
    """

    def __init__(
        self,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        sparse: Any,
        *,
        missing: str | Callable[[], str] = "",
    ) -> None:
        self.sparse = sparse
        self._keys, self._missing = keys, missing
        self._rows = self._unit = None
        self._dense: Matrix | None = None
        self._lengths: NDArray[np.float64] | None = None
        if not callable(keys):
            self._check_keys(keys)

    def __len__(self) -> int:
        return int(self.sparse.shape[0])

    @property
    def dim(self) -> int:
        return int(self.sparse.shape[1])

    @property
    def matrix(self) -> Matrix:  # type: ignore[override]  # an attribute of dense vectors
        """A dense copy."""
        if self._dense is None:
            self._dense = dense(self.sparse)
            self._dense.flags.writeable = False
        return self._dense

    @property
    def lengths(self) -> NDArray[np.float64]:
        """√Σxᵢ² of each row."""
        if self._lengths is None:
            self._lengths = np.sqrt(row_sums(np.square(self.sparse.data, dtype=np.float64), self.sparse.indptr))
            self._check_finite(self._lengths)
        return self._lengths

    def __getitem__(self, key: str) -> Matrix:
        values: Matrix = self.sparse[self.row(key)].toarray()[0]
        return values

    def neighbors(
        self,
        positive: Any,
        k: int = 10,
        *,
        negative: str | Sequence[str] = (),
        metric: str = "cosine",
        restrict: int | None = None,
    ) -> Hits:
        """As in `Vectors`; the query may also be a sparse row."""
        vector: str | Sequence[str] | ArrayLike = positive.toarray()[0] if hasattr(positive, "toarray") else positive
        return super().neighbors(vector, k, negative=negative, metric=metric, restrict=restrict)

    def _scores(self, query: Matrix, metric: str, last: int) -> Matrix:
        length = float(np.linalg.norm(query.astype(np.float64)))
        exact = metric == "euclidean"  # the difference of squares needs float64
        scores = (self.sparse @ (query.astype(np.float64) if exact else query))[:last].astype(np.float64)
        if metric == "cosine":
            lengths = self.lengths[:last] * length
            scores = np.divide(scores, lengths, out=np.zeros_like(scores), where=lengths > 0)
        elif metric == "euclidean":  # |a − b|² = |a|² − 2ab + |b|²
            scores = -np.sqrt(np.maximum(self.lengths[:last] ** 2 - 2 * scores + length**2, 0))
        return np.asarray(scores, dtype=np.float32)

    def _cosines(self, unit: Matrix, last: int) -> Matrix:
        return self._scores(unit, "cosine", last)

    def _repr_html_(self) -> str:
        return html_lines(repr(self))

    def __repr__(self) -> str:
        filled = self.sparse.nnz / max(1, len(self) * self.dim)
        return f"SparseVectors({len(self):,} × {self.dim:,}, {filled:.2%} nonzero: {self._examples()}, …)"

    @property
    def unit(self) -> Matrix:
        if self._unit is None:
            self._unit = divide_rows(self.matrix, self.lengths)
            self._unit.flags.writeable = False
        return self._unit

    def unit_of(self, keys: Sequence[str]) -> Matrix:
        return unit_rows(np.stack([self[key] for key in keys]))


def dense(sparse: Any) -> Matrix:
    """Convert a sparse matrix to a dense one; raises an error if it is too large."""
    rows, columns = sparse.shape
    if rows * columns > MOST_DENSE:
        raise FirthError(
            "out_of_memory",
            "A dense matrix of {rows:,} × {columns:,} is too large (at most {most_dense:,} elements). Keep it sparse "
            "(transform, .npz), lower max_vocabulary, or reduce the dimensions with LSA.",
            rows=rows,
            columns=columns,
            most_dense=MOST_DENSE,
        )
    table: Matrix = sparse.toarray().astype(np.float32, copy=False)
    return table


def row_sums(values: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """The sum of each row; 0 for an empty row."""
    sums = np.zeros(len(starts) - 1)
    filled = starts[1:] > starts[:-1]
    if filled.any():
        sums[filled] = np.add.reduceat(values, starts[:-1][filled])
    return sums
