"""Item2Vec: items of the same baskets are alike; a user is the items of the history (Barkan & Koenigstein 2016)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.kernels import predict as kernel
from firth.recommenders.item2vec_training import BasketTraining, Item2VecModel, baskets, learned_rows
from firth.recommenders.recommender_model import joined, keys_of, take_ratings, take_start
from firth.words.window_training import Group, automatic_epochs

LEAST_EPOCHS, MANY_EVENTS = 20, 25_000
#: What a text's figures are called here.
AS_BASKETS = {"words_per_second": "items_per_second", "documents": "users", "vocabulary": "items", "tokens": "events"}


@dataclass(frozen=True, kw_only=True)
class Item2Vec(Method):
    """Skip-gram over baskets: maximises Σ log p(item | another item of the basket)."""

    summary: ClassVar[str] = "items from baskets or sessions by skip-gram; users are the items they had"
    model: ClassVar[type[Model]] = Item2VecModel
    kind: ClassVar[str] = "ratings"
    # What the skip-gram learner asks for and baskets have no choice in.
    architecture: ClassVar[str] = "skipgram"
    loss: ClassVar[str] = "negative"
    shrink_window: ClassVar[bool] = False
    group: ClassVar[Group] = Group()

    dim: int = option(64, "length of the vectors", low=1, high=65536)
    sessions: bool = option(
        False, "order counts: neighbours are those before and after an item; off: any two of a basket"
    )
    window: int = option(
        20, "items each side; baskets that are longer are shuffled for every pass", low=1, high=kernel.MAX_WINDOW
    )
    negatives: int = option(5, "noise items for each window", low=1, high=1000)
    negative_exponent: float = option(0.75, "noise items are drawn by count to this power", low=-2, high=2)
    subsample: float | None = option(
        None,
        "frequent items are thinned out above this share; 0 = off; none = 0.001, more for fewer than 250 items",
        low=0,
        high=1,
    )
    epochs: int | None = option(
        None, "passes over the baskets; none = 20 from 25,000 events on, more for fewer, up to 200", low=1
    )
    learning_rate: float = option(0.025, "at the start; it falls to nothing linearly", low=1e-9, high=100)

    def kernel_settings(self) -> dict[str, Any]:
        return {}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Item2VecModel:
        """Learns from Ratings (or what they can be made of): each user's items, in the order of time, are a basket.
        Weights don't count; an item that occurs twice does. With `start`, continues from that model on the new baskets:
        its items keep their vectors, its users their items; new ones are added."""
        first = take_start(start, Item2VecModel, self)
        new = take_ratings(self, data)
        ratings = joined(first, new)
        if len(ratings.items) < 2:
            raise FirthError(
                "too_few", "Item2Vec needs at least two different items; got {got}.", got=len(ratings.items)
            )
        entries = ratings.summed()
        method = self.resolved(
            epochs=automatic_epochs(len(new), LEAST_EPOCHS, MANY_EVENTS),
            subsample=max(1e-3, 0.25 / len(ratings.items)),  # else every item of a small catalogue is frequent
        )
        training = BasketTraining(method, baskets(new, ratings.items), run)
        met = training.begin_from(first) if first else np.zeros(len(ratings.items))
        figures = {AS_BASKETS.get(name, name): figure for name, figure in training.go().items()}
        figures |= {"events": len(new), "users": len(ratings.users)}  # events without weight too
        rows = learned_rows(training, entries, met)
        return Item2VecModel(method, rows, Histories(entries.starts, entries.columns), keys_of(ratings), figures)
