"""Kernels in Triton, where there is a GPU to run them."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import torch
from torch import Tensor

NARROW = (torch.float16, torch.bfloat16)
INTERPRETED = os.environ.get("TRITON_INTERPRET") == "1"


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


def operator(name: str) -> Callable[[Callable[..., Any]], Any]:
    """Makes a function that starts kernels an operator. A compiler sees through it to the kernels and starts them
    itself: a step of training calls a hundred of them, and the calls of opaque operators took it longer than a GPU
    needs for all the rest (benchmarks/LOG.md)."""
    made: Any = torch.library.custom_op if INTERPRETED else torch.library.triton_op
    return lambda function: made(name, function, mutates_args=())


def started(kernel: Any) -> Any:
    """A kernel within such a function, to be called with its grid."""
    return kernel if INTERPRETED else torch.library.wrap_triton(kernel)
