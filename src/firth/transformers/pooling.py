"""From the vectors of a text's tokens to one vector: which layers, how they are joined, how tokens are."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from firth.core.errors import FirthError
from firth.core.options import check_options, option

if TYPE_CHECKING:  # the command line reads the options and needs no torch for it
    from torch import Tensor

    from firth.nets.attention import Packed

HOW = ("mean", "cls", "max", "sum")
COMBINE = ("mean", "sum", "concat")
LONG = ("truncate", "chunk", "refuse")


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """How a text becomes one vector."""

    how: str = option("mean", "the tokens' mean, sum or greatest values, or the vector of [CLS]", choices=HOW)
    layers: tuple[int, ...] = (-1,)  # 0 is the input, -1 the last
    combine: str = option("mean", "how several layers become one", choices=COMBINE)
    normalize: bool = option(False, "each vector has length 1")
    max_tokens: int = option(0, "of a text, [CLS] and [SEP] among them; 0 = the model's places", low=0)
    long: str = option(
        "truncate", "a text with more tokens is cut (and counted), read in chunks, or refused", choices=LONG
    )

    def __post_init__(self) -> None:
        check_options(self)
        object.__setattr__(self, "layers", checked_layers(self.layers, "Pooling.layers"))
        if 0 < self.max_tokens < 3:
            raise FirthError(
                "invalid_value",
                "{option} must leave room for a token; got {got}.",
                option="Pooling.max_tokens",
                got=self.max_tokens,
            )

    def dim(self, width: int) -> int:
        return width * len(self.layers) if self.combine == "concat" else width

    def check(self, layers: int, max_positions: int) -> None:
        """Refuses what a net of so many layers and places does not have."""
        layer_numbers(self.layers, layers)
        if self.max_tokens > max_positions:
            raise FirthError(
                "text_too_long",
                "The model has {max_positions:,} places; max_tokens is {max_tokens:,}.",
                max_positions=max_positions,
                max_tokens=self.max_tokens,
            )

    def same_vectors(self, other: Pooling) -> bool:
        """Whether both give the same, but for what is done to the vector afterwards."""
        return (self.how, self.layers, self.combine) == (other.how, other.layers, other.combine)

    def __call__(self, states: Sequence[Tensor], packed: Packed, layers: int) -> Tensor:
        """One row a text, not yet normalised. `states` are the net's layers from 0 on."""
        selected = [states[number].float() for number in layer_numbers(self.layers, layers)]
        return pool_tokens(combined(selected, self.combine), packed, self.how)


def checked_layers(layers: Sequence[int], name: str = "layers") -> tuple[int, ...]:
    """Refuses what is no list of layers, such as one number."""
    if not isinstance(layers, Sequence) or not layers or not all(type(layer) is int for layer in layers):
        raise FirthError(
            "invalid_value", "{name} must be numbers of layers, such as (-1,); got {got!r}.", name=name, got=layers
        )
    return tuple(layers)


def layer_numbers(layers: Sequence[int], last: int) -> list[int]:
    """Layers counted from 0, the input; negative ones count from the last."""
    for layer in checked_layers(layers):
        if not -last - 1 <= layer <= last:
            raise FirthError(
                "invalid_value",
                "A layer must be from 0 (the input) to {limit}, or from the end (-1 the last); got {got}.",
                limit=last,
                got=layer,
            )
    return [layer % (last + 1) for layer in layers]


def combined(states: Sequence[Tensor], how: str) -> Tensor:
    """Several layers' vectors as one a token."""
    import torch

    if len(states) == 1:
        return states[0]
    if how == "concat":
        return torch.cat(list(states), dim=-1)
    total = torch.stack(list(states)).sum(0)
    return total / len(states) if how == "mean" else total


def pool_tokens(x: Tensor, packed: Packed, how: str) -> Tensor:
    """One row a text, from one row a token."""
    import torch

    starts = packed.starts.long()
    if how == "cls":
        return x[starts[:-1]]
    return torch.segment_reduce(x, how, offsets=starts, axis=0)
