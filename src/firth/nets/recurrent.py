"""A recurrent encoder-decoder with Bahdanau attention, the architecture before the Transformer."""

from __future__ import annotations

from typing import NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from firth.nets.attention import Bahdanau


class Memory(NamedTuple):
    """The encoder's output, which the decoder attends to."""

    states: Tensor  # (batch, positions, 2 · dim)
    projected: Tensor  # the key projection, which all queries share
    mask: Tensor


class State(NamedTuple):
    """The decoder's hidden and cell states, (layers, batch, dim)."""

    hidden: Tensor
    cell: Tensor


class RecurrentTranslator(nn.Module):
    """A bidirectional LSTM encoder and an LSTM decoder with additive attention (Bahdanau et al. 2015, with LSTM
    cells)."""

    def __init__(
        self,
        source_vocabulary_size: int,
        target_vocabulary_size: int,
        dim: int,
        layers: int = 1,
        dropout: float = 0.1,
        tied: bool = False,
    ) -> None:
        super().__init__()
        between = dropout if layers > 1 else 0.0
        self.source = nn.Embedding(source_vocabulary_size, dim)
        self.target = self.source if tied else nn.Embedding(target_vocabulary_size, dim)
        self.encoder = nn.LSTM(dim, dim, layers, batch_first=True, bidirectional=True, dropout=between)
        self.bridge = nn.Linear(2 * dim, dim)
        self.attention = Bahdanau(dim, 2 * dim, dim)
        self.decoder = nn.LSTM(3 * dim, dim, layers, batch_first=True, dropout=between)
        self.join = nn.Linear(4 * dim, dim)
        self.dropout = nn.Dropout(dropout)
        self.layers = layers
        nn.init.normal_(self.source.weight, std=dim**-0.5)
        nn.init.normal_(self.target.weight, std=dim**-0.5)

    def encode(self, ids: Tensor, mask: Tensor) -> tuple[Memory, State]:
        """Return the memory of sources and the first decoder state."""
        lengths = mask.sum(1).clamp(min=1).cpu()
        packed = pack_padded_sequence(self.dropout(self.source(ids)), lengths, batch_first=True, enforce_sorted=False)
        packed, (hidden, _) = self.encoder(packed)
        states, _ = pad_packed_sequence(packed, batch_first=True, total_length=ids.shape[1])
        both_directions = hidden.view(self.layers, 2, ids.shape[0], -1).transpose(1, 2).flatten(2)
        start = torch.tanh(self.bridge(both_directions))
        return Memory(states, self.attention.key(states), mask), State(start, torch.zeros_like(start))

    def step(self, ids: Tensor, memory: Memory, state: State) -> tuple[Tensor, State, Tensor]:
        """Decode one token: return the vector that predicts the next, the new state and the attention weights
        (batch, positions)."""
        embedded = self.dropout(self.target(ids))
        mixed, weights = self.attention(state.hidden[-1], memory.states, memory.mask, memory.projected)
        out, (hidden, cell) = self.decoder(torch.cat([embedded, mixed], -1)[:, None], tuple(state))
        joined = torch.tanh(self.join(torch.cat([out[:, 0], mixed, embedded], -1)))
        return self.dropout(joined), State(hidden, cell), weights

    def forward(self, source: Tensor, mask: Tensor, target: Tensor) -> Tensor:
        """Return the vectors that predict the token after each token of `target`."""
        memory, state = self.encode(source, mask)
        vectors = []
        for position in range(target.shape[1]):
            vector, state, _ = self.step(target[:, position], memory, state)
            vectors.append(vector)
        return torch.stack(vectors, dim=1)

    def logits(self, hidden: Tensor) -> Tensor:
        """Return logits over the target vocabulary."""
        return functional.linear(hidden, self.target.weight)
