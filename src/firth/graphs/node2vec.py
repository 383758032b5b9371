"""Node2Vec: skip-gram over biased random walks of a graph (Grover & Leskovec 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.options import option
from firth.graphs.walk_training import WalkingMethod


@dataclass(frozen=True, kw_only=True)
class Node2Vec(WalkingMethod):
    """Skip-gram over second-order random walks.

    From node t to v, the next step is weighted by 1/p if it returns to t, by 1 if it leads to a neighbor of t, and by
    1/q otherwise.
    """

    summary: ClassVar[str] = "node vectors from random walks biased by p and q: from neighborhoods to roles"

    p: float = option(
        1.0, "return parameter: large = walks seldom turn back; small = they stay near their start", low=1e-6, high=1e6
    )
    q: float = option(
        1.0, "in-out parameter: large = walks stay among common neighbors; small = they explore", low=1e-6, high=1e6
    )

    def bias(self) -> tuple[float, float]:
        """Return p and q of the walks."""
        return self.p, self.q
