"""Autoencoders of user histories for recommendation (Liang et al. 2018)."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.nets.autoencoder import Code


class Baskets(NamedTuple):
    """Weighted item lists; row r has `items[starts[r]:starts[r + 1]]`."""

    starts: Tensor  # (rows + 1,)
    items: Tensor
    weights: Tensor

    @property
    def rows(self) -> Tensor:
        """Return the row number of each item."""
        return torch.repeat_interleave(torch.arange(len(self.starts) - 1, device=self.starts.device), self.sizes)

    @property
    def sizes(self) -> Tensor:
        """Number of items per row."""
        return torch.diff(self.starts)


class UserNet(nn.Module):
    """Items -> hidden layers -> code -> hidden layers -> a logit for each item.

    `first` has one row per item, and a user's input is the weighted sum of rows. This equals a dense layer on a sparse
    row, without computing the zeros.
    """

    def __init__(self, items: int, hidden_sizes: tuple[int, ...], dim: int, variational: bool) -> None:
        super().__init__()
        sizes = (*hidden_sizes, dim * (2 if variational else 1))
        self.first = nn.EmbeddingBag(items, sizes[0], mode="sum")
        self.bias = nn.Parameter(torch.zeros(sizes[0]))
        self.encoder = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        back = (dim, *hidden_sizes[::-1])
        self.decoder = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(back))
        self.last = nn.Linear(back[-1], items)
        self.dim, self.variational = dim, variational
        nn.init.normal_(self.first.weight, std=(2 / (items + sizes[0])) ** 0.5)  # Glorot & Bengio 2010
        nn.init.trunc_normal_(self.last.weight, std=(2 / (items + back[-1])) ** 0.5)

    def encode(self, baskets: Baskets, dropout: float = 0.0) -> Code:
        """Return codes; each user's weights have unit length, and dropout removes items in training."""
        rows = baskets.rows
        squares = torch.zeros(len(baskets.starts) - 1, device=rows.device).to(baskets.weights)
        lengths = squares.index_add(0, rows, baskets.weights**2).sqrt()
        weights = functional.dropout(baskets.weights / lengths[rows], dropout, self.training)
        x = self.first(baskets.items, baskets.starts[:-1], per_sample_weights=weights) + self.bias
        for layer in self.encoder:
            x = layer(torch.tanh(x))
        if not self.variational:
            return Code(torch.tanh(x), None)
        mean, logvar = x.split(self.dim, dim=1)
        return Code(mean, logvar.clamp(-12, 6))

    def decode(self, code: Tensor) -> Tensor:
        """Return a logit for each item."""
        x = code
        for layer in self.decoder:
            x = torch.tanh(layer(x))
        logits: Tensor = self.last(x)
        return logits


def negative_log_likelihood(logits: Tensor, baskets: Baskets) -> Tensor:
    """Return −Σ weight · log p(item) of each row; p is the softmax over all items."""
    rows = baskets.rows
    logs = functional.log_softmax(logits, dim=1)[rows, baskets.items]
    return -torch.zeros(len(logits), device=logits.device).to(logs).index_add(0, rows, baskets.weights * logs)
