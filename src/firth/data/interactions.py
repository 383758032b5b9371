"""`Interactions`: user-item events with weights (or ratings), times and sessions, and features of users and items."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data
from firth.core.errors import FirthError
from firth.data.features import Features
from firth.data.interaction_files import COLUMN_NAMES, Columns, frame_columns, read_columns, record_columns
from firth.data.shared_options import FEATURE_OPTIONS, INTERACTION_OPTIONS
from firth.data.table import Table, encode_distinct, text_of
from firth.kernels.sparse import CSRMatrix

SOURCES = (
    "a file (csv, tsv, text, jsonl, Parquet), a data frame, a scipy.sparse matrix, or tuples "
    "(user, item[, weight[, time]])"
)


class Events(NamedTuple):
    """Arrays with one entry per event."""

    users: NDArray[np.int64]
    items: NDArray[np.int64]
    weights: NDArray[np.float32]
    times: NDArray[np.float64] | None
    sessions: NDArray[np.int64] | None = None  # numbers of the sessions


class Interactions(Data):
    """User-item events (user, item, weight, time, session). The weight defaults to 1; times and sessions are optional.

        Interactions("plays.tsv")                             # columns by name or by position
        Interactions("log.csv", user="who", item="song", value="plays")
        Interactions([("ann", "jazz"), ("ann", "soul", 3.0), ("bob", "jazz", 1.0, 1700000000)])
        Interactions(matrix)                                  # scipy.sparse; keys are the row and column numbers
        Interactions("views.csv", session="visit", user_features="people.csv", item_features="songs.csv")

    Keys are text: 7, 7.0 and "7" are the same user, while 007 in a csv or text file is a different one. `users` are in
    order of first occurrence, `items` in order of decreasing popularity.

    `user_features` and `item_features` are tables with a row per user or item. Their first column, or the one named
    user or item, has the keys.

    The events of user u are `item_ids[starts[u]:starts[u + 1]]` with `weights` and `times`, sorted by time, or in
    source order if there are no times. A pair may occur several times: `summed()` adds up the weights, for implicit
    feedback; `latest()` returns the last rating, or the mean if there are no times, for explicit feedback.

    Immutable, so threads can share it.
    """

    noun = "set of interactions"
    file_options = (*INTERACTION_OPTIONS, *FEATURE_OPTIONS)

    def __init__(
        self,
        source: Any,
        *,
        user: str | None = None,
        item: str | None = None,
        value: str | None = None,
        time: str | None = None,
        session: str | None = None,
        user_features: Any = None,
        item_features: Any = None,
    ) -> None:
        requested = {"user": user, "item": item, "value": value, "time": time, "session": session}
        #: What is known about users and items beside their events, by key.
        self.user_features = Features.of(user_features, COLUMN_NAMES["user"])
        self.item_features = Features.of(item_features, COLUMN_NAMES["item"])
        if isinstance(source, Interactions):
            self.user_features = self.user_features or source.user_features
            self.item_features = self.item_features or source.item_features
            self._set_events(source.users, source.items, source.events())
        elif hasattr(source, "tocoo"):
            self._set_matrix(source)
        else:
            self._set_events(*column_events(columns_of(source, requested)))

    @classmethod
    def from_events(
        cls,
        users: Sequence[str],
        items: Sequence[str],
        events: Events,
        user_features: Features | None = None,
        item_features: Features | None = None,
    ) -> Interactions:
        """Build interactions from arrays of user and item numbers and the keys of these numbers."""
        interactions = cls.__new__(cls)
        interactions.user_features, interactions.item_features = user_features, item_features
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
        #: The session number of each event; None if the data has no session column.
        self.sessions = None if events.sessions is None else events.sessions[order]

    def _set_matrix(self, matrix: Any) -> None:
        """Store the entries of a scipy.sparse matrix, sorted by row and item, so that `summed` need not sort.

        Empty rows and columns are kept, as users and items without events.
        """
        from scipy.sparse import csr_array

        rows = csr_array(matrix)
        invalid = np.flatnonzero(~np.isfinite(rows.data))
        if len(invalid):
            row = int(np.searchsorted(rows.indptr, invalid[0], side="right")) - 1
            raise FirthError(
                "non_finite",
                "The matrix must have finite numbers; row {row}, column {column} has {got}.",
                row=row,
                column=int(rows.indices[invalid[0]]),
                got=float(rows.data[invalid[0]]),
            )
        rank, new_id = rank_by_popularity(rows.indices, rows.shape[1])
        ordered = csr_array((rows.data.astype(np.float32), new_id[rows.indices], rows.indptr.copy()), rows.shape)
        ordered.sort_indices()
        self.users, self.items = [str(row) for row in range(rows.shape[0])], [str(column) for column in rank.tolist()]
        self.starts, self.item_ids, self.weights = rows_of(ordered)
        self.times = self.sessions = None

    def events(self) -> Events:
        """Return the events as arrays."""
        return Events(self.user_ids(), self.item_ids.astype(np.int64), self.weights, self.times, self.sessions)

    def user_ids(self) -> NDArray[np.int64]:
        """Return the user number of each event."""
        return np.repeat(np.arange(len(self.users)), np.diff(self.starts))

    def __len__(self) -> int:
        """Return the number of events."""
        return len(self.item_ids)

    def _rows_shown(self) -> tuple[list[str], Iterator[list[str]]]:
        def row(user: int) -> list[str]:
            items = self.item_ids[self.starts[user] : self.starts[user + 1]]
            return [self.users[user], f"{len(items):,}", ", ".join(self.items[item] for item in items[:10].tolist())]

        return ["user", "interactions", "items"], map(row, range(len(self.users)))

    def __repr__(self) -> str:
        return f"Interactions({len(self):,} of {len(self.users):,} users and {len(self.items):,} items)"

    def fingerprint(self) -> str:
        """Return a hash of the users, items and events."""
        digest = hashlib.sha256(json.dumps([self.users, self.items]).encode())
        for array in (self.starts, self.item_ids, self.weights, self.times):
            digest.update(b"-" if array is None else np.ascontiguousarray(array).data)
        if self.sessions is not None:
            digest.update(np.ascontiguousarray(self.sessions).data)
        for features in (self.user_features, self.item_features):
            if features is not None:
                digest.update(features.fingerprint().encode())
        return digest.hexdigest()

    def summed(self) -> CSRMatrix:
        """Return the users × items matrix of summed weights. Negative weights are refused, sums of 0 left out."""
        low = np.flatnonzero(self.weights < 0)
        if len(low):
            raise FirthError(
                "malformed_data",
                "Implicit feedback needs weights of at least 0; {event} has {got:g}. RatingFactors accepts ratings of "
                "any sign.",
                event=self.name_event(low[0]),
                got=float(self.weights[low[0]]),
            )
        if len(self) and not self.weights.any():
            raise FirthError(
                "empty_data",
                "Implicit feedback needs weights above 0; the weights of all {events:,} events are 0.",
                events=len(self),
            )
        from scipy.sparse import csr_array

        shape = (len(self.users), len(self.items))
        matrix = csr_array((self.weights, self.item_ids, self.starts), shape)
        if matrix.has_canonical_format and self.weights.all():
            return CSRMatrix(self.starts, self.item_ids, self.weights)
        matrix = matrix.copy()  # it is changed in place below
        matrix.sum_duplicates()
        matrix.eliminate_zeros()
        return rows_of(matrix)

    def latest(self) -> CSRMatrix:
        """Return the users × items matrix of the latest rating of each pair, or its mean if there are no times."""
        owners = self.user_ids()
        order = np.lexsort((self.item_ids, owners))  # stable: within a pair, events stay in time order
        ids, owners = self.item_ids[order], owners[order]
        first = np.flatnonzero((np.diff(ids, prepend=-1) != 0) | (np.diff(owners, prepend=-1) != 0))
        last = np.append(first[1:], len(order)) - 1 if len(first) else first
        if self.times is not None or not len(first):
            values = self.weights[order[last]]
        else:
            values = np.add.reduceat(self.weights[order], first, dtype=np.float64) / (last - first + 1)
        starts = np.concatenate([[0], np.cumsum(np.bincount(owners[first], minlength=len(self.users)))])
        return CSRMatrix(starts.astype(np.int64), ids[first], values.astype(np.float32))

    def histories(self) -> dict[str, dict[str, float]]:
        """Return each user's items in the order of their last events, with the weights that `latest` gives them."""
        rows = self.latest()
        order = self.by_last_event(rows)
        items = [self.items[id] for id in rows.columns[order].tolist()]
        pairs = list(zip(items, rows.values[order].tolist(), strict=True))
        bounds = rows.starts.tolist()
        return {key: dict(pairs[bounds[u] : bounds[u + 1]]) for u, key in enumerate(self.users)}

    def by_last_event(self, rows: CSRMatrix) -> NDArray[np.intp]:
        """Return an order of the pairs of `rows`, such as those of `latest`: by user, then by the pair's last event."""
        width = len(self.items)
        codes, first_of_reversed = np.unique((self.user_ids() * width + self.item_ids)[::-1], return_index=True)
        last = len(self) - 1 - first_of_reversed
        owners = np.repeat(np.arange(len(self.users)), np.diff(rows.starts))
        return np.lexsort((last[np.searchsorted(codes, owners * width + rows.columns)], owners))

    def sessions_of(self, gap: float) -> tuple[NDArray[np.intp], NDArray[np.int64]]:
        """Return the order of the events by session, and the start of each session in it.

        Sessions are those of the session column; without one, a gap of more than `gap` seconds between two events of a
        user begins a new session (0: never). Without either, the whole history of a user is one session.
        """
        owners, order = self.user_ids(), np.arange(len(self))
        begins = np.diff(owners, prepend=-1) != 0
        if self.sessions is not None:  # sessions of a user may overlap in time, so their events are brought together
            _, first, number = np.unique(
                owners * (self.sessions.max(initial=0) + 1) + self.sessions, return_index=True, return_inverse=True
            )
            order = np.lexsort((order, first[number], owners))
            begins = np.diff(first[number][order], prepend=-1) != 0
        elif self.times is not None and gap > 0:
            begins |= np.diff(self.times, prepend=-np.inf) > gap
        return order, np.append(np.flatnonzero(begins), len(self)).astype(np.int64)

    def with_featured(self) -> Interactions:
        """Return the interactions with all users and items that have features, also those without events."""
        sides = ((self.users, self.user_features), (self.items, self.item_features))
        users, items = (list(dict.fromkeys([*keys, *(each.keys if each else ())])) for keys, each in sides)
        return Interactions.from_events(users, items, self.events(), self.user_features, self.item_features)

    def decayed(self, half_life: float) -> Interactions:
        """Return the interactions with weights that halve every `half_life` seconds before the latest event."""
        if self.times is None:
            raise FirthError(
                "missing_option", "half_life needs a {option} column in the data. Add one, or omit it.", option="time"
            )
        if not half_life > 0:
            raise FirthError(
                "invalid_value",
                "{option} must be above {minimum}; got {got}.",
                option="half_life",
                minimum=0,
                got=half_life,
            )
        ages = self.times.max(initial=-np.inf) - self.times
        weights = (self.weights * np.exp2(-ages / half_life)).astype(np.float32)
        events = self.events()._replace(weights=weights)
        return Interactions.from_events(self.users, self.items, events, self.user_features, self.item_features)

    def take(self, events: NDArray[np.bool_]) -> Interactions:
        """Return the selected events; users and items without events are removed."""
        users, new_users = np.unique(self.user_ids()[events], return_inverse=True)
        items, new_items = np.unique(self.item_ids[events], return_inverse=True)
        times, sessions = (None if each is None else each[events] for each in (self.times, self.sessions))
        selected_events = Events(
            new_users.astype(np.int64), new_items.astype(np.int64), self.weights[events], times, sessions
        )
        names = [self.users[u] for u in users], [self.items[i] for i in items]
        return Interactions.from_events(*names, selected_events, self.user_features, self.item_features)

    def name_event(self, event: int) -> str:
        """Describe an event in an error message."""
        user = int(np.searchsorted(self.starts, event, side="right")) - 1
        return f"user {self.users[user]!r} with item {self.items[self.item_ids[event]]!r}"


def rank_by_popularity(items: NDArray[Any], count: int) -> tuple[NDArray[np.intp], NDArray[np.int32]]:
    """Return the items in order of decreasing popularity, ties in the given order, and the rank of each item."""
    rank = np.argsort(-np.bincount(items, minlength=count), kind="stable")
    new_id = np.empty(count, dtype=np.int32)
    new_id[rank] = np.arange(count, dtype=np.int32)
    return rank, new_id


def rows_of(matrix: Any) -> CSRMatrix:
    """Return the arrays of a `scipy.sparse` matrix in compressed sparse row format."""
    return CSRMatrix(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32, copy=False), matrix.data)


def transposed(rows: CSRMatrix, columns: int) -> CSRMatrix:
    """Transpose users × items to items × users; the users of an item are in ascending order."""
    from scipy.sparse import csr_array

    matrix = csr_array((rows.values, rows.columns, rows.starts), (len(rows.starts) - 1, columns))
    return rows_of(matrix.T.tocsr())


def columns_of(source: Any, requested: Mapping[str, str | None]) -> Columns:
    """Return the columns of any supported source except matrices."""
    if isinstance(source, (str, os.PathLike)):
        return read_columns(source, requested)
    if isinstance(source, Table):
        return frame_columns(source.arrow(), requested, "The table")
    if hasattr(source, "columns") and (hasattr(source, "iloc") or hasattr(source, "__arrow_c_stream__")):
        return frame_columns(source, requested, "The data frame")
    if isinstance(source, Mapping):
        lengths = {len(values) for values in source.values()}
        if len(lengths) > 1:
            raise FirthError(
                "shape_mismatch",
                "The columns must have equal lengths; got {shortest} to {longest} values.",
                shortest=min(lengths),
                longest=max(lengths),
            )
        rows = [dict(zip(source, row, strict=True)) for row in zip(*source.values(), strict=True)]
        return record_columns(rows, requested, "The data")
    if not isinstance(source, Iterable):
        raise FirthError(
            "invalid_type",
            "The source of Interactions must be {sources}; got {got}.",
            sources=SOURCES,
            got=type(source).__name__,
        )
    rows = list(source)
    if rows and all(isinstance(row, Mapping) for row in rows):
        return record_columns(rows, requested, "The data")
    if any(requested.values()):
        raise FirthError(
            "conflicting_options",
            "Tuples have no column names; leave out {options}.",
            options=", ".join(name for name, column in requested.items() if column),
        )
    return tuple_columns(rows)


def tuple_columns(rows: Sequence[Any]) -> Columns:
    """Return the columns of tuples (user, item[, weight[, time]])."""
    widths = set()
    for number, row in enumerate(rows, 1):
        if isinstance(row, str) or not isinstance(row, (Sequence, np.ndarray)) or not 2 <= len(row) <= 4:
            raise FirthError(
                "malformed_data",
                "{where} must be (user, item[, weight[, time]]); got {got!r:.60}.",
                where=f"Row {number:,}",
                got=row,
            )
        widths.add(len(row))
    if not rows:
        return Columns([], [])
    if 4 in widths and len(widths) > 1:
        raise FirthError(
            "malformed_data",
            "{with_time:,} of {rows:,} rows have a time. Give all rows a time, or none.",
            with_time=sum(len(row) == 4 for row in rows),
            rows=len(rows),
        )
    parts = [[row[column] for row in rows] for column in range(2)]
    values = [row[2] if len(row) > 2 else 1.0 for row in rows] if max(widths) > 2 else None
    times = [row[3] for row in rows] if max(widths) > 3 else None
    return Columns(parts[0], parts[1], values, times)


def column_events(columns: Columns) -> tuple[list[str], list[str], Events]:
    """Return the user keys, the item keys and the events of the columns."""
    user_keys, users = encode_keys(columns.user, "user", columns)
    item_keys, items = encode_keys(columns.item, "item", columns)
    weights = np.ones(len(users), dtype=np.float32)
    if columns.value is not None:
        weights = numbers_of(columns.value, "weight", columns).astype(np.float32)
    times = None if columns.time is None else times_of(columns.time, columns)
    sessions = None if columns.session is None else encode_keys(columns.session, "session", columns)[1]
    return user_keys, item_keys, check_weights(Events(users, items, weights, times, sessions), columns)


def check_weights(events: Events, columns: Columns) -> Events:
    """Refuse NaN and infinite weights."""
    invalid = np.flatnonzero(~np.isfinite(events.weights))
    if len(invalid):
        raise FirthError(
            "malformed_data",
            "{where}: the {field} must be a finite number; got {got}.",
            where=row_location(columns, invalid[0]),
            field="weight",
            got=float(events.weights[invalid[0]]),
        )
    return events


def row_location(columns: Columns, row: int) -> str:
    """Return the source and row number of a row for an error message."""
    return f"{columns.where}, row {int(row) + columns.first:,}"


def arrow_column(values: Any) -> Any:
    """Convert values to a chunked Arrow array."""
    import pyarrow as pa

    return values if isinstance(values, pa.ChunkedArray) else pa.chunked_array([pa.array(values, from_pandas=True)])


def encode_keys(values: Any, role: str, columns: Columns) -> tuple[list[str], NDArray[np.int64]]:
    """Return the distinct keys as text in order of first occurrence, and the key number of each row."""
    import pyarrow as pa

    try:
        levels, ids = encode_distinct(arrow_column(values))
        keys = [key if isinstance(key, str) else text_of(key) for key in levels]
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # mixed, or numbers too large for Arrow
        keys, ids = encode_keys_one_by_one(values, role, columns)
    missing = np.flatnonzero((ids < 0) | np.isin(ids, [number for number, key in enumerate(keys) if key == ""]))
    if len(missing):
        raise FirthError(
            "malformed_data", "{where} has no {field}.", where=row_location(columns, missing[0]), field=role
        )
    return keys, ids


def encode_keys_one_by_one(values: Iterable[Any], role: str, columns: Columns) -> tuple[list[str], NDArray[np.int64]]:
    """Encode keys of mixed types, or too large for Arrow; a missing key is −1."""
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
                "{where}: the {field} must be text or a number; got {got}.",
                where=row_location(columns, row),
                field=role,
                got=type(value).__name__,
            ) from None
        ids.append(key_ids.setdefault(key, len(key_ids)))
    return list(key_ids), np.array(ids, dtype=np.int64)


def numbers_of(values: Any, role: str, columns: Columns) -> NDArray[np.float64]:
    """Return a column as numbers, NaN for missing values."""
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
    """Convert a cell to a number, NaN for None."""
    try:
        return np.nan if cell is None else float(cell)
    except (TypeError, ValueError, OverflowError):
        raise FirthError(
            "malformed_data",
            "{where}: the {field} must be a number; got {got!r:.40}.",
            where=row_location(columns, row),
            field=role,
            got=cell,
        ) from None


def times_of(values: Any, columns: Columns) -> NDArray[np.float64]:
    """Return the times: numbers unchanged, dates in seconds. Every event must have a time."""
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
            "{where}: the {field} must be a number or a date such as 2024-05-31; {reason}.",
            where=columns.where,
            field="time",
            reason=str(error),
        ) from None
    invalid = np.flatnonzero(~np.isfinite(times))
    if len(invalid):
        raise FirthError(
            "malformed_data",
            "{where} has no {field}. If some times are unknown, leave out the time column.",
            where=row_location(columns, invalid[0]),
            field="time",
        )
    return np.asarray(times, dtype=np.float64)
