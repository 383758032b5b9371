"""Rank and number of the processes that train together, from the environment variables that torchrun sets.

`--workers` and Ray Train set the same variables.
"""

from __future__ import annotations

import os
from collections.abc import Callable
from typing import Any, TypeVar

from firth.core.errors import FirthError

T = TypeVar("T")


class Alone:
    """A group of one process; `training/device.py` has the group of torch.distributed."""

    rank = 0
    world = 1

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank, on every process."""
        return [value]


def on_each(group: Alone, work: Callable[[], T]) -> list[T]:
    """Run `work` on every process of a group and return all results; an error of one is raised on all."""
    result: T | None = None
    error: Exception | None = None
    try:
        result = work()
    except Exception as caught:
        error = caught
    answers = group.gather((result, error))
    for _, failure in answers:
        if failure is not None:
            raise failure
    return [answer for answer, _ in answers]


def on_first(group: Alone, work: Callable[[], T]) -> T:
    """Run `work` on rank 0 and return its result, or raise its error, on every process."""
    return on_each(group, lambda: work() if group.rank == 0 else None)[0]  # type: ignore[return-value]


def number_in(variable: str, default: int) -> int:
    """A number in an environment variable. Other programs use the names of torchrun too, so non-numbers are ignored."""
    value = os.environ.get(variable, "")
    return int(value) if value.isascii() and value.isdecimal() else default


def rank() -> int:
    """The rank of this process, from 0."""
    return number_in("RANK", 0)


def world_size() -> int:
    """The number of processes on all machines."""
    return max(1, number_in("WORLD_SIZE", 1))


def local_rank() -> int:
    """The rank of this process on its machine, which selects its GPU."""
    return number_in("LOCAL_RANK", rank())


def local_world_size() -> int:
    """The number of processes on this machine."""
    return max(1, number_in("LOCAL_WORLD_SIZE", 1))


def is_first_process() -> bool:
    """Whether this process has rank 0, which reports and writes files."""
    return rank() == 0


def refuse_processes(what: str) -> None:
    """Raise an error under torchrun, for work that only one process can do."""
    if world_size() > 1:
        raise FirthError(
            "conflicting_options",
            "{what} runs in one process, but torchrun started {processes} (WORLD_SIZE). Run it without torchrun.",
            what=what,
            processes=world_size(),
        )
