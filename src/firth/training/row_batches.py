"""Rows in shuffled batches, some of them held out: how networks of tables and of users learn."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import ClassVar

import numpy as np
from numpy.typing import NDArray
from torch import nn

from firth.core.run import Run
from firth.training.gradient_loop import Batch, GradientLoop
from firth.training.network_options import RowOptions

MOST_ROWS = 8192  # of a batch that is held in memory at once; larger steps add up several
LEAST_MEASURED = 2000  # held-out rows that are looked at each time, where there are as many


class RowTraining(GradientLoop):
    """Learns from rows by number."""

    unit: ClassVar[str] = "rows"
    method: RowOptions

    def __init__(self, method: RowOptions, net: nn.Module, rows: int, fingerprint: str, run: Run) -> None:
        kept = min(int(rows * method.held_out), rows - 1)
        order = np.random.default_rng([run.seed, rows]).permutation(rows)
        self.held_out, self.rows = np.sort(order[:kept]), np.sort(order[kept:])
        super().__init__(method, net, fingerprint, run, len(self.rows))

    def plan(self, epoch: int) -> Sequence[Batch]:
        order = self.rows[np.random.default_rng([self.run.seed, epoch]).permutation(len(self.rows))]
        most = max(1, min(MOST_ROWS, self.method.batch_size // self.world))
        parts = [order[first : first + most] for first in range(0, len(order), most)]
        return [Batch(part, len(part)) for part in parts]

    def measured_rows(self, most: int) -> Iterator[NDArray[np.int64]]:
        """The held-out rows to be measured on, some at a time."""
        here = self.held_out[: max(most, LEAST_MEASURED)]
        for first in range(0, len(here), MOST_ROWS):
            yield here[first : first + MOST_ROWS]

    def annealed(self, share: float) -> float:
        """Rises from 0 to 1 in the first `share` of the run."""
        return min(1.0, self.share() / share) if share else 1.0

    def divergence_cause(self) -> str:
        return f"learning_rate={self.method.learning_rate:g} is too high for these rows."
