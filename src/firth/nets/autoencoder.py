"""Networks that squeeze a row of a table through few numbers and rebuild it: the autoencoder (Rumelhart et al. 1986,
Hinton & Salakhutdinov 2006) and the variational one (Kingma & Welling 2014).

A row comes as `numbers` (rows, n), NaN where one is missing, and `ids` (rows, c) of its categories, −1 where one is
missing or unknown. What comes out for it is a number for each column of numbers and, for each column of categories, a
logit for each of its levels: `outputs` (rows, n + Σ levels).
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

GAIN = 10.0  # Adam moves a weight by about the rate in a step, and a deviation must be able to fall faster than that


class Shape(NamedTuple):
    """What a network is made for."""

    varies: tuple[bool, ...]  # of each column of numbers: False where all of them are one number
    gaps: tuple[int, ...]  # columns of numbers that have missing cells
    levels: tuple[int, ...]  # of each column of categories
    dim: int
    hidden_sizes: tuple[int, ...] = ()
    activation: str = "gelu"
    embedding: bool = True  # categories as learned vectors, else one-hot
    tied: bool = False  # the decoder uses the encoder's matrices, transposed
    variational: bool = False
    least_deviation: float = 0.01  # of a column around what is rebuilt, in units of the scaled column
    dropout: float = 0.0

    @property
    def outputs(self) -> int:
        return len(self.varies) + sum(self.levels)


class Code(NamedTuple):
    """Where a row lies: the mean, and the logarithm of the variance around it where the network is variational."""

    mean: Tensor  # (rows, dim)
    logvar: Tensor | None


class RowInput(nn.Module):
    """A row as numbers: the numbers themselves, the categories, and which of the numbers are missing."""

    gaps: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        sizes = [min(50, max(1, round(1.6 * levels**0.56))) for levels in shape.levels] if shape.embedding else []
        # One more row, the last, for missing and unknown.
        self.embeddings = nn.ModuleList(
            nn.Embedding(levels + 1, size) for levels, size in zip(shape.levels, sizes, strict=bool(sizes))
        )
        self.register_buffer("gaps", torch.tensor(shape.gaps, dtype=torch.long), persistent=False)
        self.width = len(shape.varies) + (sum(sizes) if shape.embedding else sum(shape.levels)) + len(shape.gaps)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        parts = [torch.nan_to_num(numbers)]
        for column, levels in enumerate(self.shape.levels):
            column_ids = ids[:, column]
            if self.shape.embedding:
                parts.append(self.embeddings[column](torch.where(column_ids < 0, levels, column_ids)))
            else:  # missing is all zeros
                parts.append(
                    functional.one_hot(torch.where(column_ids < 0, levels, column_ids), levels + 1)[:, :-1].to(numbers)
                )
        parts.append(torch.isnan(numbers[:, self.gaps]).to(numbers))
        return torch.cat(parts, dim=1)


Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"gelu": functional.gelu, "relu": functional.relu, "tanh": torch.tanh}


class Stack(nn.Module):
    """Hidden layers, and a straight path beside them: without layers it is a linear map, and with them it need only
    learn what a linear map leaves."""

    def __init__(
        self, inputs: int, hidden_sizes: tuple[int, ...], outputs: int, activation: str, dropout: float
    ) -> None:
        super().__init__()
        sizes = (inputs, *hidden_sizes)
        self.layers: Any = nn.ModuleList(nn.Linear(a, b) for a, b in itertools.pairwise(sizes))
        self.last = nn.Linear(sizes[-1], outputs, bias=False) if hidden_sizes else None
        self.straight = nn.Linear(inputs, outputs)
        self.activation: Activation = ACTIVATIONS[activation]
        self.dropout = dropout

    def hidden(self, x: Tensor) -> Tensor:
        for layer in self.layers:
            x = functional.dropout(self.activation(layer(x)), self.dropout, self.training)
        return x

    def joined(self, x: Tensor, hidden: Tensor) -> Tensor:
        """What the last hidden layer and the straight path come to."""
        output: Tensor = self.straight(x)
        return output if self.last is None else output + self.last(hidden)

    def forward(self, x: Tensor) -> Tensor:
        return self.joined(x, self.hidden(x))


class TiedDecoder(nn.Module):
    """The way back through an encoder's own matrices; only the biases are its own. Of the encoder's inputs the first
    `outputs` are rebuilt."""

    def __init__(self, encoder: Stack, outputs: int) -> None:
        super().__init__()
        widths = [layer.weight.shape[0] for layer in encoder.layers]
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in [*widths[::-1], outputs])
        self.outputs = outputs

    def forward(self, code: Tensor, encoder: Stack) -> Tensor:
        output: Tensor = code @ encoder.straight.weight[:, : self.outputs] + self.biases[-1]
        if encoder.last is None:
            return output
        x = code @ encoder.last.weight
        matrices = [layer.weight for layer in encoder.layers][::-1]
        for layer, matrix in enumerate(matrices):
            x = functional.dropout(encoder.activation(x + self.biases[layer]), encoder.dropout, self.training)
            x = x @ (matrix if layer < len(matrices) - 1 else matrix[:, : self.outputs])
        return output + x


class TableNet(nn.Module):
    """Encoder and decoder of rows."""

    varies: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        self.register_buffer("varies", torch.tensor(shape.varies, dtype=torch.bool), persistent=False)
        self.input = RowInput(shape)
        self.encoder = Stack(self.input.width, shape.hidden_sizes, shape.dim, shape.activation, shape.dropout)
        self.decoder: Stack | TiedDecoder
        if shape.tied:
            self.decoder = TiedDecoder(self.encoder, shape.outputs)
        else:
            self.decoder = Stack(shape.dim, shape.hidden_sizes[::-1], shape.outputs, shape.activation, shape.dropout)
        self.spread = self.deviations = None
        if shape.variational:
            self.spread = nn.Linear(shape.hidden_sizes[-1] if shape.hidden_sizes else self.input.width, shape.dim)
            nn.init.zeros_(self.spread.weight)
            nn.init.constant_(self.spread.bias, -2.0)
            self.deviations = nn.Parameter(torch.zeros(len(shape.varies)))

    def encode(self, numbers: Tensor, ids: Tensor) -> Code:
        x = self.input(numbers, ids)
        hidden = self.encoder.hidden(x)
        mean = self.encoder.joined(x, hidden)
        return Code(mean, None if self.spread is None else self.spread(hidden).clamp(-12, 6))

    def decode(self, code: Tensor) -> Tensor:
        """Numbers of columns that don't vary are 0: the one number that they have."""
        outputs: Tensor = (
            self.decoder(code, self.encoder) if isinstance(self.decoder, TiedDecoder) else self.decoder(code)
        )
        count = len(self.shape.varies)
        return torch.cat([outputs[:, :count] * self.varies, outputs[:, count:]], dim=1)

    def log_deviations(self) -> Tensor:
        """log σ of each column of numbers around what is rebuilt."""
        assert self.deviations is not None
        return (GAIN * self.deviations).clamp(min=math.log(self.shape.least_deviation))

    def errors(self, outputs: Tensor, numbers: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """For each row and column what is wrong: (x − x̂)² of numbers and −log p of categories; 0 where missing."""
        count = len(self.shape.varies)
        squares = torch.nan_to_num(numbers - outputs[:, :count]) ** 2
        category_losses = [
            functional.cross_entropy(part, ids[:, column], ignore_index=-1, reduction="none")
            for column, part in enumerate(torch.split(outputs[:, count:], list(self.shape.levels), dim=1))
        ]
        return squares, torch.stack(category_losses, dim=1) if category_losses else squares[:, :0]

    def row_losses(self, outputs: Tensor, numbers: Tensor, ids: Tensor) -> Tensor:
        """The loss of each row: half the squared errors and −log p; variational, −log p of all columns, numbers being
        normally distributed around what is rebuilt (Rybkin et al. 2021 learn the deviation so)."""
        squares, category_losses = self.errors(outputs, numbers, ids)
        if self.deviations is None:
            return 0.5 * squares.sum(1) + category_losses.sum(1)
        logs = self.log_deviations()
        density = 0.5 * squares * torch.exp(-2 * logs) + logs + 0.5 * math.log(2 * math.pi)
        return (density * self.varies * ~torch.isnan(numbers)).sum(1) + category_losses.sum(1)


def sample_code(code: Code, noise: Tensor) -> Tensor:
    """A point of the code's distribution, through which gradients flow to mean and variance (Kingma & Welling 2014,
    section 2.4)."""
    return code.mean if code.logvar is None else code.mean + noise * torch.exp(0.5 * code.logvar)


def divergences(code: Code) -> Tensor:
    """KL(N(mean, variance) ‖ N(0, 1)) of each row and dimension, in nats (Kingma & Welling 2014, appendix B)."""
    assert code.logvar is not None
    return 0.5 * (code.mean**2 + torch.exp(code.logvar) - 1 - code.logvar)


def divergence_loss(code: Code, free_bits: float = 0.0) -> Tensor:
    """The summed KL of a batch; below `free_bits` nats a dimension gains nothing more (Kingma et al. 2016, C.8)."""
    by_dim = divergences(code).mean(0)
    return torch.clamp(by_dim, min=free_bits).sum() * len(code.mean)
