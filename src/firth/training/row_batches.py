"""Training on shuffled batches of rows, with held-out rows: for networks over tables and users."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from firth.core.run import Run
from firth.training.gradient_loop import Batch, GradientLoop
from firth.training.network_options import RowOptions

MAX_ROWS = 8192  # per batch in memory; larger steps accumulate several batches
MIN_MEASURED = 2000  # held-out rows of each evaluation, if there are as many


class RowTraining(GradientLoop):
    """Training on rows, which batches give by number."""

    unit: ClassVar[str] = "rows"
    method: RowOptions

    def __init__(self, method: RowOptions, net: nn.Module, rows: int, fingerprint: str, run: Run) -> None:
        held_out_count = min(int(rows * method.held_out), rows - 1)
        order = np.random.default_rng([run.seed, rows]).permutation(rows)
        self.held_out, self.rows = np.sort(order[:held_out_count]), np.sort(order[held_out_count:])
        super().__init__(method, net, fingerprint, run, len(self.rows))

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the shuffled batches of an epoch."""
        order = self.rows[np.random.default_rng([self.run.seed, epoch]).permutation(len(self.rows))]
        starts, passes = range(0, len(order), self.method.batch_size), self.passes(MAX_ROWS)
        steps = [order[first : first + self.method.batch_size] for first in starts]
        parts = [(part, step) for step, rows in enumerate(steps) for part in np.array_split(rows, passes)]
        return [Batch(part, len(part), step) for part, step in parts if len(part)]

    def measured_rows(self, most: int) -> Iterator[NDArray[np.int64]]:
        """Yield the held-out rows of an evaluation in batches."""
        rows = self.held_out[: max(most, MIN_MEASURED)]
        for first in range(0, len(rows), MAX_ROWS):
            yield rows[first : first + MAX_ROWS]

    def annealed(self, share: float) -> float:
        """Return a factor that rises from 0 to 1 in the first `share` of the run."""
        return min(1.0, self.share() / share) if share else 1.0

    def divergence_cause(self) -> str:
        """Return why the loss may have diverged."""
        return f"learning_rate={self.method.learning_rate:g} is too high for these rows."
