"""The two towers: a network that gives users and items vectors whose dot product is the score."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.nets.autoencoder import RowInput, Shape, Stack
from firth.nets.user_autoencoder import Baskets


class Cells(NamedTuple):
    """Rows of features as tensors: numbers (NaN = missing), and category ids (−1 = missing)."""

    numbers: Tensor
    ids: Tensor


class TowerNet(nn.Module):
    """Items: identity and features -> v. Users: the mean of the history's v, and features -> u. Score: u · v."""

    def __init__(
        self, items: int, dim: int, hidden_sizes: tuple[int, ...], users_shape: Shape | None, items_shape: Shape | None
    ) -> None:
        super().__init__()
        self.ids = nn.Embedding(items, dim)
        nn.init.normal_(self.ids.weight, std=dim**-0.5)
        self.item_input = None if items_shape is None else RowInput(items_shape)
        self.user_input = None if users_shape is None else RowInput(users_shape)
        item_width = 0 if self.item_input is None else self.item_input.width
        self.item_tower = Stack(item_width, hidden_sizes, dim, "gelu", 0.0) if item_width else None
        user_width = dim + (0 if self.user_input is None else self.user_input.width)
        self.user_tower = Stack(user_width, hidden_sizes, dim, "gelu", 0.0)

    def items(self, cells: Cells | None, known: Tensor | None = None) -> Tensor:
        """Return the item vectors; items that are not `known` have those of their features alone."""
        own = self.ids.weight if known is None else self.ids.weight * known[:, None]
        if self.item_tower is None or self.item_input is None or cells is None:
            return own
        featured: Tensor = own + self.item_tower(self.item_input(*cells))
        return featured

    def users(self, history: Baskets, items: Tensor, cells: Cells | None, dropout: float = 0.0) -> Tensor:
        """Return the user vectors; dropout hides items of the histories in training."""
        rows = history.rows
        squares = torch.zeros(len(history.starts) - 1, device=rows.device).to(history.weights)
        lengths = squares.index_add(0, rows, history.weights**2).sqrt().clamp(min=1e-12)
        weights = functional.dropout(history.weights / lengths[rows], dropout, self.training)
        summed = items.new_zeros(len(squares), items.shape[1]).index_add(
            0, rows, items[history.items] * weights[:, None]
        )
        if self.user_input is None or cells is None:
            vectors: Tensor = self.user_tower(summed)
            return vectors
        joined: Tensor = self.user_tower(torch.cat([summed, self.user_input(*cells)], dim=1))
        return joined
