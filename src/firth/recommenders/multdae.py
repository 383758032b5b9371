"""MultDAE: a denoising autoencoder of user histories with a multinomial likelihood (Liang et al. 2018, section 2.3)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.training.network_options import UserOptions, networks

if TYPE_CHECKING:
    from firth.recommenders.user_autoencoder import UserModel


@dataclass(frozen=True, kw_only=True)
class MultDAE(UserOptions):
    """Maximize Σ log p(item | code) over each user's history, of which dropout hides some items from the encoder."""

    summary: ClassVar[str] = "users and items: a denoising autoencoder of user histories; new users need no training"

    @classmethod
    def model_class(cls) -> type[UserModel]:
        with networks():
            from firth.recommenders.user_autoencoder import UserModel
        return UserModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> UserModel:
        """Train on `Interactions`, or on anything they accept."""
        with networks():
            from firth.recommenders.user_autoencoder import train_user_autoencoder
        return train_user_autoencoder(self.model_class(), self, data, run, start)
