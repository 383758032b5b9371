"""Kernels in Triton, where there is a GPU to run them."""

from __future__ import annotations

import importlib
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

NARROW = (torch.float16, torch.bfloat16)


def kernels(name: str) -> Any:
    """The module of kernels `firth.nets.NAME`; None without a GPU or without Triton."""
    if torch.cuda.is_available():
        with suppress(ImportError):
            return importlib.import_module(f"firth.nets.{name}")
    return None


def narrow(x: Tensor) -> torch.dtype | None:
    """In which half-wide numbers the products of `x` are computed on its GPU; None elsewhere."""
    if not x.is_cuda:
        return None
    kind: torch.dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    return kind if kind in NARROW else None
