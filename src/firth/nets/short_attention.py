"""Attention within packed sequences that fit one tile, on a GPU: one forward and one backward kernel.

Flash attention processes keys in tiles, which costs time on short sequences: it keeps a running softmax, and its
backward pass needs three kernels and single-precision sums. When all keys of a sequence fit one tile, one program
handles a sequence and a head, and the backward pass recomputes the softmax. The result is that of `attention_steps`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

LONGEST = 128  # keys of one tile
MOST_HEADS = 6  # of one program in the backward pass


@triton.jit
def weights_of(q, k, length, scale, TILE: tl.constexpr):  # noqa: N803
    """Return softmax(q kᵀ · scale) over the first `length` keys."""
    keys = tl.arange(0, TILE)
    scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # log2(e): GPUs compute powers of two
    scores = tl.where((keys < length)[None, :], scores, float("-inf"))
    powers = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return powers * (1.0 / tl.sum(powers, 1))[:, None]


@triton.jit
def forward_kernel(qkv, starts, out, scale, HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr):  # noqa: N803
    """Process one sequence and head: `qkv` (positions, 3, heads, dim) to `out` (positions, heads, dim)."""
    begin = tl.load(starts + tl.program_id(0)).to(tl.int64)
    length = tl.load(starts + tl.program_id(0) + 1) - begin
    if length > 0:
        position, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        inside = position < length
        inputs = qkv + begin * (3 * HEADS * DIM) + tl.program_id(1) * DIM
        offsets = position * (3 * HEADS * DIM) + column  # relative to the sequence start, so 32 bits suffice
        q = tl.load(inputs + offsets, mask=inside, other=0.0)
        k = tl.load(inputs + HEADS * DIM + offsets, mask=inside, other=0.0)
        v = tl.load(inputs + 2 * HEADS * DIM + offsets, mask=inside, other=0.0)
        weights = weights_of(q, k, length, scale, TILE)
        mixed = tl.dot(weights.to(v.dtype), v)
        outputs = out + begin * (HEADS * DIM) + tl.program_id(1) * DIM
        tl.store(outputs + position * (HEADS * DIM) + column, mixed.to(q.dtype), mask=inside)


@triton.jit
def backward_kernel(
    qkv, starts, grad_output, grad_qkv, scale,
    HEADS: tl.constexpr, EACH: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Compute the gradient of `qkv` from that of `out`, for one sequence and EACH heads.

    The loop over heads lets the GPU prefetch the rows of the next head.
    """
    begin = tl.load(starts + tl.program_id(1)).to(tl.int64)
    length = tl.load(starts + tl.program_id(1) + 1) - begin
    if length > 0:
        position, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        inside = position < length
        offsets = position * (3 * HEADS * DIM) + column  # relative to the sequence start, so 32 bits suffice
        for head in range(tl.program_id(0) * EACH, tl.program_id(0) * EACH + EACH):
            inputs = qkv + begin * (3 * HEADS * DIM) + head * DIM
            q = tl.load(inputs + offsets, mask=inside, other=0.0)
            k = tl.load(inputs + HEADS * DIM + offsets, mask=inside, other=0.0)
            v = tl.load(inputs + 2 * HEADS * DIM + offsets, mask=inside, other=0.0)
            grads = grad_output + begin * (HEADS * DIM) + head * DIM
            grad_rows = tl.load(grads + position * (HEADS * DIM) + column, mask=inside, other=0.0)
            weights = weights_of(q, k, length, scale, TILE)
            grad_weights = tl.dot(grad_rows, tl.trans(v))
            row_sum = tl.sum(weights * grad_weights, 1)
            grad_scores = (weights * (grad_weights - row_sum[:, None]) * scale).to(q.dtype)
            grad_v = tl.dot(tl.trans(weights.to(q.dtype)), grad_rows)  # rows beyond the sequence have gradient 0
            outputs = grad_qkv + begin * (3 * HEADS * DIM) + head * DIM
            tl.store(outputs + 2 * HEADS * DIM + offsets, grad_v.to(q.dtype), mask=inside)
            tl.store(outputs + offsets, tl.dot(grad_scores, k).to(q.dtype), mask=inside)
            tl.store(outputs + HEADS * DIM + offsets, tl.dot(tl.trans(grad_scores), q).to(q.dtype), mask=inside)


def fits(heads_dim: int, longest: int) -> bool:
    """Return whether the kernels support this head dimension and length."""
    return heads_dim in (16, 32, 64, 128) and longest <= LONGEST


def tile_of(longest: int) -> int:
    """Return the tile size for sequences of this length."""
    return max(16, 1 << (longest - 1).bit_length())


def forward(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    """Return attention (positions, heads · dim) of contiguous `qkv` (positions, 3 · heads · dim); `starts` as in
    `Packed`."""
    dim = qkv.shape[1] // (3 * heads)
    out = qkv.new_empty(len(qkv), heads * dim)
    forward_kernel[(len(starts) - 1, heads)](
        qkv, starts, out, dim**-0.5, HEADS=heads, DIM=dim, TILE=tile_of(longest), num_warps=8
    )
    return out


def like(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    """Return an empty result of `forward`."""
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3)


def backward(qkv: Tensor, starts: Tensor, grad_output: Tensor, heads: int, longest: int) -> Tensor:
    """Return the gradient of `qkv`."""
    dim = qkv.shape[1] // (3 * heads)
    grad_qkv = torch.empty_like(qkv)
    heads_per_program = max(count for count in range(1, MOST_HEADS + 1) if heads % count == 0)
    backward_kernel[(heads // heads_per_program, len(starts) - 1)](
        qkv, starts, grad_output.contiguous(), grad_qkv, dim**-0.5,
        HEADS=heads, EACH=heads_per_program, DIM=dim, TILE=tile_of(longest), num_warps=8, num_stages=2,
    )  # fmt: skip
    return grad_qkv


def backward_like(qkv: Tensor, starts: Tensor, grad_output: Tensor, heads: int, longest: int) -> Tensor:
    """Return an empty result of `backward`."""
    return torch.empty_like(qkv)


def keep_inputs(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: Tensor) -> None:
    """Save the inputs for the backward pass."""
    qkv, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts)  # type: ignore[arg-type]
    ctx.shape = heads, longest  # type: ignore[attr-defined]


def backward_pass(
    kernel: Callable[..., Any], ctx: torch.autograd.function.FunctionCtx, grad_output: Tensor
) -> tuple[Tensor, None, None, None]:
    """Return the gradient of `qkv`."""
    qkv, starts = ctx.saved_tensors  # type: ignore[attr-defined]
    return kernel(qkv, starts, grad_output, *ctx.shape), None, None, None  # type: ignore[attr-defined]


attend_short = operator("firth::attend_short", forward, like, keep_inputs, backward_pass, (backward, backward_like))
