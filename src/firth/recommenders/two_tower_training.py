"""Training of `TwoTower` on user histories and features."""

from __future__ import annotations

import time
from collections.abc import Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.model import Histories, Model
from firth.core.run import Run
from firth.data.features import Features
from firth.data.table import Table
from firth.kernels.sparse import CSRMatrix
from firth.nets.two_tower import Cells, TowerNet
from firth.nets.user_autoencoder import Baskets, negative_log_likelihood
from firth.recommenders.recommender_model import as_interactions, keys_of
from firth.recommenders.two_tower import TwoTower
from firth.recommenders.two_tower_model import Layouts, TwoTowerModel, cells_of, history_of, new_net
from firth.recommenders.user_autoencoder import UserTraining, select_users
from firth.tables.network_inputs import Layout


def select_cells(cells: Cells | None, rows: NDArray[np.int64]) -> list[Tensor]:
    """Return the features of these rows; none if there are no features."""
    return [] if cells is None else [each[torch.from_numpy(rows)] for each in cells]


class TowerTraining(UserTraining):
    """Predict the items of users from a part of their history and from features."""

    method: TwoTower

    def __init__(
        self,
        method: TwoTower,
        net: TowerNet,
        rows: CSRMatrix,
        cells: Mapping[str, Cells],
        fingerprint: str,
        run: Run,
    ) -> None:
        self.active = np.flatnonzero(np.diff(rows.starts))  # users without events have nothing to predict
        used = np.bincount(rows.columns, minlength=net.ids.num_embeddings) > 0
        super().__init__(method, net, select_users(rows, self.active), fingerprint, run)
        #: Items without events are no negative examples: their scores come from the features of others.
        self.unused = torch.from_numpy(np.flatnonzero(~used)).to(self.device)
        self.user_cells = cells.get("users")
        item_cells = cells.get("items")
        self.item_cells = None if item_cells is None else Cells(*(each.to(self.device) for each in item_cells))

    @property
    def tower_net(self) -> TowerNet:
        """The network."""
        assert isinstance(self.net, TowerNet)
        return self.net

    def load(self, users: Any) -> Any:
        """Return the histories and the features of these users as tensors."""
        return [*history_of(select_users(self.entries, users)), *select_cells(self.user_cells, self.active[users])]

    def scored(self, history: Baskets, cells: Cells | None, known: Tensor | None, dropout: float) -> Tensor:
        """Return the scores of all items that have events."""
        items = self.tower_net.items(self.item_cells, known)
        scores = self.tower_net.users(history, items, cells, dropout) @ items.T
        return scores.index_fill(1, self.unused, -torch.inf)

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the summed loss of a batch, in which some items and users are treated as new."""
        history, share = Baskets(*tensors[:3]), self.method.cold_start
        cells = Cells(*tensors[3:]) if len(tensors) > 3 else None
        known, inputs = None, history
        if self.item_cells is not None:
            known = (torch.rand(self.tower_net.ids.num_embeddings, device=self.device) >= share).float()
        if cells is not None:
            with_history = (torch.rand(len(history.starts) - 1, device=self.device) >= share).float()
            inputs = history._replace(weights=history.weights * with_history[history.rows])
        scores = self.scored(inputs, cells, known, self.method.dropout)
        targets = history._replace(weights=torch.ones_like(history.weights))
        return negative_log_likelihood(scores, targets).sum()

    def logits(self, users: NDArray[np.int64], inputs: CSRMatrix) -> Tensor:
        """Return the scores of held-out users with these items."""
        history = Baskets(*(tensor.to(self.device) for tensor in history_of(inputs)))
        cells = select_cells(self.user_cells, self.active[users])
        return self.scored(history, Cells(*(each.to(self.device) for each in cells)) if cells else None, None, 0.0)


def layouts_of(features: Mapping[str, Table | None]) -> Layouts:
    """Return the columns of the features of users and items, with scales and categories."""
    return {side: Layout.fitted(table, "standardize") for side, table in features.items() if table is not None}


def aligned(features: Features | None, keys: list[str]) -> Table | None:
    """Return one row of features per key."""
    return None if features is None else features.aligned(keys)


def train_two_towers(method: TwoTower, data: Any, run: Run, start: Model | None) -> TwoTowerModel:
    """Train both towers, and compute the vectors of all users and items."""
    if start is not None:
        raise FirthError(
            "unsupported_start",
            "{method} cannot continue from a model. Its fold_in and with_items handle new users and items without "
            "training.",
            method=type(method).__name__,
        )
    began = time.monotonic()
    interactions = as_interactions(method, data).with_featured()
    rows = interactions.summed()
    histories = (interactions.decayed(method.half_life) if method.half_life else interactions).summed()
    if not method.half_life:  # weights count only as decay
        histories = CSRMatrix(rows.starts, rows.columns, np.ones_like(rows.values))
    features = {
        "users": aligned(interactions.user_features, interactions.users),
        "items": aligned(interactions.item_features, interactions.items),
    }
    layouts = layouts_of(features)
    cells = {side: cells_of(layout, features[side]) for side, layout in layouts.items()}  # type: ignore[arg-type]
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        net = new_net(method, len(interactions.items), layouts)
    reading = time.monotonic() - began
    metrics = TowerTraining(method, net, histories, cells, interactions.fingerprint(), run).go() | {
        "users": len(interactions.users),
        "items": len(interactions.items),
        "pairs": len(rows.columns),
        "new_users": int((np.diff(rows.starts) == 0).sum()),
        "new_items": len(interactions.items) - len(np.unique(rows.columns)),
        "reading_seconds": reading,
        "seed": run.seed,
    }
    net = net.cpu().eval()
    with torch.inference_mode():
        used = torch.from_numpy(np.bincount(rows.columns, minlength=len(interactions.items)) > 0)
        net.ids.weight *= used[:, None]  # the others were never trained
        vectors = {"items": net.items(cells.get("items")).numpy()}
    blank = {"users": np.zeros((len(interactions.users), method.dim), np.float32), **vectors}
    seen = Histories(rows.starts, rows.columns)
    model = TwoTowerModel(method, net, layouts, blank, seen, keys_of(interactions), {})
    vectors["users"] = model.users_of(histories, features["users"])
    return TwoTowerModel(method, net, layouts, vectors, seen, keys_of(interactions), metrics)
