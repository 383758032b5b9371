"""Exact principal components of the rows of a matrix, by SVD of the centered rows (Pearson 1901)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError

Array = NDArray[np.float64]


class Components(NamedTuple):
    """Principal directions in order of decreasing variance; min(rows, columns) of them."""

    mean: Array  # columns
    directions: Array  # components × columns, orthonormal
    variances: Array  # (components,): variance along each direction, with rows − 1 in the denominator

    def points(self, rows: Array, dims: int) -> Array:
        """Project rows onto the first directions: rows × dims."""
        return np.asarray((rows - self.mean) @ self.directions[:dims].T)


def principal_components(matrix: ArrayLike) -> Components:
    """Return the principal components of a matrix. The largest loading of each direction is positive."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise FirthError("too_few", "PCA needs a matrix with at least 2 rows; got shape {got}.", got=rows.shape)
    if not np.isfinite(rows).all():
        raise FirthError(
            "non_finite",
            "PCA needs finite numbers; row {row} contains NaN or infinity.",
            row=int(np.argmin(np.isfinite(rows).all(axis=1))),
        )
    mean = rows.mean(axis=0)
    # rows = QR, and R has the same singular values and right singular vectors (Chan 1982), so Q is not needed.
    _, singular_values, directions = np.linalg.svd(np.linalg.qr(rows - mean, mode="r"), full_matrices=False)
    if directions.size:
        largest = np.abs(directions).argmax(axis=1)
        directions *= np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)[:, None]
    with np.errstate(over="ignore"):
        variances = singular_values**2 / (len(rows) - 1)
    if not np.isfinite(variances).all():
        raise FirthError(
            "out_of_range",
            "PCA cannot square numbers as large as {got:g}. Scale the columns first (firth.Standardize).",
            got=float(np.abs(rows).max()),
        )
    return Components(mean, directions, variances)
