"""Scores for how well a 2-D layout preserves neighborhoods."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.vectors import Matrix
from firth.kernels.search import search_rows

NEIGHBORS = 10
SAMPLE = 2000  # points that are evaluated, sampled with the seed: scores are then accurate to about 0.01
BLOCK = 128


class Preservation(NamedTuple):
    """Scores of a layout, averaged over its points or a sample of them."""

    recall: float  # share of a point's k nearest neighbors that are among its k nearest in the layout
    trustworthiness: (
        float  # 1: all neighbors in the layout are true neighbors (Venna & Kaski 2001); about 0.5 by chance
    )
    k: int
    chance: float  # recall of a random layout

    def to_json(self) -> dict[str, Any]:
        """Return the entries that a saved layout has. The key of the recall is "kept", as in all versions."""
        scores = self._asdict()
        return {"kept": scores.pop("recall"), **scores}

    @classmethod
    def from_json(cls, scores: Mapping[str, Any]) -> Preservation:
        """Return the scores that `to_json` wrote."""
        return cls(scores["kept"], scores["trustworthiness"], scores["k"], scores["chance"])

    def __str__(self) -> str:
        neighbors = "nearest neighbor" if self.k == 1 else f"{self.k} nearest neighbors"
        return (
            f"{self.recall:.1%} of the {neighbors} preserved (by chance {self.chance:.2%}), "
            f"trustworthiness {self.trustworthiness:.3f}"
        )


def preservation(rows: Matrix, xy: Matrix, k: int = NEIGHBORS, *, seed: int = 1, threads: int = 1) -> Preservation:
    """Return how well the coordinates `xy` preserve the neighborhoods of `rows`, by Euclidean distance in both."""
    count = len(rows)
    k = min(k, (count - 1) // 2)  # trustworthiness is defined for fewer than half of the points
    sampled = np.arange(count)
    if count > SAMPLE:
        sampled = np.sort(np.random.default_rng(seed).choice(count, SAMPLE, replace=False))
    ranks = np.vstack(
        [true_ranks(rows, xy, sampled[first : first + BLOCK], k, threads) for first in range(0, len(sampled), BLOCK)]
    )
    worst = k * (2 * count - 3 * k - 1) / 2  # the largest possible sum of a point's ranks beyond k
    trust = 1 - float(np.maximum(ranks - k, 0).sum(axis=1).mean()) / worst
    return Preservation(float((ranks <= k).mean()), trust, k, k / (count - 1))


def true_ranks(rows: Matrix, xy: Matrix, sampled: NDArray[np.int64], k: int, threads: int) -> NDArray[np.int64]:
    """Return the true ranks, from 1, of each sampled point's k nearest in the layout, as sampled × k."""
    neighbors = search_rows(xy, xy[sampled], k + 1, squared=True, threads=threads).rows
    without_self = np.argsort(neighbors == sampled[:, None], axis=1, kind="stable")[:, :k]
    neighbors = np.take_along_axis(neighbors, without_self, axis=1)
    squares = np.einsum("ij,ij->i", rows, rows)
    distances = squares - 2 * (
        rows[sampled] @ rows.T
    )  # without |row|² of the sampled point, which does not change ranks
    distances[np.arange(len(sampled)), sampled] = np.inf  # a point is not its own neighbor
    neighbor_distances = np.take_along_axis(distances, neighbors, axis=1)
    return np.stack([(distances < neighbor_distances[:, rank, None]).sum(axis=1) + 1 for rank in range(k)], axis=1)
