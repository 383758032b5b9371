"""The transformer (Vaswani et al. 2017) in the variants that `Architecture` describes.

A stack is a sequence of blocks. A block is attention and a feed-forward layer, each with a residual connection and a
norm. A language model has one stack, an encoder-decoder two.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.core.errors import FirthError
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.nets.attention import Cache, MultiHead, Packed, select_rows
from firth.nets.disentangled import DistanceEmbeddings
from firth.nets.lora import AdaptedLinear
from firth.nets.on_gpu import half_precision_dtype, kernels
from firth.nets.positions import Alibi, PositionTerms, RelativeBias, Rotary, Sinusoidal

GELU, LOSS = kernels("gelu"), kernels("token_loss")
NO_TERMS = PositionTerms()


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


def new_norm(size: Architecture, dim: int = 0) -> nn.Module:
    """Return a norm over `dim` dimensions, by default those of the network."""
    width = dim or size.dim
    if size.norm == "rms":
        return nn.RMSNorm(width, size.epsilon)
    return nn.LayerNorm(width, size.epsilon, bias=size.norm_biases)


class Embedding(nn.Module):
    """Sum of token, position and segment embeddings, with an optional norm and projection."""

    def __init__(self, vocabulary_size: int, size: Architecture, tokens: nn.Embedding | None = None) -> None:
        super().__init__()
        width = size.width_of_embedding
        self.max_positions = size.max_positions
        self.tokens = nn.Embedding(vocabulary_size, width) if tokens is None else tokens
        self.positions: nn.Module | None = None
        if size.positions == "learned":
            self.positions = nn.Embedding(size.max_positions, width)
        elif size.positions == "sinusoidal":
            self.positions = Sinusoidal(size.max_positions, width, size.sinusoidal_halves)
        self.segments = nn.Embedding(size.segments, width) if size.segments else None
        self.norm = new_norm(size, width) if size.embedding_norm else None
        self.projection = nn.Linear(width, size.dim) if size.embedding_dim else None
        self.scale = size.embedding_scale or (size.dim**0.5 if size.positions == "sinusoidal" else 1.0)
        self.dropout = Dropout(size.dropout)

    def forward(self, ids: Tensor, positions: Tensor, segments: Tensor | None = None) -> Tensor:
        """Return the input vectors of tokens at these positions; without `segments`, all are in the first."""
        x = self.tokens(ids)
        if self.scale != 1.0:
            x = x * self.scale
        if self.positions is not None:
            x = x + self.positions(positions)
        if self.segments is not None:
            x = x + self.segment(segments)
        if self.norm is not None:
            x = self.norm(x)
        x = self.dropout(x)
        if self.projection is not None:
            x = self.projection(x)
        # Under autocast the residual stream is half precision too, which halves the memory traffic between products.
        dtype: torch.dtype = torch.get_autocast_dtype(x.device.type)
        embedded: Tensor = x.to(dtype) if torch.is_autocast_enabled(x.device.type) else x
        return embedded

    def segment(self, segments: Tensor | None) -> Tensor:
        """Return the segment vectors.

        On a GPU, two rows are selected with `where`: in the backward pass of an embedding all tokens would add to the
        same two rows one after the other.
        """
        assert self.segments is not None
        rows = self.segments.weight
        if segments is None:
            return rows[0]
        if len(rows) == 2 and rows.is_cuda:
            return torch.where((segments == 0)[..., None], rows[0], rows[1])
        vectors: Tensor = self.segments(segments)
        return vectors

    def at(self, ids: Tensor, first: int = 0) -> tuple[Tensor, Tensor]:
        """Return the input vectors of `ids` (batch, positions), beginning with position `first`, and the positions."""
        end = first + ids.shape[1]
        if end > self.max_positions:
            raise FirthError(
                "text_too_long",
                "The text has {tokens:,} tokens; the model has {limit:,} positions. Shorten the text.",
                tokens=end,
                limit=self.max_positions,
            )
        positions = torch.arange(first, end, device=ids.device)
        return self(ids, positions), positions


class FeedForward(nn.Module):
    """Position-wise feed-forward layer: expand, activate, project back."""

    def __init__(self, size: Architecture) -> None:
        super().__init__()
        width, biases = size.width_of_feedforward, size.feedforward_biases
        self.gate = GATED_ACTIVATIONS.get(size.activation)
        self.activation = self.gate or size.activation
        self.wide = nn.Linear(size.dim, 2 * width if self.gate else width, bias=biases)  # the gate's rows come first
        self.back = nn.Linear(width, size.dim, bias=biases)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to each position."""
        if self.gate:
            gate, x = self.wide(x).chunk(2, dim=-1)
            x = activated(gate, self.activation) * x
        else:
            x = linear_activation(x, self.wide, self.activation)
        output: Tensor = self.back(x)
        return output


def activated(x: Tensor, activation: str) -> Tensor:
    """Apply an activation function."""
    if activation == "relu":
        return functional.relu(x)
    if activation == "silu":
        return functional.silu(x)
    return functional.gelu(x, approximate="tanh" if activation == "gelu_tanh" else "none")


def linear_activation(x: Tensor, layer: nn.Linear, activation: str) -> Tensor:
    """Return the activation of a linear layer's output."""
    plain = layer.bias is not None and not isinstance(layer, AdaptedLinear)
    if GELU and activation.startswith("gelu") and plain and half_precision_dtype(x):
        fused: Tensor = GELU.bias_gelu(functional.linear(x, layer.weight), layer.bias, activation == "gelu_tanh")
        return fused
    return activated(layer(x), activation)


def token_losses(hidden: Tensor, tokens: Tensor, targets: Tensor, bias: Tensor | None = None) -> Tensor:
    """Return −log p(target) at each position; p is the softmax of products with the token vectors."""
    dtype = half_precision_dtype(hidden)
    if LOSS and dtype and torch.is_grad_enabled():
        losses: Tensor = LOSS.token_losses(hidden.to(dtype), tokens.to(dtype), bias, targets)[0]
        return losses
    return functional.cross_entropy(functional.linear(hidden, tokens, bias).float(), targets, reduction="none")


class Block(nn.Module):
    """Self-attention, optional cross-attention and feed-forward, each with a residual connection."""

    def __init__(self, size: Architecture, cross: bool = False, first: bool = False) -> None:
        super().__init__()
        self.pre_norm = size.pre_norm
        self.attention = MultiHead(size)
        self.attention_norm = new_norm(size) if size.first_norm or not first else nn.Identity()
        self.cross = MultiHead(size, cross=True) if cross else None
        self.cross_norm = new_norm(size) if cross else None
        self.feed = FeedForward(size)
        self.feed_norm = new_norm(size)
        self.attention_output_norm, self.feed_output_norm = (
            new_norm(size) if size.sublayer_norms else nn.Identity() for _ in range(2)
        )
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
        terms: PositionTerms = NO_TERMS,
    ) -> Tensor:
        """Apply the block. `caches` are those of self-attention, then of cross-attention.

        With packed sequences, `rows` selects the positions to return; the others serve as keys and values only.
        """
        self_cache, cross_cache = (*caches, None, None)[:2]
        if self.pre_norm:
            mixed = self.attention(self.attention_norm(x), None, mask, causal, self_cache, rows, terms)
            x = select_rows(x, rows) + self.dropout(self.attention_output_norm(mixed))
            if self.cross is not None and self.cross_norm is not None:
                x = x + self.dropout(self.cross(self.cross_norm(x), memory, memory_mask, cache=cross_cache))
            return x + self.dropout(self.feed_output_norm(self.feed(self.feed_norm(x))))  # type: ignore[no-any-return]
        dtype = x.dtype  # norms return float32 under autocast; the residual keeps its dtype
        mixed = self.attention(x, None, mask, causal, self_cache, rows, terms)
        x = self.attention_norm(select_rows(x, rows) + self.dropout(mixed)).to(dtype)
        if self.cross is not None and self.cross_norm is not None:
            x = self.cross_norm(x + self.dropout(self.cross(x, memory, memory_mask, cache=cross_cache))).to(dtype)
        return self.feed_norm(x + self.dropout(self.feed(x))).to(dtype)  # type: ignore[no-any-return]


class Stack(nn.Module):
    """A sequence of blocks. A causal stack is a decoder; with `cross` it also attends to an encoder's memory."""

    def __init__(self, size: Architecture, causal: bool = False, cross: bool = False) -> None:
        super().__init__()
        self.size, self.causal, self.cross = size, causal, cross
        blocks = 1 if size.shared_layers else size.layers
        self.blocks = nn.ModuleList(Block(size, cross, first=number == 0) for number in range(blocks))
        self.norm = new_norm(size) if size.pre_norm else nn.Identity()
        rotated = size.rotary_dim or size.width_of_head
        is_rotary = size.positions == "rotary"
        self.rotary = Rotary(rotated, size.rotary_base, size.rotary_scaling) if is_rotary else None
        self.local_rotary = Rotary(rotated, size.rotary_local_base) if is_rotary and size.rotary_local_base else None
        self.bias: RelativeBias | Alibi | None = None
        if size.score_bias == "relative":
            self.bias = RelativeBias(size.heads, size.relative_buckets, size.relative_far, causal)
        elif size.score_bias == "alibi":
            self.bias = Alibi(size.heads)
        self.distances = DistanceEmbeddings(size) if size.score_bias == "disentangled" else None

    def in_order(self) -> Iterator[Block]:
        """Yield the block of each layer; layers may share one."""
        for layer in range(self.size.layers):
            block = self.blocks[layer % len(self.blocks)]
            assert isinstance(block, Block)
            yield block

    def separate_blocks(self) -> None:
        """Give each layer a block of its own, with the weights of the one that layers share."""
        weights = {id(tensor): tensor for tensor in self.parameters()}
        self.blocks = nn.ModuleList(copy.deepcopy(block, dict(weights)) for block in self.in_order())

    def terms(self, positions: Tensor, keys: int) -> list[PositionTerms]:
        """Return the position terms of each layer, for sequences of at most `keys` tokens."""
        size = self.size
        if self.distances is not None:
            return [PositionTerms(distances=self.distances(keys))] * size.layers
        if self.rotary is None and self.bias is None and not size.local_layers:
            return [NO_TERMS] * size.layers
        distances = torch.arange(1 - keys, keys, device=positions.device)
        bias = None if self.bias is None else self.bias(distances)
        everywhere = PositionTerms(None if self.rotary is None else self.rotary(positions), bias)
        if not size.local_layers:
            return [everywhere] * size.layers
        rotary, window = self.local_rotary or self.rotary, size.window if keys > size.window + 1 else 0
        if window:
            outside = torch.where(distances.abs() > window, -torch.inf, 0.0)
            bias = outside[None] if bias is None else bias + outside
        local = PositionTerms(None if rotary is None else rotary(positions), bias, window)
        return [local if layer in size.local_layers else everywhere for layer in range(size.layers)]

    def forward(
        self,
        x: Tensor,
        positions: Tensor,
        mask: Tensor | Packed | None = None,
        memory: Tensor | None = None,
        memory_mask: Tensor | None = None,
        caches: list[tuple[Cache, ...]] | None = None,
        rows: Tensor | None = None,
    ) -> Tensor:
        """Return the output of the last block. `positions` are those of x within its sequences.

        With packed sequences, `rows` selects positions of the output.
        """
        last = self.size.layers - 1
        keys = mask.longest if isinstance(mask, Packed) else x.shape[1] + (caches[0][0].length if caches else 0)
        terms = self.terms(positions, keys)
        for layer, block in enumerate(self.in_order()):
            cache, wanted = caches[layer] if caches else (), rows if layer == last else None
            x = block(x, mask, self.causal, memory, memory_mask, cache, wanted, terms[layer])
        output: Tensor = self.norm(x)
        return output

    def states(self, x: Tensor, positions: Tensor, mask: Tensor | Packed | None = None) -> list[Tensor]:
        """Return the input and the output of every block, the last one normalized."""
        states = [x]
        terms = self.terms(positions, mask.longest if isinstance(mask, Packed) else x.shape[1])
        for layer, block in enumerate(self.in_order()):
            states.append(block(states[-1], mask, self.causal, terms=terms[layer]))
        states[-1] = self.norm(states[-1])
        return states

    def caches(
        self, batch: int, like: Tensor, memory_length: int = 0, max_tokens: int | None = None
    ) -> list[tuple[Cache, ...]]:
        """Return empty caches for generation, for at most `max_tokens` positions if given."""
        size = self.size
        capacity = size.max_positions if max_tokens is None else min(max_tokens, size.max_positions)
        capacities = [capacity, memory_length] if self.cross else [capacity]
        heads = size.key_value_heads or size.heads
        return [
            tuple(Cache(batch, heads, length, size.width_of_head, like) for length in capacities)
            for _ in range(size.layers)
        ]


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
    """A causal language model (Radford et al. 2018). A bidirectional one embeds texts (EmbeddingGemma)."""

    def __init__(self, vocabulary_size: int, size: Architecture) -> None:
        super().__init__()
        self.size = size
        self.embedding = Embedding(vocabulary_size, size)
        self.stack = Stack(size, causal=not size.bidirectional)
        self.output = None if size.tied else nn.Linear(size.dim, vocabulary_size, bias=False)
        initialize(self, size.layers)

    def forward(self, ids: Tensor, first: int = 0, caches: list[tuple[Cache, ...]] | None = None) -> Tensor:
        """Return the vectors of the last layer, (batch, positions, dim)."""
        hidden: Tensor = self.stack(*self.embedding.at(ids, first), caches=caches)
        return hidden

    @property
    def output_vectors(self) -> Tensor:
        """The rows of the output layer, one per token."""
        weight: Tensor = (self.embedding.tokens if self.output is None else self.output).weight
        return weight

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the vocabulary."""
        logits, cap = functional.linear(hidden, self.output_vectors), self.size.logit_cap
        return cap * torch.tanh(logits / cap) if cap else logits

    def losses(self, ids: Tensor) -> Tensor:
        """Return −log p of each token but the first, given the tokens before it."""
        hidden = self(ids[:, :-1]).flatten(0, 1)
        if self.size.logit_cap:
            return functional.cross_entropy(self.logits(hidden).float(), ids[:, 1:].flatten(), reduction="none")
        return token_losses(hidden, self.output_vectors, ids[:, 1:].flatten())


class EncoderDecoder(nn.Module):
    """An encoder for the source and a causal decoder that attends to it."""

    def __init__(
        self, source_vocabulary_size: int, target_vocabulary_size: int, size: Architecture, tied: bool = False
    ) -> None:
        super().__init__()
        self.size = size
        self.source = Embedding(source_vocabulary_size, size)
        self.target = Embedding(target_vocabulary_size, size, self.source.tokens if tied else None)
        self.encoder = Stack(size)
        self.decoder = Stack(size.decoder, causal=True, cross=True)
        self.output = None if size.tied else nn.Linear(size.dim, target_vocabulary_size, bias=False)
        self.output_bias = nn.Parameter(torch.zeros(1, target_vocabulary_size)) if size.logit_bias else None
        for part in self.modules():
            if isinstance(part, nn.Linear):
                nn.init.xavier_uniform_(part.weight)
                if part.bias is not None:
                    nn.init.zeros_(part.bias)
            elif isinstance(part, nn.Embedding):
                nn.init.normal_(part.weight, std=size.dim**-0.5)

    def encode(self, ids: Tensor, mask: Tensor) -> Tensor:
        """Return the encoder output of sources (batch, positions, dim)."""
        memory: Tensor = self.encoder(*self.source.at(ids), mask)
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
        hidden: Tensor = self.decoder(*self.target.at(ids, first), None, memory, memory_mask, caches)
        return hidden

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the target vocabulary."""
        output = self.target.tokens if self.output is None else self.output
        scaled = hidden if self.size.logit_scale == 1.0 else hidden * self.size.logit_scale
        logits = functional.linear(scaled, output.weight)
        return logits if self.output_bias is None else logits + self.output_bias

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
        """Return the vectors that predict the token after each token of `target`."""
        return self.decode(target, self.encode(source, mask), mask)


def parameters(net: nn.Module) -> int:
    """Return the number of trainable parameters."""
    return sum(part.numel() for part in net.parameters())
