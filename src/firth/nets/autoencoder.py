"""Autoencoders of table rows: plain (Rumelhart et al. 1986, Hinton & Salakhutdinov 2006) and variational (Kingma &
Welling 2014).

Inputs are `numbers` (rows, n), NaN where a value is missing, and category `ids` (rows, c), −1 where a category is
missing or unknown. `outputs` (rows, n + Σ levels) has one value per numeric column and one logit per category level.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from typing import Any, NamedTuple

import torch
from torch import Tensor, nn
from torch.nn import functional

GAIN = 10.0  # Adam moves a weight by about the learning rate per step, and deviations must fall faster


class Shape(NamedTuple):
    """The columns and layer sizes of a network."""

    varies: tuple[bool, ...]  # per numeric column: False if it is constant
    gaps: tuple[int, ...]  # numeric columns with missing values
    levels: tuple[int, ...]  # number of levels per categorical column
    dim: int
    hidden_sizes: tuple[int, ...] = ()
    activation: str = "gelu"
    embedding: bool = True  # learned embeddings of categories, or one-hot
    tied: bool = False  # the decoder uses the transposed encoder matrices
    variational: bool = False
    least_deviation: float = 0.01  # smallest standard deviation around a reconstruction, in scaled units
    dropout: float = 0.0

    @property
    def outputs(self) -> int:
        """Number of outputs per row."""
        return len(self.varies) + sum(self.levels)


class Code(NamedTuple):
    """The code of rows: the mean, and the log variance if the network is variational."""

    mean: Tensor  # (rows, dim)
    logvar: Tensor | None


class RowInput(nn.Module):
    """Encode rows as one vector: numbers, categories and indicators of missing numbers."""

    gaps: Tensor

    def __init__(self, shape: Shape) -> None:
        super().__init__()
        self.shape = shape
        sizes = [min(50, max(1, round(1.6 * levels**0.56))) for levels in shape.levels] if shape.embedding else []
        # The last row stands for missing and unknown categories.
        self.embeddings = nn.ModuleList(
            nn.Embedding(levels + 1, size) for levels, size in zip(shape.levels, sizes, strict=bool(sizes))
        )
        self.register_buffer("gaps", torch.tensor(shape.gaps, dtype=torch.long), persistent=False)
        self.width = len(shape.varies) + (sum(sizes) if shape.embedding else sum(shape.levels)) + len(shape.gaps)

    def forward(self, numbers: Tensor, ids: Tensor) -> Tensor:
        """Return rows as one matrix (rows, width)."""
        parts = [torch.nan_to_num(numbers)]
        for column, levels in enumerate(self.shape.levels):
            column_ids = ids[:, column]
            if self.shape.embedding:
                parts.append(self.embeddings[column](torch.where(column_ids < 0, levels, column_ids)))
            else:  # missing categories are all zeros
                parts.append(
                    functional.one_hot(torch.where(column_ids < 0, levels, column_ids), levels + 1)[:, :-1].to(numbers)
                )
        parts.append(torch.isnan(numbers[:, self.gaps]).to(numbers))
        return torch.cat(parts, dim=1)


Activation = Callable[[Tensor], Tensor]
ACTIVATIONS: dict[str, Activation] = {"gelu": functional.gelu, "relu": functional.relu, "tanh": torch.tanh}


class Stack(nn.Module):
    """Hidden layers plus a linear skip connection.

    Without hidden layers it is a linear map. With them, the layers learn what the linear map leaves over.
    """

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
        """Return the output of the last hidden layer."""
        for layer in self.layers:
            x = functional.dropout(self.activation(layer(x)), self.dropout, self.training)
        return x

    def joined(self, x: Tensor, hidden: Tensor) -> Tensor:
        """Return the sum of the last hidden layer's output and the linear skip connection."""
        output: Tensor = self.straight(x)
        return output if self.last is None else output + self.last(hidden)

    def forward(self, x: Tensor) -> Tensor:
        """Apply the hidden layers and the skip connection."""
        return self.joined(x, self.hidden(x))


class TiedDecoder(nn.Module):
    """A decoder that uses the transposed matrices of an encoder, with biases of its own.

    It reconstructs the first `outputs` inputs of the encoder.
    """

    def __init__(self, encoder: Stack, outputs: int) -> None:
        super().__init__()
        widths = [layer.weight.shape[0] for layer in encoder.layers]
        self.biases = nn.ParameterList(nn.Parameter(torch.zeros(size)) for size in [*widths[::-1], outputs])
        self.outputs = outputs

    def forward(self, code: Tensor, encoder: Stack) -> Tensor:
        """Decode with the transposed matrices of `encoder`."""
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
    """An encoder and a decoder of table rows."""

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
        """Return the codes of rows."""
        x = self.input(numbers, ids)
        hidden = self.encoder.hidden(x)
        mean = self.encoder.joined(x, hidden)
        return Code(mean, None if self.spread is None else self.spread(hidden).clamp(-12, 6))

    def decode(self, code: Tensor) -> Tensor:
        """Return outputs; constant columns are 0, their scaled value."""
        outputs: Tensor = (
            self.decoder(code, self.encoder) if isinstance(self.decoder, TiedDecoder) else self.decoder(code)
        )
        count = len(self.shape.varies)
        return torch.cat([outputs[:, :count] * self.varies, outputs[:, count:]], dim=1)

    def log_deviations(self) -> Tensor:
        """Return log σ of each numeric column around its reconstruction."""
        assert self.deviations is not None
        return (GAIN * self.deviations).clamp(min=math.log(self.shape.least_deviation))

    def errors(self, outputs: Tensor, numbers: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Return (x − x̂)² of numbers and −log p of categories for each row and column; 0 where missing."""
        count = len(self.shape.varies)
        squares = torch.nan_to_num(numbers - outputs[:, :count]) ** 2
        category_losses = [
            functional.cross_entropy(part, ids[:, column], ignore_index=-1, reduction="none")
            for column, part in enumerate(torch.split(outputs[:, count:], list(self.shape.levels), dim=1))
        ]
        return squares, torch.stack(category_losses, dim=1) if category_losses else squares[:, :0]

    def row_losses(self, outputs: Tensor, numbers: Tensor, ids: Tensor) -> Tensor:
        """Return the loss of each row: half the squared errors plus −log p of the categories.

        In a variational network it is −log p of all columns, where numbers are normally distributed around their
        reconstruction with a learned deviation (Rybkin et al. 2021).
        """
        squares, category_losses = self.errors(outputs, numbers, ids)
        if self.deviations is None:
            return 0.5 * squares.sum(1) + category_losses.sum(1)
        logs = self.log_deviations()
        density = 0.5 * squares * torch.exp(-2 * logs) + logs + 0.5 * math.log(2 * math.pi)
        return (density * self.varies * ~torch.isnan(numbers)).sum(1) + category_losses.sum(1)


def sample_code(code: Code, noise: Tensor) -> Tensor:
    """Draw from the code's distribution by the reparameterization trick (Kingma & Welling 2014, section 2.4)."""
    return code.mean if code.logvar is None else code.mean + noise * torch.exp(0.5 * code.logvar)


def divergences(code: Code) -> Tensor:
    """Return KL(N(mean, variance) ‖ N(0, 1)) of each row and dimension, in nats (Kingma & Welling 2014, appendix B)."""
    assert code.logvar is not None
    return 0.5 * (code.mean**2 + torch.exp(code.logvar) - 1 - code.logvar)


def divergence_loss(code: Code, free_bits: float = 0.0) -> Tensor:
    """Return the summed KL of a batch; each dimension counts at least `free_bits` nats (Kingma et al. 2016, C.8)."""
    by_dim = divergences(code).mean(0)
    return torch.clamp(by_dim, min=free_bits).sum() * len(code.mean)
