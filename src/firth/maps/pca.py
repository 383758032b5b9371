"""Projection of rows onto their first principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.components import principal_components
from firth.core.errors import FirthError


class Projection(NamedTuple):
    """Rows projected onto the directions of largest variance."""

    points: NDArray[np.float64]  # rows × dims
    explained: NDArray[np.float64]  # share of the variance of each direction


def pca(matrix: ArrayLike, dims: int = 2) -> Projection:
    """Project rows onto their first `dims` principal components. Signs are fixed: the largest loading is positive."""
    if dims < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="dims", got=dims)
    rows = np.asarray(matrix, dtype=np.float64)
    components = principal_components(rows)
    explained = components.variances / (components.variances.sum() or 1.0)
    missing = max(0, dims - len(explained))  # with fewer rows or columns than dims, the rest has no variance
    points = np.pad(components.points(rows, dims), ((0, 0), (0, missing)))
    return Projection(points, np.pad(explained, (0, missing))[:dims])
