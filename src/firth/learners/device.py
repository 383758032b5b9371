"""Which device a network learns on, and how many processes learn it together."""

from __future__ import annotations

import os

import torch
import torch.distributed as dist

from firth.core.errors import FirthError
from firth.core.run import Run

PEAKS = {"H200": 989e12, "H100": 989e12, "A100": 312e12}  # dense bf16 operations a second, by the makers' data sheets


def device_of(run: Run, rank: int = 0) -> torch.device:
    """auto: the GPU where there is one."""
    there = torch.cuda.is_available()
    if run.device == "cuda" and not there:
        raise FirthError("no_gpu", "device=cuda, and torch sees no GPU here; device=cpu works.")
    if run.device == "cpu" or not there:
        return torch.device("cpu")
    if run.deterministic:
        raise FirthError(
            "unsupported_device",
            "deterministic runs of networks are on the CPU: a GPU adds in no fixed order; give device=cpu.",
        )
    return torch.device("cuda", int(os.environ.get("LOCAL_RANK", rank)))


def distributed(run: Run) -> tuple[int, int]:
    """This process's number and how many there are, as torchrun says."""
    world = int(os.environ.get("WORLD_SIZE", "1"))
    if world > 1 and not dist.is_initialized():
        dist.init_process_group("nccl" if torch.cuda.is_available() and run.device != "cpu" else "gloo")
    return (dist.get_rank(), dist.get_world_size()) if world > 1 else (0, 1)


def peak_of(device: torch.device) -> float | None:
    """Dense bf16 operations a second; None where they are not known."""
    if device.type != "cuda":
        return None
    name = torch.cuda.get_device_name(device)
    return next((peak for card, peak in PEAKS.items() if card in name), None)
