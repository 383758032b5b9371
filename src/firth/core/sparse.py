"""`SparseVectors`: `Vectors` whose rows are mostly zeros, as counts give them; asked the same questions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Hits, Matrix, Vectors, divide_rows, unit_rows

MOST_DENSE = 1 << 28  # numbers that are written out with their zeros at once: 1 GiB


class SparseVectors(Vectors):
    """Keys and a scipy.sparse matrix of float32 in compressed rows, `sparse`.

    Queries work on the sparse rows. `matrix` and `unit` write the zeros out, for whoever needs them and only where
    they fit (`MOST_DENSE`). Immutable: threads can share it.
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
    def matrix(self) -> Matrix:  # type: ignore[override]  # dense vectors hold theirs
        """All numbers, zeros too."""
        if self._dense is None:
            self._dense = dense(self.sparse)
            self._dense.flags.writeable = False
        return self._dense

    @property
    def lengths(self) -> NDArray[np.float64]:
        """√Σxᵢ² of each row."""
        if self._lengths is None:
            self._lengths = np.sqrt(row_sums(np.square(self.sparse.data, dtype=np.float64), self.sparse.indptr))
            self._refuse_odd(self._lengths)
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
        """As in `Vectors`; a vector may also be a sparse row."""
        vector: str | Sequence[str] | ArrayLike = positive.toarray()[0] if hasattr(positive, "toarray") else positive
        return super().neighbors(vector, k, negative=negative, metric=metric, restrict=restrict)

    def _scores(self, query: Matrix, metric: str, last: int) -> Matrix:
        length = float(np.linalg.norm(query.astype(np.float64)))
        exact = metric == "euclidean"  # differences of squares need more digits
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
        return f"<p>{self!r}</p>"

    def __repr__(self) -> str:
        filled = self.sparse.nnz / max(1, len(self) * self.dim)
        return f"SparseVectors({len(self):,} × {self.dim:,}, {filled:.2%} not zero: {self._some()}, …)"

    @property
    def unit(self) -> Matrix:
        if self._unit is None:
            self._unit = divide_rows(self.matrix, self.lengths)
            self._unit.flags.writeable = False
        return self._unit

    def unit_of(self, keys: Sequence[str]) -> Matrix:
        return unit_rows(np.stack([self[key] for key in keys]))


def dense(sparse: Any) -> Matrix:
    """A sparse matrix with its zeros written out; refused where that is too much."""
    rows, columns = sparse.shape
    if rows * columns > MOST_DENSE:
        raise FirthError(
            "out_of_memory",
            "{rows:,} × {columns:,} numbers are too many to write out with their zeros (at most {most_dense:,}); "
            "keep them sparse (transform, .npz), lower max_vocabulary, or let LSA make short vectors of them.",
            rows=rows,
            columns=columns,
            most_dense=MOST_DENSE,
        )
    table: Matrix = sparse.toarray().astype(np.float32, copy=False)
    return table


def row_sums(values: NDArray[np.float64], starts: NDArray[Any]) -> NDArray[np.float64]:
    """The sum of each row's values; 0 for an empty row."""
    sums = np.zeros(len(starts) - 1)
    filled = starts[1:] > starts[:-1]
    if filled.any():
        sums[filled] = np.add.reduceat(values, starts[:-1][filled])
    return sums
