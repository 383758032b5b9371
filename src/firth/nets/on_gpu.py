"""Kernels in Triton, where there is a GPU to run them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
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


def operator(
    name: str,
    forward: Callable[..., Any],
    like: Callable[..., Any],
    keep: Callable[..., None] | None = None,
    back: Callable[..., Any] | None = None,
) -> Callable[..., Any]:
    """`forward` as an operator that torch's compiler leaves whole; `like` makes results of the same shapes. Where
    nothing is compiled it is called as it is: an operator's call takes 0.1 to 0.2 ms of the host's time, which the step
    of a small net would wait for. `keep` and `back` are the way back, as `register_autograd` has them."""
    whole = torch.library.custom_op(name, forward, mutates_args=())
    whole.register_fake(like)
    direct = forward
    if keep is not None and back is not None:
        whole.register_autograd(back, setup_context=keep)
        ways = {"forward": staticmethod(forward), "setup_context": staticmethod(keep), "backward": staticmethod(back)}
        function: Any = type(name, (torch.autograd.Function,), ways)
        direct = function.apply

    def call(*inputs: Any) -> Any:
        return whole(*inputs) if torch.compiler.is_compiling() else direct(*inputs)

    return call
