"""Rank and number of the processes that torchrun started, from their environment variables."""

from __future__ import annotations

import os

from firth.core.errors import FirthError


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
