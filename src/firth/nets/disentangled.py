"""Disentangled attention (He et al. 2021): scores of content with content, and of content with distances.

A query also attends to the distance of a key (content to position), and a key is also scored by the distance of the
query (position to content): scoreᵢⱼ = qᵢ·kⱼ + qᵢ·pk(i − j) + kⱼ·pq(i − j), where pk and pq are projections of learned
distance embeddings that all layers share.
"""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn

from firth.nets.architecture import Architecture
from firth.nets.lora import weight_of

CONTENT_TO_POSITION, POSITION_TO_CONTENT = "c2p", "p2c"


class Distances(NamedTuple):
    """Distance embeddings of a batch: before the projection (rows, dim), after it (heads, rows, head dim)."""

    rows: Tensor  # row of each distance query − key, from 1 − positions to positions − 1
    keys: Tensor | None  # for c2p
    queries: Tensor | None  # for p2c

    def scores(self, query: Tensor, key: Tensor, scale: float) -> Tensor:
        """Return the scores by distance of queries and keys (batch, heads, positions, head dim), (…, query, key)."""
        length, middle = query.shape[-2], len(self.rows) // 2
        at = torch.arange(length, device=query.device)
        index = self.rows[at[:, None] - at[None, :] + middle].expand(*query.shape[:-2], length, length)
        total = query.new_zeros(())
        if self.keys is not None:
            total = total + (query @ self.keys.transpose(-2, -1)).gather(-1, index)
        if self.queries is not None:  # gathered by key and query, hence transposed twice
            by_key = (key @ self.queries.transpose(-2, -1)).gather(-1, index.transpose(-2, -1))
            total = total + by_key.transpose(-2, -1)
        return total * scale


class DistanceEmbeddings(nn.Module):
    """Embeddings of distances, one row per distance or per logarithmic bucket, shared by all layers."""

    def __init__(self, size: Architecture) -> None:
        super().__init__()
        self.far, self.buckets = size.relative_far, size.relative_buckets
        self.side = self.buckets or self.far  # rows of each direction
        self.table = nn.Embedding(2 * self.side, size.dim)
        self.norm = nn.LayerNorm(size.dim, size.epsilon) if size.relative_norm else None

    def forward(self, positions: int) -> Distances:
        """Return the embeddings for sequences of at most `positions` tokens."""
        table: Tensor = self.table.weight if self.norm is None else self.norm(self.table.weight)
        distances = torch.arange(1 - positions, positions, device=table.device)
        rows = (self.bucket(distances) + self.side).clamp(0, 2 * self.side - 1)
        return Distances(rows, table, table)

    def bucket(self, distances: Tensor) -> Tensor:
        """Return signed buckets: distances up to half of the buckets are exact, larger ones logarithmic up to `far`."""
        if not self.buckets:
            return distances
        exact, size = self.buckets // 2, distances.abs()
        growth = torch.log(size.clamp(min=exact) / exact) / torch.log(torch.tensor((self.far - 1) / exact))
        logarithmic = (torch.ceil(growth * (exact - 1)) + exact).long()
        return torch.where(size <= exact, distances, logarithmic * distances.sign())


class DistanceProjection(nn.Module):
    """The projections of distance embeddings of one layer, unless those of its queries and keys are shared."""

    def __init__(self, size: Architecture) -> None:
        super().__init__()
        scores, width = size.relative_scores, size.heads * size.width_of_head
        self.has_keys, self.has_queries = CONTENT_TO_POSITION in scores, POSITION_TO_CONTENT in scores
        own = not size.relative_shared
        self.key = nn.Linear(size.dim, width) if own and self.has_keys else None
        self.query = nn.Linear(size.dim, width) if own and self.has_queries else None
        self.head_dim = size.width_of_head

    def forward(self, distances: Distances, layer: nn.Linear) -> Distances:
        """Return projected embeddings; `layer` projects queries, keys and values."""
        assert distances.keys is not None
        width = layer.weight.shape[0] // 3
        projected = list[Tensor | None]()
        for wanted, own, part in ((self.has_keys, self.key, 1), (self.has_queries, self.query, 0)):
            rows = slice(part * width, (part + 1) * width)
            weight, bias = (weight_of(layer)[rows], layer.bias[rows]) if own is None else (weight_of(own), own.bias)
            result = nn.functional.linear(distances.keys, weight, bias) if wanted else None
            projected.append(None if result is None else result.view(len(result), -1, self.head_dim).transpose(0, 1))
        return Distances(distances.rows, *projected)
