"""ALS: users and items whose products say what was used, confidently where it was used much (Hu et al. 2008)."""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.method import Method
from firth.core.model import Histories, Model
from firth.core.options import option
from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.data.interactions import transposed
from firth.kernels import als as kernel
from firth.kernels.predict import new_table
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

SOLVERS = ("cg", "cholesky")
REGULARIZATION, SMALL_DATA_PAIRS = 30.0, 1200  # with fewer pairs less: a handful would be pulled to zero altogether
NEGLIGIBLE_SCORE = 1e-6  # products of users and items that tell nothing apart
WEIGHTINGS = ("linear", "log", "binary")


class ALSModel(RecommenderModel):
    """Users and items; a user's score for an item is the product of their vectors."""

    stored: ClassVar[Mapping[str, str]] = {"scale": "float 1"}
    method: ALS
    stores_weights: ClassVar[bool] = True

    def fold(self, entries: Rows) -> Matrix:
        method = self.method
        weighted_entries = Rows(entries.starts, entries.columns, weighted(entries.values, method.weighting))
        total = len(self.items) + method.alpha * sums(weighted_entries)
        scale = float(self._rows["scale"][0])
        ridge = np.asarray(scale * total**method.frequency_scaling, dtype=np.float32)
        return als.solve_new(weighted_entries, self.item_rows, ridge, Run(), alpha=method.alpha)


@dataclass(frozen=True, kw_only=True)
class ALS(Method):
    """Minimises Σ c (p − u · i)² + λ (|u|² + |i|²) over all pairs of a user and an item, used or not: p = 1 and
    c = 1 + alpha · weight where u used i, else p = 0 and c = 1."""

    summary: ClassVar[str] = "users and items from who used what: products fit use, surer where it is more"
    model: ClassVar[type[Model]] = ALSModel
    kind: ClassVar[str] = "ratings"

    dim: int = option(64, "length of the vectors", low=1, high=4096)
    alpha: float = option(2.0, "how much surer a use makes: confidence = 1 + alpha * weight", low=1e-9)
    weighting: str = option(
        "log", "what counts of a weight r: r itself, log(1 + r), or 1 whatever it is", choices=WEIGHTINGS
    )
    regularization: float | None = option(
        None, "pulls vectors towards zero; none = 30, less below 1,200 pairs of a user and an item", low=1e-6
    )
    frequency_scaling: float = option(
        0.0, "who used more is regularised more: by the row's confidence to this power", low=0, high=2
    )
    solver: str = option("cg", "a few steps of conjugate gradients, or the exact solution", choices=SOLVERS)
    cg_steps: int = option(3, "steps of conjugate gradients for each row (solver=cg)", low=1, high=100)
    epochs: int = option(15, "passes: all users, then all items", low=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> ALSModel:
        """Learns from Ratings (or what they can be made of). With `start`, continues from that model: its users and
        items keep what they were trained on and begin with their vectors; new ones, and new uses, are added."""
        began = time.monotonic()
        start_model = check_start(start, ALSModel, self)
        interactions = merge_interactions(start_model, as_interactions(self, data))
        summed = interactions.summed()
        method = self.resolved(
            regularization=min(REGULARIZATION, len(summed.columns) / SMALL_DATA_PAIRS * REGULARIZATION)
        )
        rows = Rows(summed.starts, summed.columns, weighted(summed.values, self.weighting))
        columns = transposed(rows, len(interactions.items))
        stride = -(-self.dim // 16) * 16
        users, items = new_table(len(interactions.users), stride), new_table(len(interactions.items), stride)
        random_items = np.random.default_rng(run.seed).standard_normal((len(items), self.dim), dtype=np.float32)
        np.multiply(random_items, np.float32(0.1), out=items[:, : self.dim])
        copy_start_vectors(start_model, interactions, users, items)
        users[np.diff(rows.starts) == 0], items[np.diff(columns.starts) == 0] = 0, 0  # which is their solution
        user_total, item_total = (len(b) + self.alpha * sums(a) for a, b in ((rows, items), (columns, users)))
        common: dict[str, Any] = {"alpha": self.alpha, "steps": self.cg_steps if self.solver == "cg" else 0}
        sides = (
            kernel.Side(rows, users, items, method.ridge(user_total), **common),
            kernel.Side(columns, items, users, method.ridge(item_total), **common),
        )
        reading = time.monotonic() - began
        metrics = als.Training(method, interactions.fingerprint(), run, sides).go()
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
        return als.ridges(totals, self.regularization or 0.0, self.frequency_scaling)


def weighted(values: NDArray[np.float32], weighting: str) -> NDArray[np.float32]:
    """Hu et al. 2008, eq. 6 has the logarithm: a thousandth play says less than the first."""
    if weighting == "binary":
        return np.ones_like(values)
    return np.log1p(values) if weighting == "log" else values


def sums(rows: Rows) -> NDArray[np.float64]:
    """The sum of each row's values."""
    totals, nonempty = np.zeros(len(rows.starts) - 1), np.diff(rows.starts) > 0
    totals[nonempty] = (
        np.add.reduceat(rows.values, rows.starts[:-1][nonempty], dtype=np.float64) if nonempty.any() else 0
    )
    return totals
