"""DeepWalk: random walks over a graph are read like sentences (Perozzi, Al-Rfou & Skiena 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from firth.graphs.walk_training import WalkingMethod


@dataclass(frozen=True, kw_only=True)
class DeepWalk(WalkingMethod):
    """Skip-gram over walks that go on by weight alone: nodes met on the same walks get similar vectors."""

    summary: ClassVar[str] = "node vectors: random walks read like sentences; nodes of one neighbourhood are near"
