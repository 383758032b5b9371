"""Kernels in Triton, where there is a GPU to run them."""

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
    """The module of kernels `firth.nets.NAME`; None without a GPU or without Triton."""
    if torch.cuda.is_available():
        with suppress(ImportError):
            return importlib.import_module(f"firth.nets.{name}")
    return None


def half_precision_dtype(x: Tensor) -> torch.dtype | None:
    """In which half-wide numbers the products of `x` are computed on its GPU; None elsewhere."""
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
    """`forward` as an operator that torch's compiler leaves whole; `like` makes results of the same shapes. `keep` and
    `back` are the way back, as `register_autograd` has them; the kernel of the way back and what makes results like its
    own are `backward`, and `back` is given the kernel first. Where nothing is compiled the kernels are called as they
    are: an operator's call takes 0.1 to 0.2 ms of the host's time, which the step of a small net would wait for.
    """
    compiled_op = custom_operator(name, forward, like)
    compiled_backward = eager_backward = backward_pass
    if backward:  # not chosen when it is called: torch traces the way back where nothing tells that it compiles
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
    compiled_op = torch.library.custom_op(name, function, mutates_args=())
    compiled_op.register_fake(like)
    return compiled_op
