"""The base model of recommenders, and how they read interactions and continue from a model."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Protocol, runtime_checkable

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Histories, History, Model, Parts
from firth.core.stored import check_arrays, check_finite, check_texts_of, finite_rows
from firth.core.vectors import Hit, Hits, Matrix, Vectors, top_rows
from firth.data.interactions import SOURCES, Events, Interactions
from firth.kernels.sparse import CSRMatrix

KEYS = "keys"  # the document with the keys of users and items
MAX_NAMED_ITEMS = 5  # unknown items listed in a warning
ROUNDING = 1e-5  # relative rounding error of weights that were summed in float32


@runtime_checkable
class UsesFeatures(Protocol):
    """A method that learns from features of users and items."""

    @property
    def cold_start(self) -> float:
        """The share of users and items that training treats as new."""


def as_interactions(method: Method, data: Any) -> Interactions:
    """Return `data` as `Interactions`; refuse texts and empty data."""
    name = type(method).__name__
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, str) for row in data):
        raise FirthError(
            "invalid_type",
            "{method} needs interactions ({sources}); got a list of texts.",
            method=name,
            sources=SOURCES,
        )
    interactions = data if isinstance(data, Interactions) else Interactions(data)
    if not len(interactions):
        raise FirthError("too_few", "{method} needs at least one interaction; got none.", method=name)
    featured = [side for side in ("user_features", "item_features") if getattr(interactions, side) is not None]
    if featured and not isinstance(method, UsesFeatures):
        text = f"{name} does not use {' and '.join(featured)}; TwoTower does."
        warnings.warn(FirthWarning(text, "unused_features"), stacklevel=3)
    return interactions


class RecommenderModel(Model):
    """Users and items with their vectors: `tables["items"]` (the main table) and `tables["users"]`.

    A score is the dot product of a user row and an item row. A row is a vector, followed by `extra` columns if the
    method has biases. A user without items has the zero vector, so items are ranked by their biases, or by popularity
    if there are none.
    """

    extra: ClassVar[int] = 0  # columns of a row after the vector
    min_weight: ClassVar[float] = 0.0  # of an item in a history; a weight of 0 means not used
    stores_weights: ClassVar[bool] = False  # whether the array "weights" has the weights of `seen`, for continuing
    stored: ClassVar[Mapping[str, str]] = {}  # further arrays, in the notation of `check_arrays`

    def __init__(
        self,
        method: Method,
        rows: Mapping[str, NDArray[Any]],
        seen: Histories,
        keys: Mapping[str, Sequence[str]],
        training: Mapping[str, Any],
    ) -> None:
        self.method, self.training, self.seen = method, training, seen
        self._rows, self._keys = rows, keys  # stored keys are read on first use
        dim = rows["items"].shape[1] - self.extra
        self.items = Vectors(self._names("items"), rows["items"][:, :dim], missing="the training data has no such item")
        self.users = Vectors(self._names("users"), rows["users"][:, :dim], missing=self._new_user)

    def _names(self, side: str) -> Any:
        return lambda: list(self._keys[side])

    def _new_user(self) -> str:
        ways = "`firth query recommend --items A,B`, recommend_for([a, b]), fold_in([[a, b]])"
        return f"the training data has no such user; pass the history instead: {ways}"

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The item vectors and the user vectors."""
        return {"items": self.items, "users": self.users}

    @property
    def vectors(self) -> Vectors:
        """The item vectors."""
        return self.items

    @property
    def item_rows(self) -> Matrix:
        """The item rows of `scores`."""
        return self._rows["items"]

    @abstractmethod
    def fold(self, entries: CSRMatrix) -> Matrix:
        """Return one row per user with these items."""

    def fold_in(self, histories: Sequence[History]) -> Matrix:
        """Return one row per history, for users that were not in the training data.

        A history is a list of items, or items with their weights. An item that occurs twice counts twice. An empty
        history gives the row of a user without items. Unknown items are left out and counted in a `FirthWarning`
        (unknown_items); a history of unknown items only is refused (unknown_key).
        """
        return self.fold(self.entries(histories))

    def entries(self, histories: Sequence[History]) -> CSRMatrix:
        """Return histories as sparse rows over the items."""
        if isinstance(histories, (str, Mapping)) or any(isinstance(history, str) for history in histories):
            raise FirthError(
                "invalid_type",
                "{argument} must be a list of histories, each a list of items. Wrap a single history in a list.",
                argument="histories",
            )
        rows, weights, starts, unknown = list[int](), list[float](), [0], list[str]()
        for user_history in histories:
            history = user_history if isinstance(user_history, Mapping) else list(user_history)
            missing = self.unknown_items(history)
            if missing and len(missing) == len(history):
                self.items.row(missing[0])  # raises unknown_key
            unknown += missing
            history_rows, history_weights = self._rows_and_weights(history)
            rows += history_rows
            weights += history_weights
            starts.append(len(rows))
        if unknown:
            names = list(dict.fromkeys(unknown))
            rest = f" and {len(names) - MAX_NAMED_ITEMS:,} others" if len(names) > MAX_NAMED_ITEMS else ""
            items, are = ("items", "are") if len(unknown) > 1 else ("item", "is")
            text = f"{len(unknown):,} {items} of the history {are} unknown and left out: "
            text += ", ".join(map(repr, names[:MAX_NAMED_ITEMS])) + f"{rest}."
            warnings.warn(FirthWarning(text, "unknown_items"), stacklevel=4)
        return CSRMatrix(np.array(starts, np.int64), np.array(rows, np.int32), np.array(weights, np.float32))

    def unknown_items(self, history: History) -> list[str]:
        """Return the items of a history that were not in the training data."""
        for item in history:
            if not isinstance(item, str):
                self.items.row(item)  # raises unknown_key: keys are texts
        return [item for item in history if item not in self.items]

    def _rows_and_weights(self, history: History) -> tuple[list[int], list[float]]:
        """Return the rows of known items in ascending order, and their weights; repeated items are added up."""
        weights: dict[int, float] = {}
        for row, weight in self._known(history):
            weights[row] = weights.get(row, 0.0) + weight
        rows = [row for row in sorted(weights) if weights[row] != self.min_weight]
        return rows, [weights[row] for row in rows]

    def _known(self, history: History) -> Iterator[tuple[int, float]]:
        """Yield the row and the weight of each known item of a history, in its order."""
        pairs = history.items() if isinstance(history, Mapping) else ((item, 1.0) for item in history)
        for item, weight in pairs:
            row = self.items.rows.get(item)
            if row is None:
                continue
            if not np.isfinite(weight) or weight < self.min_weight:
                raise FirthError(
                    "invalid_value",
                    "The weight of {item!r} must be at least {min_weight:g}; got {got}.",
                    item=item,
                    min_weight=self.min_weight,
                    got=weight,
                )
            yield row, weight

    def user_rows(self, users: Sequence[str]) -> Matrix:
        """Return the rows of users of the training data."""
        rows: Matrix = self._rows["users"][[self.users.row(user) for user in users]]
        return rows

    def scores(self, users: Matrix) -> Matrix:
        """Return the scores of all items, one row per user."""
        return finite_rows(users @ self.item_rows.T, "User")

    def recommend(self, user: str, k: int = 10, *, seen: bool = False) -> Hits:
        """Return the `k` best items for a user of the training data; with `seen`, including items of the history."""
        row = self.users.row(user)
        history_rows = self.seen.items[self.seen.starts[row] : self.seen.starts[row + 1]]
        return self._best(self.user_rows([user]), [] if seen else history_rows.tolist(), k)

    def recommend_for(self, history: History, k: int = 10, *, seen: bool = False) -> Hits:
        """Return the `k` best items for a user with this history, who need not be in the training data.

        Unknown items are left out and counted, as in `fold_in`.
        """
        history = history if isinstance(history, Mapping) else list(history)
        row = self.fold_in([history])
        history_rows = [self.items.rows[item] for item in history if item in self.items]
        return self._best(row, [] if seen else history_rows, k)

    def _best(self, row: Matrix, excluded_rows: Sequence[int], k: int) -> Hits:
        if k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="k", got=k)
        scores = self.scores(row)[0]
        scores[list(excluded_rows)] = -np.inf
        keys = self.items.keys
        return Hits(Hit(keys[item], float(scores[item])) for item in top_rows(scores, k) if scores[item] > -np.inf)

    def parts(self) -> Parts:
        """Return the arrays and documents that are saved."""
        arrays: dict[str, NDArray[Any]] = {**self._rows, "starts": self.seen.starts, "seen": self.seen.items}
        return Parts(arrays, {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> RecommenderModel:
        """Return the saved model, checked."""
        declared = {"users": "float users width", "items": "float items width", "starts": "int64 users+1"}
        sizes = check_arrays(parts.arrays, **declared, **cls.stored)
        check_finite({name: parts.arrays[name] for name in cls.stored if parts.arrays[name].size == 1})
        dim = method.options()["dim"]
        if sizes["width"] != dim + cls.extra:
            raise FirthError(
                "damaged_model",
                "The arrays of users and items must have {expected} columns (dim={dim}); got {got}.",
                expected=dim + cls.extra,
                dim=dim,
                got=sizes["width"],
            )
        seen = stored_histories(parts, sizes["items"])
        rows = {name: array for name, array in parts.arrays.items() if name not in ("starts", "seen")}
        return cls(method, rows, seen, StoredKeys(parts), training)

    def __repr__(self) -> str:
        name = type(self.method).__name__
        return f"{name} model: {len(self.users):,} users and {len(self.items):,} items × {self.items.dim}"


def stored_histories(parts: Parts, items: int) -> Histories:
    """Return the stored user histories, checked."""
    check_arrays(parts.arrays, starts="int64 users+1", seen="int32 entries")
    starts, seen = parts.arrays["starts"], parts.arrays["seen"]
    if not len(starts) or int(starts[0]) != 0 or int(starts[-1]) != len(seen) or (np.diff(starts) < 0).any():
        raise FirthError("damaged_model", "{name} must increase from 0 to the length of seen.", name="starts")
    if len(seen) and not (int(seen.min()) >= 0 and int(seen.max()) < items):
        raise FirthError("damaged_model", "{name} must contain row numbers of items.", name="seen")
    return Histories(starts, seen)


class StoredKeys(Mapping[str, Sequence[str]]):
    """Keys of users and items, read from their document on first use."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def __getitem__(self, side: str) -> Sequence[str]:
        with self.parts.reading():
            return check_texts_of(self.parts.documents[KEYS][side], f"{side} of {KEYS}.json")

    def __iter__(self) -> Any:
        return iter(("users", "items"))

    def __len__(self) -> int:
        return 2


def keys_of(interactions: Interactions) -> dict[str, Sequence[str]]:
    """Return the keys of users and items."""
    return {"users": interactions.users, "items": interactions.items}


def check_start(start: Model | None, kind: type[RecommenderModel], method: Method) -> RecommenderModel | None:
    """Return `start`; refuse a model of another class or dim."""
    dim = method.options()["dim"]
    if start is None or (type(start) is kind and start.items.dim == dim):
        return start
    raise FirthError(
        "incompatible_start",
        "start must be a {method} model with dim={dim}; got {got!r}.",
        method=type(method).__name__,
        dim=dim,
        got=start,
    )


def copy_start_vectors(
    start: RecommenderModel | None, interactions: Interactions, users: Matrix, items: Matrix
) -> None:
    """Copy the rows of `start` into the tables; `interactions` has all of its users and items."""
    if start is not None:
        for side, table, keys in (("users", users, interactions.users), ("items", items, interactions.items)):
            start_rows = rows_of(start.tables[side].keys, keys)
            table[start_rows, : start._rows[side].shape[1]] = start._rows[side]


def rows_of(keys: Sequence[str], all_keys: Sequence[str]) -> NDArray[np.int64]:
    """Return the position of each key in `all_keys`."""
    rows = {key: row for row, key in enumerate(all_keys)}
    return np.array([rows[key] for key in keys], dtype=np.int64)


def merge_interactions(
    start: RecommenderModel | None, interactions: Interactions, add_weights: bool = True
) -> Interactions:
    """Return the interactions of `start` and the new ones together, with the users and items of both.

    The weights of a pair in both are added, as for implicit feedback; without `add_weights` the new weight replaces the
    old one, as for ratings. If the new interactions contain every pair of `start` with at least its weight, they are
    taken to be the complete data and nothing is added.
    """
    if start is None:
        return interactions
    users = list(dict.fromkeys([*start.users.keys, *interactions.users]))
    items = list(dict.fromkeys([*start.items.keys, *interactions.items]))
    new, seen = interactions.events(), start.seen
    # Users and items of `start` come first and keep their row numbers.
    new = new._replace(
        users=rows_of(interactions.users, users)[new.users], items=rows_of(interactions.items, items)[new.items]
    )
    owners, weights = np.repeat(np.arange(len(start.users)), np.diff(seen.starts)), start_weights(start)
    width = len(items)
    pairs, pair_positions = np.unique(new.users * width + new.items, return_inverse=True)
    totals = np.append(np.bincount(pair_positions, new.weights, minlength=len(pairs)), 0.0)
    start_pairs = owners * width + seen.items
    positions = np.searchsorted(pairs, start_pairs)
    in_both = np.append(pairs, -1)[positions] == start_pairs
    covers_start = in_both.all() and (not add_weights or (totals[positions] >= weights * (1 - ROUNDING)).all())
    retained = np.zeros_like(in_both) if covers_start else np.ones_like(in_both) if add_weights else ~in_both
    events = Events(
        np.concatenate([owners[retained], new.users]),
        np.concatenate([seen.items[retained].astype(np.int64), new.items]),
        np.concatenate([weights[retained], new.weights]),
        None if new.times is None else np.concatenate([np.full(retained.sum(), -np.inf), new.times]),
    )
    return Interactions.from_events(users, items, events)


def start_weights(start: RecommenderModel) -> NDArray[np.float32]:
    """Return the weight of each pair that a model was trained on; 1 if its method does not use weights."""
    if not start.stores_weights:
        return np.ones(len(start.seen.items), np.float32)
    weights = start._rows.get("weights")
    if weights is None or weights.shape != start.seen.items.shape:
        raise FirthError(
            "incompatible_start",
            "start was saved by an earlier version without the interaction {missing} that {method} needs to continue. "
            "Fit the old and the new interactions together.",
            missing="weights",
            method=type(start.method).__name__,
        )
    return np.asarray(weights, dtype=np.float32)
