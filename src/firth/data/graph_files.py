"""Graph files: edge lists and adjacency lists, optionally compressed.

A well-formed edge list is read by Arrow. Any other file is read line by line, which gives the same edges or reports the
invalid line.
"""

from __future__ import annotations

import itertools
import math
import os
import re
import sys
import warnings
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.data.readers import HEAD, check_head, find_files, format_and_compression, is_number, open_decompressed

COMMENTS = ("#", "%")
HEADERS = {"source", "target", "src", "dst", "from", "to", "node1", "node2", "head", "tail", "weight"}
LAYOUT_HINT = "each line is an edge (a b, or a b weight) or a single node; for lists of neighbors use layout=adjacency"

Row = tuple[Sequence[str], float | None]


class Edges(NamedTuple):
    """Edges as listed in the source, including duplicates; undirected edges may be listed in either direction."""

    keys: list[str]
    first: NDArray[Any]
    second: NDArray[Any]
    weights: NDArray[np.float64] | None
    directed: bool = False


def collect(rows: Iterable[tuple[str, Row]]) -> Edges:
    """Collect edges from (location, (names, weight)) rows; a row with one name is an isolated node."""
    ids: dict[str, int] = {}
    ends: list[int] = []
    weights: list[float] = []
    is_unweighted = True
    for where, (names, weight) in rows:
        node_ids = [ids.setdefault(name, len(ids)) for name in names]
        if len(node_ids) < 2:
            continue
        if weight is not None:
            if not (math.isfinite(weight) and weight >= 0):
                raise FirthError(
                    "malformed_data",
                    "{where}: the {field} must be finite and not negative; got {got:g}.",
                    where=where,
                    field="weight",
                    got=weight,
                )
            is_unweighted = False
        ends += node_ids
        weights.append(1.0 if weight is None else weight)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return Edges(list(ids), pairs[:, 0], pairs[:, 1], None if is_unweighted else np.array(weights))


def read_graph(source: str | os.PathLike[str], layout: str, weighted: bool) -> Edges:
    """Read the edges of a file, or of standard input ("-")."""
    if source == "-":
        return parse_graph(sys.stdin.buffer.read(), "standard input", "", layout, weighted)
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input", "A Graph is read from one file; {source} matches {files}.", source=source, files=len(paths)
        )
    path = paths[0]
    form, _ = format_and_compression(path)
    if form in (".parquet", ".jsonl", ".ndjson"):
        raise FirthError(
            "unknown_column",
            "{path} is a table, so the columns of the edges must be named: columns=from,to[,weight].",
            path=path,
        )
    with open_decompressed(path) as (_, stream):
        data = stream.read()
    return parse_graph(data, str(path), form, layout, weighted)


def parse_graph(data: bytes, name: str, form: str, layout: str, weighted: bool) -> Edges:
    """Parse the content of a graph file; `form` is its suffix if it is csv or tsv."""
    data = check_head(data[:HEAD], name) + data[HEAD:]
    if b"\r" in data:
        data = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    delimiter = delimiter_of(data, form)
    if layout == "adjacency":
        return adjacency(data, name, delimiter)
    refuse_header(data[:HEAD], name, delimiter)
    fast = fast_edges(data, delimiter, weighted)
    edges = fast if fast is not None else collect(edge_lines(data, name, delimiter, weighted))
    if form:
        warn_possible_header(data[:HEAD], name, delimiter, edges)
    return edges


def delimiter_of(data: bytes, form: str) -> str:
    """Return the delimiter of the first lines: tab, comma or space; in csv comma, semicolon or tab."""
    lines = [line.strip() for line in data[:HEAD].split(b"\n") if not is_comment(line)]
    for sign in (b",", b";", b"\t") if form == ".csv" else (b"\t", b","):
        without = [line for line in lines if sign not in line]
        if len(without) < len(lines) and all(len(line.split()) == 1 for line in without):  # isolated nodes
            return sign.decode()
    return " "


def is_comment(line: bytes) -> bool:
    """Whether a line is blank or a comment."""
    text = line.strip()
    return not text or text.startswith(tuple(sign.encode() for sign in COMMENTS))


def field_lines(data: bytes, name: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """Yield (location, fields) of each line that is not a comment."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if is_comment(line):
            continue
        where = f"{name}, line {number:,}"
        parts = line.split() if delimiter == " " else map(unquote, line.split(delimiter.encode()))
        try:
            fields = [part.decode("utf-8") for part in parts]
        except UnicodeDecodeError:
            raise FirthError(
                "invalid_encoding", "{where} is not valid UTF-8. Convert the file first.", where=where
            ) from None
        if not all(fields):
            raise FirthError(
                "malformed_data",
                "{where} has an empty field: {fields}.",
                where=where,
                fields=", ".join(map(repr, fields[:5])),
            )
        yield where, fields


def refuse_header(data: bytes, name: str, delimiter: str) -> None:
    """Refuse a header line, which would become an edge between nodes named "from" and "to"."""
    lines = list(itertools.islice(field_lines(data, name, delimiter), 2))
    where, first = lines[0] if lines else ("", [])
    second = lines[1][1] if len(lines) > 1 else []
    if len(first) < 2 or any(map(is_number, first)):
        return
    numbers = len(second) == len(first) and (all(map(is_number, second)) or (len(second) == 3 and is_number(second[2])))
    if numbers or {field.lower() for field in first} <= HEADERS:
        raise FirthError(
            "malformed_data",
            "{where} looks like a header: {header}. Name the columns, as in columns={columns} (--columns), or remove "
            "the line.",
            where=where,
            header=", ".join(first),
            columns=",".join(first[:3]),
        )


def warn_possible_header(data: bytes, name: str, delimiter: str, edges: Edges) -> None:
    """Warn if the first line of a csv or tsv file may be a header: its words occur in no other edge."""
    where, fields = next(field_lines(data, name, delimiter), ("", []))
    if len(fields) != 2 or len(edges.first) < 2 or any(map(is_number, fields)):
        return
    if sum(np.count_nonzero(ends < 2) for ends in (edges.first, edges.second)) == 2:  # its nodes are 0 and 1
        text = (
            f"{where} is read as an edge: {', '.join(fields)}. If it is a header, name its columns: "
            f"columns={','.join(fields)} (--columns)."
        )
        warnings.warn(FirthWarning(text, "possible_header"), stacklevel=2)


def unquote(field: bytes) -> bytes:
    """Remove surrounding blanks and double quotes."""
    field = field.strip()
    return field[1:-1] if len(field) > 1 and field[:1] == field[-1:] == b'"' else field


def edge_lines(data: bytes, name: str, delimiter: str, weighted: bool) -> Iterator[tuple[str, Row]]:
    """Yield (location, (names, weight)) of each line of an edge list."""
    width = 0
    for where, fields in field_lines(data, name, delimiter):
        if len(fields) > 3 or (width and len(fields) > 1 and len(fields) != width):
            raise FirthError(
                "malformed_data",
                "{where} has {fields} fields; expected {expected} ({hint}; for a table name the columns, "
                "columns=from,to[,weight]).",
                where=where,
                fields=len(fields),
                expected=width or "2 or 3",
                hint=LAYOUT_HINT,
            )
        width = max(width, len(fields)) if len(fields) > 1 else width
        weight = weight_of(fields[2], where) if len(fields) == 3 and weighted else None
        yield where, (fields[:2], weight)


def weight_of(text: str, where: str) -> float:
    """Parse an edge weight."""
    try:
        return float(text)
    except ValueError:
        raise FirthError(
            "malformed_data",
            "{where}: the {field} must be a number; got {got!r} ({hint}).",
            where=where,
            field="weight",
            got=text,
            hint=LAYOUT_HINT,
        ) from None


def adjacency(data: bytes, name: str, delimiter: str) -> Edges:
    """Parse an adjacency list: one node per line, followed by its neighbors."""
    names: list[str] = []
    counts: list[int] = []
    for _, fields in field_lines(data, name, delimiter):
        names += fields
        counts.append(len(fields))
    ids: dict[str, int] = {}
    node_ids = np.array([ids.setdefault(key, len(ids)) for key in names], np.int64)
    lengths = np.array(counts, np.int64)
    heads = np.cumsum(lengths) - lengths
    ends = np.ones(len(node_ids), bool)
    ends[heads] = False
    return Edges(list(ids), np.repeat(node_ids[heads], lengths - 1), node_ids[ends], None)


def fast_edges(data: bytes, delimiter: str, weighted: bool) -> Edges | None:
    """Parse a well-formed edge list with Arrow; return None if it has to be read line by line."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    if b"#" in data or b"%" in data:
        data = re.sub(rb"(?m)^[ \t]*[#%].*\n?", b"", data)
    if delimiter == " ":
        if any(sign in data for sign in (b"\t", b"  ", b"\n ", b" \n")):
            data = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", data))
    elif b'"' in data or b" " in data:  # quoted fields, or blanks around a field
        return None
    if b"\f" in data or b"\v" in data:  # also blanks, but too rare for the fast path
        return None
    first = data[: data.find(b"\n") + 1 or None].decode("utf-8", "replace").strip().split(delimiter)
    if len(first) not in (2, 3):
        return None
    names = ["first", "second", "weight"][: len(first)]
    try:
        table = csv.read_csv(
            pa.BufferReader(data),
            read_options=csv.ReadOptions(column_names=names),
            parse_options=csv.ParseOptions(delimiter=delimiter, quote_char=False),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.string())),
        )
        weights = pc.cast(table["weight"], pa.float64()).to_numpy() if len(first) == 3 and weighted else None
    except (pa.ArrowInvalid, UnicodeDecodeError):
        return None
    if weights is not None and not (np.isfinite(weights) & (weights >= 0)).all():
        return None
    if len(first) == 3 and pc.any(pc.equal(table["weight"], "")).as_py():
        return None
    keys, first_ids, second_ids = encode_node_pairs(table["first"], table["second"])
    return None if "" in keys else Edges(keys, first_ids, second_ids, weights)


def encode_node_pairs(first: Any, second: Any) -> tuple[list[Any], NDArray[np.int64], NDArray[np.int64]]:
    """Return the distinct values of two columns in row order, and both columns as indices into them."""
    import pyarrow as pa

    columns = [pa.chunked_array([column]) if isinstance(column, np.ndarray) else column for column in (first, second)]
    both = pa.chunked_array([chunk for column in columns for chunk in column.chunks], columns[0].type)
    if not len(both):
        return [], np.zeros(0, np.int64), np.zeros(0, np.int64)
    encoded = both.dictionary_encode().combine_chunks()
    ids = encoded.indices.to_numpy().astype(np.int64)
    rows = len(ids) // 2
    first_positions = np.full(len(encoded.dictionary), 2 * rows)
    for column, part in enumerate((ids[:rows], ids[rows:])):
        column_positions = np.full(len(first_positions), 2 * rows)
        column_positions[part[::-1]] = (
            2 * np.arange(rows)[::-1] + column
        )  # written in reverse, so the first occurrence wins
        first_positions = np.minimum(first_positions, column_positions)
    order = np.argsort(first_positions)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)).to_pylist(), rank[ids[:rows]], rank[ids[rows:]]
