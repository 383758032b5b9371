"""MultVAE: a variational autoencoder of user histories with a multinomial likelihood (Liang et al. 2018)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import UserOptions, networks

if TYPE_CHECKING:
    from firth.recommenders.user_autoencoder import MultVAEModel


@dataclass(frozen=True, kw_only=True)
class MultVAE(UserOptions):
    """Maximize Σ log p(item | z) − β · KL(q(z | items) ‖ N(0, 1)) over the items of each user's history.

    The code z is sampled from q, and dropout hides some of the items from the encoder.
    """

    summary: ClassVar[str] = "users and items: a variational autoencoder of user histories; new users need no training"

    beta: float = option(0.2, "final weight of the KL term", low=0, high=1000)
    kl_annealing: float = option(0.5, "share of the run in which the KL weight rises from 0 to beta", low=0, high=1)

    @classmethod
    def model_class(cls) -> type[MultVAEModel]:
        with networks():
            from firth.recommenders.user_autoencoder import MultVAEModel
        return MultVAEModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> MultVAEModel:
        """Train on `Interactions`, or on anything they accept."""
        with networks():
            from firth.recommenders.user_autoencoder import train_user_autoencoder
        return train_user_autoencoder(self.model_class(), self, data, run, start)
