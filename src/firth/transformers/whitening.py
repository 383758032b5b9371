"""Whitening of text vectors (Su et al. 2021)."""

from __future__ import annotations

import numpy as np

from firth.core.errors import FirthError
from firth.core.vectors import Matrix
from firth.transformers.sentence_modules import Projection


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
    return Projection.linear(weight.astype(np.float32), (-weight @ mean).astype(np.float32))
