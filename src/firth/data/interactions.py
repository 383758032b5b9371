"""`Interactions`: who used or rated what, how much, and when."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.data.interaction_files import Columns, frame_columns, read_columns, record_columns
from firth.data.table import encode_distinct, text_of
from firth.kernels.sparse import Rows

SOURCES = (
    "a file (csv, tsv, text, jsonl, Parquet), a data frame, a scipy.sparse matrix, or tuples "
    "(user, item[, weight[, time]])"
)


class Events(NamedTuple):
    """Who met what: one entry an event."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float32]
    times: NDArray[np.float64] | None


class Interactions:
    """Users × items, from events (user, item, weight, time); weight is 1 and time unknown where there are none.

        Ratings("plays.tsv")                                  # user, item, weight, time by place or name
        Ratings("log.csv", user="who", item="song", value="plays")
        Ratings([("ann", "jazz"), ("ann", "soul", 3.0), ("bob", "jazz", 1.0, 1700000000)])
        Ratings(matrix)                                       # scipy.sparse; rows and columns are named 0, 1, …

    Keys are text: 7, 7.0 and "7" are one user, and in csv and text files 007 is another. `users` stand in the order
    they are met, `items` from the most used to the least, so that the first ones are the most popular.

    The events of user u, in the order of time (of the source, where there is none), are
    `item_ids[starts[u]:starts[u + 1]]` with `weights` and `times`. A pair may occur several times: `summed()` adds up
    its weights, which is what implicit feedback means; `latest()` takes the last by time, or the mean where times are
    unknown, which is what ratings mean. Read once and never changed: threads can share it.
    """

    def __init__(
        self,
        source: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        value: str | None = None,
        time: str | None = None,
    ) -> None:
        requested = {"user": user, "item": item, "value": value, "time": time}
        if isinstance(source, Interactions):
            self._set_events(source.users, source.items, source.events())
        elif hasattr(source, "tocoo"):
            self._set_matrix(source)
        else:
            self._set_events(*column_events(columns_of(source, requested)))

    @classmethod
    def from_events(cls, users: Sequence[str], items: Sequence[str], events: Events) -> Interactions:
        """Events by number, with the keys they stand for."""
        interactions = cls.__new__(cls)
        interactions._set_events(users, items, events)
        return interactions

    def _set_events(self, users: Sequence[str], items: Sequence[str], events: Events) -> None:
        rank, new_id = rank_by_popularity(events.items, len(items))
        order: Any = slice(None)
        if events.times is not None:
            order = np.lexsort((events.times, events.users))
        elif (np.diff(events.users) < 0).any():
            order = np.argsort(events.users, kind="stable")
        self.users, self.items = list(users), [items[item] for item in rank.tolist()]
        self.starts: NDArray[np.int64] = np.concatenate(
            [[0], np.cumsum(np.bincount(events.users, minlength=len(users)))]
        ).astype(np.int64)
        self.item_ids: NDArray[np.int32] = new_id[events.items[order]]
        self.weights: NDArray[np.float32] = np.ascontiguousarray(events.weights[order])
        self.times = None if events.times is None else events.times[order]

    def _set_matrix(self, matrix: Any) -> None:
        """Entries of a scipy.sparse matrix; rows and columns without any stay, as users and items with no events. In
        the order of rows and ids, so that `summed` has nothing left to do."""
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        invalid = np.flatnonzero(~np.isfinite(rows.data))
        if len(invalid):
            row = int(np.searchsorted(rows.indptr, invalid[0], side="right")) - 1
            position = f"row {row}, column {rows.indices[invalid[0]]} has {rows.data[invalid[0]]}"
            raise FirthError("non_finite", "The matrix must hold finite numbers; {path}.", path=position)
        rank, new_id = rank_by_popularity(rows.indices, rows.shape[1])
        ordered = csr_array((rows.data.astype(np.float32), new_id[rows.indices], rows.indptr.copy()), rows.shape)
        ordered.sort_indices()
        self.users, self.items = [str(row) for row in range(rows.shape[0])], [str(column) for column in rank.tolist()]
        self.starts, self.item_ids, self.weights = rows_of(ordered)
        self.times = None

    def events(self) -> Events:
        return Events(self.user_ids(), self.item_ids.astype(np.int64), self.weights, self.times)

    def user_ids(self) -> NDArray[np.int64]:
        """The user of each event."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.starts))

    def __len__(self) -> int:
        """How many events."""
        return len(self.item_ids)

    def __repr__(self) -> str:
        return f"Interactions({len(self):,} of {len(self.users):,} users and {len(self.items):,} items)"

    def fingerprint(self) -> str:
        """Tells whether two hold the same."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        for array in (self.starts, self.item_ids, self.weights, self.times):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        return digest.hexdigest()

    def summed(self) -> Rows:
        """Each pair once, its weights added up: users × items. A weight below 0 is refused, a sum of 0 left out."""
        low = np.flatnonzero(self.weights < 0)
        if len(low):
            raise FirthError(
                "malformed_data",
                "Implicit feedback needs weights of at least 0; {name_event} has {weight:g}. RatingFactors learns "
                "from ratings of any size.",
                name_event=self.name_event(low[0]),
                weight=self.weights[low[0]],
            )
        if len(self) and not self.weights.any():
            raise FirthError(
                "empty_data", "Implicit feedback needs weights above 0; all are 0, so nobody used anything."
            )
        from scipy.sparse import csr_array

        shape = (len(self.users), len(self.items))
        matrix = csr_array((self.weights, self.item_ids, self.starts), shape)
        if matrix.has_canonical_format and self.weights.all():
            return Rows(self.starts, self.item_ids, self.weights)
        matrix = matrix.copy()  # to be changed in place
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return rows_of(matrix)

    def latest(self) -> Rows:
        """Each pair once: the rating that is last in time, or the mean of all where times are unknown."""
        owners = self.user_ids()
        order = np.lexsort((self.item_ids, owners))  # then time, for the events of a user stand in its order
        ids, owners = self.item_ids[order], owners[order]
        first = np.flatnonzero((np.diff(ids, prepend=-1) != 0) | (np.diff(owners, prepend=-1) != 0))
        last = np.append(first[1:], len(order)) - 1 if len(first) else first
        if self.times is not None or not len(first):
            values = self.weights[order[last]]
        else:
            values = np.add.reduceat(self.weights[order], first, dtype=np.float64) / (last - first + 1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners[first], minlength=len(self.users)))])
        return Rows(starts.astype(np.int64), ids[first], values.astype(np.float32))

    def histories(self) -> dict[str, dict[str, float]]:
        """Each user's items with their weights (of a pair met several times: as `latest` has it), for evaluation."""
        rows = self.latest()
        items = [self.items[id] for id in rows.columns.tolist()]
        pairs = list(zip(items, rows.values.tolist(), strict=True))
        bounds = rows.starts.tolist()
        return {key: dict(pairs[bounds[u] : bounds[u + 1]]) for u, key in enumerate(self.users)}

    def take(self, events: NDArray[np.bool_]) -> Interactions:
        """Only these events; users and items without any are gone."""
        users, new_users = np.unique(self.user_ids()[events], return_inverse=True)
        items, new_items = np.unique(self.item_ids[events], return_inverse=True)
        times = None if self.times is None else self.times[events]
        selected_events = Events(new_users.astype(np.int64), new_items.astype(np.int64), self.weights[events], times)
        return Interactions.from_events([self.users[u] for u in users], [self.items[i] for i in items], selected_events)

    def name_event(self, event: int) -> str:
        user = int(np.searchsorted(self.starts, event, side="right")) - 1
        return f"user {self.users[user]!r} with item {self.items[self.item_ids[event]]!r}"


def rank_by_popularity(items: NDArray[Any], count: int) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Items from the most used to the least (equally used ones as they are), and the place of each in that order."""
    rank = np.argsort(-np.bincount(items, minlength=count), kind="stable")
    new_id = np.empty(count, dtype=np.int32)
    new_id[rank] = np.arange(count, dtype=np.int32)
    return rank, new_id


def rows_of(matrix: Any) -> Rows:
    """The arrays of a scipy.sparse matrix in compressed rows."""
    return Rows(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data)


def transposed(rows: Rows, columns: int) -> Rows:
    """Items × users of users × items; users ascend within an item."""
    from scipy.sparse import csr_array

    matrix = csr_array((rows.values, rows.columns, rows.starts), (len(rows.starts) - 1, columns))
    return rows_of(matrix.T.tocsr())


def columns_of(source: Any, requested: Mapping[str, str | None]) -> Columns:
    if isinstance(source, (str, os.PathLike)):
        return read_columns(source, requested)
    if hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "__arrow_c_stream__")):
        return frame_columns(source, requested, "The data frame")
    if isinstance(source, Mapping):
        lengths = {len(values) for values in source.values()}
        if len(lengths) > 1:
            raise FirthError(
                "shape_mismatch",
                "The columns must be equally long; got {got} to {lengths} values.",
                got=min(lengths),
                lengths=max(lengths),
            )
        rows = [dict(zip(source, row, strict=True)) for row in zip(*source.values(), strict=True)]
        return record_columns(rows, requested, "The data")
    if not isinstance(source, Iterable):
        raise FirthError(
            "invalid_type", "Ratings are made of {sources}; got {got}.", sources=SOURCES, got=type(source).__name__
        )
    rows = list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return record_columns(rows, requested, "The data")
    if any(requested.values()):
        raise FirthError(
            "conflicting_options", "Tuples have no names of columns; leave user, item, value and time out."
        )
    return tuple_columns(rows)


def tuple_columns(rows: Sequence[Any]) -> Columns:
    widths = set()
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or not isinstance(row, (Sequence, np.ndarray)) or not 2 <= len(row) <= 4:
            raise FirthError(
                "malformed_data",
                "Row {number:,} must be (user, item[, weight[, time]]); got {got!r:.60}.",
                number=number,
                got=row,
            )
        widths.add(len(row))
    if not rows:
        return Columns([], [])
    if 4 in widths and len(widths) > 1:
        raise FirthError(
            "malformed_data", "Some rows have a time and some have none; give all of them one, or leave it out."
        )
    parts = [[row[column] for row in rows] for column in range(2)]
    values = [row[2] if len(row) > 2 else 1.0 for row in rows] if max(widths) > 2 else None
    times = [row[3] for row in rows] if max(widths) > 3 else None
    return Columns(parts[0], parts[1], values, times)


def column_events(columns: Columns) -> tuple[list[str], list[str], Events]:
    user_keys, users = encode_keys(columns.user, "user", columns)
    item_keys, items = encode_keys(columns.item, "item", columns)
    weights = np.ones(len(users), dtype=np.float32)
    if columns.value is not None:
        weights = numbers_of(columns.value, "weight", columns).astype(np.float32)
    times = None if columns.time is None else times_of(columns.time, columns)
    return user_keys, item_keys, check_weights(Events(users, items, weights, times), columns)


def check_weights(events: Events, columns: Columns) -> Events:
    invalid = np.flatnonzero(~np.isfinite(events.weights))
    if len(invalid):
        raise FirthError(
            "malformed_data",
            "{place_of}: the weight must be a finite number; got {got}.",
            place_of=row_location(columns, invalid[0]),
            got=events.weights[invalid[0]],
        )
    return events


def row_location(columns: Columns, row: int) -> str:
    return f"{columns.where}, row {int(row) + columns.first:,}"


def arrow_column(values: Any) -> Any:
    import pyarrow as pa

    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values, from_pandas=True)])


def encode_keys(values: Any, role: str, columns: Columns) -> tuple[list[str], NDArray[np.int64]]:
    """Distinct keys as text in the order they are met, and the number of each row's key."""
    import pyarrow as pa

    try:
        levels, ids = encode_distinct(arrow_column(values))
        keys = [key if isinstance(key, str) else text_of(key) for key in levels]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # mixed, or numbers too large for Arrow
        keys, ids = encode_keys_one_by_one(values, role, columns)
    missing = np.flatnonzero((ids < 0) | np.isin(ids, [number for number, key in enumerate(keys) if key == ""]))
    if len(missing):
        raise FirthError(
            "malformed_data", "{place_of} has no {role}.", place_of=row_location(columns, missing[0]), role=role
        )
    return keys, ids


def encode_keys_one_by_one(values: Iterable[Any], role: str, columns: Columns) -> tuple[list[str], NDArray[np.int64]]:
    key_ids: dict[str, int] = {}
    ids = []
    for row, value in enumerate(values):
        if value is None or value != value:
            ids.append(-1)
            continue
        try:
            key = text_of(value)
        except (TypeError, ValueError):
            raise FirthError(
                "malformed_data",
                "{place_of}: the {role} must be text or a number; got a {got}.",
                place_of=row_location(columns, row),
                role=role,
                got=type(value).__name__,
            ) from None
        ids.append(key_ids.setdefault(key, len(key_ids)))
    return list(key_ids), np.array(ids, dtype=np.int64)


def numbers_of(values: Any, role: str, columns: Columns) -> NDArray[np.float64]:
    """A column as numbers, NaN for missing."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray) and not pa.types.is_string(values.type):
        try:
            cast: NDArray[np.float64] = values.cast(pa.float64(), safe=False).to_numpy()
            return cast
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            pass
    cells = values.to_pylist() if isinstance(values, pa.ChunkedArray) else values
    numbers = np.empty(len(cells))
    for row, cell in enumerate(cells):
        numbers[row] = one_number(cell, role, columns, row)
    return numbers


def one_number(cell: Any, role: str, columns: Columns, row: int) -> float:
    try:
        return np.nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        raise FirthError(
            "malformed_data",
            "{place_of}: the {role} must be a number; got {got!r:.40}.",
            place_of=row_location(columns, row),
            role=role,
            got=cell,
        ) from None


def times_of(values: Any, columns: Columns) -> NDArray[np.float64]:
    """Numbers as they are, dates as seconds; every event must have one."""
    import pyarrow as pa

    try:
        column = arrow_column(values)
        dtype = column.type
        texts = pa.types.is_string(dtype) or pa.types.is_large_string(dtype)
        if texts or pa.types.is_date(dtype) or pa.types.is_timestamp(dtype):
            times = column.cast(pa.timestamp("us")).cast(pa.int64()).cast(pa.float64(), safe=False).to_numpy() / 1e6
        else:
            times = numbers_of(column, "time", columns)
    except pa.ArrowException as error:
        raise FirthError(
            "malformed_data",
            "{where}: the time must be a number or a date such as 2024-05-31; {reason}.",
            where=columns.where,
            reason=str(error),
        ) from None
    invalid = np.flatnonzero(~np.isfinite(times))
    if len(invalid):
        raise FirthError(
            "malformed_data",
            "{place_of} has no time; leave the column out where some are unknown.",
            place_of=row_location(columns, invalid[0]),
        )
    return np.asarray(times, dtype=np.float64)
