"""The Transformer (Vaswani et al. 2017).

A stack is a sequence of blocks. A block is attention and a feed-forward layer, each with a residual connection and a
norm. A language model has one stack, an encoder-decoder two.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.nets.attention import Cache, MultiHead, Packed, select_rows
from firth.nets.on_gpu import half_precision_dtype, kernels
from firth.nets.positions import Positions, Rotary

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "swiglu")
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
GELU, LOSS = kernels("gelu"), kernels("token_loss")


@dataclass(frozen=True)
class Size:
    """The dimensions and variants of a stack of blocks."""

    layers: int = 6
    dim: int = 512
    heads: int = 8
    feedforward_dim: int = 0  # width of the feed-forward layer; 0 = 4 · dim
    max_positions: int = 512  # length of the longest sequence
    dropout: float = 0.1
    activation: str = "gelu"
    positions: str = "learned"
    pre_norm: bool = True  # norm before each sublayer (GPT-2), or after the residual sum (the paper, BERT)
    epsilon: float = 1e-5


class Dropout(nn.Dropout):
    """Dropout whose mask is a hash when compiled.

    The mask hashes each element's index with one random number per call. This costs a quarter of one random number
    per element, and the backward pass recomputes the mask instead of storing it.
    """

    def forward(self, x: Tensor) -> Tensor:
        """Apply dropout in training."""
        if not (self.training and self.p and torch.compiler.is_compiling()):
            return super().forward(x)
        hashed = torch.arange(x.numel(), device=x.device, dtype=torch.int32).view(x.shape)
        hashed = (hashed ^ torch.randint(2**31 - 1, (), device=x.device, dtype=torch.int32)) * -1640531535
        hashed = (hashed ^ (hashed >> 15)) * -2048144777
        keep = ((hashed >> 13) & 0xFFFF) >= round(self.p * 65536)
        return torch.where(keep, x * (1 / (1 - self.p)), 0.0)


class Embedding(nn.Module):
    """Token embeddings plus positions; scaled by √dim with sinusoidal positions, as in the paper."""

    def __init__(self, vocabulary_size: int, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(vocabulary_size, size.dim)
        self.max_positions = size.max_positions
        added = size.positions in ("learned", "sinusoidal")
        self.positions = Positions(size.positions, size.max_positions, size.dim) if added else None
        self.scale = size.dim**0.5 if size.positions == "sinusoidal" else 1.0
        self.dropout = Dropout(size.dropout)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        """Return the vectors of tokens, beginning with position `first`."""
        if first + ids.shape[1] > self.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model has {limit:,} positions. Shorten the text.",
                tokens=first + ids.shape[1],
                limit=self.max_positions,
            )
        x = self.tokens(ids) * self.scale
        if self.positions is not None:
            x = self.positions(x, first)
        x = self.dropout(x)
        # Under autocast the residual stream is half precision too, which halves the memory traffic between products.
        dtype: torch.dtype = torch.get_autocast_dtype(x.device.type)
        embedded: Tensor = x.to(dtype) if torch.is_autocast_enabled(x.device.type) else x
        return embedded


class FeedForward(nn.Module):
    """Position-wise feed-forward layer: expand, activate, project back. `swiglu` adds a gate (Shazeer 2020)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        feedforward_dim = size.feedforward_dim or 4 * size.dim
        self.activation = size.activation
        self.wide = nn.Linear(size.dim, 2 * feedforward_dim if size.activation == "swiglu" else feedforward_dim)
        self.back = nn.Linear(feedforward_dim, size.dim)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to each position."""
        if self.activation == "swiglu":
            gate, x = self.wide(x).chunk(2, dim=-1)
            x = functional.silu(gate) * x
        else:
            x = linear_activation(x, self.wide, self.activation)
        output: Tensor = self.back(x)
        return output


def linear_activation(x: Tensor, layer: nn.Linear, activation: str) -> Tensor:
    """Return gelu, gelu_tanh or relu of a linear layer's output."""
    if activation == "relu":
        return functional.relu(layer(x))
    tanh = activation == "gelu_tanh"
    if GELU and half_precision_dtype(x):
        activated: Tensor = GELU.bias_gelu(functional.linear(x, layer.weight), layer.bias, tanh)
        return activated
    return functional.gelu(layer(x), approximate="tanh" if tanh else "none")


def token_losses(hidden: Tensor, tokens: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return −log p(target) at each position; p is the softmax of products with the token vectors."""
    dtype = half_precision_dtype(hidden)
    if LOSS and dtype and torch.is_grad_enabled():
        losses: Tensor = LOSS.token_losses(hidden.to(dtype), tokens.to(dtype), bias, targets)[0]
        return losses
    return functional.cross_entropy(functional.linear(hidden, tokens, bias).float(), targets, reduction="none")


class Block(nn.Module):
    """Self-attention, optional cross-attention and feed-forward, each with a residual connection."""

    def __init__(self, size: Size, cross: bool = False, rotary: Rotary | None = None) -> None:
        super().__init__()
        self.pre_norm = size.pre_norm
        self.attention = MultiHead(size.dim, size.heads, size.dropout, rotary=rotary)
        self.attention_norm = nn.LayerNorm(size.dim, size.epsilon)
        self.cross = MultiHead(size.dim, size.heads, size.dropout, cross=True) if cross else None
        self.cross_norm = nn.LayerNorm(size.dim, size.epsilon) if cross else None
        self.feed = FeedForward(size)
        self.feed_norm = nn.LayerNorm(size.dim, size.epsilon)
        self.dropout = Dropout(size.dropout)

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packed | None = None,
        causal: bool = False,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: tuple[Cache, ...] = (),
        rows: Tensor | None = None,
    ) -> Tensor:
        """Apply the block. `caches` are those of self-attention, then of cross-attention.

        With packed sequences, `rows` selects the positions to return; the others serve as keys and values only.
        """
        self_cache, cross_cache = (*caches, None, None)[:2]
        if self.pre_norm:
            mixed = self.attention(self.attention_norm(x), mask=mask, causal=causal, cache=self_cache, rows=rows)
            x = select_rows(x, rows) + self.dropout(mixed)
            if self.cross is not None and self.cross_norm is not None:
                x = x + self.dropout(self.cross(self.cross_norm(x), memory, memory_mask, cache=cross_cache))
            return x + self.dropout(self.feed(self.feed_norm(x)))  # type: ignore[no-any-return]
        dtype = x.dtype  # norms return float32 under autocast; the residual keeps its dtype
        mixed = self.attention(x, mask=mask, causal=causal, cache=self_cache, rows=rows)
        x = self.attention_norm(select_rows(x, rows) + self.dropout(mixed)).to(dtype)
        if self.cross is not None and self.cross_norm is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory_mask, cache=cross_cache))).to(dtype)
        return self.feed_norm(x + self.dropout(self.feed(x))).to(dtype)  # type: ignore[no-any-return]


class Stack(nn.Module):
    """A sequence of blocks. A causal stack is a decoder; with `cross` it also attends to an encoder's memory."""

    def __init__(self, size: Size, causal: bool = False, cross: bool = False) -> None:
        super().__init__()
        self.size, self.causal, self.cross = size, causal, cross
        rotary = Rotary(size.max_positions, size.dim // size.heads) if size.positions == "rotary" else None
        self.blocks = nn.ModuleList(Block(size, cross, rotary) for _ in range(size.layers))
        self.norm = nn.LayerNorm(size.dim, size.epsilon) if size.pre_norm else nn.Identity()

    def forward(
        self,
        x: Tensor,
        mask: Tensor | Packed | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[tuple[Cache, ...]] | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return the output of the last block; with packed sequences, `rows` selects its positions."""
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            cache, wanted = caches[layer] if caches else (), rows if layer == last else None
            x = block(x, mask, self.causal, memory, memory_mask, cache, wanted)
        output: Tensor = self.norm(x)
        return output

    def states(self, x: Tensor, mask: Tensor | Packed | None = None) -> list[Tensor]:
        """Return the input and the output of every block, the last one normalized."""
        states = [x]
        for block in self.blocks:
            states.append(block(states[-1], mask, self.causal))
        states[-1] = self.norm(states[-1])
        return states

    def caches(
        self, batch: int, like: Tensor, memory_length: int = 0, max_tokens: int | None = None
    ) -> list[tuple[Cache, ...]]:
        """Return empty caches for generation, for at most `max_tokens` positions if given."""
        size = self.size
        capacity = size.max_positions if max_tokens is None else min(max_tokens, size.max_positions)
        capacities = [capacity, memory_length] if self.cross else [capacity]
        dim = size.dim // size.heads
        return [tuple(Cache(batch, size.heads, n, dim, like) for n in capacities) for _ in range(size.layers)]


def initialize(net: nn.Module, layers: int) -> None:
    """Initialize as GPT-2 does: normal with standard deviation 0.02.

    Layers that write to the residual stream get 1/√(2·layers) of it, so that its scale does not grow with depth.
    """
    for name, part in net.named_modules():
        if isinstance(part, nn.Linear):
            into_residual = name.endswith(("attention.output", "cross.output", "feed.back"))
            nn.init.normal_(part.weight, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)


class Decoder(nn.Module):
    """A causal language model (Radford et al. 2018); the output layer shares the embedding matrix."""

    def __init__(self, vocabulary_size: int, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embedding = Embedding(vocabulary_size, size)
        self.stack = Stack(size, causal=True)
        initialize(self, size.layers)

    def forward(self, ids: Tensor, first: int = 0, caches: list[tuple[Cache, ...]] | None = None) -> Tensor:
        """Return the vectors of the last layer, (batch, positions, dim)."""
        hidden: Tensor = self.stack(self.embedding(ids, first), caches=caches)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the vocabulary."""
        return functional.linear(hidden, self.embedding.tokens.weight)

    def losses(self, ids: Tensor) -> Tensor:
        """Return −log p of each token but the first, given the tokens before it."""
        hidden = self(ids[:, :-1]).flatten(0, 1)
        return token_losses(hidden, self.embedding.tokens.weight, ids[:, 1:].flatten())


class EncoderDecoder(nn.Module):
    """An encoder for the source and a causal decoder that attends to it."""

    def __init__(
        self, source_vocabulary_size: int, target_vocabulary_size: int, size: Size, tied: bool = False
    ) -> None:
        super().__init__()
        self.size = size
        self.source = Embedding(source_vocabulary_size, size)
        self.target = self.source if tied else Embedding(target_vocabulary_size, size)
        self.encoder = Stack(size)
        self.decoder = Stack(size, causal=True, cross=True)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)
            elif isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=size.dim**-0.5)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the encoder output of sources (batch, positions, dim)."""
        memory: Tensor = self.encoder(self.source(ids), mask)
        return memory

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        first: int = 0,
        caches: list[tuple[Cache, ...]] | None = None,
    ) -> Tensor:
        """Return the decoder output of target tokens, beginning with position `first`."""
        hidden: Tensor = self.decoder(self.target(ids, first), None, memory, memory_mask, caches)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the target vocabulary."""
        return functional.linear(hidden, self.target.tokens.weight)

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
        """Return the vectors that predict the token after each token of `target`."""
        return self.decode(target, self.encode(source, mask), mask)


def parameters(net: nn.Module) -> int:
    """Return the number of trainable parameters."""
    return sum(part.numel() for part in net.parameters())
