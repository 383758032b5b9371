"""Attention within packed sequences of several tiles, on a GPU: forward in one kernel, back in two.

As flash attention does it (Dao et al. 2022): keys in tiles, a running softmax. On the way back the softmax is worked
out twice, for the queries of a tile and then for its keys, so that no program adds to what another one made, and all
gradients are written where the product that made `qkv` wants them. `attention_steps` is what it computes.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

LONGEST = 512  # places: as far as it was timed beside torch's own
FORWARD = {"QUERIES": 64, "KEYS": 64, "num_warps": 4, "num_stages": 3}
QUERIES_BACK = {"TILE": 64, "STEP": 64, "num_warps": 4, "num_stages": 3, "maxnreg": 128}
KEYS_BACK = {"TILE": 64, "STEP": 64, "num_warps": 4, "num_stages": 1, "maxnreg": 168}


@triton.jit
def forward_kernel(
    qkv, starts, out, logs, places, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A tile of a sequence's queries and a head: `qkv` (places, 3, heads, dim) to `out` (places, heads, dim), and the
    logarithm to base 2 of what the softmax divides by, (heads, places)."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * QUERIES < length:
        place, column = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES), tl.arange(0, DIM)[None, :]
        there = place < length
        given = qkv + begin.to(tl.int64) * (3 * HEADS * DIM) + head * DIM
        q = tl.load(given + place[:, None] * (3 * HEADS * DIM) + column, mask=there[:, None], other=0.0)
        highest = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        mixed = tl.zeros((QUERIES, DIM), tl.float32)
        for first in range(0, length, KEYS):
            key = first + tl.arange(0, KEYS)
            cells, seen = key[:, None] * (3 * HEADS * DIM) + column, (key < length)[:, None]
            k = tl.load(given + HEADS * DIM + cells, mask=seen, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # for powers of two, which the card has
            scores = tl.where((key < length)[None, :], scores, float("-inf"))
            higher = tl.maximum(highest, tl.max(scores, 1))
            powers = tl.exp2(scores - higher[:, None])
            shrunk = tl.exp2(highest - higher)
            total = total * shrunk + tl.sum(powers, 1)
            v = tl.load(given + 2 * HEADS * DIM + cells, mask=seen, other=0.0)
            mixed = tl.dot(powers.to(v.dtype), v, mixed * shrunk[:, None])
            highest = higher
        made = out + begin.to(tl.int64) * (HEADS * DIM) + head * DIM
        cells = place[:, None] * (HEADS * DIM) + column
        tl.store(made + cells, (mixed / total[:, None]).to(q.dtype), mask=there[:, None])
        tl.store(logs + head * places + begin + place, highest + tl.log2(total), mask=there)


@triton.jit
def queries_kernel(
    qkv, starts, out, logs, slope, middles, found, places, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """The gradients of a tile's places as queries; and how far each one's slope lies along its output, in `middles`
    (heads, places)."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * TILE < length:
        wide: tl.constexpr = 3 * HEADS * DIM
        place, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, DIM)[None, :]
        there = (place < length)[:, None]
        given = qkv + begin.to(tl.int64) * wide + head * DIM
        own = (begin + place).to(tl.int64)[:, None] * (HEADS * DIM) + head * DIM + column
        q = tl.load(given + place[:, None] * wide + column, mask=there, other=0.0)
        slopes = tl.load(slope + own, mask=there, other=0.0)
        mixed = tl.load(out + own, mask=there, other=0.0)
        middle = tl.sum(mixed.to(tl.float32) * slopes.to(tl.float32), 1)
        tl.store(middles + head * places + begin + place, middle, mask=place < length)
        log = tl.load(logs + head * places + begin + place, mask=place < length, other=float("inf"))
        to_q = tl.zeros((TILE, DIM), tl.float32)
        for first in range(0, length, STEP):
            key = first + tl.arange(0, STEP)
            cells, seen = key[:, None] * wide + column, (key < length)[:, None]
            k = tl.load(given + HEADS * DIM + cells, mask=seen, other=0.0)
            v = tl.load(given + 2 * HEADS * DIM + cells, mask=seen, other=0.0)
            powers = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634) - log[:, None]
            weights = tl.exp2(tl.minimum(powers, 1.0))  # finite where there is no key: its row of zeros takes it away
            to_scores = weights * (tl.dot(slopes, tl.trans(v)) - middle[:, None])
            to_q = tl.dot(to_scores.to(q.dtype), k, to_q)
        made = found + begin.to(tl.int64) * wide + head * DIM
        tl.store(made + place[:, None] * wide + column, (to_q * scale).to(q.dtype), mask=there)


@triton.jit
def keys_kernel(
    qkv, starts, logs, slope, middles, found, places, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """The gradients of a tile's places as keys and values."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * TILE < length:
        wide: tl.constexpr = 3 * HEADS * DIM
        place, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, DIM)[None, :]
        there, own = (place < length)[:, None], place[:, None] * wide + column
        given = qkv + begin.to(tl.int64) * wide + head * DIM
        slope += begin.to(tl.int64) * (HEADS * DIM) + head * DIM
        k = tl.load(given + HEADS * DIM + own, mask=there, other=0.0)
        v = tl.load(given + 2 * HEADS * DIM + own, mask=there, other=0.0)
        to_k, to_v = tl.zeros((TILE, DIM), tl.float32), tl.zeros((TILE, DIM), tl.float32)
        for first in range(0, length, STEP):
            query = first + tl.arange(0, STEP)
            seen = (query < length)[:, None]
            q = tl.load(given + query[:, None] * wide + column, mask=seen, other=0.0)
            slopes = tl.load(slope + query[:, None] * (HEADS * DIM) + column, mask=seen, other=0.0)
            log = tl.load(logs + head * places + begin + query, mask=query < length, other=float("inf"))
            middle = tl.load(middles + head * places + begin + query, mask=query < length, other=0.0)
            scores = tl.dot(k, tl.trans(q))
            along = tl.dot(v, tl.trans(slopes))  # before the powers, which are worked out meanwhile
            weights = tl.exp2(scores * (scale * 1.4426950408889634) - log[None, :])
            to_v = tl.dot(weights.to(q.dtype), slopes, to_v)
            to_k = tl.dot((weights * (along - middle[None, :])).to(q.dtype), q, to_k)
        made = found + begin.to(tl.int64) * wide + head * DIM
        tl.store(made + HEADS * DIM + own, (to_k * scale).to(k.dtype), mask=there)
        tl.store(made + 2 * HEADS * DIM + own, to_v.to(k.dtype), mask=there)


def fits(heads_dim: int, longest: int) -> bool:
    """Whether the kernels are made for this."""
    return heads_dim in (16, 32, 64) and longest <= LONGEST


def forward(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    """As in short_attention.py; the second result is for the way back."""
    dim = qkv.shape[1] // (3 * heads)
    out, logs = like(qkv, starts, heads, longest)
    forward_kernel[(triton.cdiv(longest, FORWARD["QUERIES"]), heads, len(starts) - 1)](
        qkv, starts, out, logs, len(qkv), dim**-0.5, HEADS=heads, DIM=dim, **FORWARD
    )
    return out, logs


def like(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3), qkv.new_empty(heads, len(qkv), dtype=torch.float32)


def backward(qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, slope: Tensor, heads: int, longest: int) -> Tensor:
    """The gradient of `qkv`."""
    dim, slope = qkv.shape[1] // (3 * heads), slope.contiguous()
    found, middles = torch.empty_like(qkv), torch.empty_like(logs)
    settings = {"places": len(qkv), "scale": dim**-0.5, "HEADS": heads, "DIM": dim}
    queries_kernel[(triton.cdiv(longest, QUERIES_BACK["TILE"]), heads, len(starts) - 1)](
        qkv, starts, out, logs, slope, middles, found, **settings, **QUERIES_BACK
    )
    keys_kernel[(triton.cdiv(longest, KEYS_BACK["TILE"]), heads, len(starts) - 1)](
        qkv, starts, logs, slope, middles, found, **settings, **KEYS_BACK
    )
    return found


def backward_like(
    qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, slope: Tensor, heads: int, longest: int
) -> Tensor:
    return torch.empty_like(qkv)


def keep_inputs(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]
) -> None:
    qkv, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts, *output)  # type: ignore[arg-type]
    ctx.shape = heads, longest  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])


def go_back(
    kernel: Callable[..., Any], ctx: torch.autograd.function.FunctionCtx, slope: Tensor, _: Tensor
) -> tuple[Tensor, None, None, None]:
    qkv, starts, out, logs = ctx.saved_tensors  # type: ignore[attr-defined]
    found = kernel(qkv, starts, out, logs, slope, *ctx.shape)  # type: ignore[attr-defined]
    return found, None, None, None


attend_long = operator("firth::attend_long", forward, like, keep_inputs, go_back, (backward, backward_like))
