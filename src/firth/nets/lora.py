"""Low-rank adapters of linear layers (LoRA, Hu et al. 2021): W + α/r · B A, with a frozen W and B = 0 at first."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import torch
from torch import Tensor, nn
from torch.nn import functional

ADAPTERS = ("down", "up")  # the arrays A and B of an adapted layer
ATTENTION, EVERY = "attention", "all"


class AdaptedLinear(nn.Linear):
    """A frozen linear layer with an adapter for each block of its rows.

    A layer that computes queries, keys and values in one product has three blocks, as other libraries have three
    layers. `down` stacks the matrices A of the blocks, `up` the matrices B.
    """

    def __init__(self, layer: nn.Linear, rows: Sequence[int], rank: int, scale: float) -> None:
        super().__init__(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        self.weight, self.bias = layer.weight, layer.bias
        self.rows, self.rank, self.scale = list(rows), rank, scale
        self.down = nn.Parameter(layer.weight.new_empty(len(rows) * rank, layer.in_features))
        self.up = nn.Parameter(layer.weight.new_empty(layer.out_features, rank))
        self.reset_adapter()

    def reset_adapter(self) -> None:
        """Initialize A at random, as in the paper's code, and B with zeros."""
        nn.init.kaiming_uniform_(self.down, a=math.sqrt(5))
        nn.init.zeros_(self.up)

    def requires_grad_adapter(self) -> None:
        """Train the adapter only."""
        for name, part in self.named_parameters():
            part.requires_grad_(name in ADAPTERS)

    def forward(self, x: Tensor) -> Tensor:
        """Return W x + bias + α/r · B A x."""
        reduced = torch.split(functional.linear(x, self.down), self.rank, dim=-1)
        parts = [functional.linear(part, up) for part, up in zip(reduced, torch.split(self.up, self.rows), strict=True)]
        output: Tensor = super().forward(x)
        return output + self.scale * torch.cat(parts, dim=-1)

    def merged_weight(self) -> Tensor:
        """Return W + α/r · B A."""
        downs, ups = torch.split(self.down, self.rank), torch.split(self.up, self.rows)
        return self.weight + self.scale * torch.cat([up @ down for up, down in zip(ups, downs, strict=True)])


def weight_of(layer: nn.Linear) -> Tensor:
    """Return the weight of a linear layer, with its adapter if it has one."""
    return layer.merged_weight() if isinstance(layer, AdaptedLinear) else layer.weight


def adapted_layers(net: nn.Module) -> dict[str, AdaptedLinear]:
    """Return the layers with adapters, by name."""
    return {name: part for name, part in net.named_modules() if isinstance(part, AdaptedLinear)}


def layers_to_adapt(net: nn.Module, which: str) -> list[str]:
    """Return the names of the linear layers of the blocks: all, or those of the attention."""
    names = [name for name, part in net.named_modules() if isinstance(part, nn.Linear) and ".blocks." in f".{name}"]
    return [name for name in names if which == EVERY or ".attention." in name]


def add_adapters(net: nn.Module, rows: Mapping[str, Sequence[int]], rank: int, scale: float) -> None:
    """Replace linear layers by layers with adapters; `rows` are the sizes of the blocks of each layer."""
    for name, sizes in rows.items():
        parent, _, child = name.rpartition(".")
        layer = net.get_submodule(name)
        assert isinstance(layer, nn.Linear)
        setattr(net.get_submodule(parent), child, AdaptedLinear(layer, sizes, rank, scale))


@torch.no_grad()
def merge_adapters(net: nn.Module) -> dict[str, Tensor]:
    """Add the adapters to the weights, replace the layers by plain ones, and return the adapters' arrays by name."""
    arrays = dict[str, Tensor]()
    for name, layer in adapted_layers(net).items():
        arrays |= {f"{name}.{end}": getattr(layer, end).detach().clone() for end in ADAPTERS}
        plain = nn.Linear(layer.in_features, layer.out_features, layer.bias is not None, device="meta")
        plain.weight, plain.bias = nn.Parameter(layer.merged_weight().contiguous()), layer.bias
        parent, _, child = name.rpartition(".")
        setattr(net.get_submodule(parent), child, plain)
    for part in net.parameters():
        part.requires_grad_(True)
    return arrays
