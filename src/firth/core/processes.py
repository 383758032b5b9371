"""How many processes work together on one command, as torchrun says in the environment of each."""

from __future__ import annotations

import os

from firth.core.errors import FirthError


def number_in(variable: str, usual: int) -> int:
    """A number that torchrun sets; others use the same names, so what is no number counts as not set."""
    found = os.environ.get(variable, "")
    return int(found) if found.isascii() and found.isdecimal() else usual


def rank() -> int:
    """This process's number, from 0 on."""
    return number_in("RANK", 0)


def world_size() -> int:
    """How many processes there are, on all machines."""
    return max(1, number_in("WORLD_SIZE", 1))


def local_rank() -> int:
    """This process's number on its machine: which of the machine's GPUs is its own."""
    return number_in("LOCAL_RANK", rank())


def local_world_size() -> int:
    """How many processes share this machine."""
    return max(1, number_in("LOCAL_WORLD_SIZE", 1))


def is_first_process() -> bool:
    """Whether this process is the one that reports and writes."""
    return rank() == 0


def refuse_processes(what: str) -> None:
    """Refuses to do in several processes what only one can do."""
    if world_size() > 1:
        raise FirthError(
            "conflicting_options",
            "{what} runs in one process, and torchrun started {processes} (WORLD_SIZE); run it without torchrun.",
            what=what,
            processes=world_size(),
        )
