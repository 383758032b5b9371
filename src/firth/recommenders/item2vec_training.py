"""Skip-gram training on baskets and sessions: the items of a user are the tokens of a document."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.data.interactions import Interactions
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels.sparse import CSRMatrix, multiply
from firth.recommenders.recommender_model import RecommenderModel, rows_of
from firth.training.epoch_loop import SliceResult
from firth.words.window_training import Training

if TYPE_CHECKING:
    from firth.recommenders.item2vec import Item2Vec


class Item2VecModel(RecommenderModel):
    """Item vectors of skip-gram; a user is the mean of the items in the history.

    The score of an item is u · o + e · log n, where o is its output vector, n its count and e `negative_exponent`. With
    negative samples drawn in proportion to n^e, the dot product estimates log(p(item | history) / n^e) up to a constant
    (Levy & Goldberg 2014), so the score estimates log p(item | history). Cosine similarity to the user would recommend
    rare items instead: on Last.fm it found a quarter as many held-out items.
    """

    stored: ClassVar[Mapping[str, str]] = {"outputs": "float items width+1"}

    @property
    def item_rows(self) -> Matrix:
        """The output vectors of the items, followed by e · log n."""
        return self._rows["outputs"]

    def user_rows(self, users: Sequence[str]) -> Matrix:
        """Return the vectors of users, followed by 1."""
        return with_one(super().user_rows(users))

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the means of the item vectors, followed by 1."""
        return with_one(pooled(entries, self.items.matrix))


def with_one(rows: Matrix) -> Matrix:
    """Append a column of ones, which multiplies the item's own part of the score."""
    return np.hstack([rows, np.ones((len(rows), 1), dtype=np.float32)])


def pooled(entries: CSRMatrix, items: Matrix) -> Matrix:
    """Return the unweighted mean of the item vectors of each row; zeros for an empty row."""
    counts = np.maximum(np.diff(entries.starts), 1)
    shares = np.repeat((1 / counts).astype(np.float32), np.diff(entries.starts))
    return multiply(CSRMatrix(entries.starts, entries.columns, shares), items)


def trained_rows(training: Training, entries: CSRMatrix, previous_counts: NDArray[np.float64]) -> dict[str, Matrix]:
    """Return the vectors of items and users, and the output vectors of items followed by e · log n.

    `previous_counts` has the item counts of the model that training continues from.
    """
    method, counts = training.method, training.tokens.vocabulary.counts + previous_counts
    inputs, outputs = training.inputs, training.outputs
    items = np.where(counts[:, None] > 0, inputs[:, : method.dim], np.float32(0))  # unused items have zero vectors
    prior = method.negative_exponent * np.log(np.maximum(counts, 1))
    targets = np.hstack([outputs[:, : method.dim], prior[:, None]]).astype(np.float32)
    return {"users": pooled(entries, items), "items": items, "outputs": targets}


def baskets(interactions: Interactions, items: Sequence[str], session_gap: float | None) -> Tokens:
    """Return the items of each user in order, as one document per user; events of weight 0 are left out.

    With `session_gap`, each session is a document. `items` lists all items, including those of `interactions`.
    """
    order, bounds = np.arange(len(interactions)), interactions.starts
    if session_gap is not None:
        order, bounds = interactions.sessions_of(session_gap)
    used = interactions.weights[order] > 0
    ids = rows_of(interactions.items, items).astype(np.int32)[
        interactions.item_ids[order[used]]
    ]  # a copy: it will be shuffled
    starts = np.concatenate([[0], np.cumsum(used)])[bounds].astype(np.int64)
    counts = np.bincount(ids, minlength=len(items))
    return Tokens(ids, starts, Vocabulary(items, counts), len(ids))


class BasketTraining(Training):
    """Skip-gram over baskets. Without `sessions` each epoch shuffles every basket, so that all its pairs eventually
    fall within a window."""

    unit: ClassVar[str] = "items"
    method: Item2Vec

    def __init__(self, method: Item2Vec, tokens: Tokens, run: Run) -> None:
        super().__init__(method, tokens, run)
        self._ordered = np.array(tokens.ids)
        self._owners = np.repeat(np.arange(len(tokens)), np.diff(tokens.starts))
        self._shuffled = -1  # the epoch that the baskets are shuffled for

    def copy_start_vectors(self, start: RecommenderModel) -> NDArray[np.float64]:
        """Copy the vectors of `start`, and return its count of each item (0 for new items)."""
        dim, outputs = self.method.dim, start.item_rows
        item_rows = rows_of(start.items.keys, self.tokens.vocabulary.tokens)
        self.inputs[item_rows, :dim], self.outputs[item_rows, :dim] = start.items.matrix, outputs[:, :dim]
        previous_counts = np.zeros(len(self.tokens.vocabulary))
        exponent = start.method.options()["negative_exponent"]
        users_per_item = np.bincount(start.seen.items, minlength=len(start.items))  # by how many users
        previous_counts[item_rows] = (
            np.where(users_per_item > 0, np.exp(outputs[:, dim] / exponent), 0) if exponent else users_per_item
        )
        return previous_counts

    def train(self, units: float, seed: int) -> SliceResult:
        """Shuffle the baskets at the start of an epoch, unless they are sessions, and train."""
        if not self.method.sessions and self._shuffled != self.progress.epoch:
            self._shuffled = self.progress.epoch
            shuffle_keys = np.random.default_rng([self.run.seed, self.progress.epoch]).random(len(self._ordered))
            self.tokens.ids[:] = self._ordered[
                np.lexsort((shuffle_keys, self._owners))
            ]  # in place: the kernel reads it
        return super().train(units, seed)
