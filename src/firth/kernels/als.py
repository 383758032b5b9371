"""Alternating least squares: the native kernel (cpp/als.cpp) and its NumPy twin.

With one side's vectors y fixed, each row x of the other side is the solution of

    (G + ridge·I + Σ wᵢ yᵢ yᵢᵀ) x = Σ tᵢ yᵢ        over the row's entries i with values rᵢ.

Implicit feedback (Hu, Koren & Volinsky 2008, eq. 4): G = Σ y yᵀ over all of the other side, w = alpha·r and
t = 1 + alpha·r.
Explicit ratings: no G, w = 1, t = r − mean − the other side's bias, which is the column `bias_column` of `others`.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import CSRMatrix


@dataclass(frozen=True)
class Side:
    """The inputs of one half-step: the rows to solve for (users or items) and the fixed vectors of the other side."""

    entries: CSRMatrix
    rows: Table  # padded to 16 floats, see `new_table`; solved in place
    others: Table
    ridge: NDArray[np.float32]  # one value per row
    alpha: float = 1.0
    mean: float = 0.0
    bias_column: int = -1  # ratings: the column that holds the biases in `others` and 1 in `rows`; -1: none
    steps: int = 0  # conjugate gradient steps from the row's current value; 0 = exact solution


class Solver(Protocol):
    """The interface that the native solver and its twin share."""

    def solve(self, gram: Table | None, first: int, last: int, threads: int) -> float:
        """Solve rows [first, last) in place and return their summed objective Σ c (p − x·y)² + ridge·|x|²."""


def native_solver(side: Side) -> Solver:
    """Return the native solver for one side."""
    tables = (side.rows, side.others, side.ridge)
    return _native.AlsSide(*side.entries, *tables, side.alpha, side.mean, side.bias_column, side.steps)


def gram(table: Table, threads: int = 1) -> Table:
    """Return the Gram matrix Σ y yᵀ over the rows of a table; bitwise equal for any number of threads."""
    out = new_table(table.shape[1], table.shape[1])
    _native.als_gram(table, out, threads)
    return out


class TwinSolver:
    """The NumPy twin of `native_solver`: row by row, in double precision."""

    def __init__(self, side: Side) -> None:
        self.side = side

    def solve(self, gram: Table | None, first: int, last: int, threads: int) -> float:
        """Solve rows [first, last) in place and return their summed objective."""
        return sum(self.solve_row(gram, row) for row in range(first, last))

    def solve_row(self, gram: Table | None, row: int) -> float:
        """Solve one row in place and return its objective."""
        side = self.side
        part = slice(side.entries.starts[row], side.entries.starts[row + 1])
        y = side.others[side.entries.columns[part]].astype(np.float64)  # entries × stride
        values = side.entries.values[part].astype(np.float64)
        if gram is None:
            weights, targets = np.ones(len(values)), values - side.mean
            if side.bias_column >= 0:
                targets = targets - y[:, side.bias_column]
                y[:, side.bias_column] = 0
            constant = float((targets**2).sum())
        else:
            weights, targets = side.alpha * values, 1 + side.alpha * values
            constant = float(targets.sum())
        matrix = (y.T * weights) @ y + side.ridge[row] * np.eye(y.shape[1])
        matrix += 0 if gram is None else gram
        rhs = targets @ y
        x = side.rows[row].astype(np.float64)
        x = conjugate_gradients(matrix, rhs, x, side.steps) if side.steps else np.linalg.solve(matrix, rhs)
        loss = float(x @ matrix @ x - 2 * rhs @ x) + constant
        side.rows[row] = x
        if side.bias_column >= 0:
            side.rows[row, side.bias_column] = 1
        return loss


def conjugate_gradients(
    matrix: NDArray[np.float64], rhs: NDArray[np.float64], x: NDArray[np.float64], steps: int
) -> NDArray[np.float64]:
    """Return x after `steps` conjugate gradient steps for matrix · x = rhs (Hestenes & Stiefel 1952)."""
    residual = rhs - matrix @ x
    direction, squared_norm = residual, residual @ residual
    for _ in range(steps):
        if squared_norm < 1e-20:
            break
        product = matrix @ direction
        step = squared_norm / (direction @ product)
        x = x + step * direction
        residual = residual - step * product
        new_squared_norm = residual @ residual
        direction = residual + new_squared_norm / squared_norm * direction
        squared_norm = new_squared_norm
    return x
