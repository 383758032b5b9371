"""DeepWalk: skip-gram over random walks of a graph (Perozzi, Al-Rfou & Skiena 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.graphs.walk_training import WalkingMethod


@dataclass(frozen=True, kw_only=True)
class DeepWalk(WalkingMethod):
    """Skip-gram over unbiased random walks: nodes that occur on the same walks get similar vectors."""

    summary: ClassVar[str] = "node vectors from unbiased random walks; nodes of the same neighborhood are similar"
