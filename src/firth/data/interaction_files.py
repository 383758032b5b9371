"""Files and frames of who used what, read to the columns user, item, weight and time."""

from __future__ import annotations

import csv
import os
import re
import warnings
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.errors import FirthError, FirthWarning
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

#: What columns are usually called; without such a pair of names they are taken by their place.
COLUMN_NAMES = {
    "user": ("user", "user_id", "userid", "customer", "customer_id", "customerid"),
    "item": ("item", "item_id", "itemid", "product", "product_id", "productid", "sku"),
    "value": ("value", "rating", "weight", "count", "quantity", "qty"),
    "time": ("time", "timestamp"),
}
RequestedColumns = Mapping[str, str | None]  # user, item, value, time -> the column's name, None where it was not said


class Columns(NamedTuple):
    """Columns as lists or Arrow arrays of one length; where they come from, for messages."""

    user: Any
    item: Any
    value: Any = None
    time: Any = None
    where: str = "The data"
    first: int = 1  # the number of the first row in its file


def read_columns(source: str | os.PathLike[str], requested: RequestedColumns) -> Columns:
    """Columns of a csv, tsv, jsonl or Parquet file, or of a text file whose fields are separated by tabs, blanks,
    commas or `::`."""
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input", "Ratings are one file; {source} matches {n_paths}.", source=source, n_paths=len(paths)
        )
    path = paths[0]
    form, _ = format_and_compression(path)
    with open_decompressed(path) as (_, stream):
        if form == ".parquet":
            return frame_columns(read_parquet(path, stream.read()), requested, str(path))
        if form in (".jsonl", ".ndjson"):
            return record_columns(read_json_lines(path, stream), requested, str(path))
        return separated_columns(path, stream.read(), form, requested)


def separated_columns(path: Path, data: bytes, form: str, requested: RequestedColumns) -> Columns:
    """A first line is a header where a column was asked for by name, or its third field is no number, or its first two
    are called user and item, or stand above numbers and are none."""
    import pyarrow as pa
    from pyarrow import csv as arrow

    data = check_head(data[:HEAD], str(path)) + data[HEAD:]
    text = data.lstrip(b"\r\n")  # empty lines above a header would be skipped in its place
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
            "{path} needs at least a user and an item a line; got {got!r}.",
            path=path,
            got=first_lines(data)[0][:60],
        )
    has_header = any(requested.values()) or is_header(head, second)
    selected_columns = (
        select_columns(head, requested, str(path))
        if has_header
        else dict(zip(COLUMN_NAMES, range(len(head)), strict=False))
    )
    names = [f"f{index}" for index in range(len(head))]
    reading = arrow.ReadOptions(
        column_names=names, skip_rows=int(has_header), block_size=min(max(len(data), 1), 2**31 - 1)
    )
    texts = {names[index]: pa.string() for name, index in selected_columns.items() if name in ("user", "item")}
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
        warnings.warn(
            f"{path}, line {1 + empty} is taken as data, not as a header: {', '.join(head)}. If it is one, name "
            f"its columns: user={head[0]}, item={head[1]} (--user {head[0]} --item {head[1]}).",
            FirthWarning,
            stacklevel=2,
        )
    return Columns(**columns, where=str(path), first=1 + empty + has_header)


def normalize_separator(data: bytes) -> tuple[bytes, str]:
    """Text whose fields are separated by tabs, `::`, commas or any blanks: with one separator, and which it is."""
    line = data.partition(b"\n")[0]
    for sign in (b"\t", b","):
        if sign in line:
            return data, sign.decode()
    if b"::" in line:
        return data.replace(b"::", b"\t"), "\t"
    return re.sub(rb"(?m)^ +| +$", b"", re.sub(rb"[ \r]+", b" ", data)), " "


def first_lines(data: bytes) -> tuple[str, str]:
    lines = data[:HEAD].decode("utf-8", "replace").split("\n")
    return lines[0].rstrip("\r"), lines[1].rstrip("\r") if len(lines) > 1 else ""


def is_header(head: Sequence[str], second: Sequence[str]) -> bool:
    if len(head) > 2:
        return not is_number(head[2])
    if len(second) == 2 and all(map(is_number, second)) and not any(map(is_number, head)):
        return True
    return all(head[index].strip().lower() in COLUMN_NAMES[name] for index, name in enumerate(("user", "item")))


def occurs_only_in_header(head: Sequence[str], columns: Iterable[Any]) -> bool:
    """Whether no field of the first line stands again in its column, as names of columns do not."""
    import pyarrow.compute as pc

    return all(pc.sum(pc.equal(column, name)).as_py() == 1 for name, column in zip(head, columns, strict=True))


def select_columns(names: Sequence[str], requested: RequestedColumns, where: str) -> dict[str, int]:
    """Which column is the user, the item, the weight, the time: those asked for, else those called so, else (where none
    are called user and item, and none was asked for) up to four in this order."""
    lower = [name.strip().lower() for name in names]
    columns: dict[str, int] = {}
    for role, name in requested.items():
        if name is not None:
            if name not in names:
                raise FirthError(
                    "unknown_column",
                    "{where}: no column {name!r}; there are {choices}.",
                    where=where,
                    name=name,
                    choices=", ".join(names),
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
            "{where}: which column is the {missing}? Pass {missing}=… (--{missing}); there are {choices}.",
            where=where,
            missing=missing,
            choices=", ".join(names),
        )
    if len(names) < 2:
        raise FirthError(
            "too_few",
            "{where} needs at least a user and an item column; it has {available}.",
            where=where,
            available=", ".join(names) or "none",
        )
    by_position = dict(zip(COLUMN_NAMES, range(len(names)), strict=False))
    if len(names) > len(COLUMN_NAMES):
        raise FirthError(
            "unknown_column",
            "{where}: which columns are the user and the item? Pass user=… and item=… (--user, --item), and "
            "value=… where it counts how much; there are {choices}.",
            where=where,
            choices=", ".join(names),
        )
    assignment = ", ".join(f"{role} in {names[column]!r}" for role, column in by_position.items())
    warnings.warn(f"{where}: columns are taken by their place, {assignment}.", FirthWarning, stacklevel=2)
    return by_position


def record_columns(rows: Sequence[Mapping[str, Any]], requested: RequestedColumns, where: str) -> Columns:
    """Columns of dictionaries, such as lines of JSON."""
    names = list(dict.fromkeys(name for row in rows for name in row))
    if not rows:
        return Columns([], [], where=where)
    selected_columns = select_columns(names, requested, where)
    columns: dict[str, Any] = {
        role: [row.get(names[index]) for row in rows] for role, index in selected_columns.items()
    }
    return Columns(**columns, where=where)


def frame_columns(frame: Any, requested: RequestedColumns, where: str) -> Columns:
    """Columns of a data frame: pandas, polars, Arrow."""
    names = [str(name) for name in getattr(frame, "column_names", frame.columns)]
    selected_columns = select_columns(names, requested, where)
    if hasattr(frame, "iloc"):  # pandas: a column at a time, for it may be mixed
        return Columns(**{role: frame.iloc[:, index] for role, index in selected_columns.items()}, where=where)
    import pyarrow as pa

    table = pa.table(frame)
    return Columns(**{role: table.column(index) for role, index in selected_columns.items()}, where=where)
