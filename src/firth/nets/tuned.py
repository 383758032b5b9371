"""A pre-trained network with a head (Devlin et al. 2019, 3.2; Radford et al. 2018, 3.2).

Texts are concatenated without padding, so `hidden` has one row per token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from firth.nets.architecture import Architecture
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder, position_ids
from firth.nets.lora import adapted_layers
from firth.nets.transformer import Decoder, activated, new_norm

POOLS = ("cls", "mean", "last", "each")


class Dense(nn.Module):
    """The layer before the output layer: linear, activation, and a norm in some families."""

    def __init__(self, size: Architecture, activation: str, norm: bool = False) -> None:
        super().__init__()
        self.activation = activation or size.head_activation
        self.dense = nn.Linear(size.dim, size.dim, bias=size.head_biases)
        self.norm = new_norm(size) if norm else nn.Identity()

    def forward(self, x: Tensor) -> Tensor:
        """Apply the layer to each row."""
        x = self.dense(x)
        x = torch.tanh(x) if self.activation == "tanh" else activated(x, self.activation)
        normed: Tensor = self.norm(x)
        return normed


class Tuned(nn.Module):
    """A base network with a linear output layer on the vector of each text or token.

    `pool` is "cls" (the first token), "mean" (over a text's tokens), "last" (the last token, the only one that attends
    to the whole text in a GPT) or "each" (every token by itself). The vector first passes through `dense`, or through
    BERT's pooler (tanh of a linear layer) with `pooler`. `extra` is the number of features per text that are appended
    to its vector.
    """

    def __init__(
        self,
        base: Encoder | Decoder,
        outputs: int,
        pool: str,
        dropout: float,
        extra: int = 0,
        bias: bool = True,
        dense: Dense | None = None,
        dense_is_new: bool = True,
        pooler: bool = False,
    ) -> None:
        super().__init__()
        self.base, self.pool, self.dense, self.pooler = base, pool, dense, pooler
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(base.size.dim + extra, outputs, bias=bias)
        self.new: list[nn.Linear] = [self.head]  # initialized at random
        if dense is not None and dense_is_new:
            self.new.append(dense.dense)
        if pooler and isinstance(base, Encoder) and base.pooler is None:
            base.pooler = nn.Linear(base.size.dim, base.size.dim)
            self.new.append(base.pooler)
        for part in base.modules():
            if isinstance(part, nn.Dropout):
                part.p = dropout
        self.reset_new_layers()

    def reset_new_layers(self) -> None:
        """Initialize the new layers at random, and the adapters as new ones."""
        for adapted in adapted_layers(self.base).values():
            adapted.reset_adapter()
        for layer in self.new:
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def freeze(self, top: int | None) -> None:
        """Train only the new layers, adapters and the last `top` layers of the base; None trains everything."""
        if top is None:
            return
        blocks = self.base.stack.blocks
        for parameter in self.base.parameters():
            parameter.requires_grad = False
        trainable: list[nn.Module] = [*list(blocks)[len(blocks) - top :], *self.new] if top else [*self.new]
        if isinstance(self.base, Encoder) and self.base.pooler is not None:
            trainable.append(self.base.pooler)  # above all layers
        if self.dense is not None:
            trainable.append(self.dense)
        for part in trainable:
            part.requires_grad_(True)
        for adapted in adapted_layers(self.base).values():
            adapted.requires_grad_adapter()

    def train(self, mode: bool = True) -> Tuned:
        """Set the training mode; frozen parts stay in evaluation mode, without dropout."""
        super().train(mode)
        if mode:
            for part in (*self.base.stack.blocks, *self.base.children()):
                if not any(parameter.requires_grad for parameter in part.parameters()):
                    part.eval()
        return self

    def forward(self, ids: Tensor, segments: Tensor, packed: Packed, extra: Tensor | None = None) -> Tensor:
        """Return logits, one row per text, or one per token with pool="each"."""
        return self.top(self.bottom(ids, segments, packed), extra)

    def bottom(self, ids: Tensor, segments: Tensor, packed: Packed) -> Tensor:
        """Return the pooled vectors before the new layers; they are constant while the base is frozen."""
        return self.pooled(self.hidden(ids, segments, packed), packed)

    def top(self, rows: Tensor, extra: Tensor | None = None) -> Tensor:
        """Return logits from the result of `bottom`."""
        if self.pooler:
            assert isinstance(self.base, Encoder) and self.base.pooler is not None
            rows = torch.tanh(self.base.pooler(rows))
        elif self.dense is not None:
            rows = self.dense(rows)
        return self.logits(rows, extra)

    def hidden(self, ids: Tensor, segments: Tensor, packed: Packed) -> Tensor:
        """Return the token vectors of the base."""
        if isinstance(self.base, Encoder):
            states: Tensor = self.base(ids, position_ids(packed, len(ids)), segments, packed)
            return states
        return causal_hidden(self.base, ids, packed)

    def pooled(self, hidden: Tensor, packed: Packed) -> Tensor:
        """Pool the token vectors to one row per text; pool="each" returns them all."""
        if self.pool == "each":
            return hidden
        if self.pool == "cls":
            return hidden[packed.starts[:-1].long()]
        if self.pool == "last":
            return hidden[packed.starts[1:].long() - 1]
        # index_add has the same forward and backward result on every device.
        lengths = packed.starts.diff().long()
        text = torch.repeat_interleave(
            torch.arange(len(lengths), device=hidden.device), lengths, output_size=len(hidden)
        )
        total = hidden.new_zeros(len(lengths), hidden.shape[1], dtype=torch.float32)
        return total.index_add(0, text, hidden.float()) / lengths[:, None]

    def logits(self, vectors: Tensor, extra: Tensor | None = None) -> Tensor:
        """Apply dropout and the head."""
        vectors = self.dropout(vectors)
        if extra is not None:
            vectors = torch.cat([vectors, extra.to(vectors.dtype)], dim=-1)
        logits: Tensor = self.head(vectors)
        return logits.float()


def causal_hidden(net: Decoder, ids: Tensor, packed: Packed) -> Tensor:
    """Return a causal language model's token vectors of packed texts.

    Texts are padded at the end, which earlier tokens do not attend to.
    """
    lengths = packed.starts.diff().long()
    row = torch.repeat_interleave(torch.arange(len(lengths), device=ids.device), lengths, output_size=len(ids))
    position = position_ids(packed, len(ids))
    rows = ids.new_zeros(len(lengths), packed.longest)
    rows[row, position] = ids
    hidden: Any = net(rows)[row, position]
    return hidden  # type: ignore[no-any-return]
