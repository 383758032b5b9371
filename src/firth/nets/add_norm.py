"""norm(x + dropout(y + bias)) in one pass on a GPU, and back in one: what stands between the products of a Transformer.

Left to the compiler, the way back reads the same rows again for the gradients of the norm's weights and of the bias
before it, a column at a time. Here each program sums them over its rows on the way. What is left out is a hash of the
place and of one number (`left_out` in transformer.py): worked out again, never kept.

The result comes twice, for its two users, the next product and the next sum: so their gradients arrive apart and are
added where they are read.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator, started

WIDEST = 4096  # columns of a row that one program holds
FORWARD = {"num_warps": 1}
BACKWARD = {"CHUNK": 32, "num_warps": 2}  # rows that one program sums up


@triton.jit
def shares(place, seed, SHARE: tl.constexpr):  # noqa: N803
    """0 for a value that is left out, a bit more than 1 for one that stays. SHARE: of 65,536, how many are left out."""
    mixed = ((place >> 1) ^ seed) * -1640531535  # one number for two neighbours, which a compiler sees
    mixed = (mixed ^ (mixed >> 15)) * -2048144777
    mixed = (mixed ^ ((mixed >> 16) & 0xFFFF)) >> ((place & 1) * 16)
    return tl.where((mixed & 0xFFFF) >= SHARE, 65536.0 / (65536.0 - SHARE), 0.0)


@triton.jit
def summed(x, y, bias, seed, row, column, COLUMNS: tl.constexpr, SHARE: tl.constexpr):  # noqa: N803
    """x + dropout(y + bias) in some columns of a row, 0 beyond it; and the shares."""
    there, cells = column < COLUMNS, row.to(tl.int64) * COLUMNS + column
    share = shares(row * COLUMNS + column, tl.load(seed), SHARE) if SHARE else 1.0
    value = tl.load(y + cells, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias + column, mask=there, other=0.0).to(tl.float32)
    return value * share + tl.load(x + cells, mask=there, other=0.0).to(tl.float32), share


@triton.jit
def normed(value, mean, scale, weight, shift, out, row, column, COLUMNS: tl.constexpr):  # noqa: N803
    there = column < COLUMNS
    found = (value - mean) * scale * tl.load(weight + column, mask=there, other=0.0).to(tl.float32)
    found += tl.load(shift + column, mask=there, other=0.0).to(tl.float32)
    tl.store(out + row.to(tl.int64) * COLUMNS + column, found.to(out.dtype.element_ty), mask=there)


@triton.jit
def apart(value, mean, column, COLUMNS: tl.constexpr):  # noqa: N803
    """The sum of (value − mean)²."""
    value = tl.where(column < COLUMNS, value - mean, 0.0)
    return tl.sum(value * value, 0)


@triton.jit
def forward_kernel(
    x, y, bias, weight, shift, seed, out, means, scales, epsilon,
    SHARE: tl.constexpr, COLUMNS: tl.constexpr, MOST: tl.constexpr, REST: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """A row, in two parts: the first MOST columns, and REST behind them."""
    row = tl.program_id(0)
    first, second = tl.arange(0, MOST), MOST + tl.arange(0, REST)
    a, _ = summed(x, y, bias, seed, row, first, COLUMNS, SHARE)
    b, _ = summed(x, y, bias, seed, row, second, COLUMNS, SHARE)
    mean = (tl.sum(a, 0) + tl.sum(b, 0)) / COLUMNS
    spread = apart(a, mean, first, COLUMNS) + apart(b, mean, second, COLUMNS)
    scale = tl.rsqrt(spread / COLUMNS + epsilon)
    normed(a, mean, scale, weight, shift, out, row, first, COLUMNS)
    normed(b, mean, scale, weight, shift, out, row, second, COLUMNS)
    tl.store(means + row, mean)
    tl.store(scales + row, scale)


@triton.jit
def slopes_of(slope, other, row, column, COLUMNS: tl.constexpr):  # noqa: N803
    there, cells = column < COLUMNS, row.to(tl.int64) * COLUMNS + column
    found = tl.load(slope + cells, mask=there, other=0.0).to(tl.float32)
    return found + tl.load(other + cells, mask=there, other=0.0).to(tl.float32)


@triton.jit
def stored(back, share, to_x, to_y, row, column, COLUMNS: tl.constexpr):  # noqa: N803
    there, cells = column < COLUMNS, row.to(tl.int64) * COLUMNS + column
    tl.store(to_x + cells, back.to(to_x.dtype.element_ty), mask=there)
    back *= share
    tl.store(to_y + cells, back.to(to_y.dtype.element_ty), mask=there)
    return back


@triton.jit
def backward_kernel(
    x, y, bias, weight, seed, means, scales, slope, other, to_x, to_y, sums, rows,
    SHARE: tl.constexpr, COLUMNS: tl.constexpr, MOST: tl.constexpr, REST: tl.constexpr, CHUNK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """`slope` and `other` are the gradients of the two results. Sums of a chunk of rows: weight, shift, bias."""
    first, second = tl.arange(0, MOST), MOST + tl.arange(0, REST)
    gain_a = tl.load(weight + first, mask=first < COLUMNS, other=0.0).to(tl.float32)
    gain_b = tl.load(weight + second, mask=second < COLUMNS, other=0.0).to(tl.float32)
    weight_a, weight_b = tl.zeros((MOST,), tl.float32), tl.zeros((REST,), tl.float32)
    shift_a, shift_b = tl.zeros((MOST,), tl.float32), tl.zeros((REST,), tl.float32)
    bias_a, bias_b = tl.zeros((MOST,), tl.float32), tl.zeros((REST,), tl.float32)
    begin = tl.program_id(0) * CHUNK
    for step in range(tl.minimum(CHUNK, rows - begin)):
        row = begin + step
        back_a = slopes_of(slope, other, row, first, COLUMNS)
        back_b = slopes_of(slope, other, row, second, COLUMNS)
        value_a, share_a = summed(x, y, bias, seed, row, first, COLUMNS, SHARE)
        value_b, share_b = summed(x, y, bias, seed, row, second, COLUMNS, SHARE)
        mean, scale = tl.load(means + row), tl.load(scales + row)
        value_a, value_b = (value_a - mean) * scale, (value_b - mean) * scale
        weight_a += back_a * value_a
        weight_b += back_b * value_b
        shift_a += back_a
        shift_b += back_b
        back_a, back_b = back_a * gain_a, back_b * gain_b  # 0 beyond the row
        middle = (tl.sum(back_a, 0) + tl.sum(back_b, 0)) / COLUMNS
        along = (tl.sum(back_a * value_a, 0) + tl.sum(back_b * value_b, 0)) / COLUMNS
        bias_a += stored((back_a - middle - value_a * along) * scale, share_a, to_x, to_y, row, first, COLUMNS)
        bias_b += stored((back_b - middle - value_b * along) * scale, share_b, to_x, to_y, row, second, COLUMNS)
    made = sums + tl.program_id(0) * 3 * COLUMNS
    tl.store(made + first, weight_a, mask=first < COLUMNS)
    tl.store(made + second, weight_b, mask=second < COLUMNS)
    tl.store(made + COLUMNS + first, shift_a, mask=first < COLUMNS)
    tl.store(made + COLUMNS + second, shift_b, mask=second < COLUMNS)
    tl.store(made + 2 * COLUMNS + first, bias_a, mask=first < COLUMNS)
    tl.store(made + 2 * COLUMNS + second, bias_b, mask=second < COLUMNS)


def fits(x: Tensor) -> bool:
    """Whether the kernels are made for this."""
    return x.shape[-1] <= WIDEST


def parts_of(columns: int) -> dict[str, int]:
    """Two powers of two that are as many columns, or a bit more: 512 and 256 for 768, none wasted."""
    most = 1 << max(0, (columns - 1).bit_length() - 1)
    return {"COLUMNS": columns, "MOST": most, "REST": triton.next_power_of_2(max(1, columns - most))}


@operator("firth::add_norm")
def add_norm(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, seed: Tensor | None, share: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x and y (…, columns), equally narrow; share: of 65,536, how many are left out. The result, means and scales."""
    x, y, columns = x.contiguous(), y.contiguous(), x.shape[-1]
    out, means, scales = torch.empty_like(x), *(x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(2))
    started(forward_kernel)[(means.numel(),)](
        x, y, bias, weight, shift, seed, out, means, scales, epsilon, SHARE=share, **parts_of(columns), **FORWARD
    )
    return out, means, scales


@add_norm.register_fake
def _(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, seed: Tensor | None, share: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    means, scales = (x.new_empty(x.shape[:-1], dtype=torch.float32) for _ in range(2))
    return torch.empty_like(x, memory_format=torch.contiguous_format), means, scales


@operator("firth::add_norm_backward")
def add_norm_backward(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, seed: Tensor | None, means: Tensor, scales: Tensor,
    slope: Tensor, other: Tensor, share: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of x, of y and, a row a chunk, of weight, shift and bias."""
    x, y, columns = x.contiguous(), y.contiguous(), x.shape[-1]
    to_x, to_y, chunks = torch.empty_like(x), torch.empty_like(y), triton.cdiv(means.numel(), BACKWARD["CHUNK"])
    sums = x.new_empty(chunks, 3, columns, dtype=torch.float32)
    started(backward_kernel)[(chunks,)](
        x, y, bias, weight, seed, means, scales, slope.contiguous(), other.contiguous(), to_x, to_y, sums,
        means.numel(), SHARE=share, **parts_of(columns), **BACKWARD,
    )  # fmt: skip
    return to_x, to_y, sums


@add_norm_backward.register_fake
def _(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, seed: Tensor | None, means: Tensor, scales: Tensor,
    slope: Tensor, other: Tensor, share: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    alike = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in (x, y)]
    chunks = triton.cdiv(means.numel(), BACKWARD["CHUNK"])
    return alike[0], alike[1], x.new_empty(chunks, 3, x.shape[-1], dtype=torch.float32)


class AddNorm(torch.autograd.Function):
    @staticmethod
    def forward(
        ctx: Any, x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, seed: Tensor | None, share: int,
        epsilon: float,
    ) -> tuple[Tensor, Tensor]:  # fmt: skip
        out, means, scales = add_norm(x, y, bias, weight, shift, seed, share, epsilon)
        ctx.save_for_backward(x, y, bias, weight, seed, means, scales)
        ctx.share = share
        return out, out.view_as(out)

    @staticmethod
    def backward(ctx: Any, slope: Tensor, other: Tensor) -> tuple[Tensor | None, ...]:
        x, y, bias, weight, seed, means, scales = ctx.saved_tensors
        to_x, to_y, sums = add_norm_backward(x, y, bias, weight, seed, means, scales, slope, other, ctx.share)
        to_weight, to_shift, to_bias = sums.sum(0).to(weight.dtype).unbind()
        return to_x, to_y, to_bias.to(bias.dtype), to_weight, to_shift, None, None, None
