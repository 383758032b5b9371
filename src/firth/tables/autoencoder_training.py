"""Training of `Autoencoder` and `VAE` on tables and vectors."""

from __future__ import annotations

import copy
import time
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.run import Run
from firth.core.vectors import Vectors
from firth.data.table import Table
from firth.nets.autoencoder import TableNet, divergence_loss, sample_code
from firth.tables.autoencoder_model import AutoencoderModel, VAEModel, elbo_parts, shape_of
from firth.tables.column_codes import DroppedColumn
from firth.tables.network_inputs import Cells, Layout, describe, finite
from firth.tables.pca_initialization import initialize_from_pca
from firth.training.network_options import CompressingOptions, Variational
from firth.training.row_batches import RowTraining

ACTIVE = 0.01  # nats of KL above which a dimension of the code is active
STORED_CODE_ROWS = 5000  # rows whose codes a VAE stores for sampling

Coder = TypeVar("Coder", bound=AutoencoderModel)


class AutoencoderTraining(RowTraining):
    """Training on the reconstruction loss of table rows."""

    measures_start = True
    method: CompressingOptions

    def __init__(self, method: CompressingOptions, net: TableNet, cells: Cells, fingerprint: str, run: Run) -> None:
        self.cells = torch.from_numpy(cells.numbers.astype(np.float32)), torch.from_numpy(cells.ids)
        super().__init__(method, net, len(cells.ids), fingerprint, run)

    @property
    def table_net(self) -> TableNet:
        """The network."""
        assert isinstance(self.net, TableNet)
        return self.net

    def load(self, rows: Any) -> Any:
        """Return the numbers and category ids of these rows."""
        return [tensor[rows] for tensor in self.cells]

    def hidden(self, numbers: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Mark a random share of the cells (`denoise`) as missing (Vincent et al. 2008)."""
        hidden_share = self.method.denoise
        if not hidden_share:
            return numbers, ids
        return (
            numbers.masked_fill(torch.rand_like(numbers) < hidden_share, torch.nan),
            ids.masked_fill(torch.rand(ids.shape, device=ids.device) < hidden_share, -1),
        )

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of a batch: reconstruction and, variational, the KL term."""
        numbers, ids = tensors
        net, method = self.table_net, self.method
        code = net.encode(*self.hidden(numbers, ids))
        if not isinstance(method, Variational):
            return net.row_losses(net.decode(code.mean), numbers, ids).sum()
        losses = net.row_losses(net.decode(sample_code(code, torch.randn_like(code.mean))), numbers, ids)
        weight = method.beta * self.annealed(method.kl_annealing)
        loss: Tensor = losses.sum() + weight * divergence_loss(code, method.free_bits)
        return loss

    def evaluate(self, most: int) -> dict[str, float]:
        """Return held-out losses, with the same noise each time and the full KL weight during annealing."""
        if not len(self.held_out):
            return {}
        total, nats = 0.0, torch.zeros(self.table_net.shape.dim, dtype=torch.float64)  # of each dimension
        generator = torch.Generator().manual_seed(self.run.seed)
        for rows in self.measured_rows(most):
            numbers, ids = (tensor.to(self.device) for tensor in self.load(rows))
            code = self.table_net.encode(numbers, ids)
            if code.logvar is None:
                total += float(self.table_net.row_losses(self.table_net.decode(code.mean), numbers, ids).sum())
            else:
                losses, by_dim = elbo_parts(self.table_net, code, numbers, ids, generator)
                total, nats = total + float(losses), nats + by_dim.double().cpu()
        count = sum(map(len, self.measured_rows(most)))
        method = self.method
        if not isinstance(method, Variational):
            return {"held_out_loss": total / count}
        kl_cost = float(torch.clamp(nats / count, min=method.free_bits).sum())
        kl = float(nats.sum()) / count
        return {"held_out_loss": total / count + method.beta * kl_cost, "reconstruction": total / count, "kl": kl}


def train_autoencoder(
    model_class: type[Coder], method: CompressingOptions, data: Any, run: Run, start: Model | None
) -> Coder:
    """Fit the columns, train the network and encode the rows."""
    name = type(method).__name__
    if start is not None and type(start) is not model_class:
        raise FirthError(
            "incompatible_start", "start must be a model of {method}; got {got!r}.", method=name, got=start
        )
    began = time.monotonic()
    layout, table = prepare_table(method, data, run, start)
    cells = layout.read(table)
    fingerprint = data.fingerprint() if isinstance(data, Vectors) else table.fingerprint()
    shape = shape_of(method, layout)
    reading = time.monotonic() - began
    if isinstance(start, AutoencoderModel):
        if start.net.shape._replace(dropout=0.0) != shape._replace(dropout=0.0):
            raise FirthError(
                "incompatible_start",
                "start must have a network of the shape {expected}; got {got}.",
                expected=shape,
                got=start.net.shape,
            )
        net = copy.deepcopy(start.net).float()
        dropped_keys = set(start.points.keys if start.points else ()) - set(
            data.keys if isinstance(data, Vectors) else ()
        )
        if dropped_keys:
            run.report.note(
                f"{len(dropped_keys):,} vectors of the start model are not in the data; the new model has no codes for "
                "them.",
                code="missing_points",
            )
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            net = TableNet(shape)
        initialize_from_pca(net, cells, run.seed)
    metrics = AutoencoderTraining(method, net, cells, fingerprint, run).go()
    metrics |= {
        "rows": len(table),
        "columns": len(layout.columns),
        "features": method.dim,
        "reading_seconds": reading,
        "data": fingerprint,
        "seed": run.seed,
    }
    model = model_class(method, layout, net, metrics)
    if isinstance(model, VAEModel):
        rows = np.sort(np.random.default_rng(run.seed).permutation(len(table))[:STORED_CODE_ROWS])
        model.training_codes = model.encoded(Cells(cells.numbers[rows], cells.ids[rows], cells.unseen[rows]))
        metrics["active"] = active_dimensions(*model.training_codes, "rows", run)
    if isinstance(data, Vectors):
        model.points = Vectors(data.keys, model.embed(table))
    return model


def prepare_table(method: CompressingOptions, data: Any, run: Run, start: Model | None) -> tuple[Layout, Table]:
    """Return the fitted layout (or that of `start`) and the table; refuse data without rows or variation."""
    name = type(method).__name__
    if isinstance(start, AutoencoderModel):
        layout, table = start.layout, start.open(data)
    elif isinstance(data, Vectors):
        table = Table(finite(data))
        layout = Layout.fitted(table, "common" if method.numeric == "standardize" else method.numeric)
    else:
        table = Table(data)
        layout = Layout.fitted(table, method.numeric)
    if len(table) < method.min_rows or not table.names:
        raise FirthError(
            "too_few",
            "{method} needs at least {min_rows} rows and one column; got {got}.",
            method=name,
            min_rows=method.min_rows,
            got=table,
        )
    varying = sum(layout.varies) + sum(len(column.levels) > 1 for column in layout.categories)
    if not varying:
        raise FirthError(
            "no_variation",
            "{method} needs a column that varies; each column has at most one distinct value.",
            method=name,
        )
    empty = [column.name for column in layout.columns if isinstance(column, DroppedColumn)]
    if empty and start is None:
        run.report.note(
            f"No values in {describe(empty)}: all cells are missing and are reconstructed as missing.", "empty_column"
        )
    if method.tied and layout.categories and method.categorical == "embedding":
        raise FirthError(
            "conflicting_options",
            "{option} needs categorical='onehot', because an embedding cannot be inverted by its transpose.",
            option=f"{name}.tied",
        )
    width = sum(layout.varies) + sum(len(column.levels) for column in layout.categories)
    if method.dim > width:
        run.report.note(
            f"dim={method.dim} exceeds the row width of {width}, so nothing would be compressed.", "wide_code"
        )
    return layout, table


def active_dimensions(means: NDArray[Any], deviations: NDArray[Any], rows: str, run: Run) -> int:
    """Return the number of active dimensions.

    If there are none, the codes have collapsed to the prior (Bowman et al. 2016), and a note says so.
    """
    nats = 0.5 * (means**2 + deviations**2 - 1) - np.log(deviations)
    active = int((nats.mean(axis=0) > ACTIVE).sum())
    if not active:
        run.report.note(
            f"The codes have collapsed: no dimension distinguishes the {rows}. Try a lower beta, a larger "
            "kl_annealing or more epochs.",
            "collapsed_codes",
        )
    return active
