"""A linear map behind the pooling: whitening (Su et al. 2021), or the Dense of sentence-transformers."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix


class Projection(NamedTuple):
    """y = W x + b."""

    weight: NDArray[np.float32]  # (new dim, dim)
    bias: NDArray[np.float32]

    def __call__(self, rows: Matrix) -> Matrix:
        """Row by row: how a product of matrices adds up depends on how many rows there are."""
        projected: Matrix = np.empty((len(rows), self.dim), np.float32)
        for row, output_row in zip(rows, projected, strict=True):
            output_row[:] = self.weight @ row
        return projected + self.bias

    @property
    def dim(self) -> int:
        return len(self.weight)

    @classmethod
    def of(cls, arrays: Any, dim: int) -> Projection:
        """From stored arrays, checked."""
        weight, bias = arrays.get("linear.weight"), arrays.get("linear.bias")
        if weight is None or weight.ndim != 2 or weight.shape[1] != dim:
            raise FirthError(
                "damaged_model", "A projection of vectors of {dim} needs linear.weight with {dim} columns.", dim=dim
            )
        bias = np.zeros(len(weight), np.float32) if bias is None else bias
        if bias.shape != weight.shape[:1]:
            raise FirthError(
                "damaged_model",
                "linear.bias must have {n_weight} numbers; it has the shape {shape}.",
                n_weight=len(weight),
                shape=bias.shape,
            )
        return cls(np.asarray(weight, np.float32), np.asarray(bias, np.float32))


def whitening(rows: Matrix, dim: int = 0) -> Projection:
    """The map after which these rows have mean 0, variance 1 in every direction and no two directions go together.

    Kept are the `dim` directions in which the rows differ most, or all in which they differ at all (behind a norm one
    is always missing). Of Σ = U Λ Uᵀ it is Λ^-½ Uᵀ (x - mean).
    """
    if len(rows) < 2:
        raise FirthError(
            "too_few", "Whitening looks at how texts differ, so it needs several; got {got}.", got=len(rows)
        )
    mean = rows.mean(axis=0, dtype=np.float64)
    centred = rows - mean
    sizes, directions = np.linalg.eigh(centred.T @ centred / len(rows))
    sizes, directions = sizes[::-1], directions[:, ::-1]  # the greatest first
    rounding = 1e-20 * float(mean @ mean)  # equal rows may differ by it from their mean
    differing = int((sizes > max(1e-9 * sizes[0], rounding)).sum())
    if not differing:
        raise FirthError(
            "no_variation",
            "Whitening looks at how texts differ, and these {n_rows:,} have one and the same vector: give others.",
            n_rows=len(rows),
        )
    if type(dim) is not int:
        raise FirthError("invalid_value", "{option} must be a whole number; got {got!r}.", option="dim", got=dim)
    n_kept = dim or differing
    if not 1 <= n_kept <= differing:
        raise FirthError(
            "no_variation",
            "These {n_rows:,} texts differ in {differing} directions, of which {dim} were asked for: give more "
            "texts, or a dim from 1 to {differing}.",
            n_rows=len(rows),
            differing=differing,
            dim=dim,
        )
    weight = np.ascontiguousarray(directions[:, :n_kept].T) / np.sqrt(sizes[:n_kept])[:, None]
    return Projection(weight.astype(np.float32), (-weight @ mean).astype(np.float32))
