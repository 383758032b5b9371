"""Models of `Autoencoder` and `VAE`: encoding, decoding, reconstruction errors and samples."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.stored import check_arrays, check_finite
from firth.core.vectors import Vectors
from firth.data.table import Table
from firth.nets.autoencoder import Code, Shape, TableNet, divergences, sample_code
from firth.tables.network_inputs import Cells, Layout, keys_of
from firth.tables.table_model import Coded, Errors, TableModel, stored_points
from firth.training.network_options import CompressingOptions, Variational, hidden_sizes_of
from firth.training.weight_files import with_weights

Array = NDArray[np.float64]
ROWS_PER_BATCH = 4096  # of inference
NET = "net."  # prefix of the network's arrays
STORED_CODES = ("known", "known_deviations")


def shape_of(method: CompressingOptions, layout: Layout) -> Shape:
    """Return the network shape that a method's options give for a table."""
    return Shape(
        varies=layout.varies,
        gaps=tuple(layout.gaps),
        levels=tuple(len(column.levels) for column in layout.categories),
        dim=method.dim,
        hidden_sizes=hidden_sizes_of(method),
        activation=method.activation,
        embedding=method.categorical == "embedding",
        tied=method.tied,
        variational=isinstance(method, Variational),
        # Limits the weight of nearly constant columns, such as pixels that are almost always white.
        least_deviation=0.1 if layout.shared_scale else 0.01,
        dropout=method.dropout,
    )


class AutoencoderModel(TableModel):
    """`transform` encodes rows, `inverse` decodes codes.

    If the model was fitted on `Vectors`, their codes are the main table, `tables["points"]`. Each embedded categorical
    column has a table of its categories.
    """

    method: CompressingOptions

    def __init__(
        self,
        method: CompressingOptions,
        layout: Layout,
        net: TableNet,
        training: Mapping[str, Any],
        points: Vectors | None = None,
    ) -> None:
        self.method, self.layout, self.training, self.points = method, layout, training, points
        self.net = net.cpu().double().eval()  # float64, so that a code does not depend on the batch
        self.names = layout.names

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.names)} columns → {self.method.dim} numbers"

    def features(self, names: Sequence[str]) -> list[str]:
        """Return autoencoder0, autoencoder1, …, regardless of the column names."""
        return [f"{type(self.method).method_name()}{number}" for number in range(self.method.dim)]

    # ---- storage ----

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        stored = self.layout.parts()
        arrays: dict[str, NDArray[Any]] = dict(stored.arrays)
        arrays |= {NET + name: tensor.float().numpy() for name, tensor in self.net.state_dict().items()}
        documents = dict(stored.documents)
        if self.points is not None:
            arrays["points"] = self.points.matrix
            documents["keys"] = list(self.points.keys)
        return Parts(arrays, documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> AutoencoderModel:
        """Return the saved model, checked."""
        assert isinstance(method, CompressingOptions)
        layout = Layout.from_parts(parts)
        net = with_weights(lambda: TableNet(shape_of(method, layout)), parts.arrays, NET.__add__)
        points = stored_points(parts, method.dim)
        return cls(method, layout, net, training, points)

    # ---- rows and codes ----

    def open(self, data: Any) -> Table:
        """Return `data` as a table that has this model's columns."""
        return self.layout.open(data)

    def cells(self, data: Any) -> Cells:
        """Return `data` as network inputs."""
        return self.layout.read(self.open(data))

    def batches(self, cells: Cells) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Yield batches of rows: their slice, numbers and category ids."""
        for first in range(0, len(cells.ids), ROWS_PER_BATCH):
            rows = slice(first, first + ROWS_PER_BATCH)
            yield rows, torch.from_numpy(cells.numbers[rows]), torch.from_numpy(cells.ids[rows])

    @torch.inference_mode()
    def encoded(self, cells: Cells) -> tuple[Array, Array]:
        """Return the means and standard deviations of the codes; the deviations are 0 unless variational."""
        means, deviations = np.empty((2, len(cells.ids), self.method.dim))
        for rows, numbers, ids in self.batches(cells):
            code = self.net.encode(numbers, ids)
            means[rows] = code.mean.numpy()
            deviations[rows] = 0.0 if code.logvar is None else torch.exp(0.5 * code.logvar).numpy()
        return means, deviations

    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        """Return the codes of `data`, one row per table row."""
        cells = self.cells(data)
        return Coded(self.encoded(cells)[0], cells.unseen)

    def codes(self, data: Any, keys: str | Sequence[str] | None = None) -> Vectors:
        """Return codes as `Vectors`; `keys` is the name of a key column, or the keys themselves.

        By default vectors keep their keys, and rows of a table are numbered from 1.
        """
        if isinstance(data, Vectors) and keys is None:
            keys = data.keys
        table = self.open(data)
        return Vectors(keys_of(table, keys), self.embed(table))

    @torch.inference_mode()
    def outputs(self, codes: Any) -> Tensor:
        """Return the decoder's outputs (rows × outputs) for codes."""
        points = np.asarray(codes, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.method.dim or not np.isfinite(points).all():
            raise FirthError(
                "shape_mismatch",
                "Codes must be a matrix of finite numbers with {dim} columns; got shape {shape}.",
                dim=self.method.dim,
                shape=points.shape,
            )
        parts = [
            self.net.decode(torch.from_numpy(points[i : i + ROWS_PER_BATCH]))
            for i in range(0, len(points), ROWS_PER_BATCH)
        ]
        return torch.cat([*parts, torch.zeros(0, self.net.shape.outputs, dtype=torch.float64)])

    def logits(self, outputs: Tensor) -> list[Tensor]:
        """Return the logits of each categorical column."""
        return list(torch.split(outputs[:, len(self.net.shape.varies) :], list(self.net.shape.levels), dim=1))

    def inverse(self, matrix: Any) -> Table:
        """Return the decoded rows: expected values of numbers, and the most probable categories."""
        outputs = self.outputs(matrix)
        category_ids = [
            logits.argmax(1) if logits.shape[1] else torch.full((len(logits),), -1) for logits in self.logits(outputs)
        ]
        ids = torch.stack(category_ids, dim=1) if category_ids else torch.zeros(len(outputs), 0, dtype=torch.long)
        return self.layout.table(outputs[:, : len(self.net.shape.varies)].numpy(), ids.numpy())

    @torch.inference_mode()
    def errors(self, data: Any) -> Errors:
        """Return the reconstruction error of each cell; an unseen category has −log p of one in a million."""
        table = self.open(data)
        cells = self.layout.read(table)
        names = [column.name for column in self.layout.numbers] + [column.name for column in self.layout.categories]
        cell_errors = np.zeros((len(cells.ids), len(names)))
        for rows, numbers, ids in self.batches(cells):
            outputs = self.net.decode(self.net.encode(numbers, ids).mean)
            cell_errors[rows] = torch.cat(self.net.errors(outputs, numbers, ids), dim=1).numpy()
        for position, category in enumerate(self.layout.categories, len(self.layout.numbers)):
            cell_errors[category.read(table) < -1, position] = -np.log(1e-6)
        order = sorted(range(len(names)), key=lambda position: self.names.index(names[position]))
        return Errors([names[position] for position in order], cell_errors[:, order])

    def interpolate(self, data: Any, first: int, second: int, steps: int = 9) -> Table:
        """Return `steps` decoded rows on the line between the codes of two rows of `data`, including both ends."""
        table = self.open(data)
        for row in (first, second):
            if not 0 <= row < len(table):
                raise FirthError(
                    "invalid_value",
                    "Row numbers range from 0 to {last_row:,}; got {got}.",
                    last_row=len(table) - 1,
                    got=row,
                )
        if steps < 2:
            raise FirthError(
                "invalid_value", "{option} must be at least 2 (both ends); got {got}.", option="steps", got=steps
            )
        ends = [self.transform(table.slice(row, row + 1)) for row in (first, second)]
        along = np.linspace(0, 1, steps)[:, None]
        return self.inverse((1 - along) * ends[0] + along * ends[1])

    # ---- vectors ----

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        """The codes of the vectors that the model was fitted on, and the embedded categories of each column."""
        tables = {} if self.points is None else {"points": self.points}
        for column, weights in zip(self.layout.categories, self.net.input.embeddings.parameters(), strict=False):
            matrix = weights.detach().float().numpy()[:-1]
            tables[column.name] = Vectors(column.levels, matrix, missing=f"column {column.name} has no such category")
        return tables

    @property
    def vectors(self) -> Vectors:
        """The first of `tables`."""
        nothing = Vectors(
            [],
            np.zeros((0, 0)),
            missing="the model has no vectors of its own; encode rows with codes(table) or `firth embed`",
        )
        return next(iter(self.tables.values()), nothing)


class VAEModel(AutoencoderModel):
    """An autoencoder whose codes are distributions, and which can sample rows."""

    #: Codes of training rows (means and standard deviations), from which the codes of samples are drawn.
    training_codes: tuple[Array, Array]

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        stored = super().parts()
        return Parts({**stored.arrays, **dict(zip(STORED_CODES, self.training_codes, strict=True))}, stored.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> AutoencoderModel:
        """Return the saved model, checked."""
        model = super().from_parts(method, parts, training)
        assert isinstance(model, VAEModel)
        check_arrays(parts.arrays, **dict.fromkeys(STORED_CODES, f"float rows {model.method.dim}"))
        means, deviations = (parts.arrays[name] for name in STORED_CODES)
        check_finite({name: parts.arrays[name] for name in STORED_CODES})
        if not len(means):
            raise FirthError("damaged_model", "A VAE model must store the codes of at least one row.")
        model.training_codes = means, deviations
        return model

    def __repr__(self) -> str:
        return f"{super().__repr__()}, {self.training['active']} of them in use"

    def deviations(self, data: Any) -> Array:
        """Return the standard deviations of the codes of rows, whose means `transform` gives."""
        return self.encoded(self.cells(data))[1]

    @torch.inference_mode()
    def elbo(self, data: Any, *, seed: int = 1) -> dict[str, float]:
        """Return the mean evidence lower bound of the rows in nats, and its parts: `elbo` = −`reconstruction` − `kl`.

        The reconstruction term is −log p of the columns at one sample of each row's code.
        """
        cells = self.cells(data)
        generator = torch.Generator().manual_seed(seed)
        sums = np.zeros(2)
        for _, numbers, ids in self.batches(cells):
            code = self.net.encode(numbers, ids)
            losses, kl = elbo_parts(self.net, code, numbers, ids, generator)
            sums += (float(losses), float(kl.sum()))
        reconstruction, kl = (sums / max(1, len(cells.ids))).tolist()
        return {"elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}

    def sample(self, n: int = 1, *, seed: int = 1, noise: bool = True, prior: bool = False) -> Table:
        """Return `n` sampled rows.

        Numbers stay within the range of the training data and are whole if all of those were; categories are those of
        the training data. Without `noise`, numbers are expected values and categories the most probable ones, which
        gives smoother images and less varied rows.

        Codes are drawn from the aggregate posterior, the mixture of the training rows' codes, which is the optimal
        prior (Tomczak & Welling 2018, section 2.2); with `prior`, from N(0, 1).
        """
        if n < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="n", got=n)
        random = np.random.default_rng(seed)
        codes = random.standard_normal((n, self.method.dim))
        if not prior:
            rows = random.integers(len(self.training_codes[0]), size=n)
            codes = self.training_codes[0][rows] + self.training_codes[1][rows] * codes
        return self.decoded(self.outputs(codes), torch.Generator().manual_seed(seed), noise)

    @torch.inference_mode()
    def decoded(self, outputs: Tensor, generator: torch.Generator, noise: bool) -> Table:
        """Return rows sampled from the decoder's distributions, or their modes without `noise`."""
        count = len(self.net.shape.varies)
        numbers, category_ids = outputs[:, :count], []
        if noise:
            noise_sample = torch.randn(numbers.shape, generator=generator, dtype=torch.float64)
            numbers = numbers + noise_sample * torch.exp(self.net.log_deviations()) * self.net.varies
        for logits in self.logits(outputs):
            if not logits.shape[1]:
                category_ids.append(torch.full((len(logits),), -1))
            elif noise:
                category_ids.append(torch.multinomial(torch.softmax(logits, dim=1), 1, generator=generator)[:, 0])
            else:
                category_ids.append(logits.argmax(1))
        ids = torch.stack(category_ids, dim=1) if category_ids else torch.zeros(len(outputs), 0, dtype=torch.long)
        return self.layout.table(numbers.numpy(), ids.numpy(), like_data=True)


def elbo_parts(
    net: TableNet, code: Code, numbers: Tensor, ids: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Return, summed over a batch, −log p of the rows at one sample of each code, and the KL of each dimension."""
    noise = torch.randn(code.mean.shape, generator=generator, dtype=torch.float64).to(code.mean)
    losses = net.row_losses(net.decode(sample_code(code, noise)), numbers, ids)
    return losses.sum(), divergences(code).sum(0)
