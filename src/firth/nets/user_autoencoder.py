"""What a user had, through few numbers, to what the user may like: the networks of Liang et al. 2018."""

from __future__ import annotations

import itertools
from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.nets.autoencoder import Code


class Baskets(NamedTuple):
    """Rows of items with their weights: those of row r are `items[starts[r]:starts[r + 1]]`."""

    starts: Tensor  # (rows + 1,)
    items: Tensor
    weights: Tensor

    @property
    def rows(self) -> Tensor:
        """The row of each item."""
        return torch.repeat_interleave(torch.arange(len(self.starts) - 1, device=self.starts.device), self.sizes)

    @property
    def sizes(self) -> Tensor:
        return torch.diff(self.starts)


class UserNet(nn.Module):
    """Items -> hidden layers -> code -> hidden layers -> a logit for each item.

    `first` holds a row for each item, and a user's input is the weighted sum of them: the same as a dense layer over a
    row of mostly zeros, without the zeros.
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
        nn.init.normal_(self.first.weight, std=(2 / (items + sizes[0])) ** 0.5)  # as Glorot & Bengio 2010 have it
        nn.init.trunc_normal_(self.last.weight, std=(2 / (items + back[-1])) ** 0.5)

    def encode(self, baskets: Baskets, dropout: float = 0.0) -> Code:
        """Each user's weights scaled to length 1; while learning, a share of the items is left out."""
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
        """A logit for each item."""
        x = code
        for layer in self.decoder:
            x = torch.tanh(layer(x))
        logits: Tensor = self.last(x)
        return logits

    def negative_log_likelihood(self, logits: Tensor, baskets: Baskets) -> Tensor:
        """−Σ weight · log p(item) of each row, p over all items."""
        rows = baskets.rows
        logs = functional.log_softmax(logits, dim=1)[rows, baskets.items]
        return -torch.zeros(len(logits), device=logits.device).to(logs).index_add(0, rows, baskets.weights * logs)
