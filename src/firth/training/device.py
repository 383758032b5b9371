"""The device and the processes that train a network."""

from __future__ import annotations

import re
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from firth.core.errors import FirthError
from firth.core.processes import Alone, local_rank, world_size
from firth.core.run import Run

BACKENDS = "cpu:gloo,cuda:nccl"  # objects and flags are exchanged on the CPU
LOST = re.compile("gloo|NCCL|Connection (closed|reset|refused)|Broken pipe", re.IGNORECASE)
PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}  # dense bf16 operations per second, from data sheets


def device_of(run: Run) -> torch.device:
    """Return the torch device of a run; device=auto uses a GPU if there is one."""
    available = torch.cuda.is_available()
    if run.device == "cuda" and not available:
        raise FirthError(
            "no_gpu", "device=cuda is not available: {reason}. Use device=cpu.", reason="torch finds no GPU"
        )
    if run.device == "cpu" or not available:
        return torch.device("cpu")
    if run.deterministic:
        raise FirthError(
            "unsupported_device",
            "{option} is not available on CUDA, where sums are unordered. Use device=cpu.",
            option="deterministic=True",
        )
    # --gpus and Ray show each process its own GPU only.
    return torch.device("cuda", local_rank() if torch.cuda.device_count() > 1 else 0)


class Group(Alone):
    """The processes of torch.distributed, which torchrun, `--workers` or Ray Train started."""

    def __init__(self) -> None:
        self.rank, self.world = dist.get_rank(), dist.get_world_size()

    def gather(self, value: Any) -> list[Any]:
        """Return the values of all processes by rank, on every process."""
        values: list[Any] = [None] * self.world
        dist.all_gather_object(values, value)
        return values


def group_of(device: torch.device) -> Alone:
    """Return the group of processes that train on this kind of device together, connected."""
    if world_size() == 1:
        return Alone()
    if not dist.is_initialized():
        dist.init_process_group(BACKENDS if device.type == "cuda" else "gloo")
    if device.type == "cuda":
        torch.cuda.set_device(device)
    return Group()


@contextmanager
def losses_reported(group: Alone) -> Iterator[None]:
    """Raise lost_process for the errors of torch.distributed when another process ends or cannot be reached."""
    try:
        yield
    except RuntimeError as error:
        if group.world == 1 or not (isinstance(error, dist.DistError) or LOST.search(str(error))):
            raise
        reason = str(error).partition("\n")[0]
        raise FirthError(
            "lost_process",
            "Process {rank} of {processes} lost the connection to another one ({reason}). The same command resumes "
            "from the last checkpoint.",
            rank=group.rank,
            processes=group.world,
            reason=f"{reason:.200}",
        ) from error


def join() -> None:
    """Connect the processes of torchrun, and assign each a GPU if there are any.

    The timeout is long because one process may finish hours before another.
    """
    if not dist.is_initialized():
        dist.init_process_group("gloo", timeout=timedelta(days=365))
    if torch.cuda.is_available():
        torch.cuda.set_device(local_rank() % torch.cuda.device_count())


def broadcast(value: Any) -> Any:
    """Return the value of rank 0 on all processes."""
    values = [value]
    dist.broadcast_object_list(values)
    return values[0]


def gathered(value: Any) -> list[Any]:
    """Return the values of all processes on rank 0, and an empty list on the others."""
    values: list[Any] | None = [None] * dist.get_world_size() if dist.get_rank() == 0 else None
    dist.gather_object(value, values)
    return values or []


def peak_of(device: torch.device) -> float | None:
    """Return the peak dense bf16 operations per second of a device, or None if unknown."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for gpu_name, peak in PEAKS.items() if gpu_name in name), None)
