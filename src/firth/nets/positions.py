"""Position encodings: sinusoidal, learned and rotary. Attention without them is independent of the token order."""

from __future__ import annotations

import math

import torch
from torch import Tensor, nn

from firth.core.errors import FirthError


def sinusoids(max_positions: int, dim: int) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i + 1) = cos of the same (Vaswani et al. 2017, 3.5)."""
    frequencies = torch.exp(torch.arange(0, dim, 2) * (-math.log(10000.0) / dim))
    angles = torch.arange(max_positions)[:, None] * frequencies
    table = torch.zeros(max_positions, dim)
    table[:, 0::2], table[:, 1::2] = torch.sin(angles), torch.cos(angles)[:, : dim // 2]
    return table


class Positions(nn.Module):
    """Position vectors that are added to the embeddings: sinusoidal or learned."""

    table: Tensor

    def __init__(self, kind: str, max_positions: int, dim: int) -> None:
        super().__init__()
        self.kind, self.max_positions = kind, max_positions
        if kind == "learned":
            self.table = nn.Parameter(torch.empty(max_positions, dim).normal_(std=0.02))
        else:
            self.register_buffer("table", sinusoids(max_positions, dim), persistent=False)

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        """Add positions to x (batch, positions, dim), beginning with position `first`."""
        end = first + x.shape[1]
        if end > self.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model has {limit:,} positions. Shorten the text.",
                tokens=end,
                limit=self.max_positions,
            )
        return x + self.table[first:end]


class Rotary(nn.Module):
    """Rotary positions: pairs of dimensions of queries and keys are rotated by an angle proportional to the position.

    Products of queries and keys then depend on their distance only (Su et al. 2021).
    """

    cos: Tensor
    sin: Tensor

    def __init__(self, max_positions: int, dim: int) -> None:
        super().__init__()
        if dim % 2:
            raise FirthError("invalid_value", "Rotary positions need an even head dimension; got {got}.", got=dim)
        frequencies = 10000.0 ** (-torch.arange(0, dim, 2) / dim)
        angles = torch.arange(max_positions)[:, None] * frequencies
        self.max_positions = max_positions
        self.register_buffer("cos", torch.cos(angles), persistent=False)
        self.register_buffer("sin", torch.sin(angles), persistent=False)

    def forward(self, x: Tensor, first: int = 0) -> Tensor:
        """Rotate x (batch, heads, positions, dim), beginning with position `first`."""
        end = first + x.shape[2]
        if end > self.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model has {limit:,} positions. Shorten the text.",
                tokens=end,
                limit=self.max_positions,
            )
        cos, sin = self.cos[first:end].to(x.dtype), self.sin[first:end].to(x.dtype)
        even, odd = x[..., 0::2], x[..., 1::2]
        return torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)
