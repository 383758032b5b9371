"""What methods of people and items share: how data is taken, and the model that recommends."""

from __future__ import annotations

import warnings
from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.method import Method
from firth.core.model import Histories, History, Model, Parts
from firth.core.stored import check_arrays, check_finite, check_texts_of, finite_rows
from firth.core.vectors import Hit, Hits, Matrix, Vectors, top_rows
from firth.data.interactions import SOURCES, Events, Interactions
from firth.kernels.sparse import Rows

KEYS = "keys"  # the document that names users and items
NAMED = 5  # unknown items that a warning names
ROUNDING = 1e-5  # of weights that were added up in single precision


def take_ratings(method: Method, data: Any) -> Interactions:
    """`data` as ratings, refused where there is nothing to learn."""
    name = type(method).__name__
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, str) for row in data):
        raise FirthError(
            "invalid_type",
            "{name} learns from who used what: {sources}; got a list of texts.",
            name=name,
            sources=SOURCES,
        )
    ratings = data if isinstance(data, Interactions) else Interactions(data)
    if not len(ratings):
        raise FirthError("too_few", "{name} needs at least one user with an item; there are none.", name=name)
    return ratings


class RecommenderModel(Model):
    """Users and items with their vectors: `tables["items"]` (the main one) and `tables["users"]`.

    A score is the product of a user's row and an item's. Rows are vectors with, where a method has biases, some columns
    behind them (`extra`). A user without items has the zero vector: items come in the order of their biases, and where
    there are none, from the most used to the least.
    """

    extra: ClassVar[int] = 0  # columns of a row that are not of the vector
    least_weight: ClassVar[float] = 0.0  # of an item in a history; 0 means not used, where it is the least
    keeps_weights: ClassVar[bool] = False  # of the pairs in `seen`, in the array "weights": to continue needs them
    stored: ClassVar[Mapping[str, str]] = {}  # small arrays beside users and items, as `check_arrays` takes them

    def __init__(
        self,
        method: Method,
        rows: Mapping[str, NDArray[Any]],
        seen: Histories,
        keys: Mapping[str, Sequence[str]],
        training: Mapping[str, Any],
    ) -> None:
        self.method, self.training, self.seen = method, training, seen
        self._rows, self._keys = rows, keys  # stored keys are read at their first use
        dim = rows["items"].shape[1] - self.extra
        self.items = Vectors(self._names("items"), rows["items"][:, :dim], missing="it was not in the ratings")
        self.users = Vectors(self._names("users"), rows["users"][:, :dim], missing=self._new_user)

    def _names(self, side: str) -> Any:
        return lambda: list(self._keys[side])

    def _new_user(self) -> str:
        ways = "`firth query recommend --items A,B`, recommend_for([a, b]), fold_in([[a, b]])"
        return f"no user of the ratings; say what they had: {ways}"

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {"items": self.items, "users": self.users}

    @property
    def vectors(self) -> Vectors:
        return self.items

    @property
    def item_rows(self) -> Matrix:
        return self._rows["items"]

    @abstractmethod
    def fold(self, entries: Rows) -> Matrix:
        """Rows for users with these items."""

    def fold_in(self, histories: Sequence[History]) -> Matrix:
        """Rows for users that were not in the ratings, one a history: items, or items with their weights. An item that
        stands twice counts twice. Without any items the row is that of a user without items.

        Items that the model does not know are left out and counted in a `FirthWarning` (unknown_items); a history that
        has no others is refused (unknown_key).
        """
        return self.fold(self.entries(histories))

    def entries(self, histories: Sequence[History]) -> Rows:
        """Histories as rows of items."""
        if isinstance(histories, (str, Mapping)) or any(isinstance(history, str) for history in histories):
            raise FirthError(
                "invalid_type",
                "fold_in takes a list of histories, each a list of items; put the one you have in a list.",
            )
        rows, weights, starts, unknown = list[int](), list[float](), [0], list[str]()
        for given in histories:
            history = given if isinstance(given, Mapping) else list(given)
            missing = self.unknown_items(history)
            if missing and len(missing) == len(history):
                self.items.row(missing[0])  # refuses it, with the way out
            unknown += missing
            found = self._weighed(history)
            rows += found
            weights += found.values()
            starts.append(len(rows))
        if unknown:
            names = list(dict.fromkeys(unknown))
            more = f" and {len(names) - NAMED:,} others" if len(names) > NAMED else ""
            items, are = ("items", "are") if len(unknown) > 1 else ("item", "is")
            text = f"{len(unknown):,} {items} of the history {are} unknown to the model and left out: "
            text += ", ".join(map(repr, names[:NAMED])) + f"{more}."
            warnings.warn(FirthWarning(text, "unknown_items"), stacklevel=4)
        return Rows(np.array(starts, np.int64), np.array(rows, np.int32), np.array(weights, np.float32))

    def unknown_items(self, history: History) -> list[str]:
        """The items of a history that were not in the ratings."""
        for item in history:
            if not isinstance(item, str):
                self.items.row(item)  # refuses it: keys are text
        return [item for item in history if item not in self.items]

    def _weighed(self, history: History) -> dict[int, float]:
        """Weights by item row, rows ascending; of known items."""
        pairs = history.items() if isinstance(history, Mapping) else ((item, 1.0) for item in history)
        found: dict[int, float] = {}
        for item, weight in pairs:
            row = self.items.rows.get(item)
            if row is None:
                continue
            if not np.isfinite(weight) or weight < self.least_weight:
                raise FirthError(
                    "invalid_value",
                    "The weight of {item!r} must be at least {least_weight:g}; got {got}.",
                    item=item,
                    least_weight=self.least_weight,
                    got=weight,
                )
            found[row] = found.get(row, 0.0) + weight
        return {row: found[row] for row in sorted(found) if found[row] != self.least_weight}

    def user_rows(self, users: Sequence[str]) -> Matrix:
        rows: Matrix = self._rows["users"][[self.users.row(user) for user in users]]
        return rows

    def scores(self, users: Matrix) -> Matrix:
        return finite_rows(users @ self.item_rows.T, "User")

    def recommend(self, user: str, k: int = 10, *, seen: bool = False) -> Hits:
        """The `k` best items for a user of the ratings; with `seen`, also those the user had."""
        row = self.users.row(user)
        had = self.seen.items[self.seen.starts[row] : self.seen.starts[row + 1]]
        return self._best(self.user_rows([user]), [] if seen else had.tolist(), k)

    def recommend_for(self, history: History, k: int = 10, *, seen: bool = False) -> Hits:
        """The `k` best items for someone with this history, who need not have been in the ratings. Unknown items are
        left out and counted, as in `fold_in`."""
        history = history if isinstance(history, Mapping) else list(history)
        row = self.fold_in([history])
        had = [self.items.rows[item] for item in history if item in self.items]
        return self._best(row, [] if seen else had, k)

    def _best(self, row: Matrix, had: Sequence[int], k: int) -> Hits:
        if k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="k", got=k)
        scores = self.scores(row)[0]
        scores[list(had)] = -np.inf
        keys = self.items.keys
        return Hits(Hit(keys[item], float(scores[item])) for item in top_rows(scores, k) if scores[item] > -np.inf)

    def parts(self) -> Parts:
        arrays: dict[str, NDArray[Any]] = {**self._rows, "starts": self.seen.starts, "seen": self.seen.items}
        return Parts(arrays, {KEYS: {"users": list(self.users.keys), "items": list(self.items.keys)}})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> RecommenderModel:
        declared = {"users": "float users width", "items": "float items width", "starts": "int64 users+1"}
        sizes = check_arrays(parts.arrays, **declared, **cls.stored)
        check_finite({name: parts.arrays[name] for name in cls.stored if parts.arrays[name].size == 1})
        dim = method.options()["dim"]
        if sizes["width"] != dim + cls.extra:
            raise FirthError(
                "damaged_model",
                "The rows of users and items must have {expected} numbers (dim={dim}); they have {got}.",
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
    """What users had, checked."""
    check_arrays(parts.arrays, starts="int64 users+1", seen="int32 entries")
    starts, seen = parts.arrays["starts"], parts.arrays["seen"]
    if not len(starts) or int(starts[0]) != 0 or int(starts[-1]) != len(seen) or (np.diff(starts) < 0).any():
        raise FirthError("damaged_model", "starts must rise from 0 to the length of seen: what each user had.")
    if len(seen) and not (int(seen.min()) >= 0 and int(seen.max()) < items):
        raise FirthError("damaged_model", "What users had must be rows of the items.")
    return Histories(starts, seen)


class StoredKeys(Mapping[str, Sequence[str]]):
    """Keys read from their document at the first use."""

    def __init__(self, parts: Parts) -> None:
        self.parts = parts

    def __getitem__(self, side: str) -> Sequence[str]:
        with self.parts.reading():
            return check_texts_of(self.parts.documents[KEYS][side], f"{side} of {KEYS}.json")

    def __iter__(self) -> Any:
        return iter(("users", "items"))

    def __len__(self) -> int:
        return 2


def keys_of(ratings: Interactions) -> dict[str, Sequence[str]]:
    return {"users": ratings.users, "items": ratings.items}


def take_start(start: Model | None, kind: type[RecommenderModel], method: Any) -> RecommenderModel | None:
    """The model to go on from, refused where it is of another kind or size."""
    if start is None or (type(start) is kind and start.items.dim == method.dim):
        return start
    raise FirthError(
        "incompatible_start",
        "start must be a {method} model with dim={dim}; got {got!r}.",
        method=type(method).__name__,
        dim=method.dim,
        got=start,
    )


def begin_from(start: RecommenderModel | None, ratings: Interactions, users: Matrix, items: Matrix) -> None:
    """Rows of `start` become first values of its users and items, all of which `ratings` has."""
    if start is not None:
        for side, table, keys in (("users", users, ratings.users), ("items", items, ratings.items)):
            places = rows_of(start.tables[side].keys, keys)
            table[places, : start._rows[side].shape[1]] = start._rows[side]


def rows_of(keys: Sequence[str], known: Sequence[str]) -> NDArray[np.int64]:
    """The place of each key among those that are known."""
    rows = {key: row for row, key in enumerate(known)}
    return np.array([rows[key] for key in keys], dtype=np.int64)


def joined(start: RecommenderModel | None, ratings: Interactions, adds: bool = True) -> Interactions:
    """What `start` was trained on, and `ratings`: all users and items of both.

    The weights of a pair that is in both are added up, as uses are; without `adds` the new one counts, as of ratings.
    If `ratings` holds every pair of `start`, with at least its weight, it is the whole story and nothing is added.
    """
    if start is None:
        return ratings
    users = list(dict.fromkeys([*start.users.keys, *ratings.users]))
    items = list(dict.fromkeys([*start.items.keys, *ratings.items]))
    new, seen = ratings.events(), start.seen
    new = new._replace(
        users=rows_of(ratings.users, users)[new.users], items=rows_of(ratings.items, items)[new.items]
    )  # those of `start` come first, with the rows they have there
    owners, weights = np.repeat(np.arange(len(start.users)), np.diff(seen.starts)), start_weights(start)
    width = len(items)
    pairs, place = np.unique(new.users * width + new.items, return_inverse=True)
    totals = np.append(np.bincount(place, new.weights, minlength=len(pairs)), 0.0)
    codes = owners * width + seen.items
    found = np.searchsorted(pairs, codes)
    both = np.append(pairs, -1)[found] == codes
    whole = both.all() and (not adds or (totals[found] >= weights * (1 - ROUNDING)).all())
    kept = np.zeros_like(both) if whole else np.ones_like(both) if adds else ~both
    events = Events(
        np.concatenate([owners[kept], new.users]),
        np.concatenate([seen.items[kept].astype(np.int64), new.items]),
        np.concatenate([weights[kept], new.weights]),
        None if new.times is None else np.concatenate([np.full(kept.sum(), -np.inf), new.times]),
    )
    return Interactions.from_events(users, items, events)


def start_weights(start: RecommenderModel) -> NDArray[np.float32]:
    """Of the pairs that a model was trained on; 1 where its method goes by whether, not how much."""
    if not start.keeps_weights:
        return np.ones(len(start.seen.items), np.float32)
    found = start._rows.get("weights")
    if found is None or found.shape != start.seen.items.shape:
        raise FirthError(
            "incompatible_start",
            "start was saved by an earlier version, which did not keep the weights that {method} needs to continue; "
            "fit old and new ratings together.",
            method=type(start.method).__name__,
        )
    return np.asarray(found, dtype=np.float32)
