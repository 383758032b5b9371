"""Readers of table files: csv, tsv, JSON lines and Parquet, optionally compressed."""

from __future__ import annotations

import os
import re
from collections.abc import Collection
from typing import Any

from firth.core.errors import FirthError
from firth.core.remote import AnyPath
from firth.data.readers import (
    HEAD,
    ICONV,
    check_head,
    find_files,
    format_and_compression,
    is_utf8,
    json_object,
    open_decompressed,
    reading_parquet,
    separator_of,
    text_lines,
)


def read_table(source: str | os.PathLike[str], as_text: Collection[str]) -> Any:
    """Read a file as an Arrow table, or JSON lines as a list of dictionaries.

    In csv and tsv files the columns `as_text` are read as text, as written.
    """
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input", "A Table is read from one file; {source} matches {files}.", source=source, files=len(paths)
        )
    path = paths[0]
    form, _ = format_and_compression(path)
    with open_decompressed(path) as (_, stream):
        if form in (".csv", ".tsv"):
            return read_separated(path, stream.read(), form, as_text)
        if form == ".parquet":
            return read_parquet(path, stream.read())
        if form in (".jsonl", ".ndjson"):
            return read_json_lines(path, stream)
    raise FirthError("unknown_format", "A Table is read from csv, tsv, jsonl or Parquet; got {path}.", path=path)


def read_separated(path: AnyPath, data: bytes, form: str, as_text: Collection[str]) -> Any:
    """Read a csv or tsv file as an Arrow table."""
    import pyarrow as pa
    from pyarrow import csv

    head = check_head(data[:HEAD], str(path))
    delimiter = separator_of(form, head.partition(b"\n")[0].decode("utf-8", "replace"))
    # A single block, because Arrow infers the column types from the first block alone.
    reading = csv.ReadOptions(block_size=min(max(len(data), 1), 2**31 - 1))
    parsing = csv.ParseOptions(delimiter=delimiter, newlines_in_values=True)
    decimal = decimal_sign(delimiter, data)

    def read(texts: Collection[str]) -> Any:
        converting = csv.ConvertOptions(column_types=dict.fromkeys(texts, pa.string()), decimal_point=decimal)
        source = pa.BufferReader(data)
        return csv.read_csv(source, read_options=reading, parse_options=parsing, convert_options=converting)

    try:
        table = read(as_text)
        names = table.column_names
        dates = [field.name for field in table.schema if pa.types.is_temporal(field.type)]
        if dates:  # as written, so that the values do not depend on whether Arrow recognizes dates
            table = read([*as_text, *dates])
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise unreadable_table_error(path, "a table", error) from None
    return pa.table([empty_is_missing(column) for column in table.columns], names=names)


def unreadable_table_error(path: AnyPath, what: str, error: Exception) -> FirthError:
    """Return the error for a file that Arrow cannot parse."""
    if not is_utf8(path):
        return FirthError(
            "invalid_encoding", "{path} is not UTF-8 text. Convert it first: {iconv}", path=path, iconv=ICONV
        )
    return FirthError(
        "malformed_data", "{path} is not {expected}: {reason}.", path=path, expected=what, reason=str(error)
    )


def decimal_sign(delimiter: str, data: bytes) -> str:
    """Return a comma if semicolons separate the fields and some field is a number with a comma, else a point."""
    return "," if delimiter == ";" and re.search(rb"(?m)(^|;)-?\d+,\d+(;|\r?$)", data) else "."


def empty_is_missing(column: Any) -> Any:
    """Replace empty texts by nulls."""
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


def read_parquet(path: AnyPath, data: bytes) -> Any:
    """Read the content of a Parquet file as an Arrow table."""
    import pyarrow as pa
    import pyarrow.parquet

    with reading_parquet(path):
        table = pyarrow.parquet.read_table(pa.BufferReader(data))
        table.validate(full=True)  # checks that texts are UTF-8, which would otherwise fail at the first use
        return table


def read_json_lines(path: AnyPath, stream: Any) -> list[dict[str, Any]]:
    """Read JSON lines as a list of dictionaries."""
    lines = enumerate(text_lines(stream, path), 1)
    return [json_object(line, path, number) for number, line in lines if line.strip()]
