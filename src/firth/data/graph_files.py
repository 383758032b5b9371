"""Files of graphs: edge lists and adjacency lists, each also compressed.

The quick way reads all of an edge list with Arrow. What Arrow refuses is read line by line, which gives the same edges
or says which line is wrong.
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
LAYOUT_HINT = "a line is an edge (a b, or a b weight) or a node alone; lists of neighbors are layout=adjacency"

Row = tuple[Sequence[str], float | None]


class Edges(NamedTuple):
    """Edges as they were found: duplicates among them, undirected ones from whichever end."""

    keys: list[str]
    first: NDArray[Any]
    second: NDArray[Any]
    weights: NDArray[np.float64] | None
    directed: bool = False


def collect(rows: Iterable[tuple[str, Row]]) -> Edges:
    """Edges from (where it stands, (names, weight)); one name alone is a node."""
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
                    "{where}: weights must be finite and not negative; got {got:g}.",
                    where=where,
                    got=weight,
                )
            is_unweighted = False
        ends += node_ids
        weights.append(1.0 if weight is None else weight)
    pairs = np.array(ends, np.int64).reshape(-1, 2)
    return Edges(list(ids), pairs[:, 0], pairs[:, 1], None if is_unweighted else np.array(weights))


def read_graph(source: str | os.PathLike[str], layout: str, weighted: bool) -> Edges:
    """The edges that a file (or "-", standard input) holds."""
    if source == "-":
        return parse_graph(sys.stdin.buffer.read(), "standard input", "", layout, weighted)
    paths = find_files(source)
    if len(paths) > 1:
        raise FirthError(
            "wrong_input", "A Graph is one file; {source} matches {n_paths}.", source=source, n_paths=len(paths)
        )
    path = paths[0]
    form, _ = format_and_compression(path)
    if form in (".parquet", ".jsonl", ".ndjson"):
        raise FirthError(
            "unknown_column",
            "{path} is a table: which columns are the ends of an edge? Pass columns=from,to[,weight].",
            path=path,
        )
    with open_decompressed(path) as (_, stream):
        data = stream.read()
    return parse_graph(data, str(path), form, layout, weighted)


def parse_graph(data: bytes, name: str, form: str, layout: str, weighted: bool) -> Edges:
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
    """What separates the names in the first lines: tabs, commas (in csv those first, then semicolons), or blanks."""
    lines = [line.strip() for line in data[:HEAD].split(b"\n") if not is_comment(line)]
    for sign in (b",", b";", b"\t") if form == ".csv" else (b"\t", b","):
        without = [line for line in lines if sign not in line]
        if len(without) < len(lines) and all(len(line.split()) == 1 for line in without):  # nodes alone
            return sign.decode()
    return " "


def is_comment(line: bytes) -> bool:
    text = line.strip()
    return not text or text.startswith(tuple(sign.encode() for sign in COMMENTS))


def field_lines(data: bytes, name: str, delimiter: str) -> Iterator[tuple[str, list[str]]]:
    """(where, fields) of each line that is no comment."""
    for number, line in enumerate(data.split(b"\n"), 1):
        if is_comment(line):
            continue
        where = f"{name}, line {number:,}"
        parts = line.split() if delimiter == " " else map(unquote, line.split(delimiter.encode()))
        try:
            fields = [part.decode("utf-8") for part in parts]
        except UnicodeDecodeError:
            raise FirthError(
                "invalid_encoding", "{where} is not UTF-8 text; convert the file first.", where=where
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
    """A header would be an edge between two nodes called "from" and "to"."""
    lines = list(itertools.islice(field_lines(data, name, delimiter), 2))
    where, first = lines[0] if lines else ("", [])
    second = lines[1][1] if len(lines) > 1 else []
    if len(first) < 2 or any(map(is_number, first)):
        return
    numbers = len(second) == len(first) and (all(map(is_number, second)) or (len(second) == 3 and is_number(second[2])))
    if numbers or {field.lower() for field in first} <= HEADERS:
        raise FirthError(
            "malformed_data",
            "{where} looks like a header: {first}. Name the columns of from, to and weight, as in "
            "columns={first_2} (--columns), or take the line out.",
            where=where,
            first=", ".join(first),
            first_2=",".join(first[:3]),
        )


def warn_possible_header(data: bytes, name: str, delimiter: str, edges: Edges) -> None:
    """A note where the first line of a csv or tsv may be a header: words, and no other edge has them."""
    where, fields = next(field_lines(data, name, delimiter), ("", []))
    if len(fields) != 2 or len(edges.first) < 2 or any(map(is_number, fields)):
        return
    if sum(np.count_nonzero(ends < 2) for ends in (edges.first, edges.second)) == 2:  # its nodes are 0 and 1
        warnings.warn(
            f"{where} is taken as an edge, not as a header: {', '.join(fields)}. If it is one, name its columns: "
            f"columns={','.join(fields)} (--columns).",
            FirthWarning,
            stacklevel=2,
        )


def unquote(field: bytes) -> bytes:
    field = field.strip()
    return field[1:-1] if len(field) > 1 and field[:1] == field[-1:] == b'"' else field


def edge_lines(data: bytes, name: str, delimiter: str, weighted: bool) -> Iterator[tuple[str, Row]]:
    width = 0
    for where, fields in field_lines(data, name, delimiter):
        if len(fields) > 3 or (width and len(fields) > 1 and len(fields) != width):
            before = f" where others have {width}" if width else ""
            table = "; columns=from,to[,weight] names those of a table" if not width else ""
            raise FirthError(
                "malformed_data",
                "{where} has {n_fields} fields{before}: {hint}{table}.",
                where=where,
                n_fields=len(fields),
                before=before,
                hint=LAYOUT_HINT,
                table=table,
            )
        width = max(width, len(fields)) if len(fields) > 1 else width
        weight = weight_of(fields[2], where) if len(fields) == 3 and weighted else None
        yield where, (fields[:2], weight)


def weight_of(text: str, where: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise FirthError(
            "malformed_data",
            "{where}: the weight must be a number; got {got!r} ({hint}).",
            where=where,
            got=text,
            hint=LAYOUT_HINT,
        ) from None


def adjacency(data: bytes, name: str, delimiter: str) -> Edges:
    """A line a node: its name, then the names of those it is linked to."""
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
    """The edges of a list that is as it should be, or None."""
    import pyarrow as pa
    import pyarrow.compute as pc
    from pyarrow import csv

    if b"#" in data or b"%" in data:
        data = re.sub(rb"(?m)^[ \t]*[#%].*\n?", b"", data)
    if delimiter == " ":
        if any(sign in data for sign in (b"\t", b"  ", b"\n ", b" \n")):
            data = re.sub(rb"(?m)^ | $", b"", re.sub(rb"[ \t]+", b" ", data))
    elif b'"' in data or b" " in data:  # quotes, and blanks around a field
        return None
    if b"\f" in data or b"\v" in data:  # blanks too, and too rare to care for here
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
    """Distinct values of two columns in the order they are met row by row, and both columns as places among them."""
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
        column_positions[part[::-1]] = 2 * np.arange(rows)[::-1] + column  # the first place is written last
        first_positions = np.minimum(first_positions, column_positions)
    order = np.argsort(first_positions)
    rank = np.empty(len(order), np.int64)
    rank[order] = np.arange(len(order))
    return encoded.dictionary.take(pa.array(order)).to_pylist(), rank[ids[:rows]], rank[ids[rows:]]
