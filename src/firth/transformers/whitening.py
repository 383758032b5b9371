"""A linear map after the pooling: whitening (Su et al. 2021), or the Dense module of sentence-transformers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix


class Projection(NamedTuple):
    """The linear map y = W x + b."""

    weight: NDArray[np.float32]  # (new dim, dim)
    bias: NDArray[np.float32]

    def __call__(self, rows: Matrix) -> Matrix:
        """Project row by row, because the rounding of a matrix product depends on the number of rows."""
        projected: Matrix = np.empty((len(rows), self.dim), np.float32)
        for row, output_row in zip(rows, projected, strict=True):
            output_row[:] = self.weight @ row
        return projected + self.bias

    @property
    def dim(self) -> int:
        """The output dimension."""
        return len(self.weight)

    @classmethod
    def of(cls, arrays: Any, dim: int) -> Projection:
        """Return the projection of stored arrays after checking their shapes."""
        weight, bias = arrays.get("linear.weight"), arrays.get("linear.bias")
        if weight is None or weight.ndim != 2 or weight.shape[1] != dim:
            raise FirthError(
                "damaged_model", "The projection needs {array} with {dim} columns.", array="linear.weight", dim=dim
            )
        bias = np.zeros(len(weight), np.float32) if bias is None else bias
        if bias.shape != weight.shape[:1]:
            raise FirthError(
                "damaged_model",
                "{array} must have {expected} numbers; got shape {got}.",
                array="linear.bias",
                expected=len(weight),
                got=bias.shape,
            )
        return cls(np.asarray(weight, np.float32), np.asarray(bias, np.float32))


def whitening(rows: Matrix, dim: int = 0) -> Projection:
    """Return the map that gives these rows mean 0 and the identity as covariance.

    It keeps the `dim` directions of highest variance, or all with nonzero variance (a layer norm removes one). With
    Σ = U Λ Uᵀ it is Λ^-½ Uᵀ (x - mean).
    """
    if len(rows) < 2:
        raise FirthError("too_few", "Whitening needs at least 2 texts; got {got}.", got=len(rows))
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    sizes, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    sizes, directions = sizes[::-1], directions[:, ::-1]  # largest first
    rounding = 1e-20 * float(mean @ mean)  # rounding error of equal rows
    differing = int((sizes > max(1e-9 * sizes[0], rounding)).sum())
    if not differing:
        raise FirthError(
            "no_variation",
            "Cannot whiten: all {n_rows:,} texts have the same vector. Pass more varied texts.",
            n_rows=len(rows),
        )
    if type(dim) is not int:
        raise FirthError("invalid_value", "{option} must be an integer; got {got!r}.", option="dim", got=dim)
    n_kept = dim or differing
    if not 1 <= n_kept <= differing:
        raise FirthError(
            "no_variation",
            "Cannot whiten to dim={got}: the {n_rows:,} texts vary in {limit} directions. Pass more texts, or dim "
            "from 1 to {limit}.",
            n_rows=len(rows),
            limit=differing,
            got=dim,
        )
    weight = np.ascontiguousarray(directions[:, :n_kept].T) / np.sqrt(sizes[:n_kept])[:, None]
    return Projection(weight.astype(np.float32), (-weight @ mean).astype(np.float32))
