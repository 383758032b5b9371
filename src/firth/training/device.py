"""The device and the processes that train a network."""

from __future__ import annotations

from datetime import timedelta
from typing import Any

import torch
import torch.distributed as dist

from firth.core.errors import FirthError
from firth.core.processes import local_rank, world_size
from firth.core.run import Run

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
    return torch.device("cuda", local_rank())


def distributed(run: Run) -> tuple[int, int]:
    """Return the rank of this process and the number of processes, as set by torchrun."""
    world = world_size()
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() and run.device != "cpu" else "gloo")
    return (dist.get_rank(), dist.get_world_size()) if world > 1 else (0, 1)


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
