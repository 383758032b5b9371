"""RatingFactors: biased matrix factorization of explicit ratings (Koren et al. 2009)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Model
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix
from firth.data.interactions import Interactions, transposed
from firth.kernels import als as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import Rows
from firth.recommenders import als_training as als
from firth.recommenders.recommender_model import (
    RecommenderModel,
    as_interactions,
    check_start,
    copy_start_vectors,
    keys_of,
    merge_interactions,
)
from firth.training.network_options import NEW_ITEMS, NEW_USERS


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

    def _weights_by_row(self, history: History) -> dict[int, float]:
        if not hasattr(history, "items"):
            raise FirthError(
                "wrong_input",
                'RatingFactors needs a history with ratings: {"item": 4.5, …} (--items A=4.5,B=2); got items only.',
            )
        return super()._weights_by_row(history)

    def fold(self, entries: Rows) -> Matrix:
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
    model: ClassVar[type[Model]] = RatingFactorsModel
    data = Interactions

    dim: int = option(32, "length of the vectors", low=1, high=1024)
    regularization: float = option(0.1, "strength of the L2 penalty of vectors and biases, per rating", low=1e-6)
    epochs: int = option(15, "passes, each over all users and then all items", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> RatingFactorsModel:
        """Train on `Interactions` with ratings as weights, or on anything they accept.

        If a pair was rated several times, the last rating counts, or the mean if there are no times. With `start`,
        training continues from that model: its ratings are kept unless there are new ones, its users and items begin
        with their vectors, and new ones are added.
        """
        start_model = check_start(start, RatingFactorsModel, self)
        interactions = merge_interactions(start_model, as_interactions(self, data), add_weights=False)
        rows = interactions.latest()
        columns = transposed(rows, len(interactions.items))
        mean = float(rows.values.mean(dtype=np.float64))
        users, items = self.first_tables(len(interactions.users), len(interactions.items), run.seed)
        copy_start_vectors(start_model, interactions, users, items)
        user_ridge, item_ridge = (self.ridge(np.diff(side.starts)) for side in (rows, columns))
        sides = (
            kernel.Side(rows, users, items, user_ridge, mean=mean, bias_column=self.dim + 1),
            kernel.Side(columns, items, users, item_ridge, mean=mean, bias_column=self.dim),
        )
        metrics = als.Training(self, interactions.fingerprint(), run, sides).go()
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
