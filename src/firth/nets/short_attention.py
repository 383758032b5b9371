"""Attention within packed sequences that fit one tile, on a GPU: forward in one kernel, back in one.

Flash attention walks long rows of keys in tiles and pays for it at short ones: it keeps a running softmax, and its way
back needs three kernels and single-precision sums. Where all keys of a sequence stand in one tile, a program holds a
sequence and a head, and works the softmax out again on the way back. `attention_steps` is what it computes.
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
MOST_HEADS = 6  # that one program goes back over


@triton.jit
def weights_of(q, k, length, scale, TILE: tl.constexpr):  # noqa: N803
    """softmax(q kᵀ · scale) over the first `length` keys."""
    keys = tl.arange(0, TILE)
    scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # for powers of two, which the card has
    scores = tl.where((keys < length)[None, :], scores, float("-inf"))
    powers = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return powers * (1.0 / tl.sum(powers, 1))[:, None]


@triton.jit
def forward_kernel(qkv, starts, out, scale, HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr):  # noqa: N803
    """One sequence and head: `qkv` (places, 3, heads, dim) to `out` (places, heads, dim)."""
    begin = tl.load(starts + tl.program_id(0)).to(tl.int64)
    length = tl.load(starts + tl.program_id(0) + 1) - begin
    if length > 0:
        place, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        there = place < length
        given = qkv + begin * (3 * HEADS * DIM) + tl.program_id(1) * DIM
        cells = place * (3 * HEADS * DIM) + column  # from the sequence's own place: half as wide as from the first
        q = tl.load(given + cells, mask=there, other=0.0)
        k = tl.load(given + HEADS * DIM + cells, mask=there, other=0.0)
        v = tl.load(given + 2 * HEADS * DIM + cells, mask=there, other=0.0)
        weights = weights_of(q, k, length, scale, TILE)
        mixed = tl.dot(weights.to(v.dtype), v)
        made = out + begin * (HEADS * DIM) + tl.program_id(1) * DIM
        tl.store(made + place * (HEADS * DIM) + column, mixed.to(q.dtype), mask=there)


@triton.jit
def backward_kernel(
    qkv, starts, slope, found, scale,
    HEADS: tl.constexpr, EACH: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """From the gradient of `out` to that of `qkv`: a sequence and EACH heads, the next one's rows fetched meanwhile."""
    begin = tl.load(starts + tl.program_id(1)).to(tl.int64)
    length = tl.load(starts + tl.program_id(1) + 1) - begin
    if length > 0:
        place, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        there = place < length
        cells = place * (3 * HEADS * DIM) + column  # from the sequence's own place: half as wide as from the first
        for head in range(tl.program_id(0) * EACH, tl.program_id(0) * EACH + EACH):
            given = qkv + begin * (3 * HEADS * DIM) + head * DIM
            q = tl.load(given + cells, mask=there, other=0.0)
            k = tl.load(given + HEADS * DIM + cells, mask=there, other=0.0)
            v = tl.load(given + 2 * HEADS * DIM + cells, mask=there, other=0.0)
            above = slope + begin * (HEADS * DIM) + head * DIM
            slopes = tl.load(above + place * (HEADS * DIM) + column, mask=there, other=0.0)
            weights = weights_of(q, k, length, scale, TILE)
            to_weights = tl.dot(slopes, tl.trans(v))
            middle = tl.sum(weights * to_weights, 1)
            to_scores = (weights * (to_weights - middle[:, None]) * scale).to(q.dtype)
            to_v = tl.dot(tl.trans(weights.to(q.dtype)), slopes)  # a query that is not there has a slope of 0
            made = found + begin * (3 * HEADS * DIM) + head * DIM
            tl.store(made + 2 * HEADS * DIM + cells, to_v.to(q.dtype), mask=there)
            tl.store(made + cells, tl.dot(to_scores, k).to(q.dtype), mask=there)
            tl.store(made + HEADS * DIM + cells, tl.dot(tl.trans(to_scores), q).to(q.dtype), mask=there)


def fits(heads_dim: int, longest: int) -> bool:
    """Whether the kernels are made for this."""
    return heads_dim in (16, 32, 64, 128) and longest <= LONGEST


def tile_of(longest: int) -> int:
    return max(16, 1 << (longest - 1).bit_length())


def forward(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    """`qkv` (places, 3 · heads · dim), contiguous; `starts` as in `Packed`: (places, heads · dim)."""
    dim = qkv.shape[1] // (3 * heads)
    out = qkv.new_empty(len(qkv), heads * dim)
    forward_kernel[(len(starts) - 1, heads)](
        qkv, starts, out, dim**-0.5, HEADS=heads, DIM=dim, TILE=tile_of(longest), num_warps=8
    )
    return out


def like(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3)


def backward(qkv: Tensor, starts: Tensor, slope: Tensor, heads: int, longest: int) -> Tensor:
    dim = qkv.shape[1] // (3 * heads)
    found = torch.empty_like(qkv)
    each = max(count for count in range(1, MOST_HEADS + 1) if heads % count == 0)
    backward_kernel[(heads // each, len(starts) - 1)](
        qkv, starts, slope.contiguous(), found, dim**-0.5,
        HEADS=heads, EACH=each, DIM=dim, TILE=tile_of(longest), num_warps=8, num_stages=2,
    )  # fmt: skip
    return found


def backward_like(qkv: Tensor, starts: Tensor, slope: Tensor, heads: int, longest: int) -> Tensor:
    return torch.empty_like(qkv)


def keep_inputs(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: Tensor) -> None:
    qkv, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts)  # type: ignore[arg-type]
    ctx.shape = heads, longest  # type: ignore[attr-defined]


def go_back(
    kernel: Callable[..., Any], ctx: torch.autograd.function.FunctionCtx, slope: Tensor
) -> tuple[Tensor, None, None, None]:
    qkv, starts = ctx.saved_tensors  # type: ignore[attr-defined]
    return kernel(qkv, starts, slope, *ctx.shape), None, None, None  # type: ignore[attr-defined]


attend_short = operator("firth::attend_short", forward, like, keep_inputs, go_back, (backward, backward_like))
