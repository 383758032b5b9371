"""Kernels in Triton, where there is a GPU to run them."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from contextlib import suppress
from functools import partial
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
    keep: Callable[..., None],
    back: Callable[..., Any],
    backward: tuple[Callable[..., Any], Callable[..., Any]] | None = None,
) -> Callable[..., Any]:
    """`forward` as an operator that torch's compiler leaves whole; `like` makes results of the same shapes. `keep` and
    `back` are the way back, as `register_autograd` has them; the kernel of the way back and what makes results like its
    own are `backward`, and `back` is given the kernel first. Where nothing is compiled the kernels are called as they
    are: an operator's call takes 0.1 to 0.2 ms of the host's time, which the step of a small net would wait for.
    """
    whole = whole_operator(name, forward, like)
    whole_back = direct_back = back
    if backward:  # not chosen when it is called: torch traces the way back where nothing tells that it compiles
        whole_back = partial(back, whole_operator(f"{name}_backward", *backward))
        direct_back = partial(back, backward[0])
    whole.register_autograd(whole_back, setup_context=keep)
    ways = {"forward": forward, "setup_context": keep, "backward": direct_back}
    direct: Any = type(name, (torch.autograd.Function,), {way: staticmethod(call) for way, call in ways.items()})

    def call(*inputs: Any) -> Any:
        return whole(*inputs) if torch.compiler.is_compiling() else direct.apply(*inputs)

    return call


def whole_operator(name: str, function: Callable[..., Any], like: Callable[..., Any]) -> Any:
    whole = torch.library.custom_op(name, function, mutates_args=())
    whole.register_fake(like)
    return whole
