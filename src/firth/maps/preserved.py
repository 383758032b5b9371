"""How much of the neighbourhoods a map keeps: a number to choose a map by, since every map looks convincing."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.vectors import Matrix
from firth.kernels.search import search_rows

NEIGHBORS = 10
SAMPLE = 2000  # points judged, drawn by the seed: the figures are then right to about a hundredth
AT_ONCE = 128


class Preservation(NamedTuple):
    """Over the points of a map, or a sample of them."""

    kept: float  # share of a point's k nearest that are its k nearest on the map, too
    trustworthiness: float  # 1: whoever is near on the map is near in truth (Venna & Kaski 2001); about 0.5 by chance
    k: int
    chance: float  # `kept` of a map drawn at random

    def __str__(self) -> str:
        whom = "nearest neighbour" if self.k == 1 else f"{self.k} nearest neighbours"
        return (
            f"{self.kept:.1%} of the {whom} kept (by chance {self.chance:.2%}), "
            f"trustworthiness {self.trustworthiness:.3f}"
        )


def preservation(rows: Matrix, xy: Matrix, k: int = NEIGHBORS, *, seed: int = 1, threads: int = 1) -> Preservation:
    """How well the plane keeps the neighbours of `rows`, by Euclidean distance in both."""
    count = len(rows)
    k = min(k, (count - 1) // 2)  # trustworthiness is defined for fewer than half of the points
    judged = np.arange(count)
    if count > SAMPLE:
        judged = np.sort(np.random.default_rng(seed).choice(count, SAMPLE, replace=False))
    ranks = np.vstack(
        [true_ranks(rows, xy, judged[first : first + AT_ONCE], k, threads) for first in range(0, len(judged), AT_ONCE)]
    )
    worst = k * (2 * count - 3 * k - 1) / 2  # what a point's ranks could be over k, summed
    trust = 1 - float(np.maximum(ranks - k, 0).sum(axis=1).mean()) / worst
    return Preservation(float((ranks <= k).mean()), trust, k, k / (count - 1))


def true_ranks(rows: Matrix, xy: Matrix, judged: NDArray[np.int64], k: int, threads: int) -> NDArray[np.int64]:
    """Of each judged point's k nearest on the map, which nearest it is in truth, from 1: judged × k."""
    near = search_rows(xy, xy[judged], k + 1, squared=True, threads=threads).rows
    others = np.argsort(near == judged[:, None], axis=1, kind="stable")[:, :k]
    near = np.take_along_axis(near, others, axis=1)
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = squares - 2 * (rows[judged] @ rows.T)  # less what is the same for all of a point's others
    distances[np.arange(len(judged)), judged] = np.inf  # a point is not its own neighbour
    own = np.take_along_axis(distances, near, axis=1)
    return np.stack([(distances < own[:, place, None]).sum(axis=1) + 1 for place in range(k)], axis=1)
