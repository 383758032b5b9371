"""Attention within packed sequences of several tiles, on a GPU: forward in one kernel, back in one.

Forward as flash attention does it (Dao et al. 2022): keys in tiles, a running softmax. On the way back one program has
a sequence and a head to itself, so that nobody else adds to its gradients: those of the queries, which every tile of
keys adds to, wait in single precision where the caches still hold them, and all three are written where the product
that made `qkv` wants them. `attention_steps` is what it computes.
"""

from __future__ import annotations

import torch
import triton
import triton.language as tl
from torch import Tensor

LONGEST = 512  # beyond, a sequence and a head are too much for one program
FORWARD = {"QUERIES": 128, "KEYS": 64, "num_warps": 4, "num_stages": 2}
BACKWARD = {"QUERIES": 64, "KEYS": 128, "num_warps": 8, "num_stages": 1}


@triton.jit
def forward_kernel(
    qkv, starts, out, logs, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A tile of a sequence's queries and a head: `qkv` (places, 3, heads, dim) to `out` (places, heads, dim), and the
    logarithm to base 2 of what the softmax divides by, (places, heads)."""
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
        tl.store(logs + (begin + place) * HEADS + head, highest + tl.log2(total), mask=there)


@triton.jit
def backward_kernel(
    qkv, starts, out, logs, slope, found, sums, middles, rough, tiles, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """From the gradient of `out` to that of `qkv`, and to its sums over tiles, (sequences, tiles, 3, heads, dim).
    Room to work in: `middles` (places, heads), `rough` (places, heads, dim)."""
    head, sequence = tl.program_id(0), tl.program_id(1)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    column = tl.arange(0, DIM)[None, :]
    wide = 3 * HEADS * DIM
    given = qkv + begin.to(tl.int64) * wide + head * DIM
    made = found + begin.to(tl.int64) * wide + head * DIM
    single = begin.to(tl.int64) * (HEADS * DIM) + head * DIM
    out, slope, rough = out + single, slope + single, rough + single  # places from here on: half as wide
    logs, middles = logs + begin * HEADS + head, middles + begin * HEADS + head
    total = sums + sequence * tiles * wide + head * DIM + tl.arange(0, DIM)
    for first in range(0, length, QUERIES):
        place = first + tl.arange(0, QUERIES)
        there, cells = (place < length)[:, None], place[:, None] * (HEADS * DIM) + column
        mixed = tl.load(out + cells, mask=there, other=0.0).to(tl.float32)
        middle = tl.sum(mixed * tl.load(slope + cells, mask=there, other=0.0).to(tl.float32), 1)
        tl.store(middles + place * HEADS, middle, mask=place < length)
    tl.debug_barrier()  # other threads of this program read them
    for behind in range(0, length, KEYS):
        key = behind + tl.arange(0, KEYS)
        seen, own = (key < length)[:, None], key[:, None] * wide + column
        k = tl.load(given + HEADS * DIM + own, mask=seen, other=0.0)
        v = tl.load(given + 2 * HEADS * DIM + own, mask=seen, other=0.0)
        to_k, to_v = tl.zeros((KEYS, DIM), tl.float32), tl.zeros((KEYS, DIM), tl.float32)
        pulls = tl.zeros((KEYS,), tl.float32)
        more = behind + KEYS < length
        readable, left, done = tl.where(behind > 0, length, 0), tl.where(more, length, 0), tl.where(more, 0, length)
        for first in range(0, length, QUERIES):
            place = first + tl.arange(0, QUERIES)
            there, cells = (place < length)[:, None], place[:, None] * (HEADS * DIM) + column
            q = tl.load(given + place[:, None] * wide + column, mask=there, other=0.0)
            slopes = tl.load(slope + cells, mask=there, other=0.0)
            log = tl.load(logs + place * HEADS, mask=place < length, other=float("inf"))
            middle = tl.load(middles + place * HEADS, mask=place < length, other=0.0)
            scores = tl.dot(k, tl.trans(q)) * (scale * 1.4426950408889634)
            weights = tl.where(seen, tl.exp2(scores - log[None, :]), 0.0)
            to_v = tl.dot(weights.to(q.dtype), slopes, to_v)
            to_weights = tl.dot(v, tl.trans(slopes))
            to_scores = weights * (to_weights - middle[None, :])
            pulls += tl.sum(to_scores, 1)
            to_scores = to_scores.to(q.dtype)
            to_k = tl.dot(to_scores, q, to_k)
            to_q = tl.dot(tl.trans(to_scores), k)
            to_q += tl.load(rough + cells, mask=(place < readable)[:, None], other=0.0)
            tl.store(rough + cells, to_q, mask=(place < left)[:, None])
            ready = (to_q * scale).to(k.dtype)
            tl.store(made + place[:, None] * wide + column, ready, mask=(place < done)[:, None])
        tl.store(made + HEADS * DIM + own, (to_k * scale).to(k.dtype), mask=seen)
        tl.store(made + 2 * HEADS * DIM + own, to_v.to(k.dtype), mask=seen)
        tl.store(total, tl.sum(pulls[:, None] * k.to(tl.float32), 0) * scale)
        tl.store(total + HEADS * DIM, tl.sum(to_k, 0) * scale)
        tl.store(total + 2 * HEADS * DIM, tl.sum(to_v, 0))
        total += wide
        tl.debug_barrier()  # the next tile of keys adds to what this one left in `rough`


def fits(heads_dim: int, longest: int) -> bool:
    """Whether the kernels are made for this."""
    return heads_dim in (16, 32, 64) and longest <= LONGEST


def attend(qkv: Tensor, bias: Tensor, starts: Tensor, heads: int, longest: int) -> Tensor:
    found: Tensor = attend_long(qkv, bias, starts, heads, longest)[0]
    return found


@torch.library.custom_op("firth::attend_long", mutates_args=())
def attend_long(qkv: Tensor, bias: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    """As in short_attention.py; the second result is for the way back."""
    dim = qkv.shape[1] // (3 * heads)
    out, logs = qkv.new_empty(len(qkv), heads * dim), qkv.new_empty(len(qkv), heads, dtype=torch.float32)
    forward_kernel[(triton.cdiv(longest, FORWARD["QUERIES"]), heads, len(starts) - 1)](
        qkv, starts, out, logs, dim**-0.5, HEADS=heads, DIM=dim, **FORWARD
    )
    return out, logs


@attend_long.register_fake
def _(qkv: Tensor, bias: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3), qkv.new_empty(len(qkv), heads, dtype=torch.float32)


@torch.library.custom_op("firth::attend_long_backward", mutates_args=())
def attend_long_backward(
    qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, slope: Tensor, heads: int, longest: int
) -> tuple[Tensor, Tensor]:
    """Gradients of `qkv` and, summed over its places, of the bias."""
    dim = qkv.shape[1] // (3 * heads)
    tiles = triton.cdiv(longest, BACKWARD["KEYS"])
    found, sums = torch.empty_like(qkv), qkv.new_zeros((len(starts) - 1) * tiles, qkv.shape[1], dtype=torch.float32)
    middles, rough = torch.empty_like(logs), torch.empty_like(out, dtype=torch.float32)
    backward_kernel[(heads, len(starts) - 1)](
        qkv, starts, out, logs, slope.contiguous(), found, sums, middles, rough, tiles, dim**-0.5,
        HEADS=heads, DIM=dim, **BACKWARD,
    )  # fmt: skip
    return found, sums.sum(0)


@attend_long_backward.register_fake
def _(
    qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, slope: Tensor, heads: int, longest: int
) -> tuple[Tensor, Tensor]:
    return torch.empty_like(qkv), qkv.new_empty(qkv.shape[1], dtype=torch.float32)


def keep_inputs(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]
) -> None:
    qkv, bias, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts, *output)  # type: ignore[arg-type]
    ctx.shape, ctx.kind = (heads, longest), bias.dtype  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])


def go_back(
    ctx: torch.autograd.function.FunctionCtx, slope: Tensor, _: Tensor
) -> tuple[Tensor, Tensor, None, None, None]:
    qkv, starts, out, logs = ctx.saved_tensors  # type: ignore[attr-defined]
    found, sums = attend_long_backward(qkv, starts, out, logs, slope, *ctx.shape)  # type: ignore[attr-defined]
    return found, sums.to(ctx.kind), None, None, None  # type: ignore[attr-defined]


attend_long.register_autograd(go_back, setup_context=keep_inputs)
