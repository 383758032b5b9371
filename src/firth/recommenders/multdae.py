"""MultDAE: a denoising autoencoder of user histories with a multinomial likelihood (Liang et al. 2018, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.training.network_options import UserOptions, model_in, torch_module


@model_in("recommenders.user_autoencoder", "UserModel")
@dataclass(frozen=True, kw_only=True)
class MultDAE(UserOptions):
    """Maximize Σ log p(item | code) over each user's history, of which dropout hides some items from the encoder."""

    summary: ClassVar[str] = "users and items: a denoising autoencoder of user histories; new users need no training"

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Train on `Interactions`, or on anything they accept."""
        return torch_module("recommenders.user_autoencoder").learn(self, data, run, start)
