"""ALS: weighted matrix factorization of implicit feedback by alternating least squares (Hu et al. 2008)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.data.interactions import Interactions, transposed
from firth.kernels import als as kernel
from firth.kernels.predict import new_table
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
from firth.training.network_options import EXPOSURE, NEW_ITEMS, NEW_USERS

SOLVERS = ("cg", "cholesky")
REGULARIZATION = 30.0  # the default for large data
SMALL_DATA_PAIRS = 1200  # with fewer pairs it is reduced in proportion, or all vectors would shrink to zero
NEGLIGIBLE_SCORE = 1e-6  # largest score of a model whose vectors have shrunk to zero
WEIGHTINGS = ("linear", "log", "binary")


class ALSModel(RecommenderModel):
    """User and item vectors; the score of an item for a user is their dot product."""

    stored: ClassVar[Mapping[str, str]] = {"scale": "float 1"}
    method: ALS
    stores_weights: ClassVar[bool] = True

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the exact rows of users with these items."""
        method = self.method
        weighted_entries = CSRMatrix(entries.starts, entries.columns, weighted(entries.values, method.weighting))
        total = len(self.items) + method.alpha * sums(weighted_entries)
        scale = float(self._rows["scale"][0])
        ridge = np.asarray(scale * total**method.frequency_scaling, dtype=np.float32)
        return als.solve_new(weighted_entries, self.item_rows, ridge, Run(), alpha=method.alpha)


@dataclass(frozen=True, kw_only=True)
class ALS(Method):
    """Minimize Σ c (p − u · i)² + λ (|u|² + |i|²) over all pairs of a user and an item.

    The preference p is 1 and the confidence c is 1 + alpha · weight where the user interacted with the item; otherwise
    p = 0 and c = 1.
    """

    limits: ClassVar[tuple[str, ...]] = (
        NEW_ITEMS,
        NEW_USERS,
        EXPOSURE,
    )
    summary: ClassVar[str] = "user and item vectors from implicit feedback: weighted matrix factorization"
    model: ClassVar[type[ALSModel]] = ALSModel
    data = Interactions
    distributed: ClassVar[str] = "solving for users and items; the interactions are read by this process"

    dim: int = option(64, "length of the vectors", low=1, high=4096)
    alpha: float = option(2.0, "confidence of an interaction = 1 + alpha * weight", low=1e-9)
    weighting: str = option(
        "log", "transform of a weight r: linear (r), log (log(1 + r)), or binary (1)", choices=WEIGHTINGS
    )
    regularization: float | None = option(
        None,
        "strength of the L2 penalty of the vectors; none = 30, less for fewer than 1,200 user-item pairs",
        low=1e-6,
    )
    frequency_scaling: float = option(
        0.0, "scale the penalty of each user and item by its total confidence to this power; 0 = off", low=0, high=2
    )
    solver: str = option("cg", "conjugate gradients, or the exact Cholesky solution", choices=SOLVERS)
    cg_steps: int = option(3, "conjugate gradient steps per row (solver=cg)", low=1, high=100)
    half_life: float = option(
        0.0, "time decay: the weight of an event halves every so many seconds before the latest one; 0 = off", low=0
    )
    epochs: int = option(15, "passes, each over all users and then all items", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> ALSModel:
        """Train on `Interactions`, or on anything they accept.

        With `start`, training continues from that model: its interactions are kept, its users and items begin with
        their vectors, and new users, items and interactions are added.
        """
        began = time.monotonic()
        start_model = check_start(start, ALSModel, self)
        new_interactions = as_interactions(self, data)
        if self.half_life and start_model:
            raise FirthError(
                "conflicting_options",
                "{option} cannot be combined with start: the weights of earlier events have another latest event.",
                option="half_life",
            )
        if self.half_life:
            new_interactions = new_interactions.decayed(self.half_life)
        interactions = merge_interactions(start_model, new_interactions)
        summed = interactions.summed()
        method = self.resolved(
            regularization=min(REGULARIZATION, len(summed.columns) / SMALL_DATA_PAIRS * REGULARIZATION)
        )
        rows = CSRMatrix(summed.starts, summed.columns, weighted(summed.values, self.weighting))
        columns = transposed(rows, len(interactions.items))
        stride = -(-self.dim // 16) * 16
        users, items = new_table(len(interactions.users), stride), new_table(len(interactions.items), stride)
        random_items = np.random.default_rng(run.seed).standard_normal((len(items), self.dim), dtype=np.float32)
        np.multiply(random_items, np.float32(0.1), out=items[:, : self.dim])
        copy_start_vectors(start_model, interactions, users, items)
        for table, side in ((users, rows), (items, columns)):
            table[np.diff(side.starts) == 0] = 0  # the exact solution of an empty row
        user_total, item_total = (len(b) + self.alpha * sums(a) for a, b in ((rows, items), (columns, users)))
        common: dict[str, Any] = {"alpha": self.alpha, "steps": self.cg_steps if self.solver == "cg" else 0}
        sides = (
            kernel.Side(rows, users, items, method.ridge(user_total), **common),
            kernel.Side(columns, items, users, method.ridge(item_total), **common),
        )
        reading = time.monotonic() - began
        metrics = als.training_of(method, interactions.fingerprint(), run, sides).go()
        metrics |= {"users": len(users), "items": len(items), "pairs": len(rows.columns), "reading_seconds": reading}
        metrics |= {"seed": run.seed, "deterministic": True, "threads": run.cores}
        if np.abs(items).max() * np.abs(users).max() < NEGLIGIBLE_SCORE:
            run.report.note(
                f"Nothing was learned: with regularization={method.regularization:g} all vectors are close to zero. "
                "Try a tenth of it.",
                "nothing_learned",
            )
        arrays = {
            "users": np.ascontiguousarray(users[:, : self.dim]),
            "items": np.ascontiguousarray(items[:, : self.dim]),
            "scale": np.array([(method.regularization or 0.0) / (user_total**self.frequency_scaling).mean()]),
            "weights": summed.values,
        }
        return ALSModel(method, arrays, Histories(rows.starts, rows.columns), keys_of(interactions), metrics)

    def ridge(self, totals: NDArray[np.float64]) -> NDArray[np.float32]:
        """Return the regularization of each row by its total confidence."""
        return als.ridges(totals, self.regularization or 0.0, self.frequency_scaling)


def weighted(values: NDArray[np.float32], weighting: str) -> NDArray[np.float32]:
    """Return the transformed weights; Hu et al. 2008, eq. 6, use the logarithm."""
    if weighting == "binary":
        return np.ones_like(values)
    return np.log1p(values) if weighting == "log" else values


def sums(rows: CSRMatrix) -> NDArray[np.float64]:
    """Return the sum of each row's values."""
    totals, nonempty = np.zeros(len(rows.starts) - 1), np.diff(rows.starts) > 0
    totals[nonempty] = (
        np.add.reduceat(rows.values, rows.starts[:-1][nonempty], dtype=np.float64) if nonempty.any() else 0
    )
    return totals
