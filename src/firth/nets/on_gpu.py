"""Triton kernels: loading them when there is a GPU, and registering them with torch."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
from typing import Any

import torch
from torch import Tensor

HALF_PRECISION = (torch.float16, torch.bfloat16)


def kernels(name: str) -> Any:
    """Return the kernel module `firth.nets.NAME`, or None without a GPU or Triton."""
    if torch.cuda.is_available():
        with suppress(ImportError):
            return importlib.import_module(f"firth.nets.{name}")
    return None


def half_precision_dtype(x: Tensor) -> torch.dtype | None:
    """Return the half-precision dtype that products of `x` use on its GPU; None in other cases."""
    if not x.is_cuda:
        return None
    dtype: torch.dtype = torch.get_autocast_dtype("cuda") if torch.is_autocast_enabled("cuda") else x.dtype
    return dtype if dtype in HALF_PRECISION else None


def operator(
    name: str,
    forward: Callable[..., Any],
    like: Callable[..., Any],
    save: Callable[..., None],
    backward_pass: Callable[..., Any],
    backward: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """Return `forward` as a differentiable operator that torch's compiler treats as opaque.

    `like` returns empty results of the same shapes. `save` and `backward_pass` have the signatures of
    `register_autograd`. `backward` is the backward kernel and its `like`; `backward_pass` then takes the kernel as its
    first argument. Outside compiled code the kernels are called directly, because calling a custom operator takes 0.1
    to 0.2 ms on the host, which delays the steps of a small network.
    """
    compiled_op = custom_operator(name, forward, like)
    compiled_backward = eager_backward = backward_pass
    if backward:  # fixed here: while torch traces the backward pass, is_compiling() is False
        compiled_backward = partial(backward_pass, custom_operator(f"{name}_backward", *backward))
        eager_backward = partial(backward_pass, backward[0])
    compiled_op.register_autograd(compiled_backward, setup_context=save)
    methods = {"forward": forward, "setup_context": save, "backward": eager_backward}
    eager_op: Any = type(
        name,
        (torch.autograd.Function,),
        {name_of_method: staticmethod(call) for name_of_method, call in methods.items()},
    )

    def call(*inputs: Any) -> Any:
        return compiled_op(*inputs) if torch.compiler.is_compiling() else eager_op.apply(*inputs)

    return call


def custom_operator(name: str, function: Callable[..., Any], like: Callable[..., Any]) -> Any:
    """Register a function as a torch operator."""
    compiled_op = torch.library.custom_op(name, function, mutates_args=())
    compiled_op.register_fake(like)
    return compiled_op
