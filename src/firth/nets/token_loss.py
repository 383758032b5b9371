"""−log p(token) from a vector and the tokens' own vectors, on a GPU: scores, loss and slopes in two passes.

A vocabulary's scores are the widest thing a language model makes. Here one kernel turns them, where they lie, into the
slopes of the loss, so that the way back is two products and nothing else.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

BLOCK = 1024  # columns read at once


@triton.jit
def slopes_kernel(scores, bias, targets, losses, columns, BIAS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    """One row: its loss, and in place of its scores softmax(scores) − one-hot(target)."""
    row = tl.program_id(0)
    scores += row.to(tl.int64) * columns
    target = tl.load(targets + row)
    place = tl.arange(0, BLOCK)
    highest = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        there = first + place < columns
        value = tl.load(scores + first + place, mask=there, other=float("-inf")).to(tl.float32)
        if BIAS:
            value += tl.load(bias + first + place, mask=there, other=0.0)
        higher = tl.maximum(highest, value)
        there = higher > float("-inf")
        total = tl.where(there, total * tl.exp(highest - higher) + tl.exp(value - higher), 0.0)
        highest = higher
    top = tl.max(highest, 0)
    share = tl.sum(tl.where(highest > float("-inf"), total * tl.exp(highest - top), 0.0), 0)
    right = tl.load(scores + target).to(tl.float32)
    if BIAS:
        right += tl.load(bias + target)
    tl.store(losses + row, top + tl.log(share) - right)
    for first in range(0, columns, BLOCK):
        there = first + place < columns
        value = tl.load(scores + first + place, mask=there, other=float("-inf")).to(tl.float32)
        if BIAS:
            value += tl.load(bias + first + place, mask=there, other=0.0)
        slope = tl.exp(value - top) / share - tl.where(first + place == target, 1.0, 0.0)
        tl.store(scores + first + place, slope.to(scores.dtype.element_ty), mask=there)


def forward(hidden: Tensor, tokens: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """hidden (places, dim), tokens (words, dim), both narrow; targets (places): losses, and slopes for the way back."""
    scores = hidden @ tokens.T
    losses = hidden.new_empty(len(hidden), dtype=torch.float32)
    slopes_kernel[(len(hidden),)](
        scores, bias, targets, losses, scores.shape[1], BIAS=bias is not None, BLOCK=BLOCK, num_warps=4
    )
    return losses, scores


def like(hidden: Tensor, tokens: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    return hidden.new_empty(len(hidden), dtype=torch.float32), hidden.new_empty(len(hidden), len(tokens))


def keep_slopes(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]
) -> None:
    hidden, tokens, bias, _ = inputs
    ctx.save_for_backward(hidden, tokens, output[1])  # type: ignore[arg-type]
    ctx.bias = bias is not None  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])


def go_back(
    ctx: torch.autograd.function.FunctionCtx, upstream: Tensor, _: Tensor
) -> tuple[Tensor, Tensor, Tensor | None, None]:
    """The upstream slope of each place scales its row: of the short side of each product, not of the wide one."""
    hidden, tokens, slopes = ctx.saved_tensors  # type: ignore[attr-defined]
    scaled = upstream[:, None].to(torch.float32)
    to_hidden = ((slopes @ tokens) * scaled).to(hidden.dtype)
    to_tokens = slopes.T @ (hidden * scaled).to(hidden.dtype)
    to_bias = (slopes.T @ upstream[:, None].to(slopes.dtype)).squeeze(1).float() if ctx.bias else None  # type: ignore[attr-defined]
    return to_hidden, to_tokens, to_bias, None


token_losses = operator("firth::token_losses", forward, like, keep_slopes, go_back)
