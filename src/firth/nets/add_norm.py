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

WIDEST = 4096  # columns of a row that one program holds
ROWS = 1  # of a tile, forward
BACK_ROWS, CHUNK = 2, 32  # of a tile on the way back; rows that one program sums up


@triton.jit
def shares(place, seed, SHARE: tl.constexpr):  # noqa: N803
    """0 for a value that is left out, a bit more than 1 for one that stays. SHARE: of 65,536, how many are left out."""
    mixed = (place ^ seed) * -1640531535
    mixed = (mixed ^ (mixed >> 15)) * -2048144777
    return tl.where(((mixed >> 13) & 0xFFFF) >= SHARE, 65536.0 / (65536.0 - SHARE), 0.0)


@triton.jit
def forward_kernel(
    x, y, bias, weight, shift, seed, out, means, scales, rows, columns, epsilon,
    SHARE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr,  # noqa: N803
):  # fmt: skip
    row = tl.program_id(0) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.arange(0, COLUMNS)[None, :]
    inside = column < columns
    there = (row < rows) & inside
    cells = row.to(tl.int64) * columns + column
    value = tl.load(y + cells, mask=there, other=0.0).to(tl.float32)
    value += tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    if SHARE:
        value *= shares(row * columns + column, tl.load(seed), SHARE)
    value += tl.load(x + cells, mask=there, other=0.0).to(tl.float32)
    mean = tl.sum(value, 1)[:, None] / columns  # bias and value are 0 beyond the row
    apart = tl.where(inside, value - mean, 0.0)
    scale = tl.rsqrt(tl.sum(apart * apart, 1)[:, None] / columns + epsilon)
    found = apart * scale * tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    found += tl.load(shift + column, mask=inside, other=0.0).to(tl.float32)
    tl.store(out + cells, found.to(out.dtype.element_ty), mask=there)
    tl.store(means + row, mean, mask=row < rows)
    tl.store(scales + row, scale, mask=row < rows)


@triton.jit
def backward_kernel(
    x, y, bias, weight, seed, means, scales, slope, other, to_x, to_y, sums, rows, columns,
    SHARE: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """`slope` and `other` are the gradients of the two results. Sums of a chunk: weight, shift, bias."""
    column = tl.arange(0, COLUMNS)[None, :]
    inside = column < columns
    added = tl.load(bias + column, mask=inside, other=0.0).to(tl.float32)
    gain = tl.load(weight + column, mask=inside, other=0.0).to(tl.float32)
    to_weight = tl.zeros((ROWS, COLUMNS), tl.float32)
    to_shift = tl.zeros((ROWS, COLUMNS), tl.float32)
    to_bias = tl.zeros((ROWS, COLUMNS), tl.float32)
    for step in range(CHUNK // ROWS):
        row = tl.program_id(0) * CHUNK + step * ROWS + tl.arange(0, ROWS)[:, None]
        there = (row < rows) & inside
        cells = row.to(tl.int64) * columns + column
        back = tl.load(slope + cells, mask=there, other=0.0).to(tl.float32)
        back += tl.load(other + cells, mask=there, other=0.0).to(tl.float32)
        value = tl.load(y + cells, mask=there, other=0.0).to(tl.float32) + added
        if SHARE:
            share = shares(row * columns + column, tl.load(seed), SHARE)
            value *= share
        value += tl.load(x + cells, mask=there, other=0.0).to(tl.float32)
        scale = tl.load(scales + row, mask=row < rows, other=0.0)
        normed = (value - tl.load(means + row, mask=row < rows, other=0.0)) * scale
        to_weight += back * normed
        to_shift += back
        back *= gain  # 0 beyond the row
        along = tl.sum(back * normed, 1)[:, None] / columns
        back = (back - tl.sum(back, 1)[:, None] / columns - normed * along) * scale
        tl.store(to_x + cells, back.to(to_x.dtype.element_ty), mask=there)
        if SHARE:
            back *= share
        tl.store(to_y + cells, back.to(to_y.dtype.element_ty), mask=there)
        to_bias += tl.where(there, back, 0.0)
    made = sums + tl.program_id(0) * 3 * columns + column
    tl.store(made, tl.sum(to_weight, 0)[None, :], mask=inside)
    tl.store(made + columns, tl.sum(to_shift, 0)[None, :], mask=inside)
    tl.store(made + 2 * columns, tl.sum(to_bias, 0)[None, :], mask=inside)


def fits(x: Tensor) -> bool:
    """Whether the kernels are made for this."""
    return x.shape[-1] <= WIDEST


@torch.library.custom_op("firth::add_norm", mutates_args=())
def add_norm(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, seed: Tensor | None, share: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    """x and y (…, columns), equally narrow; share: of 65,536, how many are left out. The result, means and scales."""
    x, y, columns = x.contiguous(), y.contiguous(), x.shape[-1]
    rows = x.numel() // columns
    out = torch.empty_like(x)
    means, scales = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
    forward_kernel[(triton.cdiv(rows, ROWS),)](
        x, y, bias, weight, shift, seed, out, means, scales, rows, columns, epsilon,
        SHARE=share, ROWS=ROWS, COLUMNS=triton.next_power_of_2(columns), num_warps=4,
    )  # fmt: skip
    return out, means, scales


@add_norm.register_fake
def _(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, shift: Tensor, seed: Tensor | None, share: int, epsilon: float
) -> tuple[Tensor, Tensor, Tensor]:
    rows = x.numel() // x.shape[-1]
    means, scales = (x.new_empty(rows, dtype=torch.float32) for _ in range(2))
    return torch.empty_like(x, memory_format=torch.contiguous_format), means, scales


@torch.library.custom_op("firth::add_norm_backward", mutates_args=())
def add_norm_backward(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, seed: Tensor | None, means: Tensor, scales: Tensor,
    slope: Tensor, other: Tensor, share: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    """Gradients of x, of y, and of weight, shift and bias in three rows."""
    x, y, columns = x.contiguous(), y.contiguous(), x.shape[-1]
    rows = x.numel() // columns
    to_x, to_y = torch.empty_like(x), torch.empty_like(y)
    programs = triton.cdiv(rows, CHUNK)
    sums = x.new_empty(programs, 3, columns, dtype=torch.float32)
    backward_kernel[(programs,)](
        x, y, bias, weight, seed, means, scales, slope.contiguous(), other.contiguous(), to_x, to_y, sums,
        rows, columns, SHARE=share, ROWS=BACK_ROWS, COLUMNS=triton.next_power_of_2(columns), CHUNK=CHUNK, num_warps=4,
    )  # fmt: skip
    return to_x, to_y, sums.sum(0)


@add_norm_backward.register_fake
def _(
    x: Tensor, y: Tensor, bias: Tensor, weight: Tensor, seed: Tensor | None, means: Tensor, scales: Tensor,
    slope: Tensor, other: Tensor, share: int,
) -> tuple[Tensor, Tensor, Tensor]:  # fmt: skip
    alike = [torch.empty_like(part, memory_format=torch.contiguous_format) for part in (x, y)]
    return alike[0], alike[1], x.new_empty(3, x.shape[-1], dtype=torch.float32)


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
        to_weight, to_shift = sums[0].to(weight.dtype), sums[1].to(weight.dtype)
        return to_x, to_y, sums[2].to(bias.dtype), to_weight, to_shift, None, None, None
