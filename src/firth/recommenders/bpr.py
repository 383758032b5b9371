"""BPR: Bayesian personalized ranking of items for users (Rendle et al. 2009)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.interactions import Interactions
from firth.recommenders.bpr_training import BPRModel, Training
from firth.recommenders.recommender_model import as_interactions, check_start, keys_of, merge_interactions
from firth.training.network_options import EXPOSURE, NEW_ITEMS, NEW_USERS

MANY_ITEMS_PER_USER = 30  # on average; with fewer the default regularization is higher


@dataclass(frozen=True, kw_only=True)
class BPR(Method):
    """Maximize Σ log σ(u · i − u · j) over items i of the user's history and negative samples j."""

    limits: ClassVar[tuple[str, ...]] = (
        NEW_ITEMS,
        NEW_USERS,
        EXPOSURE,
    )
    summary: ClassVar[str] = "user and item vectors from implicit feedback: ranks used items above unused ones"
    model: ClassVar[type[BPRModel]] = BPRModel
    data = Interactions

    dim: int = option(64, "length of the vectors", low=1, high=4096)
    learning_rate: float = option(0.05, "initial learning rate; decays linearly to almost 0", low=1e-9, high=100)
    regularization: float | None = option(
        None,
        "strength of the L2 penalty of the vectors; none = 0.01, or 0.03 for fewer than 30 items per user",
        low=0,
        high=10,
    )
    negative_exponent: float = option(
        0.5, "negative items are drawn by count to this power; 0 = uniformly, as in the paper", low=-2, high=2
    )
    epochs: int = option(100, "passes, each with one sample per user-item pair", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> BPRModel:
        """Train on `Interactions`, or on anything they accept; a weight only decides between used and unused.

        With `start`, training continues from that model: its interactions are kept, its users and items begin with
        their vectors, and new ones are added.
        """
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
