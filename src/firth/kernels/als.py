"""Alternating least squares: the native kernel (cpp/als.cpp) behind one small class, and the same in NumPy.

With one side's vectors y fixed, each row x of the other side is the solution of

    (G + ridge·I + Σ wᵢ yᵢ yᵢᵀ) x = Σ tᵢ yᵢ        over the row's entries i with values rᵢ.

Implicit feedback (Hu, Koren & Volinsky 2008, eq. 4): G = Σ y yᵀ over all of the other side, w = alpha·r and
t = 1 + alpha·r.
Ratings: no G, w = 1, t = r − mean − the other side's bias, which stands in the column `fixed` of `others`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import Rows


@dataclass(frozen=True)
class Side:
    """What it takes to solve one side's rows."""

    entries: Rows
    rows: Table  # padded to 16 floats, see `new_table`; solved in place
    others: Table
    ridge: NDArray[np.float32]  # one number a row
    alpha: float = 1.0
    mean: float = 0.0
    fixed: int = -1  # ratings: the column that holds the others' biases and 1 in `rows`
    steps: int = 0  # of conjugate gradients from where a row stands; 0 = the exact solution


class Solver(Protocol):
    def solve(self, gram: Table | None, first: int, last: int, threads: int) -> float:
        """Solves rows [first, last). The sum over them of what is minimised: Σ c (p − x·y)² + ridge·|x|²."""


def native_solver(side: Side) -> Solver:
    """The native kernel."""
    tables = (side.rows, side.others, side.ridge)
    return _native.AlsSide(*side.entries, *tables, side.alpha, side.mean, side.fixed, side.steps)


def gram(table: Table, threads: int = 1) -> Table:
    """Σ y yᵀ over the rows of a table; the same bytes for any number of threads."""
    out = new_table(table.shape[1], table.shape[1])
    _native.als_gram(table, out, threads)
    return out


class TwinSolver:
    """`native_solver`'s interface, row by row in double precision."""

    def __init__(self, side: Side) -> None:
        self.side = side

    def solve(self, gram: Table | None, first: int, last: int, threads: int) -> float:
        return sum(self.row(gram, row) for row in range(first, last))

    def row(self, gram: Table | None, row: int) -> float:
        side = self.side
        part = slice(side.entries.starts[row], side.entries.starts[row + 1])
        y = side.others[side.entries.columns[part]].astype(np.float64)  # entries × stride
        values = side.entries.values[part].astype(np.float64)
        if gram is None:
            weights, targets = np.ones(len(values)), values - side.mean
            if side.fixed >= 0:
                targets = targets - y[:, side.fixed]
                y[:, side.fixed] = 0
            constant = float((targets**2).sum())
        else:
            weights, targets = side.alpha * values, 1 + side.alpha * values
            constant = float(targets.sum())
        matrix = (y.T * weights) @ y + side.ridge[row] * np.eye(y.shape[1])
        matrix += 0 if gram is None else gram
        right = targets @ y
        x = side.rows[row].astype(np.float64)
        x = conjugate_gradients(matrix, right, x, side.steps) if side.steps else np.linalg.solve(matrix, right)
        loss = float(x @ matrix @ x - 2 * right @ x) + constant
        side.rows[row] = x
        if side.fixed >= 0:
            side.rows[row, side.fixed] = 1
        return loss


def conjugate_gradients(
    matrix: NDArray[np.float64], right: NDArray[np.float64], x: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """`steps` steps towards matrix⁻¹ · right from x (Hestenes & Stiefel 1952)."""
    residual = right - matrix @ x
    along, length = residual, residual @ residual
    for _ in range(steps):
        if length < 1e-20:
            break
        image = matrix @ along
        step = length / (along @ image)
        x = x + step * along
        residual = residual - step * image
        now = residual @ residual
        along, length = residual + now / length * along, now
    return x
