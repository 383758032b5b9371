"""`Table`: rows with numeric and categorical columns, in memory."""

from __future__ import annotations

import hashlib
import json
import math
import numbers
import os
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.notebook import ROWS
from firth.data.readers import ICONV, column_hint
from firth.data.table_files import read_table

SOURCES = (
    "a csv, tsv, jsonl or Parquet file, a data frame, an Arrow table, a dictionary of columns, a list of dictionaries, "
    "a list of rows, a list or series of values, or an array"
)
SUPPORTED_TYPES = "a table can have numbers, text, booleans, dates and times"


class CellError(FirthError, TypeError):
    """A value of a type that a table cannot store."""


class Codes(NamedTuple):
    """An encoded column: the value of a row is `levels[ids[row]]`; levels are in order of first occurrence.

    A missing value has the id −1.
    """

    ids: NDArray[np.int64]
    levels: list[str]


class Table(Data):
    """Rows with named columns, each numeric or a category.

        Table("people.csv")
        Table({"color": ["red", "blue"], "age": [30, None]})
        Table(array)                        # columns x0, x1, …
        Table("people.csv", columns=["zip", "age"], categories=["zip"])

    `columns` selects columns and their order. `categories` are numeric columns to treat as categorical; in files their
    values are read as written, so 007 stays 007.

    Integers, floats and decimals are numeric. Text, booleans ("true", "false"), dates, times and columns of mixed types
    are categorical. Dates and times are ISO text; in csv and tsv they are kept as written. Numbers as text have no
    trailing ".0", so that 1 and 1.0 are the same category. A column without any value is numeric. Lists, structs, bytes
    and durations are refused.

    None, NaN, null and empty csv and tsv fields are missing values. In numeric csv and tsv columns, NA, N/A, NaN, null
    and similar values are missing too, while "NA" in a text column is text. Infinite values are kept; computations
    refuse them.

    Immutable, so threads can share it.
    """

    noun = "table"
    file_options = (
        FileOption("columns", "Only these columns of the table, as in age,zip.", "columns", empty="all"),
        FileOption("categories", "Numeric columns to be read as categories, as in zip.", "columns"),
    )
    or_vectors = True

    def __init__(self, source: Any, *, columns: Sequence[str] | None = None, categories: Sequence[str] = ()) -> None:
        for names in (columns, categories):
            if isinstance(names, str):
                raise FirthError(
                    "invalid_type",
                    "columns and categories must be lists of names; got {got!r}.",
                    got=names,
                )
        found_columns = source_columns(source, frozenset(categories))
        #: Whether the columns have names; unnamed columns are identified by position.
        self.named = found_columns.named
        #: Row number of the first row in the original table, for error messages.
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
            raise FirthError(
                "shape_mismatch", "The columns of a table must have equal lengths; got {got}.", got=lengths
            )
        self._rows = next(iter(lengths.values()), 0)

    @property
    def names(self) -> list[str]:
        """The column names."""
        return list(self._columns)

    def __len__(self) -> int:
        """Return the number of rows."""
        return self._rows

    def _rows_shown(self) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        columns = (column.slice(0, ROWS).to_pylist() for column in self._columns.values())
        return [f"{name} ({self.kind(name)})" for name in self.names], zip(*columns, strict=True)

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
        """Return "numeric" or "category"."""
        return "numeric" if self.type(name) == "number" else "category"

    def type(self, name: str) -> str:
        """Return the type of a column's values: "number", "text" or "boolean"."""
        import pyarrow.types as arrow_types

        dtype = self._column(name).type
        return "text" if arrow_types.is_string(dtype) else "boolean" if arrow_types.is_boolean(dtype) else "number"

    def numbers(self, name: str) -> NDArray[np.float64]:
        """Return a column as numbers, NaN for missing; booleans become 0 and 1, and numeric text is parsed."""
        import pyarrow as pa

        column = self._column(name)
        try:
            column = column.cast(pa.int8()) if self.type(name) == "boolean" else column
            values: NDArray[np.float64] = column.cast(pa.float64(), safe=False).to_numpy()
        except pa.ArrowInvalid:  # Python also accepts blanks around a number
            cells = enumerate(column.to_pylist())
            values = np.array(
                [read_number(value, f"Column {name!r}, row {self.row_number(row)}") for row, value in cells]
            )
        return values

    def categories(self, name: str) -> list[str | None]:
        """Return a column as text, None for missing."""
        ids, levels = self.codes(name)
        values: list[str | None] = [*levels, None]  # the id −1 selects the last entry
        return [values[id] for id in ids.tolist()]

    def codes(self, name: str) -> Codes:
        """Return the distinct values of a column as text, and the id of each row's value."""
        column, type = self._column(name), self.type(name)
        levels, ids = encode_distinct(column)
        texts = levels if type == "text" else [text_of(value) for value in levels]
        return Codes(ids, texts)

    def arrow(self) -> Any:
        """Return a `pyarrow.Table`, which `.to_pandas()` and `polars.from_arrow` convert further."""
        import pyarrow as pa

        return pa.table(self._columns)

    def to_dict(self) -> dict[str, list[Any]]:
        """Return the columns as lists of values, None for missing."""
        return {name: [None if is_nan(v) else v for v in column.to_pylist()] for name, column in self._columns.items()}

    def slice(self, start: int, stop: int) -> Table:
        """Return the rows from `start` to before `stop`."""
        rows = self._with({name: column.slice(start, stop - start) for name, column in self._columns.items()})
        rows.first = self.first + start
        return rows

    def row_number(self, row: int) -> str:
        """Return the row number in the original table, from 1, for error messages."""
        return f"{self.first + int(row) + 1:,}"

    def renamed(self, names: Sequence[str]) -> Table:
        """Return the table with other column names."""
        if len(names) != len(self._columns):
            raise FirthError(
                "shape_mismatch",
                "The table has {columns} columns; got {got} names.",
                columns=len(self._columns),
                got=len(names),
            )
        return self._with(dict(zip(names, self._columns.values(), strict=True)))

    def _with(self, columns: dict[str, Any]) -> Table:
        table = Table(columns)
        table.named, table.first = self.named, self.first
        return table

    def fingerprint(self) -> str:
        """Return a hash of the column names, types and values."""
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
    """The columns of a source before type conversion."""

    columns: Mapping[str, Any]
    named: bool = True
    first: int = 0


def source_columns(source: Any, as_text: frozenset[str]) -> SourceColumns:
    """Return the columns of any supported source, before type conversion."""
    if isinstance(source, Table):
        return SourceColumns(source._columns, source.named, source.first)
    if isinstance(source, (str, os.PathLike)):
        return source_columns(read_table(source, as_text), as_text)
    if hasattr(source, "tocsr"):
        raise FirthError(
            "invalid_type",
            "A Table is dense; got {got}, a sparse matrix. Convert it first: matrix.toarray().",
            got=type(source).__name__,
        )
    if hasattr(source, "iloc") and hasattr(
        source, "columns"
    ):  # pandas: column by column, because a column may have mixed types
        return SourceColumns(
            distinct_names((str(name), source.iloc[:, index]) for index, name in enumerate(source.columns))
        )
    if hasattr(source, "__arrow_c_stream__") and hasattr(source, "columns"):
        import pyarrow as pa

        table = pa.table(source)
        return SourceColumns(distinct_names(zip(table.column_names, table.columns, strict=True)))
    if hasattr(source, "to_numpy"):  # one column: a pandas or polars series, or an Arrow array
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
        "invalid_type",
        "The source of a Table must be {sources}; got {got}.",
        sources=SOURCES,
        got=type(source).__name__,
    )


def list_columns(rows: Sequence[Any]) -> SourceColumns:
    """Return the columns of a list of dictionaries, of rows, or of values."""
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
                "The rows of a table must have equal lengths; got {shortest} to {longest} values.",
                shortest=min(widths),
                longest=max(widths),
            )
        return SourceColumns(
            {f"x{index}": list(values) for index, values in enumerate(zip(*rows, strict=True))}, named=False
        )
    return SourceColumns({"x0": rows}, named=False)


def distinct_names(columns: Iterable[tuple[str, Any]]) -> dict[str, Any]:
    """Return the columns by name, and refuse repeated names."""
    by_name: dict[str, Any] = {}
    for name, values in columns:
        if name in by_name:
            raise FirthError("duplicate_name", "Two columns are named {name!r}. Rename one of them.", name=name)
        by_name[name] = values
    return by_name


def plain_column(values: Any, name: str) -> Any:
    """Convert values to a chunked Arrow array of numbers, booleans, text or nulls."""
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
    if arrow_types.is_binary(dtype):  # Arrow reads text in another encoding as bytes
        raise CellError(
            "invalid_encoding",
            "Column {name!r} has bytes, not text. Convert a file that is not UTF-8 first: {iconv}",
            name=name,
            iconv=ICONV,
        )
    raise CellError(
        "invalid_type",
        "Column {name!r} has the type {got}; {supported}. Convert it, or select other columns (--columns).",
        name=name,
        got=dtype,
        supported=SUPPORTED_TYPES,
    )


def arrow_column(values: Any, name: str) -> Any:
    """Convert values to a chunked Arrow array; mixed types become text."""
    import pyarrow as pa

    if isinstance(values, pa.ChunkedArray):
        return values
    if hasattr(values, "__arrow_c_stream__") and not hasattr(
        values, "iloc"
    ):  # the Arrow interface of pandas refuses mixed columns
        return pa.chunked_array(values)
    try:
        column = values if isinstance(values, pa.Array) else pa.array(values, from_pandas=True)
    except (pa.ArrowException, TypeError, ValueError, OverflowError):  # mixed, or numbers too large for Arrow
        column = mixed_column(values, name)
    return column if isinstance(column, pa.ChunkedArray) else pa.chunked_array([column])


def mixed_column(values: Any, name: str) -> Any:
    """Convert values of mixed types, or integers too large for Arrow, to text or floats."""
    import pyarrow as pa

    try:
        cells = [None if value is None or is_nan(value) else value for value in values]
    except TypeError:
        raise FirthError(
            "invalid_type", "Column {name!r} must be a list of values; got {got}.", name=name, got=type(values).__name__
        ) from None
    if all(value is None or (is_real(value) and not isinstance(value, bool)) for value in cells):
        return pa.array([float_of(value, name, row) for row, value in enumerate(cells)], pa.float64())
    for row, value in enumerate(cells):
        if not (value is None or isinstance(value, (str, bool, np.bool_)) or is_real(value)):
            raise CellError(
                "invalid_type",
                "Column {name!r}, row {row:,} has the type {got}; {supported}.",
                name=name,
                row=row + 1,
                got=type(value).__name__,
                supported=SUPPORTED_TYPES,
            )
    try:
        return pa.array([None if value is None else text_of(value) for value in cells], pa.string())
    except UnicodeEncodeError:
        raise FirthError(
            "invalid_encoding",
            "Column {name!r} has text with lone surrogates, which is not valid Unicode. Fix the text.",
            name=name,
        ) from None


def text_column(column: Any) -> Any:
    """Convert a column to text."""
    import pyarrow as pa

    levels, ids = encode_distinct(column)
    texts = pa.array([*map(text_of, levels), None], pa.string())
    return pa.chunked_array([texts.take(pa.array(np.where(ids < 0, len(levels), ids)))])


def encode_distinct(column: Any) -> tuple[list[Any], NDArray[np.int64]]:
    """Return the distinct values in order of first occurrence, and the index of each row's value; −1 is missing."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if pa.types.is_null(column.type):
        return [], np.full(len(column), -1)
    if pa.types.is_floating(column.type):  # NaN becomes missing and −0 becomes 0
        column = pc.add(pc.if_else(pc.is_nan(column), pa.scalar(None, column.type), column), 0.0)
    encoded = column.dictionary_encode().combine_chunks()
    if isinstance(encoded, pa.ChunkedArray):  # no rows
        return [], np.zeros(0, np.int64)
    ids = encoded.indices.cast(pa.int64()).fill_null(-1).to_numpy()
    return encoded.dictionary.to_pylist(), ids


def text_of(value: Any) -> str:
    """Return a cell as a category; numbers have no trailing ".0", so that 1 and 1.0 are the same."""
    if isinstance(value, str):
        return value
    if isinstance(value, (bool, np.bool_)):
        return "true" if value else "false"
    if isinstance(value, numbers.Integral):
        return str(int(value))
    number = float(value)
    return str(int(number)) if number.is_integer() and abs(number) < 2**53 else repr(number)


def float_of(value: Any, name: str, row: int) -> float | None:
    """Return a real number as a float, None for None; integers may exceed the range of floats."""
    try:
        return None if value is None else float(value)
    except OverflowError:
        raise FirthError(
            "out_of_range",
            "Column {name!r}, row {row:,} is too large for a float. Scale the column, or pass it as text.",
            name=name,
            row=row + 1,
        ) from None


def is_whole_text(text: str) -> bool:
    """Whether a text is an integer as `text_of` writes it."""
    return text.removeprefix("-").isdecimal()


def is_real(value: Any) -> bool:
    """Whether a value is a real number."""
    return isinstance(value, numbers.Real)


def is_nan(value: Any) -> bool:
    """Whether a value is a float NaN."""
    return isinstance(value, (float, np.floating)) and math.isnan(value)


def read_number(value: str | None, where: str) -> float:
    """Parse a number; None becomes NaN."""
    try:
        return math.nan if value is None else float(value)
    except ValueError:
        raise FirthError("malformed_data", "{where} must be a number; got {got!r}.", where=where, got=value) from None
