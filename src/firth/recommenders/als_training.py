"""Alternating least squares over users and items: the training loop, and folding in of new users.

`kernels/als.py` has the arithmetic. Hu, Koren & Volinsky 2008 describe the method; Rendle et al. 2021 study its
hyperparameters.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.kernels import als as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import CSRMatrix
from firth.training.epoch_loop import Loop, Progress, SliceResult, TrainsInEpochs


@dataclass
class ALSProgress(Progress):
    """Progress within an epoch."""

    position: int = 0  # solved rows: users first, then items


class Training(Loop):
    """Solve users and items in turn. In the `implicit` objective all pairs count, so a Gram matrix is needed."""

    unit: ClassVar[str] = "rows"
    progress: ALSProgress

    def __init__(
        self, method: TrainsInEpochs, fingerprint: str, run: Run, sides: tuple[kernel.Side, kernel.Side]
    ) -> None:
        self.sides, self.implicit = sides, sides[0].bias_column < 0
        super().__init__(method, fingerprint, run, sum(len(side.rows) for side in sides))
        self.solvers = [kernel.native_solver(side) for side in sides]
        self.progress = ALSProgress()
        self._gram: tuple[tuple[int, int], Table] | None = None  # (epoch, side) and its Gram matrix

    @property
    def tables(self) -> Mapping[str, Table]:
        """The user and item rows."""
        return {"users": self.sides[0].rows, "items": self.sides[1].rows}

    def position(self) -> int:
        """Return the number of rows solved in this epoch."""
        return self.progress.position

    def train(self, units: float, seed: int) -> SliceResult:
        """Solve about `units` rows of one side."""
        progress, users = self.progress, len(self.sides[0].rows)
        side_number = int(progress.position >= users)
        side = self.sides[side_number]
        first_row = progress.position - side_number * users
        last_row = min(len(side.rows), first_row + max(256, int(units)))
        loss = self.solvers[side_number].solve(self.gram(side_number), first_row, last_row, self.run.cores)
        return self.advanced(side_number, first_row, last_row, loss)

    def advanced(self, side_number: int, first_row: int, last_row: int, loss: float) -> SliceResult:
        """Record that rows of a side were solved."""
        progress = self.progress
        progress.position += last_row - first_row
        epoch_finished = progress.position == self.size
        if side_number == 0:
            return SliceResult(0.0, 0, epoch_finished)  # the loss of both sides is reported with the items
        if epoch_finished:
            loss += float(self.sides[0].ridge @ squared(self.sides[0].rows, self.sides[0].bias_column))
        starts = self.sides[1].entries.starts
        return SliceResult(loss, int(starts[last_row] - starts[first_row]), epoch_finished)

    def gram(self, side_number: int) -> Table | None:
        """Return Σ y yᵀ over the fixed side, computed once per half epoch."""
        if not self.implicit:
            return None
        cache_key = (self.progress.epoch, side_number)
        if self._gram is None or self._gram[0] != cache_key:
            self._gram = cache_key, kernel.gram(self.sides[side_number].others, self.run.cores)
        return self._gram[1]

    def end_epoch(self) -> dict[str, float]:
        """Reset the position for the next epoch."""
        self.progress.position = 0
        return {}

    def divergence_cause(self) -> str:
        """Return why the loss may have diverged."""
        return "the weights are too large for float32; scale them down."


def training_of(method: TrainsInEpochs, fingerprint: str, run: Run, sides: tuple[kernel.Side, kernel.Side]) -> Training:
    """Return the training loop of a run: in this process, or on a cluster."""
    if not run.cluster:
        return Training(method, fingerprint, run, sides)
    from firth.recommenders.als_cluster import ClusterTraining

    return ClusterTraining(method, fingerprint, run, sides)


def squared(rows: Table, bias_column: int) -> NDArray[np.float64]:
    """Return |x|² of each row, without the column that is fixed to 1."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares - (1 if bias_column >= 0 else 0)


def ridges(weights: NDArray[np.float64], regularization: float, exponent: float) -> NDArray[np.float32]:
    """Return the regularization of each row, proportional to its total weight to the power `exponent`.

    The mean over all rows is `regularization` (Rendle et al. 2021, eq. 8, rescaled to make exponents comparable).
    """
    scaled = np.maximum(weights, 1e-12) ** exponent
    return np.asarray(regularization * scaled / scaled.mean(), dtype=np.float32)


def padded(rows: Matrix, stride: int) -> Table:
    """Return a copy of the rows, padded to `stride` columns for the kernels."""
    table = new_table(len(rows), stride)
    table[:, : rows.shape[1]] = rows
    return table


def solve_new(entries: CSRMatrix, items: Matrix, ridge: NDArray[np.float32], run: Run, **settings: Any) -> Matrix:
    """Return the exact rows of new users with these entries, for fixed items."""
    others = padded(items, -(-items.shape[1] // 16) * 16)
    rows = new_table(len(ridge), others.shape[1])
    side = kernel.Side(entries, rows, others, ridge, **settings)
    gram = kernel.gram(others, run.cores) if side.bias_column < 0 else None
    kernel.native_solver(side).solve(gram, 0, len(rows), run.cores)
    return np.ascontiguousarray(rows[:, : items.shape[1]])
