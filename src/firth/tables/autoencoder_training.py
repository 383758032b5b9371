"""How `Autoencoder` and `VAE` learn: from a table or from vectors to a model."""

from __future__ import annotations

import copy
import time
from typing import Any

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
from firth.tables.pca_initialization import begin_at_pca
from firth.training.row_batches import RowTraining

ACTIVE = 0.01  # nats of KL above which a dimension of a code tells something
KNOWN_ROWS = 5000  # whose codes are kept, to draw others from


class CompressTraining(RowTraining):
    """Rows of a table, rebuilt."""

    measures_start = True

    def __init__(self, method: Any, net: TableNet, cells: Cells, fingerprint: str, run: Run) -> None:
        self.cells = torch.from_numpy(cells.numbers.astype(np.float32)), torch.from_numpy(cells.ids)
        super().__init__(method, net, len(cells.ids), fingerprint, run)

    @property
    def table_net(self) -> TableNet:
        assert isinstance(self.net, TableNet)
        return self.net

    def load(self, what: Any) -> Any:
        return [part[what] for part in self.cells]

    def hidden(self, numbers: Tensor, ids: Tensor) -> tuple[Tensor, Tensor]:
        """Some cells as if they were missing (Vincent et al. 2008)."""
        share = getattr(self.method, "denoise", 0.0)
        if not share:
            return numbers, ids
        return (
            numbers.masked_fill(torch.rand_like(numbers) < share, torch.nan),
            ids.masked_fill(torch.rand(ids.shape, device=ids.device) < share, -1),
        )

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        numbers, ids = tensors
        net: TableNet = self.table_net
        method: Any = self.method
        code = net.encode(*self.hidden(numbers, ids))
        if code.logvar is None:
            return net.row_losses(net.decode(code.mean), numbers, ids).sum()
        losses = net.row_losses(net.decode(sample_code(code, torch.randn_like(code.mean))), numbers, ids)
        weight = method.beta * self.annealed(method.kl_annealing)
        loss: Tensor = losses.sum() + weight * divergence_loss(code, method.free_bits)
        return loss

    def evaluate(self, most: int) -> dict[str, float]:
        """With noise that is the same each time, and the whole weight of KL however far the run is."""
        if not len(self.held_out):
            return {}
        total, nats = 0.0, torch.zeros(self.table_net.shape.dim, dtype=torch.float64)  # of each dimension
        generator = torch.Generator().manual_seed(self.run.seed)
        for rows in self.measured_rows(most):
            numbers, ids = (part.to(self.device) for part in self.load(rows))
            code = self.table_net.encode(numbers, ids)
            if code.logvar is None:
                total += float(self.table_net.row_losses(self.table_net.decode(code.mean), numbers, ids).sum())
            else:
                losses, by_dim = elbo_parts(self.table_net, code, numbers, ids, generator)
                total, nats = total + float(losses), nats + by_dim.double().cpu()
        count = sum(map(len, self.measured_rows(most)))
        method: Any = self.method
        if not self.table_net.shape.variational:
            return {"held_out_loss": total / count}
        paid = float(torch.clamp(nats / count, min=method.free_bits).sum())
        kl = float(nats.sum()) / count
        return {"held_out_loss": total / count + method.beta * paid, "reconstruction": total / count, "kl": kl}


def learn(method: Any, data: Any, run: Run, start: Model | None) -> AutoencoderModel:
    """Columns, network, codes."""
    name = type(method).__name__
    kind: type[AutoencoderModel] = type(method).model
    if start is not None and type(start) is not kind:
        raise FirthError("incompatible_start", "start must be an {name} model; got {got!r}.", name=name, got=start)
    began = time.monotonic()
    layout, table = opened(method, data, run, start)
    cells = layout.read(table)
    fingerprint = data.fingerprint() if isinstance(data, Vectors) else table.fingerprint()
    shape = shape_of(method, layout)
    reading = time.monotonic() - began
    if isinstance(start, AutoencoderModel):
        if start.net.shape._replace(dropout=0.0) != shape._replace(dropout=0.0):
            raise FirthError(
                "incompatible_start",
                "start must be a model of the same size; it has {shape}, not {shape_2}.",
                shape=start.net.shape,
                shape_2=shape,
            )
        net = copy.deepcopy(start.net).float()
        lost = set(start.points.keys if start.points else ()) - set(data.keys if isinstance(data, Vectors) else ())
        if lost:
            run.report.note(
                f"{len(lost):,} vectors that start was trained on are not in this data: the new model has no codes of "
                "them.",
                code="missing_points",
            )
    else:
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            net = TableNet(shape)
        begin_at_pca(net, cells, run.seed)
    figures = CompressTraining(method, net, cells, fingerprint, run).go()
    figures |= {
        "rows": len(table),
        "columns": len(layout.columns),
        "features": method.dim,
        "reading_seconds": reading,
        "data": fingerprint,
        "seed": run.seed,
    }
    model = kind(method, layout, net, figures)
    if isinstance(model, VAEModel):
        rows = np.sort(np.random.default_rng(run.seed).permutation(len(table))[:KNOWN_ROWS])
        model.known = model.encoded(Cells(cells.numbers[rows], cells.ids[rows], cells.unseen[rows]))
        figures["active"] = active_dimensions(*model.known, "rows", run)
    if isinstance(data, Vectors):
        model.points = Vectors(data.keys, model.embed(table))
    return model


def opened(method: Any, data: Any, run: Run, start: Model | None) -> tuple[Layout, Table]:
    """Data as a table with its columns, or with those of `start`; refused where there is nothing to learn."""
    name = type(method).__name__
    if isinstance(start, AutoencoderModel):
        layout, table = start.layout, start.open(data)
    elif isinstance(data, Vectors):
        table = Table(finite(data))
        layout = Layout.fitted(table, "common" if method.numeric == "standardize" else method.numeric)
    else:
        table = Table(data)
        layout = Layout.fitted(table, method.numeric)
    if len(table) < method.least_rows or not table.names:
        raise FirthError(
            "too_few",
            "{name} needs at least {least_rows} rows and a column; got {got}.",
            name=name,
            least_rows=method.least_rows,
            got=table,
        )
    varying = sum(layout.varies) + sum(len(column.levels) > 1 for column in layout.categories)
    if not varying:
        raise FirthError(
            "no_variation", "{name} needs a column that varies; in this table each has one value or none.", name=name
        )
    empty = [column.name for column in layout.columns if isinstance(column, DroppedColumn)]
    if empty and start is None:
        run.report.note(f"Nothing is known of {describe(empty)}: all cells are missing, and are rebuilt as missing.")
    if getattr(method, "tied", False) and layout.categories and method.categorical == "embedding":
        raise FirthError(
            "conflicting_options",
            "{name}.tied needs categorical='onehot': an embedding has no way back through its own matrix.",
            name=name,
        )
    width = sum(layout.varies) + sum(len(column.levels) for column in layout.categories)
    if method.dim > width:
        run.report.note(f"dim={method.dim} is more than the {width} numbers of a row: nothing need be left out.")
    return layout, table


def active_dimensions(means: NDArray[Any], deviations: NDArray[Any], rows: str, run: Run) -> int:
    """How many dimensions tell rows apart; where none does, the codes have collapsed to the prior (Bowman et al. 2016),
    and that is said."""
    nats = 0.5 * (means**2 + deviations**2 - 1) - np.log(deviations)
    active = int((nats.mean(axis=0) > ACTIVE).sum())
    if not active:
        run.report.note(
            f"The codes have collapsed: no dimension tells {rows} apart, and all of them are decoded alike. A lower "
            "beta, a longer anneal or more epochs help, unless there is nothing to tell."
        )
    return active
