"""A mixture of normal distributions, fitted by expectation and maximisation (Dempster et al. 1977)."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Array = NDArray[np.float64]
ROUNDS = 50
FULL = 32  # dimensions up to which components lean in any direction; beyond it they lie along the axes
RIDGE = 1e-6


class Mixture(NamedTuple):
    """Weights (k,), means (k, d), and matrices (k, d, d) whose product with their transpose is each covariance."""

    weights: Array
    means: Array
    roots: Array

    def sample(self, n: int, random: np.random.Generator) -> Array:
        """`n` points."""
        which = random.choice(len(self.weights), size=n, p=self.weights)
        noise = random.standard_normal((n, self.means.shape[1]))
        return self.means[which] + np.einsum("nij,nj->ni", self.roots[which], noise)


def fit_mixture(points: Array, components: int, random: np.random.Generator) -> Mixture:
    """Of at most `components` parts: no more than there are twenty points for each."""
    count, dim = points.shape
    k = max(1, min(components, count // 20))
    means = points[random.choice(count, size=k, replace=False)]
    nearest = ((points[:, None] - means) ** 2).sum(axis=2).argmin(axis=1)
    shares = np.eye(k)[nearest]
    previous = -np.inf
    for _ in range(ROUNDS):
        mixture = maximised(points, shares)
        logs = log_densities(points, mixture)
        most = logs.max(axis=1, keepdims=True)
        sums = np.exp(logs - most).sum(axis=1, keepdims=True)
        likelihood = float((most + np.log(sums)).mean())
        shares = np.exp(logs - most) / sums
        if likelihood - previous < 1e-4:
            break
        previous = likelihood
    return mixture


def maximised(points: Array, shares: Array) -> Mixture:
    """The mixture that fits points best which belong to its components by these shares."""
    sizes = shares.sum(axis=0) + 1e-9
    means = shares.T @ points / sizes[:, None]
    dim = points.shape[1]
    roots = np.zeros((len(sizes), dim, dim))
    overall = points.var(axis=0) * RIDGE + RIDGE
    for place, (mean, size) in enumerate(zip(means, sizes, strict=True)):
        off = points - mean
        if dim <= FULL:
            covariance = (shares[:, place, None] * off).T @ off / size + np.diag(overall)
            roots[place] = np.linalg.cholesky(covariance)
        else:
            roots[place] = np.diag(np.sqrt(shares[:, place] @ off**2 / size + overall))
    return Mixture(sizes / sizes.sum(), means, roots)


def log_densities(points: Array, mixture: Mixture) -> Array:
    """log (weight · density) of each point (rows) in each component (columns)."""
    found = np.empty((len(points), len(mixture.weights)))
    for place, (weight, mean, root) in enumerate(zip(*mixture, strict=True)):
        scaled = np.linalg.solve(root, (points - mean).T)
        log_size = np.log(np.diag(root)).sum() + 0.5 * len(mean) * np.log(2 * np.pi)
        found[:, place] = np.log(weight) - log_size - 0.5 * (scaled**2).sum(axis=0)
    return found
