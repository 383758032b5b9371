"""What methods of people and items share: how data is taken, and the model that recommends."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Histories, History, Model, Parts
from firth.core.run import Run
from firth.core.stored import check_arrays, check_finite, check_texts_of, finite_rows
from firth.core.vectors import Hit, Hits, Matrix, Vectors, top_rows
from firth.data.ratings import SOURCES, Ratings
from firth.kernels.sparse import Rows

KEYS = "keys"  # the document that names users and items


def take_ratings(method: Method, data: Any, run: Run) -> Ratings:
    """`data` as ratings, refused where there is nothing to learn."""
    name = type(method).__name__
    if run.device == "cuda" and not hasattr(method, "batch_units"):  # networks can
        raise FirthError(
            "unsupported_device", "{name} runs on the CPU; device must be auto or cpu, got cuda.", name=name
        )
    if isinstance(data, (list, tuple)) and data and all(isinstance(row, str) for row in data):
        raise FirthError(
            "invalid_type",
            "{name} learns from who used what: {sources}; got a list of texts.",
            name=name,
            sources=SOURCES,
        )
    ratings = data if isinstance(data, Ratings) else Ratings(data)
    if not len(ratings):
        raise FirthError("too_few", "{name} needs at least one user with an item; there are none.", name=name)
    return ratings


class PeopleModel(Model):
    """Users and items with their vectors: `tables["items"]` (the main one) and `tables["users"]`.

    A score is the product of a user's row and an item's. Rows are vectors with, where a method has biases, some columns
    behind them (`extra`). A user without items has the zero vector: items come in the order of their biases, and where
    there are none, from the most used to the least.
    """

    extra: ClassVar[int] = 0  # columns of a row that are not of the vector
    least_weight: ClassVar[float] = 0.0  # of an item in a history; 0 means not used, where it is the least
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
        ways = "`firth recommend --items A,B`, recommend_for([a, b]), fold_in([[a, b]])"
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
        stands twice counts twice. Without any items the row is that of a user without items."""
        return self.fold(self.entries(histories))

    def entries(self, histories: Sequence[History]) -> Rows:
        """Histories as rows of items."""
        if isinstance(histories, (str, Mapping)) or any(isinstance(history, str) for history in histories):
            raise FirthError(
                "invalid_type",
                "fold_in takes a list of histories, each a list of items; put the one you have in a list.",
            )
        rows, weights, starts = list[int](), list[float](), [0]
        for history in histories:
            found = self._weighed(history)
            rows += found
            weights += found.values()
            starts.append(len(rows))
        return Rows(np.array(starts, np.int64), np.array(rows, np.int32), np.array(weights, np.float32))

    def _weighed(self, history: History) -> dict[int, float]:
        """Weights by item row, rows ascending."""
        pairs = history.items() if isinstance(history, Mapping) else ((item, 1.0) for item in history)
        found: dict[int, float] = {}
        for item, weight in pairs:
            row = self.items.row(item)
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
        """The `k` best items for someone with this history, who need not have been in the ratings."""
        row = self.fold_in([history])
        return self._best(row, [] if seen else [self.items.row(item) for item in history], k)

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
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> PeopleModel:
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


def keys_of(ratings: Ratings) -> dict[str, Sequence[str]]:
    return {"users": ratings.users, "items": ratings.items}


def take_start(start: Model | None, kind: type[PeopleModel], method: Any) -> PeopleModel | None:
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


def begin_from(start: PeopleModel | None, ratings: Ratings, users: Matrix, items: Matrix) -> None:
    """Rows of `start` become first values of the users and items that it knows."""
    if start is None:
        return
    for side, table, keys in (("users", users, ratings.users), ("items", items, ratings.items)):
        known = start.tables[side].rows
        pairs = [(row, known[key]) for row, key in enumerate(keys) if key in known]
        if pairs:
            new, old = np.array(pairs).T
            table[new, : start._rows[side].shape[1]] = start._rows[side][old]
