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
    points: Array  # rows × components


def principal_components(matrix: ArrayLike) -> Components:
    """In each direction the largest loading is positive (the first of equals), so signs are fixed."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise FirthError(f"PCA needs a matrix of at least 2 rows; got shape {rows.shape}.")
    if not np.isfinite(rows).all():
        raise FirthError(f"PCA needs finite numbers; row {int(np.argmin(np.isfinite(rows).all(axis=1)))} has others.")
    mean = rows.mean(axis=0)
    left, lengths, directions = np.linalg.svd(rows - mean, full_matrices=False)
    if directions.size:
        largest = np.abs(directions).argmax(axis=1)
        signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
        left, directions = left * signs, directions * signs[:, None]
    return Components(mean, directions, lengths**2 / (len(rows) - 1), left * lengths)
