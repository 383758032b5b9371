"""Position schemes of transformers. Attention without any of them is independent of the token order.

Learned and sinusoidal positions are vectors that are added to the embeddings. Rotary positions rotate queries and keys.
Relative bias and ALiBi add a number to each score that depends on the distance of key and query.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import torch
from torch import Tensor, nn

from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.nets.disentangled import Distances

LLAMA3 = "llama3"


class PositionTerms(NamedTuple):
    """What the attention of a layer takes from the positions of a batch."""

    rotation: tuple[Tensor, Tensor] | None = None  # cosines and sines, (positions, rotated dim / 2)
    bias: Tensor | None = None  # (heads or 1, 2 · keys − 1), by key − query + keys − 1; −∞ outside the window
    window: int = 0  # distance of the farthest key; 0 = no limit
    distances: Distances | None = None  # embeddings of disentangled attention


def sinusoids(max_positions: int, dim: int, halves: bool = False) -> Tensor:
    """PE(pos, 2i) = sin(pos / 10000^(2i/dim)), PE(pos, 2i + 1) = cos of the same (Vaswani et al. 2017, 3.5).

    With `halves`, all sines come before all cosines.
    """
    frequencies = torch.exp(torch.arange(0, dim, 2, dtype=torch.double) * (-math.log(10000.0) / dim))
    angles = torch.arange(max_positions)[:, None] * frequencies  # in float32, far positions would be off by 1e-4
    sines, cosines = torch.sin(angles).float(), torch.cos(angles)[:, : dim // 2].float()
    if halves:
        return torch.cat([sines, cosines], dim=1)
    table = torch.zeros(max_positions, dim)
    table[:, 0::2], table[:, 1::2] = sines, cosines
    return table


class Sinusoidal(nn.Module):
    """Sinusoidal position vectors, called like an nn.Embedding; not stored."""

    table: Tensor

    def __init__(self, max_positions: int, dim: int, halves: bool = False) -> None:
        super().__init__()
        with torch.device("cpu"):  # also where the network is built without values
            self.register_buffer("table", sinusoids(max_positions, dim, halves), persistent=False)

    def forward(self, positions: Tensor) -> Tensor:
        """Return the vectors of these positions."""
        return self.table[positions]


class RotaryScaling(NamedTuple):
    """Frequencies for contexts longer than those of pre-training."""

    kind: str  # linear (Chen et al. 2023) or llama3 (Dubey et al. 2024)
    factor: float
    low: float = 1.0  # llama3: wavelengths above context / low are divided by `factor`
    high: float = 4.0  # llama3: those below context / high are kept
    context: int = 8192  # llama3: the context length of pre-training


def rotary_frequencies(dim: int, base: float, scaling: RotaryScaling | None = None) -> Tensor:
    """Return the angle per position of each rotated pair of dimensions, base^(−2i/dim)."""
    frequencies = 1.0 / (base ** (torch.arange(0, dim, 2, dtype=torch.float, device="cpu") / dim))
    if scaling is None:
        return frequencies
    if scaling.kind != LLAMA3:
        return frequencies / scaling.factor
    wavelengths = 2 * math.pi / frequencies
    share = (scaling.context / wavelengths - scaling.low) / (scaling.high - scaling.low)
    share = share.clamp(0, 1)  # 0: long waves, divided; 1: short waves, kept
    return (1 - share) * frequencies / scaling.factor + share * frequencies


class Rotary(nn.Module):
    """Rotary positions: pairs of dimensions of queries and keys are rotated by an angle proportional to the position.

    Products of queries and keys then depend on their distance only (Su et al. 2021).
    """

    frequencies: Tensor

    def __init__(self, dim: int, base: float = 10000.0, scaling: RotaryScaling | None = None) -> None:
        super().__init__()
        if dim % 2:
            raise FirthError("invalid_value", "Rotary positions need an even head dimension; got {got}.", got=dim)
        self.register_buffer("frequencies", rotary_frequencies(dim, base, scaling), persistent=False)

    def _apply(self, fn: Callable[..., Any], recurse: bool = True) -> Rotary:
        """Move to another device, but keep float32: in half precision, angles of far positions would be wrong."""
        exact = self.frequencies
        super()._apply(fn, recurse)  # type: ignore[no-untyped-call]
        self.frequencies = exact.to(self.frequencies.device)
        return self

    def forward(self, positions: Tensor) -> tuple[Tensor, Tensor]:
        """Return the cosines and sines of the angles at these positions."""
        angles = positions.float()[:, None] * self.frequencies
        return torch.cos(angles), torch.sin(angles)


def rotate(x: Tensor, rotation: tuple[Tensor, Tensor], halves: bool) -> Tensor:
    """Rotate pairs of dimensions of x (…, positions, dim).

    A pair is dimension i and i + n/2 of the n rotated ones with `halves`, otherwise 2i and 2i + 1. Dimensions beyond
    the rotated ones are unchanged.
    """
    cos, sin = (part.to(x.dtype) for part in rotation)
    rotated, rest = x[..., : 2 * cos.shape[-1]], x[..., 2 * cos.shape[-1] :]
    if halves:
        first, second = rotated.chunk(2, dim=-1)
        parts = [first * cos - second * sin, second * cos + first * sin]
    else:
        even, odd = rotated[..., 0::2], rotated[..., 1::2]
        parts = [torch.stack([even * cos - odd * sin, even * sin + odd * cos], dim=-1).flatten(-2)]
    return torch.cat([*parts, rest], dim=-1) if rest.shape[-1] or halves else parts[0]


class RelativeBias(nn.Module):
    """A learned bias per head and bucket of distances, shared by all layers (Raffel et al. 2020, 2.1).

    Half of the buckets are for single distances; the other half grow logarithmically up to `far`. Without `causal`,
    keys before and after the query have separate buckets.
    """

    def __init__(self, heads: int, buckets: int, far: int, causal: bool) -> None:
        super().__init__()
        self.table = nn.Embedding(buckets, heads)
        self.buckets, self.far, self.causal = buckets, far, causal

    def forward(self, distances: Tensor) -> Tensor:
        """Return the bias (heads, distances) for key positions minus query positions."""
        bias: Tensor = self.table(self.bucket(distances)).T
        return bias

    def bucket(self, distances: Tensor) -> Tensor:
        """Return the bucket of each distance."""
        buckets = self.buckets if self.causal else self.buckets // 2
        size = (-distances).clamp(min=0) if self.causal else distances.abs()
        exact = buckets // 2
        growth = torch.log(size.clamp(min=1).float() / exact) / math.log(self.far / exact)
        logarithmic = (exact + (growth * (buckets - exact)).long()).clamp(max=buckets - 1)
        bucket = torch.where(size < exact, size, logarithmic)
        return bucket if self.causal else bucket + (distances > 0) * buckets


class Alibi(nn.Module):
    """A bias that falls linearly with the distance, with another slope for each head (Press et al. 2022)."""

    def __init__(self, heads: int) -> None:
        super().__init__()
        self.heads = heads

    def forward(self, distances: Tensor) -> Tensor:
        """Return the bias (heads, distances)."""
        slopes = torch.tensor(alibi_slopes(self.heads), device=distances.device)
        return -slopes[:, None] * distances.abs()


def alibi_slopes(heads: int) -> list[float]:
    """Return 2^(−8i/n) for n heads; for other numbers than powers of two, as in the paper's code."""
    power = 2 ** math.floor(math.log2(heads))
    slopes = [2 ** (-8 * (i + 1) / power) for i in range(power)]
    return slopes + [2 ** (-4 * (2 * i + 1) / power) for i in range(heads - power)]


def score_bias(table: Tensor, queries: int, keys: int) -> Tensor:
    """Return the bias (heads or 1, queries, keys) from a table by distance; the queries are the last positions."""
    query = torch.arange(keys - queries, keys, device=table.device)
    return table[:, torch.arange(keys, device=table.device)[None, :] - query[:, None] + keys - 1]
