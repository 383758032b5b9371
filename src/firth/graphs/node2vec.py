"""Node2vec: random walks that stay near or venture out, read like sentences (Grover & Leskovec 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.core.options import option
from firth.graphs.walk_training import WalkingMethod


@dataclass(frozen=True, kw_only=True)
class Node2Vec(WalkingMethod):
    """Skip-gram over walks that weigh going back by 1/p and going on to strangers of the last node by 1/q."""

    summary: ClassVar[str] = "node vectors: random walks steered by p and q; between neighbourhoods and roles"

    p: float = option(1.0, "large: walks seldom turn back; small: they stay near their start", low=1e-6, high=1e6)
    q: float = option(1.0, "large: walks stay among common neighbours; small: they venture out", low=1e-6, high=1e6)

    def bias(self) -> tuple[float, float]:
        return self.p, self.q
