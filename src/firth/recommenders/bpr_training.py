"""Bayesian personalized ranking: the training loop, and folding in of new users.

`kernels/bpr.py` has the arithmetic; Rendle et al. 2009 describe the method.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.data.interactions import Interactions
from firth.kernels import bpr as kernel
from firth.kernels.predict import Table, alias_table, new_table, noise_weights
from firth.kernels.sparse import CSRMatrix
from firth.recommenders.recommender_model import RecommenderModel, copy_start_vectors
from firth.training.epoch_loop import Loop, Progress, SliceResult
from firth.words.window_training import LEAST_RATE

if TYPE_CHECKING:
    from firth.recommenders.bpr import BPR

FOLD_PASSES = 200  # samples per item of a new user


class BPRModel(RecommenderModel):
    """User and item vectors; a score is their dot product plus the item's bias, the last column of the item rows."""

    extra: ClassVar[int] = 1
    method: BPR

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return rows of users with these items, trained by SGD with fixed items."""
        method = self.method
        width = self.item_rows.shape[1]
        users, items = (new_table(rows, -(-width // 16) * 16) for rows in (len(entries.starts) - 1, len(self.items)))
        items[:, :width], users[:, width - 1] = self.item_rows, 1
        counts = np.bincount(self.seen.items, minlength=len(items))
        task = task_of(method, entries, users, items, counts)
        kernel.native_trainer(task).fold(FOLD_PASSES, method.learning_rate, 0, Run().cores)
        return np.ascontiguousarray(users[:, :width])


@dataclass
class BPRProgress(Progress):
    """Progress within an epoch."""

    position: int = 0  # finished samples


class Training(Loop):
    """The training loop over sampled triples of a user, an item and a negative item."""

    unit: ClassVar[str] = "pairs"
    progress: BPRProgress
    method: BPR

    def __init__(self, method: BPR, interactions: Interactions, run: Run, start: RecommenderModel | None) -> None:
        self.entries = interactions.summed()
        super().__init__(method, interactions.fingerprint(), run, len(self.entries.columns))
        counts = np.bincount(self.entries.columns, minlength=len(interactions.items))
        if not self.size or len(interactions.items) < 2:
            raise FirthError(
                "too_few",
                "{method} needs at least {minimum} items with interactions; got {got}.",
                method=type(method).__name__,
                minimum=2,
                got=len(interactions.items),
            )
        self.users, self.items = first_tables(method.dim, len(interactions.users), len(interactions.items), run.seed)
        copy_start_vectors(start, interactions, self.users, self.items)
        self.trainer = kernel.native_trainer(task_of(method, self.entries, self.users, self.items, counts))
        self.threads = 1 if run.deterministic else run.cores  # samples share rows, so a fixed order needs one thread
        self.progress = BPRProgress()

    @property
    def tables(self) -> Mapping[str, Table]:
        """The user and item rows."""
        return {"users": self.users, "items": self.items}

    def position(self) -> int:
        """Return the number of samples finished in this epoch."""
        return self.progress.position

    def train(self, units: float, seed: int) -> SliceResult:
        """Train on about `units` samples."""
        progress = self.progress
        end = min(self.size, progress.position + max(1 << 14, int(units)))
        loss, samples = self.trainer.train(progress.position, end, self.rate(), seed, self.threads)
        progress.position = end
        return SliceResult(loss, samples, end == self.size)

    def rate(self) -> float:
        """Return the learning rate: linear decay by epoch or, under a time budget, by time if that is further."""
        completed_share = self.progress.epoch / self.method.epochs
        if self.run.budget:
            completed_share = max(completed_share, min(1.0, self.progress.seconds / self.run.budget))
        return float(self.method.learning_rate * (1 - (1 - LEAST_RATE) * completed_share))

    def probe_loss(self) -> float | None:
        """Return the loss so far; before the first step all scores are equal and it is log 2."""
        return self.loss() if self.progress.words else math.log(2)

    def end_epoch(self) -> dict[str, float]:
        """Reset the position for the next epoch."""
        self.progress.position = 0
        return {}

    def trained_rows(self) -> dict[str, Matrix]:
        """Return user and item rows (vector, then bias); those of users and items without interactions are zero."""
        width = self.method.dim + 1
        users, items = (np.ascontiguousarray(table[:, :width]) for table in (self.users, self.items))
        users[np.diff(self.entries.starts) == 0, : self.method.dim] = 0
        items[np.bincount(self.entries.columns, minlength=len(items)) == 0] = 0
        return {"users": users, "items": items}


def task_of(method: BPR, entries: CSRMatrix, users: Table, items: Table, counts: Any) -> kernel.Task:
    """Return the kernel task of these entries and tables."""
    assert method.regularization is not None
    owners = np.repeat(np.arange(len(users), dtype=np.int32), np.diff(entries.starts))
    negative_sampling = alias_table(noise_weights(counts, method.negative_exponent))
    return kernel.Task(
        entries.starts, entries.columns, owners, users, items, negative_sampling, method.dim, method.regularization
    )


def first_tables(dim: int, users: int, items: int, seed: int) -> tuple[Table, Table]:
    """Return initial tables: vectors uniform in ±1/(2·dim), followed by 1 for users and a bias of 0 for items."""
    generator, stride = np.random.default_rng(seed), -(-(dim + 1) // 16) * 16
    tables = new_table(users, stride), new_table(items, stride)
    for table in tables:
        table[:, :dim] = (generator.random((len(table), dim), dtype=np.float32) - 0.5) / dim
    tables[0][:, dim] = 1
    return tables
