"""SequenceRecommender: a transformer over the items of a user in order (SASRec, BERT4Rec)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.interactions import Interactions
from firth.training.network_options import EXPOSURE, NEW_USERS, RowOptions, networks

if TYPE_CHECKING:
    from firth.recommenders.sequence_model import SequenceModel


@dataclass(frozen=True, kw_only=True)
class SequenceRecommender(RowOptions):
    """Maximize Σ log p(item | the items before it), or with `objective=masked` of hidden items given both sides.

    The causal objective is that of SASRec (Kang & McAuley 2018), with a softmax over all items in place of one negative
    sample; the masked one is that of BERT4Rec (Sun et al. 2019).
    """

    limits: ClassVar[tuple[str, ...]] = (
        "Only the last context_length items of a history count, and their order has to mean something.",
        NEW_USERS,
        EXPOSURE,
    )
    summary: ClassVar[str] = "a transformer predicts the next item of a user: SASRec (causal), BERT4Rec (masked)"
    data = Interactions

    objective: str = option(
        "causal",
        "causal: predict each item from those before it (SASRec); masked: hidden items from both sides (BERT4Rec)",
        choices=("causal", "masked"),
    )
    dim: int = option(64, "length of the vectors", low=2, high=65536)
    layers: int = option(2, "number of blocks", low=1, high=1000)
    heads: int = option(2, "attention heads; must divide dim", low=1, high=1024)
    context_length: int = option(50, "maximum number of items that are seen", low=2, high=100_000)
    mask_rate: float = option(0.2, "share of the items that are hidden (masked)", low=0.01, high=0.95)
    epochs: int = option(60, "passes over the histories", low=1)
    batch_size: int = option(64, "stretches of context_length items per step", low=1)
    learning_rate: float = option(2e-3, "peak learning rate, after warmup and before decay", low=1e-9, high=10)
    dropout: float = option(0.3, "dropout probability", low=0, high=0.95)
    held_out: float = option(0.05, "share of the stretches held out to select the best weights", low=0, high=0.9)

    @classmethod
    def model_class(cls) -> type[SequenceModel]:
        with networks():
            from firth.recommenders.sequence_model import SequenceModel
        return SequenceModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> SequenceModel:
        """Train on `Interactions`, or on anything they accept: the items of a user, ordered by time, are a sequence.

        Weights are ignored, except that events of weight 0 are left out. With `start`, training continues from that
        model: its users, items and their order are kept, and new ones are added.
        """
        if self.dim % self.heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got dim={got} and heads={heads}.",
                option="SequenceRecommender.dim",
                got=self.dim,
                heads=self.heads,
            )
        with networks():
            from firth.recommenders.sequence_training import train_sequences
        return train_sequences(self, data, run, start)
