"""RatingFactors: ratings as a mean, what a user and an item differ from it, and a product (Koren et al. 2009)."""

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
from firth.data.interactions import transposed
from firth.kernels import als as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import Rows
from firth.recommenders import als_training as als
from firth.recommenders.recommender_model import RecommenderModel, begin_from, joined, keys_of, take_ratings, take_start


class RatingFactorsModel(RecommenderModel):
    """A rating is `mean` + the user's bias + the item's + the product of their vectors. Rows hold, behind the vector,
    bias and 1 (users), 1 and bias (items)."""

    extra: ClassVar[int] = 2
    least_weight: ClassVar[float] = -np.inf
    keeps_weights: ClassVar[bool] = True
    stored: ClassVar[Mapping[str, str]] = {"mean": "float 1"}
    method: RatingFactors

    @property
    def mean(self) -> float:
        return float(self._rows["mean"][0])

    def rate(self, users: Sequence[str], items: Sequence[str]) -> NDArray[np.float32]:
        """The rating that each user would give to the item beside it."""
        if len(users) != len(items):
            raise FirthError(
                "shape_mismatch",
                "rate needs an item beside each user; got {got:,} and {n_items:,}.",
                got=len(users),
                n_items=len(items),
            )
        rows = self.item_rows[[self.items.row(item) for item in items]]
        return finite_rows(self.mean + np.einsum("ij,ij->i", self.user_rows(users), rows), "Rating")

    def scores(self, users: Matrix) -> Matrix:
        return super().scores(users) + np.float32(self.mean)

    def _weighed(self, history: History) -> dict[int, float]:
        if not hasattr(history, "items"):
            raise FirthError(
                "wrong_input",
                'RatingFactors folds in ratings: {"item": 4.5, …} (--items A=4.5,B=2); got items without them.',
            )
        return super()._weighed(history)

    def fold(self, entries: Rows) -> Matrix:
        ridge = self.method.ridge(np.diff(entries.starts))
        return als.solve_new(entries, self.item_rows, ridge, Run(), mean=self.mean, bias_column=self.method.dim + 1)


@dataclass(frozen=True, kw_only=True)
class RatingFactors(Method):
    """Minimises Σ (r − mean − b_u − b_i − u · i)² + λ Σ (|u|² + |i|² + b_u² + b_i²) over the ratings."""

    summary: ClassVar[str] = "users and items from ratings: mean, biases and products fit what was given"
    model: ClassVar[type[Model]] = RatingFactorsModel
    kind: ClassVar[str] = "ratings"

    dim: int = option(32, "length of the vectors", low=1, high=1024)
    regularization: float = option(0.1, "pulls vectors and biases towards zero, once for each rating", low=1e-6)
    epochs: int = option(15, "passes: all users, then all items", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> RatingFactorsModel:
        """Learns from Ratings (or what they can be made of). Of a pair rated several times the last rating counts, or
        where times are unknown the mean. With `start`, continues from that model: its users and items keep their
        ratings, unless there are new ones, and begin with their vectors; new ones are added."""
        first = take_start(start, RatingFactorsModel, self)
        ratings = joined(first, take_ratings(self, data), adds=False)
        rows = ratings.latest()
        columns = transposed(rows, len(ratings.items))
        mean = float(rows.values.mean(dtype=np.float64))
        users, items = self.first_tables(len(ratings.users), len(ratings.items), run.seed)
        begin_from(first, ratings, users, items)
        user_ridge, item_ridge = (self.ridge(np.diff(side.starts)) for side in (rows, columns))
        sides = (
            kernel.Side(rows, users, items, user_ridge, mean=mean, bias_column=self.dim + 1),
            kernel.Side(columns, items, users, item_ridge, mean=mean, bias_column=self.dim),
        )
        figures = als.Training(self, ratings.fingerprint(), run, sides).go()
        figures |= {"users": len(users), "items": len(items), "pairs": len(rows.columns)}
        figures |= {"seed": run.seed, "deterministic": True, "threads": run.cores}
        width = self.dim + 2
        learned = {
            "users": np.ascontiguousarray(users[:, :width]),
            "items": np.ascontiguousarray(items[:, :width]),
            "mean": np.array([mean]),
            "weights": rows.values,
        }
        return RatingFactorsModel(self, learned, Histories(rows.starts, rows.columns), keys_of(ratings), figures)

    def first_tables(self, users: int, items: int, seed: int) -> tuple[Table, Table]:
        """Users are solved first, from items drawn at random."""
        stride = -(-(self.dim + 2) // 16) * 16
        tables = new_table(users, stride), new_table(items, stride)
        tables[1][:, : self.dim] = np.random.default_rng(seed).normal(0, 0.1, (items, self.dim))
        tables[0][:, self.dim + 1] = tables[1][:, self.dim] = 1
        return tables

    def ridge(self, counts: NDArray[np.int64]) -> NDArray[np.float32]:
        """Once for each rating (Zhou et al. 2008), and once for who has none."""
        return np.asarray(self.regularization * np.maximum(counts, 1), dtype=np.float32)
