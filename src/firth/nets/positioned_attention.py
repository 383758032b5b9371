"""Attention within packed sequences with rotary positions, a bias by distance or a window, on a GPU, forward only.

Queries and keys are rotated and biases are added where the scores are computed, so neither is written to memory; keys
outside the window are not read. Keys come in tiles with a running softmax (Dao et al. 2022). The result is that of
`attention_steps`. In training, torch's kernels compute the same.
"""

from __future__ import annotations

import triton
import triton.language as tl
from torch import Tensor

SETTINGS = {"QUERIES": 64, "KEYS": 64, "num_warps": 4, "num_stages": 2}


@triton.jit
def halves(rows, cos, sin, position, inside, row_width, HALF: tl.constexpr, ROTARY: tl.constexpr):  # noqa: N803
    """Load the two halves of a head's dimensions at these positions, rotated by their angles."""
    column = tl.arange(0, HALF)[None, :]
    offsets = position[:, None] * row_width + column
    first = tl.load(rows + offsets, mask=inside, other=0.0)
    second = tl.load(rows + HALF + offsets, mask=inside, other=0.0)
    if ROTARY:
        c = tl.load(cos + position[:, None] * HALF + column, mask=inside, other=1.0)
        s = tl.load(sin + position[:, None] * HALF + column, mask=inside, other=0.0)
        rotated = first * c - second * s
        second = (second * c + first * s).to(first.dtype)
        first = rotated.to(first.dtype)
    return first, second


@triton.jit
def forward_kernel(
    qkv, starts, cos, sin, bias, out, scale, window, center,
    HEADS: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
    ROTARY: tl.constexpr, BIAS: tl.constexpr, WINDOW: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Process a tile of queries of one sequence and head: `qkv` (positions, 3, heads, dim) to `out`.

    `cos` and `sin` are (positions, dim / 2), `bias` is (heads, 2 · center + 1) by key - query + center.
    """
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    first_query = tl.program_id(0) * QUERIES
    if first_query < length:
        row_width: tl.constexpr = 3 * HEADS * DIM
        half: tl.constexpr = DIM // 2
        log2e: tl.constexpr = 1.4426950408889634  # GPUs compute powers of two
        position, column = first_query + tl.arange(0, QUERIES), tl.arange(0, DIM)[None, :]
        inside = (position < length)[:, None]
        inputs = qkv + begin.to(tl.int64) * row_width + head * DIM
        cos += begin.to(tl.int64) * half
        sin += begin.to(tl.int64) * half
        q1, q2 = halves(inputs, cos, sin, position, inside, row_width, half, ROTARY)
        low, high = 0, length
        if WINDOW:
            low = tl.maximum(0, (first_query - window) // KEYS * KEYS)
            high = tl.minimum(length, first_query + QUERIES + window)
        running_max = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        mixed = tl.zeros((QUERIES, DIM), tl.float32)
        for first in range(low, high, KEYS):
            key = first + tl.arange(0, KEYS)
            inside_keys = (key < length)[:, None]
            k1, k2 = halves(inputs + HEADS * DIM, cos, sin, key, inside_keys, row_width, half, ROTARY)
            scores = tl.dot(q2, tl.trans(k2), tl.dot(q1, tl.trans(k1))) * (scale * log2e)
            distance = key[None, :] - position[:, None]
            allowed = (key < length)[None, :] & inside
            if BIAS:
                row = bias + head * (2 * center + 1) + center
                scores += tl.load(row + distance, mask=allowed, other=0.0) * log2e
            if WINDOW:
                allowed &= tl.abs(distance) <= window
            scores = tl.where(allowed, scores, float("-inf"))
            new_max = tl.maximum(running_max, tl.max(scores, 1))
            finite_max = tl.where(new_max == float("-inf"), 0.0, new_max)  # no key of this tile or those before
            powers = tl.exp2(scores - finite_max[:, None])
            rescale = tl.exp2(running_max - finite_max)
            total = total * rescale + tl.sum(powers, 1)
            offsets = key[:, None] * row_width + column
            v = tl.load(inputs + 2 * HEADS * DIM + offsets, mask=inside_keys, other=0.0)
            mixed = tl.dot(powers.to(v.dtype), v, mixed * rescale[:, None])
            running_max = new_max
        outputs = out + begin.to(tl.int64) * (HEADS * DIM) + head * DIM
        total = tl.where(total == 0.0, 1.0, total)
        tl.store(
            outputs + position[:, None] * (HEADS * DIM) + column, (mixed / total[:, None]).to(q1.dtype), mask=inside
        )


def fits(head_dim: int, rotation: tuple[Tensor, Tensor] | None) -> bool:
    """Return whether the kernel supports this head dimension; all of it must be rotated."""
    return head_dim in (32, 64, 128) and (rotation is None or 2 * rotation[0].shape[1] == head_dim)


def attend(
    qkv: Tensor,
    starts: Tensor,
    heads: int,
    longest: int,
    scale: float,
    rotation: tuple[Tensor, Tensor] | None,
    bias: Tensor | None,
    window: int,
) -> Tensor:
    """Return attention (positions, heads · dim) of contiguous `qkv` (positions, 3 · heads · dim).

    `starts` and `longest` are those of `Packed`, `rotation` and `window` those of `PositionTerms`. `bias` has a row for
    each head; a bias that all heads share is a window, which needs none.
    """
    dim = qkv.shape[1] // (3 * heads)
    out = qkv.new_empty(len(qkv), heads * dim)
    cos, sin = (qkv, qkv) if rotation is None else (part.contiguous() for part in rotation)
    table = qkv if bias is None else bias.contiguous()
    center = 0 if bias is None else (bias.shape[1] - 1) // 2
    forward_kernel[(triton.cdiv(longest, SETTINGS["QUERIES"]), heads, len(starts) - 1)](
        qkv, starts, cos, sin, table, out, scale, window, center,
        HEADS=heads, DIM=dim, ROTARY=rotation is not None, BIAS=bias is not None, WINDOW=window > 0, **SETTINGS,
    )  # fmt: skip
    return out
