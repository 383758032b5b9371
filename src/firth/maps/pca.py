"""Rows in two or three dimensions: their first principal components."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.components import principal_components
from firth.core.errors import FirthError


class Projection(NamedTuple):
    """Rows seen along their directions of largest variance."""

    points: NDArray[np.float64]  # rows × dims
    explained: NDArray[np.float64]  # share of the variance each direction keeps


def pca(matrix: ArrayLike, dims: int = 2) -> Projection:
    """The first `dims` principal components; in each direction the largest loading is positive, so signs are fixed."""
    if dims < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="dims", got=dims)
    rows = np.asarray(matrix, dtype=np.float64)
    found = principal_components(rows)
    explained = found.variances / (found.variances.sum() or 1.0)
    missing = max(0, dims - len(explained))  # fewer rows or columns than dims: nothing varies there
    points = np.pad(found.points(rows, dims), ((0, 0), (0, missing)))
    return Projection(points, np.pad(explained, (0, missing))[:dims])
