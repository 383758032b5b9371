"""What `Autoencoder` and `VAE` learned: rows to codes and back, errors, and new rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, NamedTuple

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
from firth.tables.table_model import Coded, TableModel, stored_points
from firth.training.network_options import CompressingOptions, hidden_sizes_of
from firth.training.weight_files import with_weights

Array = NDArray[np.float64]
ROWS = 4096  # rows that go through a network at once
NET = "net."  # before the names of the network's arrays
KNOWN = ("known", "known_deviations")


def shape_of(method: Any, layout: Layout) -> Shape:
    """The network that a method's options tell of, for a table."""
    return Shape(
        varies=layout.varies,
        gaps=tuple(layout.gaps),
        levels=tuple(len(column.levels) for column in layout.categories),
        dim=method.dim,
        hidden_sizes=hidden_sizes_of(method),
        activation=method.activation,
        embedding=method.categorical == "embedding",
        tied=getattr(method, "tied", False),
        variational=hasattr(method, "beta"),
        # A pixel that is nearly always white must not count a hundred times as much as the others.
        least_deviation=0.1 if layout.one_scale else 0.01,
        dropout=method.dropout,
    )


class Errors(NamedTuple):
    """What is rebuilt wrongly: of a number (x − x̂)² in units of its column's scale, of a category −log p."""

    columns: list[str]
    cells: Array  # (rows, columns); 0 where a cell is missing

    @property
    def rows(self) -> Array:
        """Of each row, the mean over its columns: what is unlike the rest stands out."""
        means: Array = self.cells.mean(axis=1)
        return means

    def odd(self, k: int = 10) -> list[tuple[int, float, str]]:
        """The `k` rows that are rebuilt worst, worst first: row, error, and the column that has most of it."""
        order = np.argsort(-self.rows, kind="stable")[:k]
        return [(int(row), float(self.rows[row]), self.columns[int(self.cells[row].argmax())]) for row in order]


class AutoencoderModel(TableModel):
    """`transform` gives the codes of rows, `inverse` rows of codes.

    Fitted on `Vectors`, their codes are the main table, `tables["points"]`. Where categories are embedded, each column
    of them has a table of its levels.
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
        self.net = net.cpu().double().eval()  # so that a row's code does not depend on its neighbours in a batch
        self.names = layout.names

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.names)} columns → {self.method.dim} numbers"

    def features(self, names: Sequence[str]) -> list[str]:
        """autoencoder0, autoencoder1, …, whatever the table's columns are called."""
        return [f"{type(self.method).method_name()}{place}" for place in range(self.method.dim)]

    # ---- storage ----

    def parts(self) -> Parts:
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
        assert isinstance(method, CompressingOptions)
        layout = Layout.from_parts(parts)
        net = with_weights(lambda: TableNet(shape_of(method, layout)), parts.arrays, NET.__add__)
        points = stored_points(parts, method.dim)
        return cls(method, layout, net, training, points)

    # ---- rows and codes ----

    def open(self, data: Any) -> Table:
        return self.layout.open(data)

    def cells(self, data: Any) -> Cells:
        return self.layout.read(self.open(data))

    def batches(self, cells: Cells) -> Iterator[tuple[slice, Tensor, Tensor]]:
        """Some rows at a time: which they are, their numbers and their ids."""
        for first in range(0, len(cells.ids), ROWS):
            part = slice(first, first + ROWS)
            yield part, torch.from_numpy(cells.numbers[part]), torch.from_numpy(cells.ids[part])

    @torch.inference_mode()
    def encoded(self, cells: Cells) -> tuple[Array, Array]:
        """Means and, variational, deviations of the codes."""
        means, deviations = np.empty((2, len(cells.ids), self.method.dim))
        for part, numbers, ids in self.batches(cells):
            code = self.net.encode(numbers, ids)
            means[part] = code.mean.numpy()
            deviations[part] = 0.0 if code.logvar is None else torch.exp(0.5 * code.logvar).numpy()
        return means, deviations

    def coded(self, data: Any, *, sparse: bool = False) -> Coded:
        cells = self.cells(data)
        return Coded(self.encoded(cells)[0], cells.unseen)

    def codes(self, data: Any, keys: str | Sequence[str] | None = None) -> Vectors:
        """Codes as `Vectors`; `keys` names a column of the table that tells rows apart, or gives the keys. Without it
        rows are called by their numbers from 1 on (vectors by their own keys)."""
        if isinstance(data, Vectors) and keys is None:
            keys = data.keys
        table = self.open(data)
        return Vectors(keys_of(table, keys), self.embed(table))

    @torch.inference_mode()
    def outputs(self, codes: Any) -> Tensor:
        points = np.asarray(codes, dtype=np.float64)
        if points.ndim != 2 or points.shape[1] != self.method.dim or not np.isfinite(points).all():
            raise FirthError(
                "shape_mismatch",
                "A code has {dim} finite numbers; got an array of the shape {shape}.",
                dim=self.method.dim,
                shape=points.shape,
            )
        parts = [self.net.decode(torch.from_numpy(points[i : i + ROWS])) for i in range(0, len(points), ROWS)]
        return torch.cat([*parts, torch.zeros(0, self.net.shape.outputs, dtype=torch.float64)])

    def logits(self, outputs: Tensor) -> list[Tensor]:
        """Of each column of categories."""
        return list(torch.split(outputs[:, len(self.net.shape.varies) :], list(self.net.shape.levels), dim=1))

    def inverse(self, matrix: Any) -> Table:
        """The rows that codes stand for: of numbers what is expected, of categories the likeliest."""
        outputs = self.outputs(matrix)
        found = [part.argmax(1) if part.shape[1] else torch.full((len(part),), -1) for part in self.logits(outputs)]
        ids = torch.stack(found, dim=1) if found else torch.zeros(len(outputs), 0, dtype=torch.long)
        return self.layout.table(outputs[:, : len(self.net.shape.varies)].numpy(), ids.numpy())

    @torch.inference_mode()
    def errors(self, data: Any) -> Errors:
        """How far each cell is from what the row's code makes of it; a category that fit did not meet counts as
        unlikely as one in a million."""
        table = self.open(data)
        cells = self.layout.read(table)
        names = [column.name for column in self.layout.numbers] + [column.name for column in self.layout.categories]
        found = np.zeros((len(cells.ids), len(names)))
        for part, numbers, ids in self.batches(cells):
            outputs = self.net.decode(self.net.encode(numbers, ids).mean)
            found[part] = torch.cat(self.net.errors(outputs, numbers, ids), dim=1).numpy()
        for place, category in enumerate(self.layout.categories, len(self.layout.numbers)):
            found[category.read(table) < -1, place] = -np.log(1e-6)
        order = sorted(range(len(names)), key=lambda place: self.names.index(names[place]))
        return Errors([names[place] for place in order], found[:, order])

    def interpolate(self, data: Any, first: int, second: int, steps: int = 9) -> Table:
        """Rows on the straight line between the codes of two rows of `data`, both ends among them."""
        table = self.open(data)
        for row in (first, second):
            if not 0 <= row < len(table):
                raise FirthError(
                    "invalid_value",
                    "Rows are numbered from 0 to {n_table:,}; got {got}.",
                    n_table=len(table) - 1,
                    got=row,
                )
        if steps < 2:
            raise FirthError(
                "invalid_value", "{option} must be at least 2, the ends; got {got}.", option="steps", got=steps
            )
        ends = [self.transform(table.slice(row, row + 1)) for row in (first, second)]
        along = np.linspace(0, 1, steps)[:, None]
        return self.inverse((1 - along) * ends[0] + along * ends[1])

    # ---- vectors ----

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        """The codes of the vectors it was fitted on, and the embedded categories of each column."""
        found = {} if self.points is None else {"points": self.points}
        for column, weights in zip(self.layout.categories, self.net.input.embeddings.parameters(), strict=False):
            matrix = weights.detach().float().numpy()[:-1]
            found[column.name] = Vectors(column.levels, matrix, missing=f"no category of column {column.name}")
        return found

    @property
    def vectors(self) -> Vectors:
        nothing = Vectors([], np.zeros((0, 0)), missing="rows have codes: codes(table), or `firth embed`")
        return next(iter(self.tables.values()), nothing)


class VAEModel(AutoencoderModel):
    """An autoencoder whose codes are distributions, and which can make up rows."""

    #: Codes of rows that it learned from (means, and the deviations around them): where new rows' codes are drawn.
    known: tuple[Array, Array]

    def parts(self) -> Parts:
        stored = super().parts()
        return Parts({**stored.arrays, **dict(zip(KNOWN, self.known, strict=True))}, stored.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> AutoencoderModel:
        model = super().from_parts(method, parts, training)
        assert isinstance(model, VAEModel)
        check_arrays(parts.arrays, **dict.fromkeys(KNOWN, f"float rows {model.method.dim}"))
        means, deviations = (parts.arrays[name] for name in KNOWN)
        check_finite({name: parts.arrays[name] for name in KNOWN})
        if not len(means):
            raise FirthError("damaged_model", "A VAE model needs codes of some rows.")
        model.known = means, deviations
        return model

    def __repr__(self) -> str:
        return f"{super().__repr__()}, {self.training['active']} of them in use"

    def deviations(self, data: Any) -> Array:
        """How unsure each number of a row's code is: the standard deviation around what `transform` gives."""
        return self.encoded(self.cells(data))[1]

    @torch.inference_mode()
    def elbo(self, data: Any, *, seed: int = 1) -> dict[str, float]:
        """The evidence lower bound of a row in nats, the mean over `data`, and its parts: `elbo` = −`reconstruction` −
        `kl`, with −log p of the columns at one point drawn from each row's code."""
        cells = self.cells(data)
        generator = torch.Generator().manual_seed(seed)
        parts = np.zeros(2)
        for _, numbers, ids in self.batches(cells):
            code = self.net.encode(numbers, ids)
            losses, kl = elbo_parts(self.net, code, numbers, ids, generator)
            parts += (float(losses), float(kl.sum()))
        reconstruction, kl = (parts / max(1, len(cells.ids))).tolist()
        return {"elbo": -reconstruction - kl, "reconstruction": reconstruction, "kl": kl}

    def sample(self, n: int = 1, *, seed: int = 1, noise: bool = True, prior: bool = False) -> Table:
        """`n` new rows. Numbers lie within those that fit saw, whole where all of these were; categories are drawn from
        those it met. Without `noise`, numbers are what is expected at a drawn code and categories the likeliest:
        smoother pictures, less varied rows.

        Codes are drawn from where rows' codes lie, the mixture of their distributions, which is the prior under which
        the rows are likeliest (Tomczak & Welling 2018, section 2.2); with `prior`, from N(0, 1), the textbook's.
        """
        if n < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="n", got=n)
        random = np.random.default_rng(seed)
        codes = random.standard_normal((n, self.method.dim))
        if not prior:
            rows = random.integers(len(self.known[0]), size=n)
            codes = self.known[0][rows] + self.known[1][rows] * codes
        return self.decoded(self.outputs(codes), torch.Generator().manual_seed(seed), noise)

    @torch.inference_mode()
    def decoded(self, outputs: Tensor, generator: torch.Generator, noise: bool) -> Table:
        """Rows drawn from what the network says of them."""
        count = len(self.net.shape.varies)
        numbers, found = outputs[:, :count], []
        if noise:
            scatter = torch.randn(numbers.shape, generator=generator, dtype=torch.float64)
            numbers = numbers + scatter * torch.exp(self.net.log_deviations()) * self.net.varies
        for part in self.logits(outputs):
            if not part.shape[1]:
                found.append(torch.full((len(part),), -1))
            elif noise:
                found.append(torch.multinomial(torch.softmax(part, dim=1), 1, generator=generator)[:, 0])
            else:
                found.append(part.argmax(1))
        ids = torch.stack(found, dim=1) if found else torch.zeros(len(outputs), 0, dtype=torch.long)
        return self.layout.table(numbers.numpy(), ids.numpy(), like_data=True)


def elbo_parts(
    net: TableNet, code: Code, numbers: Tensor, ids: Tensor, generator: torch.Generator
) -> tuple[Tensor, Tensor]:
    """Of a batch, summed: −log p of what its rows hold at one drawn point each, and KL of each dimension."""
    noise = torch.randn(code.mean.shape, generator=generator, dtype=torch.float64).to(code.mean)
    losses = net.row_losses(net.decode(sample_code(code, noise)), numbers, ids)
    return losses.sum(), divergences(code).sum(0)
