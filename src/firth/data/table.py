"""`Table`: rows with typed columns, numbers or categories, in memory."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.data.readers import ICONV, column_hint
from firth.data.table_files import read_table

SOURCES = (
    "a csv, tsv, jsonl or Parquet file, a data frame, an Arrow table, a dictionary of columns, a list of dictionaries, "
    "a list of rows, a list or series of values, or an array"
)
SUPPORTED_TYPES = "a table takes numbers, text, booleans, dates and times"


class CellError(FirthError, TypeError):
    """A value of a kind that no column of a table can hold."""


class Codes(NamedTuple):
    """A column as numbers of its distinct values: `levels[ids[row]]`, in the order they are first met; −1 = missing."""

    ids: NDArray[np.int64]
    levels: list[str]


class Table:
    """Rows with named columns, each numeric or a category.

        Table("people.csv")
        Table({"color": ["red", "blue"], "age": [30, None]})
        Table(array)                        # columns x0, x1, …
        Table("people.csv", columns=["zip", "age"], categories=["zip"])

    `columns` keeps only these, in this order; `categories` are columns to take as categories though they look like
    numbers (of a file they are read as they are written: 007 stays 007).

    Numeric are whole numbers, floats and decimals. Categories are text, booleans ("true", "false"), dates and times (as
    ISO text; of csv and tsv as written), and mixed columns, whose values are taken as text. A number as text is written
    without a needless ".0", so that 1 and 1.0 are one category. A column with no value at all is numeric. Lists,
    structs, bytes and durations are refused.

    Missing are None, NaN, null, and in csv and tsv the empty field; among numbers of csv and tsv also NA, N/A, NaN,
    null and their like, while a text "NA" (Namibia) stays a text. Infinities are kept: those who compute refuse them.
    Read once and never changed: threads can share it.
    """

    def __init__(self, source: Any, *, columns: Sequence[str] | None = None, categories: Sequence[str] = ()) -> None:
        for names in (columns, categories):
            if isinstance(names, str):
                raise FirthError(
                    "invalid_type",
                    "columns and categories take lists of names; got {got!r}. Put it in a list.",
                    got=names,
                )
        found_columns = source_columns(source, frozenset(categories))
        #: False where the columns have no names of their own and are told by their place.
        self.named = found_columns.named
        #: The row of a larger table that this one begins with, so that messages name the right one.
        self.first = found_columns.first
        for name in [*(columns or ()), *categories]:
            if name not in found_columns.columns:
                available = ", ".join(found_columns.columns) or "none"
                raise FirthError(
                    "unknown_column",
                    "The table has no column {name!r}; it has {available}.{hint}",
                    name=name,
                    available=available,
                    hint=column_hint(name),
                )
        selected = found_columns.columns if columns is None else {name: found_columns.columns[name] for name in columns}
        self._columns: dict[str, Any] = {name: plain_column(column, name) for name, column in selected.items()}
        for name in categories:
            if name in self._columns:
                self._columns[name] = text_column(self._columns[name])
        lengths = {name: len(column) for name, column in self._columns.items()}
        if len(set(lengths.values())) > 1:
            raise FirthError("shape_mismatch", "The columns of a table must be equally long; got {got}.", got=lengths)
        self._rows = next(iter(lengths.values()), 0)

    @property
    def names(self) -> list[str]:
        return list(self._columns)

    def __len__(self) -> int:
        """How many rows."""
        return self._rows

    def __repr__(self) -> str:
        shown_columns = ", ".join(f"{name} ({self.kind(name)})" for name in self.names[:5])
        return f"Table({len(self):,} rows: {shown_columns}{', …' if len(self.names) > 5 else ''})"

    def _column(self, name: str) -> Any:
        if name not in self._columns:
            raise FirthError(
                "unknown_column",
                "The table has no column {name!r}; it has {available}.",
                name=name,
                available=", ".join(self.names) or "none",
            )
        return self._columns[name]

    def kind(self, name: str) -> str:
        """ "numeric" or "category"."""
        return "numeric" if self.type(name) == "number" else "category"

    def type(self, name: str) -> str:
        """ "number", "text" or "boolean": what the values are."""
        import pyarrow.types as arrow_types

        dtype = self._column(name).type
        return "text" if arrow_types.is_string(dtype) else "boolean" if arrow_types.is_boolean(dtype) else "number"

    def numbers(self, name: str) -> NDArray[np.float64]:
        """The column as numbers, NaN for missing; booleans are 0 and 1, text is read where all of it is numbers."""
        import pyarrow as pa

        column = self._column(name)
        try:
            column = column.cast(pa.int8()) if self.type(name) == "boolean" else column
            values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
        except pa.ArrowInvalid:  # Python reads a little more than Arrow, such as blanks around a number
            cells = enumerate(column.to_pylist())
            values = np.array(
                [read_number(value, f"Column {name!r}, row {self.row_number(row)}") for row, value in cells]
            )
        return values

    def categories(self, name: str) -> list[str | None]:
        """The column as text, None for missing."""
        ids, levels = self.codes(name)
        values: list[str | None] = [*levels, None]  # −1 is the last one
        return [values[id] for id in ids.tolist()]

    def codes(self, name: str) -> Codes:
        """The column's distinct values as text, and which of them stands in each row."""
        column, type = self._column(name), self.type(name)
        levels, ids = encode_distinct(column)
        texts = levels if type == "text" else [text_of(value) for value in levels]
        return Codes(ids, texts)

    def arrow(self) -> Any:
        """A `pyarrow.Table`; `.to_pandas()` and `polars.from_arrow` go on from there."""
        import pyarrow as pa

        return pa.table(self._columns)

    def to_dict(self) -> dict[str, list[Any]]:
        """Lists of values by column, None for missing."""
        return {name: [None if is_nan(v) else v for v in column.to_pylist()] for name, column in self._columns.items()}

    def slice(self, start: int, stop: int) -> Table:
        """The rows from `start` to before `stop`."""
        rows = self._with({name: column.slice(start, stop - start) for name, column in self._columns.items()})
        rows.first = self.first + start
        return rows

    def row_number(self, row: int) -> str:
        """How a message calls a row: from 1 on."""
        return f"{self.first + int(row) + 1:,}"

    def renamed(self, names: Sequence[str]) -> Table:
        """The same columns under other names, which are told by their place from now on."""
        if len(names) != len(self._columns):
            raise FirthError(
                "shape_mismatch",
                "The table has {n_columns} columns; got {got} names.",
                n_columns=len(self._columns),
                got=len(names),
            )
        return self._with(dict(zip(names, self._columns.values(), strict=True)))

    def _with(self, columns: dict[str, Any]) -> Table:
        table = Table(columns)
        table.named, table.first = self.named, self.first
        return table

    def fingerprint(self) -> str:
        """Tells whether two tables hold the same."""
        import pyarrow.types as arrow_types

        digest = hashlib.sha256()
        for name, column in self._columns.items():
            digest.update(json.dumps([name, str(column.type), len(column)]).encode())
            if arrow_types.is_floating(column.type):
                digest.update(self.numbers(name).tobytes())
            else:
                ids, levels = self.codes(name)
                digest.update(json.dumps(levels).encode() + ids.tobytes())
        return digest.hexdigest()


class SourceColumns(NamedTuple):
    columns: Mapping[str, Any]
    named: bool = True
    first: int = 0


def source_columns(source: Any, as_text: frozenset[str]) -> SourceColumns:
    """The columns of anything a table can be made of, not yet of one kind each."""
    if isinstance(source, Table):
        return SourceColumns(source._columns, source.named, source.first)
    if isinstance(source, (str, os.PathLike)):
        return source_columns(read_table(source, as_text), as_text)
    if hasattr(source, "tocsr"):
        raise FirthError(
            "invalid_type", "A Table is dense; got a sparse matrix. Make it dense first: matrix.toarray()."
        )
    if hasattr(source, "iloc") and hasattr(source, "columns"):  # pandas: a column at a time, for it may be mixed
        return SourceColumns(
            distinct_names((str(name), source.iloc[:, index]) for index, name in enumerate(source.columns))
        )
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        import pyarrow as pa

        table = pa.table(source)
        return SourceColumns(distinct_names(zip(table.column_names, table.columns, strict=True)))
    if hasattr(source, "to_numpy"):  # one column: a series of pandas or polars, an Arrow array
        name = getattr(source, "name", None)
        return SourceColumns({str(name) if name else "x0": source}, named=bool(name))
    if isinstance(source, Mapping):
        return SourceColumns(distinct_names((str(name), values) for name, values in source.items()))
    if isinstance(source, np.ndarray) and source.ndim == 2:
        return SourceColumns({f"x{index}": source[:, index] for index in range(source.shape[1])}, named=False)
    if isinstance(source, np.ndarray) and source.ndim == 1:
        return SourceColumns({"x0": source}, named=False)
    if isinstance(source, (list, tuple)):
        return list_columns(source)
    raise FirthError(
        "invalid_type", "A Table is made of {sources}; got {got}.", sources=SOURCES, got=type(source).__name__
    )


def list_columns(rows: Sequence[Any]) -> SourceColumns:
    """Columns of a list of dictionaries, of a list of rows, or of a list of values."""
    if len(rows) == 0:
        return SourceColumns({}, named=False)
    if all(isinstance(row, Mapping) for row in rows):
        names = list(dict.fromkeys(name for row in rows for name in row))
        return SourceColumns(distinct_names((str(name), [row.get(name) for row in rows]) for name in names))
    if all(isinstance(row, (list, tuple, np.ndarray)) for row in rows):
        widths = {len(row) for row in rows}
        if len(widths) > 1:
            raise FirthError(
                "shape_mismatch",
                "The rows of a table must be equally long; got {got} to {widths} values.",
                got=min(widths),
                widths=max(widths),
            )
        return SourceColumns(
            {f"x{index}": list(values) for index, values in enumerate(zip(*rows, strict=True))}, named=False
        )
    return SourceColumns({"x0": rows}, named=False)


def distinct_names(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    by_name: dict[str, Any] = {}
    for name, values in columns:
        if name in by_name:
            raise FirthError("duplicate_name", "Two columns are called {name!r}; rename one of them.", name=name)
        by_name[name] = values
    return by_name


def plain_column(values: Any, name: str) -> Any:
    """A chunked Arrow array of numbers, booleans, text or nothing but nulls."""
    import pyarrow as pa
    import pyarrow.types as arrow_types

    column = arrow_column(values, name)
    dtype = column.type
    if arrow_types.is_dictionary(dtype):
        dtype = dtype.value_type
        column = column.cast(dtype)
    dates = arrow_types.is_date(dtype) or arrow_types.is_time(dtype) or arrow_types.is_timestamp(dtype)
    if dates or arrow_types.is_large_string(dtype) or arrow_types.is_string_view(dtype):
        return column.cast(pa.string())
    if arrow_types.is_decimal(dtype) or arrow_types.is_floating(dtype):
        return column.cast(pa.float64())
    if (
        arrow_types.is_integer(dtype)
        or arrow_types.is_boolean(dtype)
        or arrow_types.is_string(dtype)
        or arrow_types.is_null(dtype)
    ):
        return column
    if arrow_types.is_binary(dtype):  # what Arrow makes of text in another encoding
        raise CellError(
            "invalid_encoding",
            "Column {name!r} holds bytes, not text. A file that is not UTF-8 is converted first: {iconv}",
            name=name,
            iconv=ICONV,
        )
    raise CellError(
        "invalid_type",
        "Column {name!r} holds {kind}; {taken}. Convert it, or name the columns to take (--columns).",
        name=name,
        kind=dtype,
        taken=SUPPORTED_TYPES,
    )


def arrow_column(values: Any, name: str) -> Any:
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__") and not hasattr(values, "iloc"):  # pandas' own way refuses mixed columns
        return pa.chunked_array(values)
    try:
        column = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # mixed, or numbers too large for Arrow
        column = mixed_column(values, name)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def mixed_column(values: Any, name: str) -> Any:
    import pyarrow as pa

    try:
        cells = [None if value is None or is_nan(value) else value for value in values]
    except TypeError:
        raise FirthError(
            "invalid_type", "Column {name!r} must be a list of values; got {got}.", name=name, got=type(values).__name__
        ) from None
    if all(value is None or (is_real(value) and not isinstance(value, bool)) for value in cells):
        return pa.array([None if value is None else float(value) for value in cells], pa.float64())
    for row, value in enumerate(cells):
        if not (value is None or isinstance(value, (str, bool, np.bool_)) or is_real(value)):
            raise CellError(
                "invalid_type",
                "Column {name!r}, row {row:,} holds a {value_type}; {taken}.",
                name=name,
                row=row + 1,
                value_type=type(value).__name__,
                taken=SUPPORTED_TYPES,
            )
    try:
        return pa.array([None if value is None else text_of(value) for value in cells], pa.string())
    except UnicodeEncodeError:
        raise FirthError(
            "invalid_encoding", "Column {name!r} holds text that is not Unicode; mend it where it is made.", name=name
        ) from None


def text_column(column: Any) -> Any:
    """A column as text."""
    import pyarrow as pa

    levels, ids = encode_distinct(column)
    texts = pa.array([*map(text_of, levels), None], pa.string())
    return pa.chunked_array([texts.take(pa.array(np.where(ids < 0, len(levels), ids)))])


def encode_distinct(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Distinct values in the order they are first met, and the place of each row's value among them; −1 = missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(column.type):
        return [], np.full(len(column), -1)
    if pa.types.is_floating(column.type):  # NaN is missing, and −0 is 0
        column = pc.add(pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column), 0.0)
    encoded = column.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows
        return [], np.zeros(0, np.int64)
    ids = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return encoded.dictionary.to_pylist(), ids


def text_of(value: Any) -> str:
    """A cell as a category; numbers as short as they can be written, so that 1 and 1.0 are one."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def is_whole_text(text: str) -> bool:
    """Whether `text_of` wrote a whole number so."""
    return text.removeprefix("-").isdecimal()


def is_real(value: Any) -> bool:
    return isinstance(value, numbers.Real)


def is_nan(value: Any) -> bool:
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def read_number(value: str | None, where: str) -> float:
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        raise FirthError("malformed_data", "{where} must be a number; got {got!r}.", where=where, got=value) from None
