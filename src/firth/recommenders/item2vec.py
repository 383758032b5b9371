"""Item2Vec: skip-gram over baskets; a user is the mean of the items in the history (Barkan & Koenigstein 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.interactions import Interactions
from firth.kernels import predict as kernel
from firth.recommenders.item2vec_training import BasketTraining, Item2VecModel, baskets, trained_rows
from firth.recommenders.recommender_model import as_interactions, check_start, keys_of, merge_interactions
from firth.training.network_options import EXPOSURE, NEW_ITEMS, NEW_USERS
from firth.words.window_training import Group, automatic_epochs

MIN_EPOCHS, MANY_EVENTS = 20, 25_000
#: Metrics of skip-gram training, by their names for baskets.
METRIC_NAMES = {"words_per_second": "items_per_second", "documents": "users", "vocabulary": "items", "tokens": "events"}


@dataclass(frozen=True, kw_only=True)
class Item2Vec(Method):
    """Skip-gram over baskets: maximize Σ log p(item | another item of the basket)."""

    limits: ClassVar[tuple[str, ...]] = (
        NEW_ITEMS,
        NEW_USERS,
        EXPOSURE,
    )
    summary: ClassVar[str] = "item vectors from baskets or sessions by skip-gram; users are the mean of their items"
    model: ClassVar[type[Item2VecModel]] = Item2VecModel
    data = Interactions
    # Fixed settings of skip-gram training.
    architecture: ClassVar[str] = "skipgram"
    loss: ClassVar[str] = "negative"
    shrink_window: ClassVar[bool] = False
    group: ClassVar[Group] = Group()

    dim: int = option(64, "length of the vectors", low=1, high=65536)
    sessions: bool = option(
        False, "train on sessions: contexts are the items before and after; off: any two items of a user's history"
    )
    session_gap: float = option(
        1800.0,
        "seconds without an event that end a session, if there are times and no session column; 0 = never",
        low=0,
    )
    window: int = option(
        20,
        "context items on each side; without sessions, baskets are shuffled every epoch",
        low=1,
        high=kernel.MAX_WINDOW,
    )
    negatives: int = option(5, "negative samples per window", low=1, high=1000)
    negative_exponent: float = option(0.75, "negative samples are drawn by count to this power", low=-2, high=2)
    subsample: float | None = option(
        None,
        "subsample items above this share of the events; 0 = off; none = 0.001, more for fewer than 250 items",
        low=0,
        high=1,
    )
    epochs: int | None = option(
        None, "passes over the baskets; none = 20 from 25,000 events, more for fewer, up to 200", low=1
    )
    learning_rate: float = option(0.025, "initial learning rate; decays linearly to almost 0", low=1e-9, high=100)

    def kernel_settings(self) -> dict[str, Any]:
        """Return no additional settings of the skip-gram kernel."""
        return {}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Item2VecModel:
        """Train on `Interactions`, or on anything they accept: the items of a user, ordered by time, are a basket.

        With `sessions`, each session of the session column is a basket of its own; without that column, a user's
        session ends after `session_gap` seconds without an event.

        Weights are ignored; an item that occurs twice counts twice. With `start`, training continues from that model
        on the new baskets: its items begin with their vectors, its users keep their items, and new ones are added.
        """
        start_model = check_start(start, Item2VecModel, self)
        new_interactions = as_interactions(self, data)
        interactions = merge_interactions(start_model, new_interactions)
        if len(interactions.items) < 2:
            raise FirthError(
                "too_few",
                "{method} needs at least {minimum} different items; got {got}.",
                method=type(self).__name__,
                minimum=2,
                got=len(interactions.items),
            )
        entries = interactions.summed()
        method = self.resolved(
            epochs=automatic_epochs(len(new_interactions), MIN_EPOCHS, MANY_EVENTS),
            subsample=max(1e-3, 0.25 / len(interactions.items)),  # otherwise every item of a small catalog is frequent
        )
        tokens = baskets(new_interactions, interactions.items, method.session_gap if method.sessions else None)
        training = BasketTraining(method, tokens, run)
        previous_counts = training.copy_start_vectors(start_model) if start_model else np.zeros(len(interactions.items))
        metrics = {METRIC_NAMES.get(name, name): value for name, value in training.go().items()}
        metrics |= {"events": len(new_interactions), "users": len(interactions.users)}  # including events of weight 0
        metrics |= {"sessions": len(tokens)} if method.sessions else {}
        rows = trained_rows(training, entries, previous_counts)
        return Item2VecModel(method, rows, Histories(entries.starts, entries.columns), keys_of(interactions), metrics)
