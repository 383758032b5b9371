"""Attention within packed sequences that fit one tile, on a GPU: forward in one kernel, back in one.

Flash attention walks long rows of keys in tiles and pays for it at short ones: it keeps a running softmax, and its way
back needs three kernels and single-precision sums. Where all keys of a sequence stand in one tile, a program holds a
sequence and a head, and works the softmax out again on the way back. `attention_steps` is what it computes.
"""

from __future__ import annotations

import math

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator, started

LONGEST = 128  # keys of one tile
FORWARD = {"EACH": 1, "num_warps": 8, "num_stages": 1}
BACKWARD = {"EACH": 4, "num_warps": 8, "num_stages": 2}


@triton.jit
def weights_of(q, k, length, scale, TILE: tl.constexpr):  # noqa: N803
    """softmax(q kᵀ · scale) over the first `length` keys."""
    keys = tl.arange(0, TILE)
    scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # for powers of two, which the card has
    scores = tl.where((keys < length)[None, :], scores, float("-inf"))
    powers = tl.exp2(scores - tl.max(scores, 1)[:, None])
    return powers * (1.0 / tl.sum(powers, 1))[:, None]


@triton.jit
def forward_kernel(
    qkv, starts, out, scale,
    HEADS: tl.constexpr, EACH: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A sequence and `EACH` heads: `qkv` (places, 3, heads, dim) to `out` (places, heads, dim)."""
    begin = tl.load(starts + tl.program_id(1)).to(tl.int64)
    length = tl.load(starts + tl.program_id(1) + 1) - begin
    if length > 0:
        place, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        there = place < length
        cells = place * (3 * HEADS * DIM) + column  # from the sequence's own place: half as wide as from the first
        for head in range(tl.program_id(0) * EACH, tl.program_id(0) * EACH + EACH):  # the next is loaded meanwhile
            given = qkv + begin * (3 * HEADS * DIM) + head * DIM
            q = tl.load(given + cells, mask=there, other=0.0)
            k = tl.load(given + HEADS * DIM + cells, mask=there, other=0.0)
            v = tl.load(given + 2 * HEADS * DIM + cells, mask=there, other=0.0)
            weights = weights_of(q, k, length, scale, TILE)
            mixed = tl.dot(weights.to(v.dtype), v)
            made = out + begin * (HEADS * DIM) + head * DIM
            tl.store(made + place * (HEADS * DIM) + column, mixed.to(q.dtype), mask=there)


@triton.jit
def backward_kernel(
    qkv, starts, slope, found, sums, scale,
    HEADS: tl.constexpr, EACH: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """From the gradient of `out` to that of `qkv`, and to its sums over each sequence, (sequences, 3, heads, dim): 0
    for keys, as a softmax stays the same when all scores of a query move together."""
    begin = tl.load(starts + tl.program_id(1)).to(tl.int64)
    length = tl.load(starts + tl.program_id(1) + 1) - begin
    if length > 0:
        place, column = tl.arange(0, TILE)[:, None], tl.arange(0, DIM)[None, :]
        there = place < length
        cells = place * (3 * HEADS * DIM) + column  # from the sequence's own place: half as wide as from the first
        for head in range(tl.program_id(0) * EACH, tl.program_id(0) * EACH + EACH):  # the next is loaded meanwhile
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
            made = found + begin * (3 * HEADS * DIM) + head * DIM
            total = sums + tl.program_id(1) * (3 * HEADS * DIM) + head * DIM + tl.arange(0, DIM)
            to_v = tl.dot(tl.trans(weights.to(q.dtype)), slopes)  # a query that is not there has a slope of 0
            tl.store(made + 2 * HEADS * DIM + cells, to_v.to(q.dtype), mask=there)
            tl.store(total + 2 * HEADS * DIM, tl.sum(to_v, 0))
            to_q = tl.dot(to_scores, k)
            tl.store(made + cells, to_q.to(q.dtype), mask=there)
            tl.store(total, tl.sum(to_q, 0))
            to_k = tl.dot(tl.trans(to_scores), q)
            tl.store(made + HEADS * DIM + cells, to_k.to(q.dtype), mask=there)


def fits(heads_dim: int, longest: int) -> bool:
    """Whether the kernels are made for this."""
    return heads_dim in (16, 32, 64, 128) and longest <= LONGEST


def shape_of(heads: int, starts: Tensor, wanted: dict[str, int]) -> tuple[tuple[int, int], dict[str, int]]:
    """The grid, and the settings with as many heads a program as divide all of them."""
    each = math.gcd(heads, wanted["EACH"])
    return (heads // each, len(starts) - 1), {**wanted, "EACH": each}


def tile_of(longest: int) -> int:
    return max(16, 1 << (longest - 1).bit_length())


@operator("firth::attend_short")
def attend(qkv: Tensor, bias: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    """`qkv` (places, 3 · heads · dim), contiguous; `starts` as in `Packed`: (places, heads · dim). `bias` is the one
    that was added to each of `qkv`: here for its gradient, which the way back sums where it makes that of `qkv`."""
    dim, tile = qkv.shape[1] // (3 * heads), tile_of(longest)
    out = qkv.new_empty(len(qkv), heads * dim)
    grid, settings = shape_of(heads, starts, FORWARD)
    started(forward_kernel)[grid](qkv, starts, out, dim**-0.5, HEADS=heads, DIM=dim, TILE=tile, **settings)
    return out


@attend.register_fake
def _(qkv: Tensor, bias: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3)


@operator("firth::attend_short_backward")
def attend_short_backward(
    qkv: Tensor, starts: Tensor, slope: Tensor, heads: int, longest: int
) -> tuple[Tensor, Tensor]:
    """Gradients of `qkv` and, a row a sequence, of the bias."""
    dim, tile = qkv.shape[1] // (3 * heads), tile_of(longest)
    found, sums = torch.empty_like(qkv), qkv.new_zeros(len(starts) - 1, qkv.shape[1], dtype=torch.float32)
    grid, settings = shape_of(heads, starts, BACKWARD)
    started(backward_kernel)[grid](
        qkv, starts, slope.contiguous(), found, sums, dim**-0.5, HEADS=heads, DIM=dim, TILE=tile, **settings
    )
    return found, sums


@attend_short_backward.register_fake
def _(qkv: Tensor, starts: Tensor, slope: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    return torch.empty_like(qkv), qkv.new_empty(len(starts) - 1, qkv.shape[1], dtype=torch.float32)


def keep_inputs(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: Tensor) -> None:
    qkv, bias, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts)  # type: ignore[arg-type]
    ctx.shape, ctx.kind = (heads, longest), bias.dtype  # type: ignore[attr-defined]


def go_back(ctx: torch.autograd.function.FunctionCtx, slope: Tensor) -> tuple[Tensor, Tensor, None, None, None]:
    qkv, starts = ctx.saved_tensors  # type: ignore[attr-defined]
    found, sums = attend_short_backward(qkv, starts, slope, *ctx.shape)  # type: ignore[attr-defined]
    return found, sums.sum(0).to(ctx.kind), None, None, None  # type: ignore[attr-defined]


attend.register_autograd(go_back, setup_context=keep_inputs)
