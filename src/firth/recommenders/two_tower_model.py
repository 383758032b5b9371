"""Model of `TwoTower`: users and items with their vectors, and vectors of new ones from their features."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Parts
from firth.core.stored import check_arrays
from firth.core.vectors import Hits, Matrix
from firth.data.features import Features
from firth.data.interaction_files import COLUMN_NAMES
from firth.data.table import Table
from firth.kernels.sparse import CSRMatrix
from firth.nets.autoencoder import Shape
from firth.nets.two_tower import Cells, TowerNet
from firth.nets.user_autoencoder import Baskets
from firth.recommenders.recommender_model import KEYS, RecommenderModel, StoredKeys, stored_histories
from firth.tables.network_inputs import Layout
from firth.training.network_options import hidden_sizes_of
from firth.training.weight_files import with_weights

if TYPE_CHECKING:
    from firth.recommenders.two_tower import TwoTower

NET = "net."  # prefix of the network's arrays
SIDES = ("users", "items")
Layouts = Mapping[str, Layout]  # of the features of each side that has any


def shape_of(layout: Layout | None) -> Shape | None:
    """Return the columns of features as inputs of a network."""
    if layout is None:
        return None
    levels = tuple(len(column.levels) for column in layout.categories)
    return Shape(varies=layout.varies, gaps=tuple(layout.gaps), levels=levels, dim=1)


def new_net(method: TwoTower, items: int, layouts: Layouts) -> TowerNet:
    """Return an untrained network."""
    shapes = (shape_of(layouts.get(side)) for side in SIDES)
    return TowerNet(items, method.dim, hidden_sizes_of(method), *shapes)


def cells_of(layout: Layout, table: Table) -> Cells:
    """Return rows of features as tensors; a missing number of a column that had none missing becomes the mean."""
    read = layout.read(layout.open(table))
    return Cells(torch.from_numpy(read.numbers.astype(np.float32)), torch.from_numpy(read.ids))


def history_of(entries: CSRMatrix) -> Baskets:
    """Return weighted histories as tensors."""
    return Baskets(
        torch.from_numpy(entries.starts),
        torch.from_numpy(entries.columns.astype(np.int64)),
        torch.from_numpy(entries.values.astype(np.float32)),
    )


class TwoTowerModel(RecommenderModel):
    """Users and items with their vectors. `layouts` has the columns of the features of users and items."""

    method: TwoTower

    def __init__(
        self,
        method: TwoTower,
        net: TowerNet,
        layouts: Layouts,
        rows: Mapping[str, NDArray[Any]],
        seen: Histories,
        keys: Mapping[str, Sequence[str]],
        training: Mapping[str, Any],
    ) -> None:
        self.net, self.layouts = net.cpu().eval(), layouts
        super().__init__(method, rows, seen, keys, training)

    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return the vectors of users with these items and unknown features."""
        return self.users_of(entries, None)

    @torch.inference_mode()
    def users_of(self, entries: CSRMatrix, features: Table | None) -> Matrix:
        """Return the vectors of users with these items and features."""
        items = torch.from_numpy(np.array(self.item_rows))
        cells = None
        layout = self.layouts.get("users")
        if layout is not None:
            cells = cells_of(
                layout, unknown_features(layout, len(entries.starts) - 1) if features is None else features
            )
        return self.net.users(history_of(entries), items, cells).numpy()

    def fold_in(self, histories: Sequence[History], features: Any = None) -> Matrix:
        """Return one row per history, for users that were not in the training data.

        `features` is a table with one row per history, of any source of a `Table`; by default all are unknown.
        """
        entries = self.entries(histories)
        return self.users_of(entries, self.features_of("users", features, len(histories)))

    def features_of(self, side: str, features: Any, rows: int) -> Table | None:
        """Return features as a table, checked; columns that are not given are unknown."""
        if features is None:
            return None
        if side not in self.layouts:
            raise FirthError(
                "wrong_input",
                "The model was trained without {side} features; train it with {side}_features.",
                side=side.rstrip("s"),
            )
        table = Table(features)
        if len(table) != rows:
            raise FirthError(
                "shape_mismatch",
                "features must have one row per history; got {got:,} rows for {n_rows:,} histories.",
                got=len(table),
                n_rows=rows,
            )
        return completed(self.layouts[side], table)

    def recommend_for(
        self, history: History = (), k: int = 10, *, seen: bool = False, features: Mapping[str, Any] | None = None
    ) -> Hits:
        """Return the `k` best items for a user with this history, which may be empty, and these features."""
        history = history if isinstance(history, Mapping) else list(history)
        table = None if features is None else {name: [value] for name, value in features.items()}
        row = self.fold_in([history], table)
        history_rows = [self.items.rows[item] for item in history if item in self.items]
        return self._best(row, [] if seen else history_rows, k)

    @torch.inference_mode()
    def with_items(self, features: Any) -> TwoTowerModel:
        """Return the model with new items, whose vectors are computed from their features.

        `features` is a table like `item_features` of the training data. Items that the model knows stay as they are.
        """
        named = Features(features, COLUMN_NAMES["item"])
        new = [key for key in named.keys if key not in self.items]
        table = self.features_of("items", named.aligned(new), len(new))
        net = new_net(self.method, len(self.items) + len(new), self.layouts)
        weights = self.net.state_dict()
        own = torch.cat([weights["ids.weight"], torch.zeros(len(new), self.method.dim)])
        net.load_state_dict({**weights, "ids.weight": own})
        assert table is not None and self.net.item_input is not None and self.net.item_tower is not None
        vectors = self.net.item_tower(self.net.item_input(*cells_of(self.layouts["items"], table))).numpy()
        rows = {**self._rows, "items": np.vstack([self.item_rows, vectors])}
        keys = {"users": self.users.keys, "items": [*self.items.keys, *new]}
        return TwoTowerModel(self.method, net, self.layouts, rows, self.seen, keys, self.training)

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        arrays: dict[str, NDArray[Any]] = {
            **self._rows,
            **{NET + name: tensor.numpy() for name, tensor in self.net.state_dict().items()},
            "starts": self.seen.starts,
            "seen": self.seen.items,
        }
        documents: dict[str, Any] = {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}}
        for side, layout in self.layouts.items():
            stored = layout.parts()
            arrays |= {f"{side}.{name}": array for name, array in stored.arrays.items()}
            documents |= {f"{side}_{name}": document for name, document in stored.documents.items()}
        return Parts(arrays, documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> TwoTowerModel:
        """Return the saved model, checked."""
        dim = method.options()["dim"]
        declared = {"users": f"float users {dim}", "items": f"float items {dim}", "starts": "int64 users+1"}
        sizes = check_arrays(parts.arrays, **declared)
        layouts = {
            side: Layout.from_parts(side_parts(parts, side)) for side in SIDES if f"{side}.limits" in parts.arrays
        }
        make = lambda: new_net(method, sizes["items"], layouts)  # type: ignore[arg-type]  # noqa: E731
        net = with_weights(make, parts.arrays, NET.__add__)
        rows = {side: parts.arrays[side] for side in SIDES}
        seen = stored_histories(parts, sizes["items"])
        return cls(method, net, layouts, rows, seen, StoredKeys(parts), training)  # type: ignore[arg-type]


def side_parts(parts: Parts, side: str) -> Parts:
    """Return the stored features of users or items."""
    arrays = {
        name.removeprefix(f"{side}."): array for name, array in parts.arrays.items() if name.startswith(f"{side}.")
    }
    with parts.reading():
        return Parts(arrays, {"columns": parts.documents[f"{side}_columns"]})


def unknown_features(layout: Layout, rows: int) -> Table:
    """Return a table without values."""
    import pyarrow as pa

    return Table({name: pa.nulls(rows) for name in layout.names})


def completed(layout: Layout, table: Table) -> Table:
    """Return the table with the columns of the layout that it lacks, without values; other columns are refused."""
    unknown = [name for name in table.names if name not in layout.names]
    if unknown:
        raise FirthError(
            "unknown_column",
            "{where} has no column {name!r}; the columns are {available}.",
            where="The training data's features",
            name=unknown[0],
            available=", ".join(layout.names),
        )
    missing = unknown_features(layout, len(table)).arrow()
    given = table.arrow()
    return Table({name: (given if name in table.names else missing).column(name) for name in layout.names})
