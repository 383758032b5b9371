"""Baskets and sessions through skip-gram: a user's items are a text whose words they are."""

from __future__ import annotations

from typing import Any, ClassVar

import numpy as np

from firth.core.run import Run
from firth.core.vectors import Matrix, unit_rows
from firth.data.ratings import Ratings
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels.sparse import Rows, multiply
from firth.learners.people import PeopleModel
from firth.learners.predict import Training
from firth.learners.loop import Slice


class Item2VecModel(PeopleModel):
    """Items by the company they keep. A user is the mean of the directions of the items in the history, and a score the
    product with an item's direction."""

    @property
    def item_rows(self) -> Matrix:
        return self.items.unit

    def fold(self, entries: Rows) -> Matrix:
        return pooled(entries, self.item_rows)


def pooled(entries: Rows, items: Matrix) -> Matrix:
    """The mean of the items of each row, whatever their weights; zeros for none."""
    counts = np.maximum(np.diff(entries.starts), 1)
    shares = np.repeat((1 / counts).astype(np.float32), np.diff(entries.starts))
    return multiply(Rows(entries.starts, entries.columns, shares), items)


def learned_rows(ratings: Ratings, entries: Rows, items: Matrix) -> dict[str, Matrix]:
    return {"users": pooled(entries, unit_rows(items)), "items": items}


def baskets(ratings: Ratings) -> Tokens:
    """Each user's items in their order: one document a user."""
    counts = np.bincount(ratings.item_ids, minlength=len(ratings.items))
    ids = np.array(ratings.item_ids)  # a copy: it will be shuffled
    return Tokens(ids, ratings.starts, Vocabulary(ratings.items, counts), len(ids))


class BasketTraining(Training):
    """Skip-gram over baskets. Where order means nothing, every epoch shuffles each basket, so that over the epochs all
    its pairs come within a window."""

    unit: ClassVar[str] = "items"

    def __init__(self, method: Any, tokens: Tokens, run: Run) -> None:
        super().__init__(method, tokens, run, None)
        self._ordered = np.array(tokens.ids)
        self._owners = np.repeat(np.arange(len(tokens)), np.diff(tokens.starts))
        self._shuffled = -1  # the epoch that the baskets are shuffled for

    def train(self, units: float, seed: int) -> Slice:
        if not self.method.sessions and self._shuffled != self.progress.epoch:
            self._shuffled = self.progress.epoch
            places = np.random.default_rng([self.run.seed, self.progress.epoch]).random(len(self._ordered))
            self.tokens.ids[:] = self._ordered[np.lexsort((places, self._owners))]  # in place: the kernel reads it
        return super().train(units, seed)
