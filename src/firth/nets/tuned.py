"""One new layer on a network that was trained before (Devlin et al. 2019, 3.2; Radford et al. 2018, 3.2).

Texts lie one behind the other without padding: `hidden` has one row a token.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor, nn

from firth.nets.attention import Packed
from firth.nets.bert import Bert, position_ids
from firth.nets.transformer import Decoder

POOLS = ("cls", "mean", "last", "each")


class Tuned(nn.Module):
    """A base net, and a linear layer on what it says of each text, or of each token.

    `pool`: "cls" is tanh of a layer on the first token (BERT's pooler), "mean" the mean of a text's tokens, "last" the
    last token, the only one for which a GPT has seen the whole; with "each" every token is told for itself. `extra`
    numbers of each text stand beside its vector.
    """

    def __init__(
        self, base: Bert | Decoder, outputs: int, pool: str, dropout: float, extra: int = 0, bias: bool = True
    ) -> None:
        super().__init__()
        self.base, self.pool = base, pool
        self.dropout = nn.Dropout(dropout)
        self.head = nn.Linear(base.size.dim + extra, outputs, bias=bias)
        self.new: list[nn.Linear] = [self.head]
        if pool == "cls" and isinstance(base, Bert) and base.pooler is None:
            base.pooler = nn.Linear(base.size.dim, base.size.dim)
            self.new.append(base.pooler)
        for part in base.modules():
            if isinstance(part, nn.Dropout):
                part.p = dropout
        self.reset_new_layers()

    def reset_new_layers(self) -> None:
        """Draws the new layers' weights."""
        for layer in self.new:
            nn.init.normal_(layer.weight, std=0.02)
            if layer.bias is not None:
                nn.init.zeros_(layer.bias)

    def freeze(self, top: int | None) -> None:
        """Only the `top` layers of the base learn, beside the new ones; None: everything."""
        if top is None:
            return
        blocks = self.base.stack.blocks
        for parameter in self.base.parameters():
            parameter.requires_grad = False
        trainable: list[nn.Module] = [*list(blocks)[len(blocks) - top :], *self.new] if top else [*self.new]
        if isinstance(self.base, Bert) and self.base.pooler is not None:
            trainable.append(self.base.pooler)  # above all layers
        for part in trainable:
            part.requires_grad_(True)

    def train(self, mode: bool = True) -> Tuned:
        """What is frozen leaves nothing out."""
        super().train(mode)
        if mode:
            for part in (*self.base.stack.blocks, *self.base.children()):
                if not any(parameter.requires_grad for parameter in part.parameters()):
                    part.eval()
        return self

    def forward(self, ids: Tensor, segments: Tensor, packed: Packed, extra: Tensor | None = None) -> Tensor:
        """Logits: one row a text, or with "each" one a token."""
        return self.top(self.bottom(ids, segments, packed), extra)

    def bottom(self, ids: Tensor, segments: Tensor, packed: Packed) -> Tensor:
        """All that stays the same while only the new layers learn: a row a text, or with "each" one a token."""
        return self.pooled(self.hidden(ids, segments, packed), packed)

    def top(self, rows: Tensor, extra: Tensor | None = None) -> Tensor:
        """Logits from what `bottom` gives."""
        if self.pool == "cls" and isinstance(self.base, Bert):
            assert self.base.pooler is not None
            rows = torch.tanh(self.base.pooler(rows))
        return self.logits(rows, extra)

    def hidden(self, ids: Tensor, segments: Tensor, packed: Packed) -> Tensor:
        if isinstance(self.base, Bert):
            states: Tensor = self.base(ids, position_ids(packed, len(ids)), segments, packed)
            return states
        return causal_hidden(self.base, ids, packed)

    def pooled(self, hidden: Tensor, packed: Packed) -> Tensor:
        """What of all tokens is used."""
        if self.pool == "each":
            return hidden
        if self.pool == "cls":
            return hidden[packed.starts[:-1].long()]
        if self.pool == "last":
            return hidden[packed.starts[1:].long() - 1]
        # A product with 1 / length where a text's tokens stand: on every device the same way forward and back.
        lengths = packed.starts.diff().long()
        text = torch.repeat_interleave(
            torch.arange(len(lengths), device=hidden.device), lengths, output_size=len(hidden)
        )
        total = hidden.new_zeros(len(lengths), hidden.shape[1], dtype=torch.float32)
        return total.index_add(0, text, hidden.float()) / lengths[:, None]

    def logits(self, vectors: Tensor, extra: Tensor | None = None) -> Tensor:
        vectors = self.dropout(vectors)
        if extra is not None:
            vectors = torch.cat([vectors, extra.to(vectors.dtype)], dim=-1)
        logits: Tensor = self.head(vectors)
        return logits.float()


def causal_hidden(net: Decoder, ids: Tensor, packed: Packed) -> Tensor:
    """A language model reads texts as rows of one length: what stands behind a text's end is not seen from within."""
    lengths = packed.starts.diff().long()
    row = torch.repeat_interleave(torch.arange(len(lengths), device=ids.device), lengths, output_size=len(ids))
    position = position_ids(packed, len(ids))
    rows = ids.new_zeros(len(lengths), packed.longest)
    rows[row, position] = ids
    hidden: Any = net(rows)[row, position]
    return hidden  # type: ignore[no-any-return]
