"""Cross-entropy over the vocabulary on a GPU: scores, losses and gradients in two passes.

The scores over the vocabulary are the largest tensor of a language model. One kernel replaces them in place with the
gradient of the loss, so that the backward pass is only two matrix products.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

BLOCK = 1024  # columns read at once


@triton.jit
def gradient_kernel(scores, bias, targets, losses, columns, BIAS: tl.constexpr, BLOCK: tl.constexpr):  # noqa: N803
    """Compute the loss of one row and replace its scores with softmax(scores) − one_hot(target)."""
    row = tl.program_id(0)
    scores += row.to(tl.int64) * columns
    target = tl.load(targets + row)
    column = tl.arange(0, BLOCK)
    running_max = tl.full((BLOCK,), float("-inf"), tl.float32)
    total = tl.zeros((BLOCK,), tl.float32)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        value = tl.load(scores + first + column, mask=inside, other=float("-inf")).to(tl.float32)
        if BIAS:
            value += tl.load(bias + first + column, mask=inside, other=0.0)
        new_max = tl.maximum(running_max, value)
        inside = new_max > float("-inf")
        total = tl.where(inside, total * tl.exp(running_max - new_max) + tl.exp(value - new_max), 0.0)
        running_max = new_max
    row_max = tl.max(running_max, 0)
    total_at_max = tl.sum(tl.where(running_max > float("-inf"), total * tl.exp(running_max - row_max), 0.0), 0)
    target_score = tl.load(scores + target).to(tl.float32)
    if BIAS:
        target_score += tl.load(bias + target)
    tl.store(losses + row, row_max + tl.log(total_at_max) - target_score)
    for first in range(0, columns, BLOCK):
        inside = first + column < columns
        value = tl.load(scores + first + column, mask=inside, other=float("-inf")).to(tl.float32)
        if BIAS:
            value += tl.load(bias + first + column, mask=inside, other=0.0)
        gradient = tl.exp(value - row_max) / total_at_max - tl.where(first + column == target, 1.0, 0.0)
        tl.store(scores + first + column, gradient.to(scores.dtype.element_ty), mask=inside)


def forward(hidden: Tensor, tokens: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return losses and score gradients.

    hidden (positions, dim) and tokens (vocabulary, dim) are half precision; targets (positions).
    """
    scores = hidden @ tokens.T
    losses = hidden.new_empty(len(hidden), dtype=torch.float32)
    gradient_kernel[(len(hidden),)](
        scores, bias, targets, losses, scores.shape[1], BIAS=bias is not None, BLOCK=BLOCK, num_warps=4
    )
    return losses, scores


def like(hidden: Tensor, tokens: Tensor, bias: Tensor | None, targets: Tensor) -> tuple[Tensor, Tensor]:
    """Return empty results of `forward`."""
    return hidden.new_empty(len(hidden), dtype=torch.float32), hidden.new_empty(len(hidden), len(tokens))


def save_gradients(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]
) -> None:
    """Save the inputs and score gradients for the backward pass."""
    hidden, tokens, bias, _ = inputs
    ctx.save_for_backward(hidden, tokens, output[1])  # type: ignore[arg-type]
    ctx.bias = bias is not None  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])


def backward_pass(
    ctx: torch.autograd.function.FunctionCtx, upstream: Tensor, _: Tensor
) -> tuple[Tensor, Tensor, Tensor | None, None]:
    """Return gradients; the upstream gradient scales the narrow operand of each product, not the wide one."""
    hidden, tokens, gradients = ctx.saved_tensors  # type: ignore[attr-defined]
    scaled = upstream[:, None].to(torch.float32)
    grad_hidden = ((gradients @ tokens) * scaled).to(hidden.dtype)
    grad_tokens = gradients.T @ (hidden * scaled).to(hidden.dtype)
    grad_bias = (gradients.T @ upstream[:, None].to(gradients.dtype)).squeeze(1).float() if ctx.bias else None  # type: ignore[attr-defined]
    return grad_hidden, grad_tokens, grad_bias, None


token_losses = operator("firth::token_losses", forward, like, save_gradients, backward_pass)
