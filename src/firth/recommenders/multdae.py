"""MultDAE: what a user had, some of it hidden, is told again from a short code (Liang et al. 2018, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.training.network_options import UserOptions, model_in, torch_module


@model_in("recommenders.user_autoencoder", "UserModel")
@dataclass(frozen=True, kw_only=True)
class MultDAE(UserOptions):
    """Maximises Σ log p(item | code): each item that the user had counts once, and the code is made of some of them."""

    summary: ClassVar[str] = "users and items: a denoising autoencoder of what users had; new users need no training"

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from Ratings (or what they can be made of)."""
        return torch_module("recommenders.user_autoencoder").learn(self, data, run, start)
