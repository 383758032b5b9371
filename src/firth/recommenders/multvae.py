"""MultVAE: what a user had becomes an uncertain code, and that a probability for each item (Liang et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import UserOptions, model_in, torch_module


@model_in("recommenders.user_autoencoder", "MultVAEModel")
@dataclass(frozen=True, kw_only=True)
class MultVAE(UserOptions):
    """Maximises Σ log p(item | z) − β · KL(q(z | items) ‖ N(0, 1)): each item that the user had counts once, z is drawn
    from q, and some of the items are hidden from q."""

    summary: ClassVar[str] = "users and items: a variational autoencoder of what users had; new users need no training"

    beta: float = option(0.2, "weight of KL in the end", low=0, high=1000)
    kl_annealing: float = option(0.5, "share of the run in which that weight rises from 0", low=0, high=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from Ratings (or what they can be made of)."""
        return torch_module("recommenders.user_autoencoder").learn(self, data, run, start)
