"""gelu(x + bias) in one pass on a GPU; the backward pass sums the gradient of the bias in the same pass.

The rows between the two products of a feed-forward layer are the widest of a Transformer. The compiler would read them
a second time for the gradient of the bias, and the error function costs more time than the memory access. Here it
shares its exponential with the derivative.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from torch import Tensor

from firth.nets.on_gpu import operator

ROWS, COLUMNS = 2, 1024  # of a tile
CHUNK = 32  # rows that one program sums


@triton.jit
def normal(x):
    """Return Φ(x) and φ(x) of the normal distribution; Φ to 1e-7 (Abramowitz & Stegun 1964, 7.1.26)."""
    density = tl.exp(-0.5 * x * x)
    t = 1.0 / (1.0 + 0.23164188 * tl.abs(x))
    tail = t * (0.12741479 + t * (-0.142248368 + t * (0.7107068705 + t * (-0.7265760135 + t * 0.5307027145))))
    above = tail * density
    return tl.where(x > 0, 1.0 - above, above), density * 0.3989422804014327


@triton.jit
def gelu_factors(x, TANH: tl.constexpr):  # noqa: N803
    """Return gelu(x) / x, and x times its derivative."""
    if TANH:
        inside = 0.7978845608028654 * (x + 0.044715 * x * x * x)
        share = tl.sigmoid(2.0 * inside)
        x_derivative = 2.0 * x * share * (1.0 - share) * 0.7978845608028654 * (1.0 + 0.134145 * x * x)
        return share, x_derivative
    share, density = normal(x)
    return share, x * density


@triton.jit
def forward_kernel(x, bias, out, rows, columns, TANH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):  # noqa: N803
    """Compute gelu(x + bias) of one tile."""
    row = tl.program_id(0).to(tl.int64) * ROWS + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    inside = (row < rows) & (column < columns)
    bias_row = tl.load(bias + column, mask=column < columns, other=0.0)
    biased = tl.load(x + row * columns + column, mask=inside, other=0.0).to(tl.float32) + bias_row
    share, _ = gelu_factors(biased, TANH)
    tl.store(out + row * columns + column, (biased * share).to(out.dtype.element_ty), mask=inside)


@triton.jit
def backward_kernel(
    x, bias, grad_output, grad_input, sums, rows, columns,
    TANH: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr, CHUNK: tl.constexpr,  # noqa: N803
):  # fmt: skip
    """Compute the gradient of x for CHUNK rows and sum it for the bias."""
    first = tl.program_id(0).to(tl.int64) * CHUNK + tl.arange(0, ROWS)[:, None]
    column = tl.program_id(1) * COLUMNS + tl.arange(0, COLUMNS)[None, :]
    added = tl.load(bias + column, mask=column < columns, other=0.0)
    total = tl.zeros((ROWS, COLUMNS), tl.float32)
    for step in range(CHUNK // ROWS):
        row = first + step * ROWS
        inside = (row < rows) & (column < columns)
        cells = row * columns + column
        value = tl.load(x + cells, mask=inside, other=0.0).to(tl.float32) + added
        share, steep = gelu_factors(value, TANH)
        back = tl.load(grad_output + cells, mask=inside, other=0.0).to(tl.float32) * (share + steep)
        tl.store(grad_input + cells, back.to(grad_input.dtype.element_ty), mask=inside)
        total += back
    tl.store(sums + tl.program_id(0) * columns + column, tl.sum(total, 0)[None, :], mask=column < columns)


def grid(x: Tensor, rows: int) -> tuple[int, int]:
    """Return the launch grid for programs of `rows` rows."""
    return triton.cdiv(x.numel() // x.shape[-1], rows), triton.cdiv(x.shape[-1], COLUMNS)


def forward(x: Tensor, bias: Tensor, tanh: bool) -> Tensor:
    """Return gelu(x + bias), exact or with the tanh approximation; x (…, columns) is contiguous."""
    x, out = x.contiguous(), torch.empty_like(x, memory_format=torch.contiguous_format)
    columns = x.shape[-1]
    forward_kernel[grid(x, ROWS)](x, bias, out, x.numel() // columns, columns, TANH=tanh, ROWS=ROWS, COLUMNS=COLUMNS)
    return out


def like(x: Tensor, bias: Tensor, tanh: bool) -> Tensor:
    """Return an empty result of `forward`."""
    return torch.empty_like(x, memory_format=torch.contiguous_format)


def backward(x: Tensor, bias: Tensor, grad_output: Tensor, tanh: bool) -> tuple[Tensor, Tensor]:
    """Return the gradient of x, and partial gradients of the bias, one row per chunk."""
    x, columns = x.contiguous(), x.shape[-1]
    blocks = grid(x, CHUNK)
    grad_input = torch.empty_like(x)
    sums = bias.new_empty(blocks[0], columns, dtype=torch.float32)
    backward_kernel[blocks](
        x, bias, grad_output.contiguous(), grad_input, sums, x.numel() // columns, columns,
        TANH=tanh, ROWS=ROWS, COLUMNS=COLUMNS, CHUNK=CHUNK,
    )  # fmt: skip
    return grad_input, sums


def backward_like(x: Tensor, bias: Tensor, grad_output: Tensor, tanh: bool) -> tuple[Tensor, Tensor]:
    """Return empty results of `backward`."""
    grad_input = torch.empty_like(x, memory_format=torch.contiguous_format)
    return grad_input, bias.new_empty(grid(x, CHUNK)[0], x.shape[-1], dtype=torch.float32)


def keep_inputs(ctx: torch.autograd.function.FunctionCtx, inputs: tuple[object, ...], output: Tensor) -> None:
    """Save the inputs for the backward pass."""
    x, bias, tanh = inputs
    ctx.save_for_backward(x, bias)  # type: ignore[arg-type]
    ctx.tanh = tanh  # type: ignore[attr-defined]


def backward_pass(
    kernel: Callable[..., Any], ctx: torch.autograd.function.FunctionCtx, grad_output: Tensor
) -> tuple[Tensor, Tensor, None]:
    """Return the gradients of x and bias."""
    x, bias = ctx.saved_tensors  # type: ignore[attr-defined]
    grad_input, sums = kernel(x, bias, grad_output, ctx.tanh)  # type: ignore[attr-defined]
    return grad_input, sums.sum(0).to(bias.dtype), None  # summed in compiled code: torch's eager sum takes 3× as long


bias_gelu = operator("firth::bias_gelu", forward, like, keep_inputs, backward_pass, (backward, backward_like))
