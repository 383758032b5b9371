"""RatingFactors: biased matrix factorization of explicit ratings (Koren et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Model
from firth.core.options import option
from firth.core.report import Nothing
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix
from firth.data.interactions import Interactions, transposed
from firth.kernels import als as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import CSRMatrix
from firth.recommenders import als_training as als
from firth.recommenders.recommender_model import (
    RecommenderModel,
    as_interactions,
    check_start,
    copy_start_vectors,
    keys_of,
    merge_interactions,
)
from firth.training.baselines import BaselineComparison, clearly_better
from firth.training.network_options import NEW_ITEMS, NEW_USERS

ITEM_SHRINKAGE, USER_SHRINKAGE = 25.0, 10.0  # ratings at which a bias of the baseline is half its mean (Koren 2010)


class RatingFactorsModel(RecommenderModel):
    """A rating is `mean` + user bias + item bias + the dot product of the vectors.

    After its vector, a user row has the bias and 1, an item row 1 and the bias.
    """

    extra: ClassVar[int] = 2
    min_weight: ClassVar[float] = -np.inf
    stores_weights: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, str]] = {"mean": "float 1"}
    method: RatingFactors

    @property
    def mean(self) -> float:
        """The mean of all ratings."""
        return float(self._rows["mean"][0])

    def rate(self, users: Sequence[str], items: Sequence[str]) -> NDArray[np.float32]:
        """Return the predicted rating of each pair `users[n]`, `items[n]`."""
        if len(users) != len(items):
            raise FirthError(
                "shape_mismatch",
                "rate needs one item per user; got {n_users:,} users and {n_items:,} items.",
                n_users=len(users),
                n_items=len(items),
            )
        rows = self.item_rows[[self.items.row(item) for item in items]]
        return finite_rows(self.mean + np.einsum("ij,ij->i", self.user_rows(users), rows), "Rating")

    def scores(self, users: Matrix) -> Matrix:
        """Return the predicted ratings of all items."""
        return super().scores(users) + np.float32(self.mean)

    def _rows_and_weights(self, history: History) -> tuple[list[int], list[float]]:
        if not isinstance(history, Mapping):
            raise FirthError(
                "wrong_input",
                'RatingFactors needs a history with ratings: {"item": 4.5, …} (--items A=4.5,B=2); got items only.',
            )
        return super()._rows_and_weights(history)

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the exact rows of users with these ratings."""
        ridge = self.method.ridge(np.diff(entries.starts))
        return als.solve_new(entries, self.item_rows, ridge, Run(), mean=self.mean, bias_column=self.method.dim + 1)


@dataclass(frozen=True, kw_only=True)
class RatingFactors(Method):
    """Minimize Σ (r − mean − b_u − b_i − u · i)² + λ Σ (|u|² + |i|² + b_u² + b_i²) over the ratings."""

    limits: ClassVar[tuple[str, ...]] = (
        NEW_ITEMS,
        NEW_USERS,
        "Ratings are those of items that users chose to rate.",
    )
    summary: ClassVar[str] = "user and item vectors from explicit ratings: matrix factorization with biases"
    model: ClassVar[type[RatingFactorsModel]] = RatingFactorsModel
    data = Interactions
    distributed: ClassVar[str] = "solving for users and items; the interactions are read by this process"

    dim: int = option(32, "length of the vectors", low=1, high=1024)
    regularization: float = option(0.1, "strength of the L2 penalty of vectors and biases, per rating", low=1e-6)
    epochs: int = option(15, "passes, each over all users and then all items", low=1)
    held_out: float = option(
        0.1, "share of the ratings that a second training leaves out, to report its error on them", low=0, high=0.9
    )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> RatingFactorsModel:
        """Train on `Interactions` with ratings as weights, or on anything they accept.

        If a pair was rated several times, the last rating counts, or the mean if there are no times. With `start`,
        training continues from that model: its ratings are kept unless there are new ones, its users and items begin
        with their vectors, and new ones are added.
        """
        start_model = check_start(start, RatingFactorsModel, self)
        interactions = merge_interactions(start_model, as_interactions(self, data), add_weights=False)
        rows = interactions.latest()
        mean = float(rows.values.mean(dtype=np.float64))
        users, items = self.first_tables(len(interactions.users), len(interactions.items), run.seed)
        copy_start_vectors(start_model, interactions, users, items)
        metrics = self._train(rows, mean, (users, items), interactions.fingerprint(), run)
        comparison = self._held_out_comparison(rows, len(items), run)
        if comparison is not None:
            metrics |= comparison.metrics()
            comparison.add_notes(run.report, "Try another regularization, or more ratings.")
        metrics |= {"users": len(users), "items": len(items), "pairs": len(rows.columns)}
        metrics |= {"seed": run.seed, "deterministic": True, "threads": run.cores}
        width = self.dim + 2
        arrays = {
            "users": np.ascontiguousarray(users[:, :width]),
            "items": np.ascontiguousarray(items[:, :width]),
            "mean": np.array([mean]),
            "weights": rows.values,
        }
        return RatingFactorsModel(self, arrays, Histories(rows.starts, rows.columns), keys_of(interactions), metrics)

    def _train(
        self, rows: CSRMatrix, mean: float, tables: tuple[Table, Table], fingerprint: str, run: Run
    ) -> dict[str, Any]:
        """Train the tables of users and items on the ratings; return metrics."""
        users, items = tables
        columns = transposed(rows, len(items))
        user_ridge, item_ridge = (self.ridge(np.diff(side.starts)) for side in (rows, columns))
        sides = (
            kernel.Side(rows, users, items, user_ridge, mean=mean, bias_column=self.dim + 1),
            kernel.Side(columns, items, users, item_ridge, mean=mean, bias_column=self.dim),
        )
        return als.training_of(self, fingerprint, run, sides).go()

    def _held_out_comparison(self, rows: CSRMatrix, items: int, run: Run) -> BaselineComparison | None:
        """Return the error of a training without some of the ratings on these, beside those of baselines.

        A run with a time budget has no time for it.
        """
        user_ids = np.repeat(np.arange(len(rows.starts) - 1), np.diff(rows.starts))
        held_out = np.random.default_rng(run.seed).random(len(user_ids)) < self.held_out
        if run.budget or not held_out.any() or held_out.all():
            return None
        starts = np.concatenate([[0], np.cumsum(np.bincount(user_ids[~held_out], minlength=len(rows.starts) - 1))])
        rest = CSRMatrix(starts.astype(np.int64), rows.columns[~held_out], rows.values[~held_out])
        mean = float(rest.values.mean(dtype=np.float64))
        tables = self.first_tables(len(starts) - 1, items, run.seed)
        silent = replace(run, report=Nothing(), checkpoint_folder=None)
        self._train(rest, mean, tables, "", silent)
        pairs = user_ids[held_out], rows.columns[held_out]
        predicted = mean + np.einsum("ij,ij->i", tables[0][pairs[0]], tables[1][pairs[1]])
        simple = mean + bias_estimates(rest, user_ids[~held_out], mean, items, pairs)
        return compare_ratings(rows.values[held_out].astype(np.float64), predicted, mean, simple)

    def first_tables(self, users: int, items: int, seed: int) -> tuple[Table, Table]:
        """Return initial tables with random items; users are solved first."""
        stride = -(-(self.dim + 2) // 16) * 16
        tables = new_table(users, stride), new_table(items, stride)
        tables[1][:, : self.dim] = np.random.default_rng(seed).normal(0, 0.1, (items, self.dim))
        tables[0][:, self.dim + 1] = tables[1][:, self.dim] = 1
        return tables

    def ridge(self, counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Return the regularization of each row: once per rating (Zhou et al. 2008), and at least once."""
        return np.asarray(self.regularization * np.maximum(counts, 1), dtype=np.float32)


def bias_estimates(
    rows: CSRMatrix, user_ids: NDArray[np.int64], mean: float, items: int, pairs: tuple[NDArray[Any], NDArray[Any]]
) -> NDArray[np.float64]:
    """Return the sum of the biases of each pair's user and item, shrunk to 0 (Koren 2010, section 2.1)."""
    rest = rows.values.astype(np.float64) - mean
    item_counts, user_counts = np.bincount(rows.columns, minlength=items), np.diff(rows.starts)
    item_biases = np.bincount(rows.columns, rest, items) / (ITEM_SHRINKAGE + item_counts)
    rest -= item_biases[rows.columns]
    user_biases = np.bincount(user_ids, rest, len(user_counts)) / (USER_SHRINKAGE + user_counts)
    return np.asarray(user_biases[pairs[0]] + item_biases[pairs[1]])


def compare_ratings(
    ratings: NDArray[np.float64], predicted: NDArray[Any], mean: float, simple: NDArray[np.float64]
) -> BaselineComparison:
    """Compare the errors of predicted ratings with those of the mean and of biases alone."""
    squares = {
        name: (np.asarray(values, np.float64) - ratings) ** 2
        for name, values in {"model": predicted, "mean": mean, "user and item biases": simple}.items()
    }
    errors = {name: float(np.sqrt(values.mean())) for name, values in squares.items()}
    learned = clearly_better(-squares["model"], -squares["mean"])
    weaker = clearly_better(-squares["user and item biases"], -squares["model"])
    return BaselineComparison("rmse", len(ratings), errors.pop("model"), errors, learned, weaker)
