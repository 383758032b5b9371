"""Bayesian personalised ranking (Rendle et al. 2009): the native kernel (cpp/bpr.cpp), and the same in NumPy.

For a user u, an item i of theirs and an item j that is not, x = u · (i − j) should be large. Of a drawn triple the loss
is −log σ(x), and all three rows take a step along its gradient, shrunk by the regularization:

    u += rate · (σ(−x) (i − j) − regularization · u)     i += rate · (σ(−x) u − …)     j −= rate · (σ(−x) u + …)

In one column users hold 1 and items their bias, so that x includes the difference of the biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.predict import Table
from firth.kernels.predict_twin import GOLDEN, MASK, mix

TRIES = 16  # draws for an item that the user does not have


@dataclass(frozen=True)
class Task:
    """Who has which items, and the rows to learn."""

    starts: NDArray[np.int64]  # users + 1
    columns: NDArray[np.int32]  # items, ascending within a user
    owners: NDArray[np.int32]  # the user of each entry
    users: Table  # padded to 16 floats
    items: Table
    noise: NDArray[np.uint32]  # alias table of the items j
    bias: int  # the column of 1 and the items' biases
    regularization: float


class Trainer(Protocol):
    def train(self, first: int, last: int, rate: float, seed: int, threads: int) -> tuple[float, int]:
        """Samples [first, last) of an epoch: the loss summed, and how many were used."""

    def fold(self, passes: int, rate: float, seed: int, threads: int) -> None:
        """Finds each user's row with the items as they are: `passes` samples for each of the user's items, the rate
        falling to nothing. Depends on that user alone."""


def native_trainer(task: Task) -> Trainer:
    """The native kernel."""
    arrays = (task.starts, task.columns, task.owners, task.users, task.items, task.noise)
    return _native.BprTrainer(*arrays, task.bias, task.regularization)


class TwinTrainer:
    """`native_trainer`'s interface, one sample after the other."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def train(self, first: int, last: int, rate: float, seed: int, threads: int) -> tuple[float, int]:
        losses = []
        for sample in range(first, last):
            hash = mix((seed + sample * GOLDEN) & MASK)
            entry = hash * len(self.task.columns) >> 64
            user = int(self.task.owners[entry])
            other = self.other(user, hash)
            if other is not None:
                losses.append(self.step(user, int(self.task.columns[entry]), other, rate))
        return sum(losses), len(losses)

    def fold(self, passes: int, rate: float, seed: int, threads: int) -> None:
        items = self.task.items.copy()
        for user in range(len(self.task.users)):
            begin, end = self.task.starts[user : user + 2].tolist()
            samples = passes * (end - begin)
            for sample in range(samples):
                hash = mix((seed + sample * GOLDEN) & MASK)
                other = self.other(user, hash)
                if other is not None:
                    liked = int(self.task.columns[begin + (hash * (end - begin) >> 64)])
                    self.step(user, liked, other, rate * (1 - sample / samples))
                    self.task.items[:] = items

    def other(self, user: int, state: int) -> int | None:
        """An item that the user does not have; None where TRIES draws find none."""
        task = self.task
        mine = task.columns[task.starts[user] : task.starts[user + 1]]
        for _ in range(TRIES):
            state = (state + GOLDEN) & MASK
            bits = mix(state)
            slot = (bits >> 32) * len(task.items) >> 32
            cut, other = task.noise[slot].tolist()
            item = slot if bits & 0xFFFFFFFF < cut else other
            if item not in mine:
                return int(item)
        return None

    def step(self, user: int, liked: int, other: int, rate: float) -> float:
        task = self.task
        u, i, j = task.users[user].copy(), task.items[liked].copy(), task.items[other].copy()
        x = float(u @ (i - j))
        pull, shrink = 1 / (1 + np.exp(x)), 1 - rate * task.regularization
        task.users[user] = shrink * u + rate * pull * (i - j)
        task.users[user, task.bias] = u[task.bias]
        task.items[liked] = shrink * i + rate * pull * u
        task.items[other] = shrink * j - rate * pull * u
        return float(np.logaddexp(0, -x))
