"""Bayesian personalized ranking (Rendle et al. 2009): the native kernel (cpp/bpr.cpp) and its NumPy twin.

For a user u, a positive item i from the user's history and a negative item j, x = u · (i − j) should be large. The loss
of a sampled triple is −log σ(x). All three rows take a gradient step, with L2 regularization:

    u += rate · (σ(−x) (i − j) − regularization · u)     i += rate · (σ(−x) u − …)     j −= rate · (σ(−x) u + …)

One column holds 1 for users and the bias for items, so x includes the difference of the item biases.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.predict import Table

TRIES = 16  # draws of a negative item before the sample is skipped


@dataclass(frozen=True)
class Task:
    """The interactions in compressed rows, and the tables to train."""

    starts: NDArray[np.int64]  # users + 1
    columns: NDArray[np.int32]  # items, ascending within a user
    owners: NDArray[np.int32]  # the user of each entry
    users: Table  # padded to 16 floats
    items: Table
    noise: NDArray[np.uint32]  # alias table of the items j
    bias: int  # the column that holds 1 for users and the bias for items
    regularization: float


class Trainer(Protocol):
    """The interface that the native trainer and its twin share."""

    def train(self, first: int, last: int, rate: float, seed: int, threads: int) -> tuple[float, int]:
        """Train on samples [first, last) of an epoch; return the summed loss and the number of samples used."""

    def fold(self, passes: int, rate: float, seed: int, threads: int) -> None:
        """Fit each user's row while the items stay fixed (fold-in).

        Takes `passes` samples per item of the user; the rate falls linearly to 0. Each row depends on its user alone.
        """


def native_trainer(task: Task) -> Trainer:
    """Return the native trainer for a task."""
    arrays = (task.starts, task.columns, task.owners, task.users, task.items, task.noise)
    return _native.BprTrainer(*arrays, task.bias, task.regularization)


class TwinTrainer:
    """The NumPy twin of `native_trainer`: one sample after the other."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def train(self, first: int, last: int, rate: float, seed: int, threads: int) -> tuple[float, int]:
        """Train on samples [first, last); return the summed loss and the number of samples used."""
        losses = []
        for sample in range(first, last):
            hash = mix((seed + sample * GOLDEN) & MASK)
            entry = hash * len(self.task.columns) >> 64
            user = int(self.task.owners[entry])
            negative = self.negative_item(user, hash)
            if negative is not None:
                losses.append(self.step(user, int(self.task.columns[entry]), negative, rate))
        return sum(losses), len(losses)

    def fold(self, passes: int, rate: float, seed: int, threads: int) -> None:
        """Fit each user's row while the items stay fixed."""
        items = self.task.items.copy()
        for user in range(len(self.task.users)):
            begin, end = self.task.starts[user : user + 2].tolist()
            samples = passes * (end - begin)
            for sample in range(samples):
                hash = mix((seed + sample * GOLDEN) & MASK)
                negative = self.negative_item(user, hash)
                if negative is not None:
                    positive = int(self.task.columns[begin + (hash * (end - begin) >> 64)])
                    self.step(user, positive, negative, rate * (1 - sample / samples))
                    self.task.items[:] = items

    def negative_item(self, user: int, state: int) -> int | None:
        """Return a sampled item outside the user's history, or None if all TRIES draws were in it."""
        task = self.task
        history = task.columns[task.starts[user] : task.starts[user + 1]]
        for _ in range(TRIES):
            state = (state + GOLDEN) & MASK
            bits = mix(state)
            slot = (bits >> 32) * len(task.items) >> 32
            cut, alias = task.noise[slot].tolist()
            item = slot if bits & 0xFFFFFFFF < cut else alias
            if item not in history:
                return int(item)
        return None

    def step(self, user: int, positive: int, negative: int, rate: float) -> float:
        """Take one gradient step and return the loss."""
        task = self.task
        u, i, j = task.users[user].copy(), task.items[positive].copy(), task.items[negative].copy()
        x = float(u @ (i - j))
        gradient, shrink = 1 / (1 + np.exp(x)), 1 - rate * task.regularization
        task.users[user] = shrink * u + rate * gradient * (i - j)
        task.users[user, task.bias] = u[task.bias]
        task.items[positive] = shrink * i + rate * gradient * u
        task.items[negative] = shrink * j - rate * gradient * u
        return float(np.logaddexp(0, -x))
