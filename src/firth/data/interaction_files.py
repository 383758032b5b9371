"""Reads files and data frames of interactions into the columns user, item, weight, time and session."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

from firth.core.errors import FirthError, FirthWarning
from firth.core.remote import AnyPath
from firth.data.readers import (
    HEAD,
    check_head,
    csv_row_error,
    find_files,
    format_and_compression,
    is_number,
    open_decompressed,
    separator_of,
)
from firth.data.table_files import decimal_sign, read_json_lines, read_parquet, unreadable_table_error

#: Recognized column names. If user and item are not among them, columns are assigned by position.
COLUMN_NAMES = {
    "user": ("user", "user_id", "userid", "customer", "customer_id", "customerid"),
    "item": ("item", "item_id", "itemid", "product", "product_id", "productid", "sku", "event"),
    "value": ("value", "rating", "weight", "count", "quantity", "qty"),
    "time": ("time", "timestamp"),
    "session": ("session", "session_id", "sessionid", "visit", "visit_id"),
}
POSITIONAL = ("user", "item", "value", "time")  # the columns that are recognized by position; a session never is
KEYS = ("user", "item", "session")  # columns of keys, which are read as text
RequestedColumns = Mapping[str, str | None]  # user, item, value, time, session -> column name, None if not given


class Columns(NamedTuple):
    """Columns of equal length, as lists or Arrow arrays, and their source for error messages."""

    user: Any
    item: Any
    value: Any = None
    time: Any = None
    where: str = "The data"
    first: int = 1  # the number of the first row in its file
    session: Any = None


def read_columns(source: str | os.PathLike[str], requested: RequestedColumns) -> Columns:
    """Read a csv, tsv, jsonl or Parquet file, or a text file separated by tabs, blanks, commas or `::`."""
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input",
            "Interactions are read from one file; {source} matches {files}.",
            source=source,
            files=len(paths),
        )
    path = paths[0]
    form, _ = format_and_compression(path)
    with open_decompressed(path) as (_, stream):
        if form == ".parquet":
            return frame_columns(read_parquet(path, stream.read()), requested, str(path))
        if form in (".jsonl", ".ndjson"):
            return record_columns(read_json_lines(path, stream), requested, str(path))
        return separated_columns(path, stream.read(), form, requested)


def separated_columns(path: AnyPath, data: bytes, form: str, requested: RequestedColumns) -> Columns:
    """Read a file of separated values, with or without a header.

    The first line is a header if columns are requested by name, if its third field is not a number, if its first two
    fields are recognized names of user and item, or if they are words above numbers.
    """
    import pyarrow as pa
    from pyarrow import csv as arrow

    data = check_head(data[:HEAD], str(path)) + data[HEAD:]
    text = data.lstrip(b"\r\n")  # Arrow would skip an empty first line instead of the header
    empty, data = data.count(b"\n", 0, len(data) - len(text)), text
    if form:
        delimiter = separator_of(form, first_lines(data)[0])
    else:
        data, delimiter = normalize_separator(data)
    try:
        head, second = (next(csv.reader([line], delimiter=delimiter), []) for line in first_lines(data))
    except csv.Error as error:
        raise csv_row_error(error, f"{path}, line {1 + empty} or {2 + empty}") from None
    if len(head) < 2:
        raise FirthError(
            "too_few",
            "{path} must have at least a user and an item per line; got {got!r}.",
            path=path,
            got=first_lines(data)[0][:60],
        )
    has_header = any(requested.values()) or is_header(head, second)
    selected_columns = (
        select_columns(head, requested, str(path))
        if has_header
        else dict(zip(POSITIONAL, range(len(head)), strict=False))
    )
    names = [f"f{index}" for index in range(len(head))]
    reading = arrow.ReadOptions(
        column_names=names, skip_rows=int(has_header), block_size=min(max(len(data), 1), 2**31 - 1)
    )
    texts = {names[index]: pa.string() for name, index in selected_columns.items() if name in KEYS}
    converting = arrow.ConvertOptions(
        column_types=texts,
        include_columns=[names[index] for index in selected_columns.values()],
        decimal_point=decimal_sign(delimiter, data),
    )
    try:
        parsing = arrow.ParseOptions(delimiter=delimiter, newlines_in_values=True)
        table = arrow.read_csv(pa.BufferReader(data), reading, parsing, converting)
    except pa.ArrowInvalid as error:
        raise unreadable_table_error(path, "a table of users and items", error) from None
    columns = {name: table.column(names[index]) for name, index in selected_columns.items()}
    if form and not has_header and not any(map(is_number, head)) and occurs_only_in_header(head, columns.values()):
        message = (
            f"{path}, line {1 + empty} is read as data: {', '.join(head)}. If it is a header, name its columns: "
            f"user={head[0]}, item={head[1]} (--user {head[0]} --item {head[1]})."
        )
        warnings.warn(FirthWarning(message, "possible_header"), stacklevel=2)
    return Columns(**columns, where=str(path), first=1 + empty + has_header)


def normalize_separator(data: bytes) -> tuple[bytes, str]:
    """Return text with a single separator character in place of `::` or runs of blanks, and the separator."""
    line = data.partition(b"\n")[0]
    for sign in (b"\t", b","):
        if sign in line:
            return data, sign.decode()
    if b"::" in line:
        return data.replace(b"::", b"\t"), "\t"
    return re.sub(rb"(?m)^ +| +$", b"", re.sub(rb"[ \r]+", b" ", data)), " "


def first_lines(data: bytes) -> tuple[str, str]:
    """Return the first two lines as text."""
    lines = data[:HEAD].decode("utf-8", "replace").split("\n")
    return lines[0].rstrip("\r"), lines[1].rstrip("\r") if len(lines) > 1 else ""


def is_header(head: Sequence[str], second: Sequence[str]) -> bool:
    """Whether the fields of the first line are column names, judging by those of the second line."""
    if len(head) > 2:
        return not is_number(head[2])
    if len(second) == 2 and all(map(is_number, second)) and not any(map(is_number, head)):
        return True
    return all(head[index].strip().lower() in COLUMN_NAMES[name] for index, name in enumerate(("user", "item")))


def occurs_only_in_header(head: Sequence[str], columns: Iterable[Any]) -> bool:
    """Whether the fields of the first line do not occur again in their columns, as column names do not."""
    import pyarrow.compute as pc

    return all(pc.sum(pc.equal(column, name)).as_py() == 1 for name, column in zip(head, columns, strict=True))


def select_columns(names: Sequence[str], requested: RequestedColumns, where: str) -> dict[str, int]:
    """Return the column index of the user, item, weight, time and session.

    Requested columns come first, then columns with recognized names. If no column is requested and user and item are
    not recognized, up to four columns are assigned in this order.
    """
    lower = [name.strip().lower() for name in names]
    columns: dict[str, int] = {}
    for role, name in requested.items():
        if name is not None:
            if name not in names:
                raise FirthError(
                    "unknown_column",
                    "{where} has no column {name!r}; the columns are {available}.",
                    where=where,
                    name=name,
                    available=", ".join(names),
                )
            columns[role] = list(names).index(name)
        else:
            column = next((lower.index(candidate) for candidate in COLUMN_NAMES[role] if candidate in lower), None)
            if column is not None and column not in columns.values():
                columns[role] = column
    if {"user", "item"} <= set(columns):
        return {role: columns[role] for role in COLUMN_NAMES if role in columns}
    if any(requested.values()):
        missing = "user" if "user" not in columns else "item"
        raise FirthError(
            "unknown_column",
            "{where}: the {missing} column is not known. Pass {missing}=… (--{missing}); the columns are {available}.",
            where=where,
            missing=missing,
            available=", ".join(names),
        )
    if len(names) < 2:
        raise FirthError(
            "too_few",
            "{where} must have at least a user and an item column; it has {available}.",
            where=where,
            available=", ".join(names) or "none",
        )
    by_position = dict(zip(POSITIONAL, range(len(names)), strict=False))
    if len(names) > len(POSITIONAL):
        raise FirthError(
            "unknown_column",
            "{where}: the {missing} columns are not known. Pass user=… and item=… (--user, --item), and value=… for "
            "the weight; the columns are {available}.",
            where=where,
            missing="user and item",
            available=", ".join(names),
        )
    assignment = ", ".join(f"{role} in {names[column]!r}" for role, column in by_position.items())
    text = f"{where}: columns are assigned by position, {assignment}."
    warnings.warn(FirthWarning(text, "columns_by_position"), stacklevel=2)
    return by_position


def record_columns(rows: Sequence[Mapping[str, Any]], requested: RequestedColumns, where: str) -> Columns:
    """Return the columns of a list of dictionaries, such as JSON lines."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return Columns([], [], where=where)
    selected_columns = select_columns(names, requested, where)
    columns: dict[str, Any] = {
        role: [row.get(names[index]) for row in rows] for role, index in selected_columns.items()
    }
    return Columns(**columns, where=where)


def frame_columns(frame: Any, requested: RequestedColumns, where: str) -> Columns:
    """Return the columns of a pandas, polars or Arrow data frame."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    selected_columns = select_columns(names, requested, where)
    if hasattr(frame, "iloc"):  # pandas: column by column, because a column may have mixed types
        return Columns(**{role: frame.iloc[:, index] for role, index in selected_columns.items()}, where=where)
    import pyarrow as pa

    table = pa.table(frame)
    return Columns(**{role: table.column(index) for role, index in selected_columns.items()}, where=where)
