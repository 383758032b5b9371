"""The Transformer (Vaswani et al. 2017): a stack is blocks; a block is attention and feed-forward, each inside a
residual with a norm; a language model is one stack, a translator two."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.nets.attention import Cache, MultiHead, Packed, chosen
from firth.nets.on_gpu import kernels, narrow
from firth.nets.positions import Positions, Rotary

ACTIVATIONS = ("gelu", "gelu_tanh", "relu", "swiglu")
POSITIONS = ("learned", "sinusoidal", "rotary", "none")
BEND, LOSS = kernels("bend"), kernels("token_loss")


@dataclass(frozen=True)
class Size:
    """What a stack of blocks is like."""

    layers: int = 6
    dim: int = 512
    heads: int = 8
    feedforward_dim: int = 0  # width of the feed-forward; 0 = 4 · dim
    places: int = 512  # the longest sequence
    dropout: float = 0.1
    activation: str = "gelu"
    positions: str = "learned"
    pre_norm: bool = True  # the norm stands before each part (GPT-2), else after the sum (the paper, BERT)
    epsilon: float = 1e-5


class Dropout(nn.Dropout):
    """Leaves values out. Compiled, whether one stays is a hash of its place and of one random number a call: a quarter
    of the work of a random number for each, and nothing to keep for the way back."""

    def forward(self, x: Tensor) -> Tensor:
        if not (self.training and self.p and torch.compiler.is_compiling()):
            return super().forward(x)
        mixed = torch.arange(x.numel(), device=x.device, dtype=torch.int32).view(x.shape)
        mixed = (mixed ^ torch.randint(2**31 - 1, (), device=x.device, dtype=torch.int32)) * -1640531535
        mixed = (mixed ^ (mixed >> 15)) * -2048144777
        stays = ((mixed >> 13) & 0xFFFF) >= round(self.p * 65536)
        return torch.where(stays, x * (1 / (1 - self.p)), 0.0)


class Embedding(nn.Module):
    """Tokens to vectors, with their places; the paper's √dim where the waves would drown them."""

    def __init__(self, words: int, size: Size) -> None:
        super().__init__()
        self.tokens = nn.Embedding(words, size.dim)
        self.places = size.places
        added = size.positions in ("learned", "sinusoidal")
        self.positions = Positions(size.positions, size.places, size.dim) if added else None
        self.scale = size.dim**0.5 if size.positions == "sinusoidal" else 1.0
        self.dropout = Dropout(size.dropout)

    def forward(self, ids: Tensor, first: int = 0) -> Tensor:
        if first + ids.shape[1] > self.places:
            raise FirthError(
                "text_too_long",
                "A text of {first:,} tokens is longer than this model's context of {places:,}.",
                first=first + ids.shape[1],
                places=self.places,
            )
        x = self.tokens(ids) * self.scale
        if self.positions is not None:
            x = self.positions(x, first)
        x = self.dropout(x)
        # Under autocast the residual stream is narrow too: half the memory traffic of everything between the products.
        kind: torch.dtype = torch.get_autocast_dtype(x.device.type)
        found: Tensor = x.to(kind) if torch.is_autocast_enabled(x.device.type) else x
        return found


class FeedForward(nn.Module):
    """Each place by itself: wider, bent, and back. `swiglu` multiplies with a gate (Shazeer 2020)."""

    def __init__(self, size: Size) -> None:
        super().__init__()
        hidden = size.feedforward_dim or 4 * size.dim
        self.activation = size.activation
        self.wide = nn.Linear(size.dim, 2 * hidden if size.activation == "swiglu" else hidden)
        self.back = nn.Linear(hidden, size.dim)

    def forward(self, x: Tensor) -> Tensor:
        if self.activation == "swiglu":
            gate, x = self.wide(x).chunk(2, dim=-1)
            x = functional.silu(gate) * x
        else:
            x = bent(x, self.wide, self.activation)
        found: Tensor = self.back(x)
        return found


def bent(x: Tensor, layer: nn.Linear, activation: str) -> Tensor:
    """gelu, gelu_tanh or relu of a layer's output."""
    if activation == "relu":
        return functional.relu(layer(x))
    tanh = activation == "gelu_tanh"
    if BEND and narrow(x):
        found: Tensor = BEND.bend(functional.linear(x, layer.weight), layer.bias, tanh)
        return found
    return functional.gelu(layer(x), approximate="tanh" if tanh else "none")


def token_losses(hidden: Tensor, tokens: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """−log p(target) at each place, p being the softmax of products with the tokens' vectors."""
    kind = narrow(hidden)
    if LOSS and kind and torch.is_grad_enabled():
        losses: Tensor = LOSS.token_losses(hidden.to(kind), tokens.to(kind), bias, targets)[0]
        return losses
    return functional.cross_entropy(functional.linear(hidden, tokens, bias).float(), targets, reduction="none")


class Block(nn.Module):
    """Self-attention, in a decoder cross-attention, feed-forward: each adds to what came in."""

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
        """`caches`: of the self-attention, then of the cross-attention. `rows`: of packed sequences, those wanted; the
        others are looked at and no more."""
        own, other = (*caches, None, None)[:2]
        if self.pre_norm:
            mixed = self.attention(self.attention_norm(x), mask=mask, causal=causal, cache=own, rows=rows)
            x = chosen(x, rows) + self.dropout(mixed)
            if self.cross is not None and self.cross_norm is not None:
                x = x + self.dropout(self.cross(self.cross_norm(x), memory, memory_mask, cache=other))
            return x + self.dropout(self.feed(self.feed_norm(x)))  # type: ignore[no-any-return]
        kind = x.dtype  # norms give float32 under autocast: the residual stays as narrow as it came
        mixed = self.attention(x, mask=mask, causal=causal, cache=own, rows=rows)
        x = self.attention_norm(chosen(x, rows) + self.dropout(mixed)).to(kind)
        if self.cross is not None and self.cross_norm is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory_mask, cache=other))).to(kind)
        return self.feed_norm(x + self.dropout(self.feed(x))).to(kind)  # type: ignore[no-any-return]


class Stack(nn.Module):
    """Blocks above each other. Causal stacks are decoders; with `cross` they look at an encoder's memory too."""

    def __init__(self, size: Size, causal: bool = False, cross: bool = False) -> None:
        super().__init__()
        self.size, self.causal, self.cross = size, causal, cross
        rotary = Rotary(size.places, size.dim // size.heads) if size.positions == "rotary" else None
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
        """`rows`: of packed sequences, those wanted of the last block."""
        last = len(self.blocks) - 1
        for layer, block in enumerate(self.blocks):
            cache, wanted = caches[layer] if caches else (), rows if layer == last else None
            x = block(x, mask, self.causal, memory, memory_mask, cache, wanted)
        found: Tensor = self.norm(x)
        return found

    def states(self, x: Tensor, mask: Tensor | Packed | None = None) -> list[Tensor]:
        """What came in and what each block gave, the last one normed: embeddings from any layer."""
        found = [x]
        for block in self.blocks:
            found.append(block(found[-1], mask, self.causal))
        found[-1] = self.norm(found[-1])
        return found

    def caches(
        self, batch: int, like: Tensor, memory_places: int = 0, most: int | None = None
    ) -> list[tuple[Cache, ...]]:
        """Empty caches for generating; `most`: tokens, where fewer than the whole context are enough."""
        size = self.size
        own = size.places if most is None else min(most, size.places)
        places = [own, memory_places] if self.cross else [own]
        dim = size.dim // size.heads
        return [tuple(Cache(batch, size.heads, n, dim, like) for n in places) for _ in range(size.layers)]


def initialize(net: nn.Module, layers: int) -> None:
    """GPT-2's start: normal with deviation 0.02, and 1/√(2·layers) of it for what is added to the residual, so that its
    size does not grow with depth."""
    for name, part in net.named_modules():
        if isinstance(part, nn.Linear):
            into_residual = name.endswith(("attention.output", "cross.output", "feed.back"))
            nn.init.normal_(part.weight, std=0.02 / (2 * layers) ** 0.5 if into_residual else 0.02)
            if part.bias is not None:
                nn.init.zeros_(part.bias)
        elif isinstance(part, nn.Embedding):
            nn.init.normal_(part.weight, std=0.02)


class Decoder(nn.Module):
    """A causal language model (Radford et al. 2018): each place predicts the next token by the embedding's rows."""

    def __init__(self, words: int, size: Size) -> None:
        super().__init__()
        self.size = size
        self.embedding = Embedding(words, size)
        self.stack = Stack(size, causal=True)
        initialize(self, size.layers)

    def forward(self, ids: Tensor, first: int = 0, caches: list[tuple[Cache, ...]] | None = None) -> Tensor:
        """The last layer's vectors, (batch, places, dim)."""
        found: Tensor = self.stack(self.embedding(ids, first), caches=caches)
        return found

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.embedding.tokens.weight)

    def losses(self, ids: Tensor) -> Tensor:
        """−log p of each token given those before it, the first one's excepted."""
        hidden = self(ids[:, :-1]).flatten(0, 1)
        return token_losses(hidden, self.embedding.tokens.weight, ids[:, 1:].flatten())


class EncoderDecoder(nn.Module):
    """Reads a source whole, then writes a target token by token, looking back at the source."""

    def __init__(self, source_words: int, target_words: int, size: Size, tied: bool = False) -> None:
        super().__init__()
        self.size = size
        self.source = Embedding(source_words, size)
        self.target = self.source if tied else Embedding(target_words, size)
        self.encoder = Stack(size)
        self.decoder = Stack(size, causal=True, cross=True)
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                nn.init.zeros_(part.bias)
            elif isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=size.dim**-0.5)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        found: Tensor = self.encoder(self.source(ids), mask)
        return found

    def decode(
        self,
        ids: Tensor,
        memory: Tensor,
        memory_mask: Tensor,
        first: int = 0,
        caches: list[tuple[Cache, ...]] | None = None,
    ) -> Tensor:
        found: Tensor = self.decoder(self.target(ids, first), None, memory, memory_mask, caches)
        return found

    def logits(self, hidden: Tensor) -> Tensor:
        return functional.linear(hidden, self.target.tokens.weight)

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
        """Vectors that predict the token after each of `target`."""
        return self.decode(target, self.encode(source, mask), mask)


def parameters(net: nn.Module) -> int:
    """How many numbers are learned."""
    return sum(part.numel() for part in net.parameters())
