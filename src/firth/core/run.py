"""`Run`: how training is executed, apart from the method."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from firth.core.errors import FirthError
from firth.core.options import check_options, option
from firth.core.processes import local_world_size, number_in
from firth.core.report import Report, default_report


@dataclass(frozen=True, kw_only=True)
class Run:
    """Execution settings, the same for every method: seed, threads, device, checkpoints, time budget."""

    seed: int = option(1, "random seed", low=0, high=2**63 - 1)
    threads: int = option(0, "worker threads; 0 = one per core", low=0, high=1024)
    deterministic: bool = option(
        False, "the same seed and data give identical results for any number of threads; slower"
    )
    device: str = option("auto", "device to compute on", choices=("auto", "cpu", "cuda"))
    checkpoint_every: float = option(60.0, "seconds between checkpoints; 0 = none", low=0)
    budget: float = option(
        0.0, "time limit in seconds; the learning-rate schedule is fitted to it; 0 = no limit", low=0
    )
    memory: str = option("", "memory limit for counting, such as 2GB; empty = no limit")
    cluster: str = option("", "where work is run: empty = this process, processes, ray or ray://HOST:PORT")
    workers: int = option(0, "worker processes of the cluster; 0 = one per core or GPU", low=0, high=65536)
    gpus: int = option(
        0, "GPUs of this machine that train a network, with one process each; 0 = as workers says", low=0, high=1024
    )
    accumulation: int = option(
        1, "gradient accumulation: passes per training step of a network; more need less memory", low=1, high=65536
    )
    shard_weights: bool = option(
        False, "FSDP: divide weights, gradients and optimizer state of a network among the processes"
    )
    checkpoint_folder: str | Path | None = None  # None: no checkpoints
    report: Report = field(default_factory=default_report, compare=False, repr=False)

    def __post_init__(self) -> None:
        check_options(self)
        parse_bytes(self.memory)

    @property
    def cores(self) -> int:
        """The number of threads to start."""
        return self.threads or available_cores()

    @property
    def memory_bytes(self) -> int:
        """The memory limit in bytes; 0 for none."""
        return parse_bytes(self.memory)


def available_cores() -> int:
    """The cores this process may use: FIRTH_THREADS, which workers have, or those of the machine, divided among the
    processes of torchrun. macOS reports no affinity: all cores."""
    if threads := number_in("FIRTH_THREADS", 0):
        return threads
    affinity = getattr(os, "sched_getaffinity", None)
    cores = len(affinity(0)) if affinity else os.cpu_count() or 1
    return max(1, cores // local_world_size())


def parse_bytes(text: str) -> int:
    """ "2GB" -> 2_000_000_000; "" -> 0."""
    if not text:
        return 0
    units = {"KIB": 2**10, "MIB": 2**20, "GIB": 2**30, "KB": 10**3, "MB": 10**6, "GB": 10**9, "B": 1, "": 1}
    number = text.strip().rstrip("BbKkMmGgIi ")
    unit = text.strip()[len(number) :].strip().upper()
    try:
        size = int(float(number) * units[unit])
    except (ValueError, KeyError, OverflowError):
        size = 0
    if size <= 0:
        raise FirthError(
            "invalid_value", "{option} must be a size such as 500MB or 2GB; got {got!r}.", option="memory", got=text
        )
    return size
