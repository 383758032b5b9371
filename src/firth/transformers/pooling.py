"""Pooling: from the token vectors of selected layers to one vector per text."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Protocol, runtime_checkable

from firth.core.errors import FirthError
from firth.core.long_texts import CHUNK, REFUSE, TRUNCATE, long_option
from firth.core.options import check_options, option

if TYPE_CHECKING:  # the command line reads the options without importing torch
    from torch import Tensor

    from firth.core.method import Method
    from firth.core.vectors import Matrix
    from firth.data.subword_tokenizer import SubwordTokenizer
    from firth.nets.architecture import Architecture
    from firth.nets.attention import Packed
    from firth.transformers.bert_model import BertModel
    from firth.transformers.sentence_modules import Projection
    from firth.transformers.sentence_settings import SentenceSettings

HOW = ("mean", "cls", "max", "sum", "mean_sqrt_len_tokens", "weightedmean", "lasttoken")
SEPARATOR = "+"  # between modes whose vectors are concatenated
COMBINE = ("mean", "sum", "concat")


@dataclass(frozen=True, kw_only=True)
class Pooling:
    """Settings for pooling the token vectors of a text."""

    how: str = option("mean", f"how token vectors are combined: {', '.join(HOW)}; several as in cls+mean")
    layers: tuple[int, ...] = (-1,)  # 0 = input, -1 = last
    combine: str = option("mean", "how several layers are combined", choices=COMBINE)
    normalize: bool = option(False, "scale vectors to length 1")
    max_tokens: int = option(
        0, "maximum number of tokens of a text, with special tokens; 0 = the model's positions", low=0
    )
    long: str = long_option(TRUNCATE, CHUNK, REFUSE)
    include_prompt: bool = option(True, "also pool the tokens of a prompt")

    def __post_init__(self) -> None:
        check_options(self)
        if not self.modes or any(mode not in HOW for mode in self.modes):
            raise FirthError(
                "invalid_value",
                "{option} must be one of {choices}, or several as in cls+mean; got {got!r:.80}.",
                option="Pooling.how",
                choices=", ".join(HOW),
                got=self.how,
            )
        object.__setattr__(self, "layers", checked_layers(self.layers, "Pooling.layers"))
        if 0 < self.max_tokens < 3:
            raise FirthError(
                "invalid_value",
                "{option} must be 0 or at least 3, for [CLS], one token and [SEP]; got {got}.",
                option="Pooling.max_tokens",
                got=self.max_tokens,
            )

    @property
    def modes(self) -> tuple[str, ...]:
        """The pooling modes, whose vectors are concatenated."""
        return tuple(self.how.split(SEPARATOR))

    def dim(self, width: int) -> int:
        """Return the dimension of pooled vectors for a network of this width."""
        return width * len(self.modes) * (len(self.layers) if self.combine == "concat" else 1)

    def check(self, layers: int, max_positions: int) -> None:
        """Raise an error if a network with these layers and positions does not fit the settings."""
        layer_numbers(self.layers, layers)
        if self.max_tokens > max_positions:
            raise FirthError(
                "text_too_long",
                "{option} must be at most {limit:,}, the model's positions; got {got:,}.",
                option="Pooling.max_tokens",
                limit=max_positions,
                got=self.max_tokens,
            )

    def same_vectors(self, other: Pooling) -> bool:
        """Return whether both give the same vectors before projection and normalization."""
        return (self.how, self.layers, self.combine) == (other.how, other.layers, other.combine)

    def __call__(self, states: Sequence[Tensor], packed: Packed, layers: int, skipped: Tensor | None = None) -> Tensor:
        """Return one unnormalized row per text. `states` are the layers of the network, beginning with the input.

        `skipped` is the number of tokens at the beginning of each text that are not pooled.
        """
        import torch

        selected = [states[number].float() for number in layer_numbers(self.layers, layers)]
        x = combined(selected, self.combine)
        return torch.cat([pool_tokens(x, packed, mode, skipped) for mode in self.modes], dim=-1)


@runtime_checkable
class PoolsTokens(Protocol):
    """An encoder that pools the vectors of its tokens to text vectors."""

    method: Method
    training: Mapping[str, Any]
    pooling: Pooling
    projection: Projection | None
    sentence: SentenceSettings

    @property
    def size(self) -> Architecture:
        """The size of the network."""

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer."""

    def dim_of(self, pooling: Pooling) -> int:
        """Return the dimension of text vectors with this pooling."""

    def with_pooling(self, **settings: Any) -> BertModel:
        """Return a model with the same network and other `Pooling` settings."""

    def embed_ids(
        self,
        texts: Sequence[list[int]],
        pooling: Pooling | None = None,
        device: str = "auto",
        precision: str = "auto",
        skipped: Sequence[int] | None = None,
    ) -> Matrix:
        """Return one row per text for token ids that include the special tokens; the first `skipped` are not pooled."""


def checked_layers(layers: Sequence[int], name: str = "layers") -> tuple[int, ...]:
    """Return the layers as a tuple; raise invalid_value unless they are a sequence of integers."""
    if not isinstance(layers, Sequence) or not layers or not all(type(layer) is int for layer in layers):
        raise FirthError(
            "invalid_value", "{option} must be layer numbers such as (-1,); got {got!r}.", option=name, got=layers
        )
    return tuple(layers)


def layer_numbers(layers: Sequence[int], last: int) -> list[int]:
    """Return layers counted from 0, the input; negative numbers count from the last."""
    for layer in checked_layers(layers):
        if not -last - 1 <= layer <= last:
            raise FirthError(
                "invalid_value",
                "{option} must be from 0 (the input) to {limit}, or negative to count from the last; got {got}.",
                option="layers",
                limit=last,
                got=layer,
            )
    return [layer % (last + 1) for layer in layers]


def combined(states: Sequence[Tensor], how: str) -> Tensor:
    """Combine the vectors of several layers to one per token."""
    import torch

    if len(states) == 1:
        return states[0]
    if how == "concat":
        return torch.cat(list(states), dim=-1)
    total = torch.stack(list(states)).sum(0)
    return total / len(states) if how == "mean" else total


def pool_tokens(x: Tensor, packed: Packed, mode: str, skipped: Tensor | None = None) -> Tensor:
    """Pool one row per token to one row per text, as sentence-transformers does.

    weightedmean weights a token by its position, from 1. `skipped` tokens at the beginning of each text are left out;
    a text without other tokens gets zeros, or its first token with cls.
    """
    import torch

    starts = packed.starts.long()
    first, end = starts[:-1], starts[1:]
    if skipped is not None:
        first = torch.minimum(first + skipped, end)
    empty = first >= end
    if mode == "cls":
        return x[torch.where(empty, starts[:-1], first)]
    if mode == "lasttoken":
        return torch.where(empty[:, None], torch.zeros_like(x[:1]), x[end - 1])
    if mode in HOW[:4] and skipped is None:
        return torch.segment_reduce(x, mode, offsets=starts, axis=0)
    lengths = end - first
    rows = torch.repeat_interleave(torch.arange(len(first), device=x.device), lengths)
    tokens = torch.arange(len(rows), device=x.device) - torch.repeat_interleave(lengths.cumsum(0) - lengths, lengths)
    pooled_tokens = x[tokens + first[rows]]
    if mode == "max":
        most = torch.full((len(first), x.shape[1]), -torch.inf, dtype=x.dtype, device=x.device)
        most = most.index_reduce(0, rows, pooled_tokens, "amax")
        return torch.where(empty[:, None], torch.zeros_like(most), most)
    weights = (
        (tokens + (first - starts[:-1])[rows] + 1).to(x.dtype)
        if mode == "weightedmean"
        else torch.ones_like(x[: len(rows), 0])
    )
    zeros = torch.zeros(len(first), x.shape[1], dtype=x.dtype, device=x.device)
    total = zeros.index_add(0, rows, pooled_tokens * weights[:, None])
    size = zeros[:, 0].index_add(0, rows, weights).clamp(min=1e-9)[:, None]
    return total if mode == "sum" else total / (size.sqrt() if mode == "mean_sqrt_len_tokens" else size)
