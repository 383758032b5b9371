"""Files of tables: csv, tsv, JSON lines and Parquet, each also compressed."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Collection
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.data.readers import (
    HEAD,
    ICONV,
    check_head,
    find_files,
    format_and_compression,
    is_utf8,
    open_decompressed,
    reading_parquet,
    separator_of,
    text_lines,
)


def read_table(source: str | os.PathLike[str], as_text: Collection[str]) -> Any:
    """What a file holds: an Arrow table, or of JSON lines a list of dictionaries. The columns `as_text` of csv and tsv
    are read as they are written."""
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input", "A Table is one file; {source} matches {n_paths}.", source=source, n_paths=len(paths)
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
    raise FirthError("unknown_format", "A Table is read from csv, tsv, jsonl or Parquet; got {got}.", got=path)


def read_separated(path: Path, data: bytes, form: str, as_text: Collection[str]) -> Any:
    import pyarrow as pa
    from pyarrow import csv

    head = check_head(data[:HEAD], str(path))
    delimiter = separator_of(form, head.partition(b"\n")[0].decode("utf-8", "replace"))
    # One block, for what a column holds is guessed from the first block alone.
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
        if dates:  # as written, so that a column is the same whether it is taken for dates or for text
            table = read([*as_text, *dates])
    except (pa.ArrowInvalid, UnicodeDecodeError) as error:
        raise unreadable_table_error(path, "a table", error) from None
    return pa.table([empty_is_missing(column) for column in table.columns], names=names)


def unreadable_table_error(path: Path, what: str, error: Exception) -> FirthError:
    """What to say of a file that Arrow does not read."""
    if not is_utf8(path):
        return FirthError(
            "invalid_encoding", "{path} is not UTF-8 text; convert it first, as in: {iconv}", path=path, iconv=ICONV
        )
    return FirthError("malformed_data", "{path} is not {detail}: {reason}.", path=path, detail=what, reason=str(error))


def decimal_sign(delimiter: str, data: bytes) -> str:
    """The comma, where semicolons separate and a field is a number with one."""
    return "," if delimiter == ";" and re.search(rb"(?m)(^|;)-?\d+,\d+(;|\r?$)", data) else "."


def empty_is_missing(column: Any) -> Any:
    import pyarrow as pa
    import pyarrow.compute as pc

    if not pa.types.is_string(column.type):
        return column
    return pc.if_else(pc.equal(column, ""), pa.scalar(None, column.type), column)


def read_parquet(path: Path, data: bytes) -> Any:
    import pyarrow as pa
    import pyarrow.parquet

    with reading_parquet(path):
        table = pyarrow.parquet.read_table(pa.BufferReader(data))
        table.validate(full=True)  # that texts are UTF-8: else the first use would fail
        return table


def read_json_lines(path: Path, stream: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []
    for number, line in enumerate(text_lines(stream, path), 1):
        if not line.strip():
            continue
        try:
            row = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: not valid JSON ({reason}).",
                path=path,
                number=number,
                reason=str(error),
            ) from None
        if not isinstance(row, dict):
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a row must be an object; got {got}.",
                path=path,
                number=number,
                got=line.strip()[:40],
            )
        rows.append(row)
    return rows
