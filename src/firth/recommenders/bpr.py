"""BPR: users and items so that what a user has stands before what the user has not (Rendle et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.recommenders.bpr_training import BPRModel, Training
from firth.recommenders.recommender_model import as_interactions, check_start, keys_of, merge_interactions

MANY_ITEMS_PER_USER = 30  # a user's, on average


@dataclass(frozen=True, kw_only=True)
class BPR(Method):
    """Maximises Σ log σ(u · i − u · j) over an item i that the user has and a drawn item j that the user has not."""

    summary: ClassVar[str] = "users and items from who used what: learns the order, used before not used"
    model: ClassVar[type[Model]] = BPRModel
    kind: ClassVar[str] = "ratings"

    dim: int = option(64, "length of the vectors", low=1, high=4096)
    learning_rate: float = option(0.05, "at the start; it falls to nothing linearly", low=1e-9, high=100)
    regularization: float | None = option(
        None, "pulls vectors towards zero; none = 0.01, or 0.03 where users have fewer than 30 items", low=0, high=10
    )
    negative_exponent: float = option(
        0.5, "items j are drawn by count to this power; 0 = all alike, as in the paper", low=-2, high=2
    )
    epochs: int = option(100, "passes: as many samples as there are pairs", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> BPRModel:
        """Learns from Ratings (or what they can be made of); weights only tell used from not used. With `start`,
        continues from that model: its users and items keep what they were trained on and begin with their vectors; new
        ones are added."""
        start_model = check_start(start, BPRModel, self)
        interactions = merge_interactions(start_model, as_interactions(self, data))
        pairs = len(interactions.summed().columns)
        method = self.resolved(regularization=0.01 if pairs >= MANY_ITEMS_PER_USER * len(interactions.users) else 0.03)
        training = Training(method, interactions, run, start_model)
        metrics = training.go()
        metrics |= {"users": len(interactions.users), "items": len(interactions.items), "pairs": training.size}
        metrics |= {"seed": run.seed, "deterministic": run.deterministic, "threads": training.threads}
        seen = Histories(training.entries.starts, training.entries.columns)
        return BPRModel(method, training.trained_rows(), seen, keys_of(interactions), metrics)
