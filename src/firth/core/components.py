"""Principal components of the rows of a matrix, exactly, by singular values of the centred rows (Pearson 1901)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError

Array = NDArray[np.float64]


class Components(NamedTuple):
    """Directions of largest variance, the first the largest; as many as the matrix has rows or columns."""

    mean: Array  # columns
    directions: Array  # components × columns, orthonormal
    variances: Array  # components: of the rows along each direction, divided by rows − 1

    def points(self, rows: Array, dims: int) -> Array:
        """Rows seen along the first directions: rows × dims."""
        return np.asarray((rows - self.mean) @ self.directions[:dims].T)


def principal_components(matrix: ArrayLike) -> Components:
    """In each direction the largest loading is positive (the first of equals), so signs are fixed."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise FirthError("too_few", "PCA needs a matrix of at least 2 rows; got shape {got}.", got=rows.shape)
    if not np.isfinite(rows).all():
        raise FirthError(
            "non_finite",
            "PCA needs finite numbers; row {argmin} has others.",
            argmin=int(np.argmin(np.isfinite(rows).all(axis=1))),
        )
    mean = rows.mean(axis=0)
    # Rows = QR, and R has the singular values and directions of the rows (Chan 1982): the long Q is not needed.
    _, lengths, directions = np.linalg.svd(np.linalg.qr(rows - mean, mode="r"), full_matrices=False)
    if directions.size:
        largest = np.abs(directions).argmax(axis=1)
        directions *= np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)[:, None]
    return Components(mean, directions, lengths**2 / (len(rows) - 1))
