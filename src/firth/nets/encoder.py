"""Bidirectional encoders with their pre-training heads (BERT, Devlin et al. 2019, and its descendants).

Texts are concatenated without padding (`Packed`), so tensors have one row per token.
"""

from __future__ import annotations

import torch
from torch import Tensor, nn
from torch.nn import functional

from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.nets.attention import Packed
from firth.nets.transformer import Embedding, Stack, linear_activation, new_norm, token_losses


class Masked(nn.Module):
    """Masked-language-model head. Scores are products with the token embeddings."""

    def __init__(self, vocabulary_size: int, size: Architecture) -> None:
        super().__init__()
        self.activation = size.head_activation or GATED_ACTIVATIONS.get(size.activation, size.activation)
        self.dense = nn.Linear(size.dim, size.width_of_embedding, bias=size.head_biases)
        self.norm = new_norm(size, size.width_of_embedding)
        self.bias = nn.Parameter(torch.zeros(vocabulary_size))

    def forward(self, x: Tensor, tokens: Tensor) -> Tensor:
        """Return logits over the vocabulary."""
        return functional.linear(self.predicted_vectors(x), tokens, self.bias)

    def predicted_vectors(self, x: Tensor) -> Tensor:
        """Return the vectors that are compared with the token embeddings."""
        predicted: Tensor = self.norm(linear_activation(x, self.dense, self.activation))
        return predicted


class Encoder(nn.Module):
    """A bidirectional encoder with its heads.

    `pooler` turns [CLS] into one vector per text; `masked` and `next_sentence` are the two pre-training heads. Weights
    from other sources may lack any of the three.
    """

    def __init__(
        self,
        vocabulary_size: int,
        size: Architecture,
        pooler: bool = True,
        masked: bool = True,
        next_sentence: bool = True,
    ) -> None:
        super().__init__()
        self.size = size
        self.input = Embedding(vocabulary_size, size)
        self.stack = Stack(size)
        self.pooler = nn.Linear(size.dim, size.dim) if pooler else None
        self.masked = Masked(vocabulary_size, size) if masked else None
        self.next_sentence = nn.Linear(size.dim, 2) if next_sentence else None  # 0: B follows A, 1: it does not
        for part in self.modules():
            if isinstance(part, nn.Linear | nn.Embedding):
                nn.init.normal_(part.weight, std=0.02)
            if isinstance(part, nn.Linear) and part.bias is not None:
                nn.init.zeros_(part.bias)

    def forward(
        self, ids: Tensor, positions: Tensor, segments: Tensor, packed: Packed, rows: Tensor | None = None
    ) -> Tensor:
        """Return the vectors of the last layer, one row per token.

        With `rows`, the last block computes these tokens only.
        """
        hidden: Tensor = self.stack(self.input(ids, positions, segments), positions, packed, rows=rows)
        return hidden

    def states(self, ids: Tensor, positions: Tensor, segments: Tensor, packed: Packed) -> list[Tensor]:
        """Return the vectors of every layer, beginning with the input."""
        return self.stack.states(self.input(ids, positions, segments), positions, packed)

    def pooled(self, hidden: Tensor, packed: Packed) -> Tensor:
        """Return one vector per text: tanh of a linear layer on its [CLS]."""
        assert self.pooler is not None
        return torch.tanh(self.pooler(hidden[packed.starts[:-1].long()]))

    def masked_logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the vocabulary for masked tokens."""
        assert self.masked is not None
        logits: Tensor = self.masked(hidden, self.input.tokens.weight)
        return logits

    def masked_losses(self, hidden: Tensor, targets: Tensor) -> Tensor:
        """Return −log p(target) of masked tokens."""
        assert self.masked is not None
        return token_losses(self.masked.predicted_vectors(hidden), self.input.tokens.weight, targets, self.masked.bias)


def position_ids(packed: Packed, total: int) -> Tensor:
    """Return each token's position within its sequence."""
    starts = packed.starts.long()
    return torch.arange(total, device=starts.device) - torch.repeat_interleave(
        starts[:-1], starts.diff(), output_size=total
    )
