"""Exact principal components, by singular values of the centred rows."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError


class Projection(NamedTuple):
    """Rows seen along their directions of largest variance."""

    points: NDArray[np.float64]  # rows × dims
    explained: NDArray[np.float64]  # share of the variance each direction keeps


def pca(matrix: ArrayLike, dims: int = 2) -> Projection:
    """The first `dims` principal components; in each direction the largest loading is positive, so signs are fixed."""
    rows = np.asarray(matrix, dtype=np.float64)
    if rows.ndim != 2 or len(rows) < 2:
        raise FirthError(f"PCA needs a matrix of at least 2 rows; got shape {rows.shape}.")
    if dims < 1:
        raise FirthError(f"dims must be at least 1; got {dims}.")
    if not np.isfinite(rows).all():
        raise FirthError(f"PCA needs finite numbers; row {int(np.argmin(np.isfinite(rows).all(axis=1)))} has others.")
    left, lengths, directions = np.linalg.svd(rows - rows.mean(axis=0), full_matrices=False)
    largest = np.abs(directions).argmax(axis=1)
    signs = np.where(directions[np.arange(len(directions)), largest] < 0, -1.0, 1.0)
    points = left * lengths * signs
    variance = lengths**2
    explained = variance / (variance.sum() or 1.0)
    missing = max(0, dims - len(lengths))  # fewer rows or columns than dims: nothing varies there
    return Projection(np.pad(points, ((0, 0), (0, missing)))[:, :dims], np.pad(explained, (0, missing))[:dims])
