"""Attention within packed sequences of several tiles, on a GPU: one forward and two backward kernels.

The algorithm is flash attention (Dao et al. 2022): keys in tiles with a running softmax. The backward pass computes the
softmax twice, for the queries and then for the keys of a tile. So no two programs add to the same result, and gradients
are written in the layout of `qkv`. The result is that of `attention_steps`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

LONGEST = 512  # positions: the longest length that was benchmarked against torch
FORWARD = {"QUERIES": 64, "KEYS": 64, "num_warps": 4, "num_stages": 3}
QUERIES_BACK = {"TILE": 64, "STEP": 64, "num_warps": 4, "num_stages": 3, "maxnreg": 128}
KEYS_BACK = {"TILE": 64, "STEP": 64, "num_warps": 4, "num_stages": 1, "maxnreg": 168}


@triton.jit
def forward_kernel(
    qkv, starts, out, logs, n_tokens, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, QUERIES: tl.constexpr, KEYS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Process a tile of queries of one sequence and head: `qkv` (positions, 3, heads, dim) to `out` (positions, heads,
    dim), and log2 of the softmax denominators to `logs` (heads, positions)."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * QUERIES < length:
        position, column = tl.program_id(0) * QUERIES + tl.arange(0, QUERIES), tl.arange(0, DIM)[None, :]
        inside = position < length
        inputs = qkv + begin.to(tl.int64) * (3 * HEADS * DIM) + head * DIM
        q = tl.load(inputs + position[:, None] * (3 * HEADS * DIM) + column, mask=inside[:, None], other=0.0)
        running_max = tl.full((QUERIES,), float("-inf"), tl.float32)
        total = tl.zeros((QUERIES,), tl.float32)
        mixed = tl.zeros((QUERIES, DIM), tl.float32)
        for first in range(0, length, KEYS):
            key = first + tl.arange(0, KEYS)
            offsets, inside_keys = key[:, None] * (3 * HEADS * DIM) + column, (key < length)[:, None]
            k = tl.load(inputs + HEADS * DIM + offsets, mask=inside_keys, other=0.0)
            scores = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634)  # log2(e): GPUs compute powers of two
            scores = tl.where((key < length)[None, :], scores, float("-inf"))
            new_max = tl.maximum(running_max, tl.max(scores, 1))
            powers = tl.exp2(scores - new_max[:, None])
            rescale = tl.exp2(running_max - new_max)
            total = total * rescale + tl.sum(powers, 1)
            v = tl.load(inputs + 2 * HEADS * DIM + offsets, mask=inside_keys, other=0.0)
            mixed = tl.dot(powers.to(v.dtype), v, mixed * rescale[:, None])
            running_max = new_max
        outputs = out + begin.to(tl.int64) * (HEADS * DIM) + head * DIM
        offsets = position[:, None] * (HEADS * DIM) + column
        tl.store(outputs + offsets, (mixed / total[:, None]).to(q.dtype), mask=inside[:, None])
        tl.store(logs + head * n_tokens + begin + position, running_max + tl.log2(total), mask=inside)


@triton.jit
def queries_kernel(
    qkv, starts, out, logs, grad_output, row_sums, grad_qkv, n_tokens, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Compute the gradients of a tile's queries, and the products of output and output gradient in `row_sums`
    (heads, positions)."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * TILE < length:
        row_width: tl.constexpr = 3 * HEADS * DIM
        position, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, DIM)[None, :]
        inside = (position < length)[:, None]
        inputs = qkv + begin.to(tl.int64) * row_width + head * DIM
        offsets_own = (begin + position).to(tl.int64)[:, None] * (HEADS * DIM) + head * DIM + column
        q = tl.load(inputs + position[:, None] * row_width + column, mask=inside, other=0.0)
        grad_rows = tl.load(grad_output + offsets_own, mask=inside, other=0.0)
        mixed = tl.load(out + offsets_own, mask=inside, other=0.0)
        row_sum = tl.sum(mixed.to(tl.float32) * grad_rows.to(tl.float32), 1)
        tl.store(row_sums + head * n_tokens + begin + position, row_sum, mask=position < length)
        log = tl.load(logs + head * n_tokens + begin + position, mask=position < length, other=float("inf"))
        grad_q = tl.zeros((TILE, DIM), tl.float32)
        for first in range(0, length, STEP):
            key = first + tl.arange(0, STEP)
            offsets, inside_keys = key[:, None] * row_width + column, (key < length)[:, None]
            k = tl.load(inputs + HEADS * DIM + offsets, mask=inside_keys, other=0.0)
            v = tl.load(inputs + 2 * HEADS * DIM + offsets, mask=inside_keys, other=0.0)
            powers = tl.dot(q, tl.trans(k)) * (scale * 1.4426950408889634) - log[:, None]
            weights = tl.exp2(tl.minimum(powers, 1.0))  # finite beyond the last key, whose row of zeros cancels it
            grad_scores = weights * (tl.dot(grad_rows, tl.trans(v)) - row_sum[:, None])
            grad_q = tl.dot(grad_scores.to(q.dtype), k, grad_q)
        outputs = grad_qkv + begin.to(tl.int64) * row_width + head * DIM
        tl.store(outputs + position[:, None] * row_width + column, (grad_q * scale).to(q.dtype), mask=inside)


@triton.jit
def keys_kernel(
    qkv, starts, logs, grad_output, row_sums, grad_qkv, n_tokens, scale,
    HEADS: tl.constexpr, DIM: tl.constexpr, TILE: tl.constexpr, STEP: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Compute the gradients of a tile's keys and values."""
    head, sequence = tl.program_id(1), tl.program_id(2)
    begin = tl.load(starts + sequence)
    length = tl.load(starts + sequence + 1) - begin
    if tl.program_id(0) * TILE < length:
        row_width: tl.constexpr = 3 * HEADS * DIM
        position, column = tl.program_id(0) * TILE + tl.arange(0, TILE), tl.arange(0, DIM)[None, :]
        inside, own_offsets = (position < length)[:, None], position[:, None] * row_width + column
        inputs = qkv + begin.to(tl.int64) * row_width + head * DIM
        grad_output += begin.to(tl.int64) * (HEADS * DIM) + head * DIM
        k = tl.load(inputs + HEADS * DIM + own_offsets, mask=inside, other=0.0)
        v = tl.load(inputs + 2 * HEADS * DIM + own_offsets, mask=inside, other=0.0)
        grad_k, grad_v = tl.zeros((TILE, DIM), tl.float32), tl.zeros((TILE, DIM), tl.float32)
        for first in range(0, length, STEP):
            query = first + tl.arange(0, STEP)
            inside_keys = (query < length)[:, None]
            q = tl.load(inputs + query[:, None] * row_width + column, mask=inside_keys, other=0.0)
            grad_rows = tl.load(grad_output + query[:, None] * (HEADS * DIM) + column, mask=inside_keys, other=0.0)
            log = tl.load(logs + head * n_tokens + begin + query, mask=query < length, other=float("inf"))
            row_sum = tl.load(row_sums + head * n_tokens + begin + query, mask=query < length, other=0.0)
            scores = tl.dot(k, tl.trans(q))
            grad_weights = tl.dot(v, tl.trans(grad_rows))  # issued before the powers, which overlap with it
            weights = tl.exp2(scores * (scale * 1.4426950408889634) - log[None, :])
            grad_v = tl.dot(weights.to(q.dtype), grad_rows, grad_v)
            grad_k = tl.dot((weights * (grad_weights - row_sum[None, :])).to(q.dtype), q, grad_k)
        outputs = grad_qkv + begin.to(tl.int64) * row_width + head * DIM
        tl.store(outputs + HEADS * DIM + own_offsets, (grad_k * scale).to(k.dtype), mask=inside)
        tl.store(outputs + 2 * HEADS * DIM + own_offsets, grad_v.to(k.dtype), mask=inside)


def fits(heads_dim: int, longest: int) -> bool:
    """Return whether the kernels support this head dimension and length."""
    return heads_dim in (16, 32, 64) and longest <= LONGEST


def forward(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    """Return attention as in short_attention.py, and log2 of the softmax denominators for the backward pass."""
    dim = qkv.shape[1] // (3 * heads)
    out, logs = like(qkv, starts, heads, longest)
    forward_kernel[(triton.cdiv(longest, FORWARD["QUERIES"]), heads, len(starts) - 1)](
        qkv, starts, out, logs, len(qkv), dim**-0.5, HEADS=heads, DIM=dim, **FORWARD
    )
    return out, logs


def like(qkv: Tensor, starts: Tensor, heads: int, longest: int) -> tuple[Tensor, Tensor]:
    """Return empty results of `forward`."""
    return qkv.new_empty(len(qkv), qkv.shape[1] // 3), qkv.new_empty(heads, len(qkv), dtype=torch.float32)


def backward(
    qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, grad_output: Tensor, heads: int, longest: int
) -> Tensor:
    """Return the gradient of `qkv`."""
    dim, grad_output = qkv.shape[1] // (3 * heads), grad_output.contiguous()
    grad_qkv, row_sums = torch.empty_like(qkv), torch.empty_like(logs)
    settings = {"n_tokens": len(qkv), "scale": dim**-0.5, "HEADS": heads, "DIM": dim}
    queries_kernel[(triton.cdiv(longest, QUERIES_BACK["TILE"]), heads, len(starts) - 1)](
        qkv, starts, out, logs, grad_output, row_sums, grad_qkv, **settings, **QUERIES_BACK
    )
    keys_kernel[(triton.cdiv(longest, KEYS_BACK["TILE"]), heads, len(starts) - 1)](
        qkv, starts, logs, grad_output, row_sums, grad_qkv, **settings, **KEYS_BACK
    )
    return grad_qkv


def backward_like(
    qkv: Tensor, starts: Tensor, out: Tensor, logs: Tensor, grad_output: Tensor, heads: int, longest: int
) -> Tensor:
    """Return an empty result of `backward`."""
    return torch.empty_like(qkv)


def keep_inputs(
    ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: tuple[Tensor, Tensor]
) -> None:
    """Save the inputs for the backward pass."""
    qkv, starts, heads, longest = inputs
    ctx.save_for_backward(qkv, starts, *output)  # type: ignore[arg-type]
    ctx.shape = heads, longest  # type: ignore[attr-defined]
    ctx.mark_non_differentiable(output[1])


def backward_pass(
    kernel: Callable[..., Any], ctx: torch.autograd.function.FunctionCtx, grad_output: Tensor, _: Tensor
) -> tuple[Tensor, None, None, None]:
    """Return the gradient of `qkv`."""
    qkv, starts, out, logs = ctx.saved_tensors  # type: ignore[attr-defined]
    grad_qkv = kernel(qkv, starts, out, logs, grad_output, *ctx.shape)  # type: ignore[attr-defined]
    return grad_qkv, None, None, None


attend_long = operator("firth::attend_long", forward, like, keep_inputs, backward_pass, (backward, backward_like))
