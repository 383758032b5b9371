"""Alternating least squares over users and items: sides in slices, checkpoints, and folding in.

The arithmetic stands in `kernels/als.py`; Hu, Koren & Volinsky 2008 describe it, Rendle et al. 2021 what matters in it.
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
from firth.kernels.sparse import Rows
from firth.training.epoch_loop import Loop, Progress, Slice


@dataclass
class Place(Progress):
    """Where in an epoch a run stands."""

    position: int = 0  # rows solved: users first, then items


class Training(Loop):
    """Two sides, users and items, solved in turn. `implicit` sides have the products of all pairs in them."""

    unit: ClassVar[str] = "rows"
    progress: Place

    def __init__(self, method: Any, fingerprint: str, run: Run, sides: tuple[kernel.Side, kernel.Side]) -> None:
        self.sides, self.implicit = sides, sides[0].bias_column < 0
        super().__init__(method, fingerprint, run, sum(len(side.rows) for side in sides))
        self.solvers = [kernel.native_solver(side) for side in sides]
        self.progress = Place()
        self._gram: tuple[tuple[int, int], Table] | None = None  # of which epoch and side

    @property
    def tables(self) -> Mapping[str, Table]:
        return {"users": self.sides[0].rows, "items": self.sides[1].rows}

    def position(self) -> int:
        return self.progress.position

    def train(self, units: float, seed: int) -> Slice:
        progress, users = self.progress, len(self.sides[0].rows)
        which = int(progress.position >= users)
        side = self.sides[which]
        first = progress.position - which * users
        last = min(len(side.rows), first + max(256, int(units)))
        loss = self.solvers[which].solve(self.gram(which), first, last, self.run.cores)
        progress.position += last - first
        over = progress.position == self.size
        if which == 0:
            return Slice(0.0, 0, over)  # the loss is told with the items: it is that of both sides as they are then
        if over:
            loss += float(self.sides[0].ridge @ squared(self.sides[0].rows, self.sides[0].bias_column))
        starts = side.entries.starts
        return Slice(loss, int(starts[last] - starts[first]), over)

    def gram(self, which: int) -> Table | None:
        """Σ y yᵀ of the side that is not being solved, made when its turn begins."""
        if not self.implicit:
            return None
        name = (self.progress.epoch, which)
        if self._gram is None or self._gram[0] != name:
            self._gram = name, kernel.gram(self.sides[which].others, self.run.cores)
        return self._gram[1]

    def end_epoch(self) -> dict[str, float]:
        self.progress.position = 0
        return {}

    def trouble(self) -> str:
        return "the weights are too large for single precision; scale them down."


def squared(rows: Table, bias_column: int) -> NDArray[np.float64]:
    """|x|² of each row; the column that holds 1 is no part of x."""
    squares: NDArray[np.float64] = np.einsum("ij,ij->i", rows, rows, dtype=np.float64)
    return squares - (1 if bias_column >= 0 else 0)


def ridges(weights: NDArray[np.float64], regularization: float, exponent: float) -> NDArray[np.float32]:
    """Each row's regularization: in proportion to its whole weight to this power, the mean over all rows being
    `regularization` (Rendle et al. 2021, eq. 8, scaled so that exponents can be compared)."""
    scaled = np.maximum(weights, 1e-12) ** exponent
    return np.asarray(regularization * scaled / scaled.mean(), dtype=np.float32)


def padded(rows: Matrix, stride: int) -> Table:
    """A copy of the rows as a table that kernels read."""
    table = new_table(len(rows), stride)
    table[:, : rows.shape[1]] = rows
    return table


def solve_new(entries: Rows, items: Matrix, ridge: NDArray[np.float32], run: Run, **settings: Any) -> Matrix:
    """Rows for users with these entries, exactly, the items as they are."""
    others = padded(items, -(-items.shape[1] // 16) * 16)
    rows = new_table(len(ridge), others.shape[1])
    side = kernel.Side(entries, rows, others, ridge, **settings)
    gram = kernel.gram(others, run.cores) if side.bias_column < 0 else None
    kernel.native_solver(side).solve(gram, 0, len(rows), run.cores)
    return np.ascontiguousarray(rows[:, : items.shape[1]])
