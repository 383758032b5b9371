"""VAE: an autoencoder whose codes are distributions, so that new rows can be drawn (Kingma & Welling 2014)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import CompressingOptions, model_in, torch_module


@model_in("tables.autoencoder_model", "VAEModel")
@dataclass(frozen=True, kw_only=True)
class VAE(CompressingOptions):
    """Maximises the evidence lower bound Σ log p(x | z) − β · KL(q(z | x) ‖ N(0, 1)), z drawn from q.

    Numbers are normally distributed around what is rebuilt, with a deviation that is learned for each column; of
    categories it has probabilities. Learning begins at probabilistic PCA. What holds for tables stands at
    `Autoencoder`.
    """

    summary: ClassVar[str] = "tables and vectors: codes with uncertainty, and new rows like those it learned from"

    learning_rate: float = option(5e-3, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    beta: float = option(1.0, "weight of KL: more makes codes simpler and rows blurrier", low=0, high=1000)
    kl_annealing: float = option(0.3, "share of the run in which that weight rises from 0", low=0, high=1)
    free_bits: float = option(0.0, "nats a dimension of the code that cost nothing: against collapse", low=0, high=100)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a table or vectors. With `start`, goes on from that model, with its columns and scales."""
        return torch_module("tables.autoencoder_training").learn(self, data, run, start)
