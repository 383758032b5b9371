"""`Graph`: nodes and who is linked to whom, in memory."""

from __future__ import annotations

import hashlib
import math
import numbers
import os
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.data.graph_files import Edges, collect, encode_node_pairs, read_graph
from firth.data.table import Table, text_of

LAYOUTS = ("edges", "adjacency")
MOST_NODES = 2**31 - 2  # ids are int32
SOURCES = "a file, edges (a, b) or (a, b, weight), a data frame with columns=…, a scipy.sparse matrix, a networkx graph"


class Graph:
    """Nodes with text keys, and links between them, in compressed rows.

        Graph("edges.tsv")                                  # a line an edge: a b, or a b weight
        Graph("friends.txt.gz", layout="adjacency")         # a line a node: a, and all it is linked to
        Graph("calls.csv", columns=("from", "to", "calls"))  # a table: csv, tsv, jsonl, Parquet, data frame
        Graph([("ann", "bob"), ("bob", "cid", 2.5), ("dan",)])
        Graph(sparse_matrix, keys=names), Graph(networkx_graph)

    Links are undirected unless `directed` says otherwise (None: as networkx has it). In an undirected graph an edge may
    be listed from one end or from both; from both, it counts once, with the larger of its two weights. An edge listed
    again from the same end is a duplicate: its weights are added, and `duplicates` counts them. A row of one name is a
    node without links. Self loops stay. Weights must be finite and not negative; an edge of weight 0 is none.
    With `weighted=False` all edges weigh 1, whatever the source says and however often they stand there.
    Read once and never changed: threads can share it.
    """

    def __init__(
        self,
        source: Any,
        *,
        directed: bool | None = None,
        weighted: bool = True,
        layout: str = "edges",
        columns: Sequence[str] | None = None,
        keys: Iterable[Any] | None = None,
    ) -> None:
        if layout not in LAYOUTS:
            raise FirthError(
                "invalid_value",
                "{option} must be one of {choices}; got {got!r}.",
                option="layout",
                choices=", ".join(LAYOUTS),
                got=layout,
            )
        edges = edges_from(source, layout, columns, weighted, keys)
        #: The nodes' names, in the order they are first met.
        self.keys: list[str] = edges.keys
        self.directed = bool(edges.directed if directed is None else directed)
        rows = compress_edges(edges, self.directed, weighted)
        self.starts, self.neighbors, self.weights = rows.starts, rows.neighbors, rows.weights
        #: Edges that stood in the source before, from the same end.
        self.duplicates = rows.duplicates
        #: Edges with a weight of 0, left out.
        self.zeros = rows.zeros
        #: Undirected edges with one weight from one end and another from the other; the larger one counts.
        self.unequal = rows.unequal
        self._fingerprint = ""

    @classmethod
    def of(cls, data: Any) -> Graph:
        """`data`, or a graph made of it."""
        return data if isinstance(data, Graph) else cls(data)

    def __len__(self) -> int:
        """How many nodes."""
        return len(self.keys)

    @property
    def edges(self) -> int:
        """How many edges; an undirected one counts once."""
        return len(self.neighbors) if self.directed else (len(self.neighbors) + self.loops) // 2

    @property
    def loops(self) -> int:
        """How many nodes are linked to themselves."""
        return int((self.neighbors == self.sources()).sum())

    def sources(self) -> NDArray[np.int32]:
        """The node that each entry of `neighbors` is a neighbor of."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))

    def isolated(self) -> NDArray[np.bool_]:
        """Which nodes have no link, neither out nor in."""
        linked = np.diff(self.starts) > 0
        linked[self.neighbors] = True
        return ~linked

    def matrix(self) -> Any:
        """scipy.sparse in compressed rows: entry (a, b) is the weight of the link from a to b."""
        from scipy.sparse import csr_array

        weights = np.ones(len(self.neighbors), np.float32) if self.weights is None else self.weights
        return csr_array((weights, self.neighbors, self.starts), shape=(len(self), len(self)))

    def fingerprint(self) -> str:
        """Tells whether two graphs hold the same."""
        if not self._fingerprint:
            digest = hashlib.sha256(f"{self.directed} {len(self)} {self.weights is not None}\0".encode())
            digest.update("\0".join(self.keys).encode("utf-8", "surrogatepass"))
            for array in (self.starts, self.neighbors, self.weights):
                if array is not None:
                    digest.update(np.ascontiguousarray(array).data)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def notes(self) -> list[str]:
        """What a user should know about how the source was read."""
        counted = (
            (self.duplicates, "duplicate edges; the weights of each were added."),
            (self.zeros, "edges with a weight of 0 were left out."),
            (self.unequal, "edges have one weight from one end and another from the other; the larger one counts."),
        )
        return [f"{count:,} {text}" for count, text in counted if count]

    def __repr__(self) -> str:
        kind = ("directed" if self.directed else "undirected") + (", weighted" if self.weights is not None else "")
        return f"Graph({len(self):,} nodes, {self.edges:,} edges, {kind})"


class Rows(NamedTuple):
    starts: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    duplicates: int
    zeros: int
    unequal: int


def compress_edges(edges: Edges, directed: bool, weighted: bool) -> Rows:
    """Edges as compressed rows, each row's neighbors in growing order."""
    from scipy.sparse import coo_array

    nodes = len(edges.keys)
    if nodes > MOST_NODES:
        raise FirthError(
            "too_large", "A graph has at most {most_nodes:,} nodes; got {got:,}.", most_nodes=MOST_NODES, got=nodes
        )
    weights = np.ones(len(edges.first)) if edges.weights is None or not weighted else edges.weights
    nonzero = np.flatnonzero(weights)
    first, second, weights = edges.first[nonzero], edges.second[nonzero], weights[nonzero]
    matrix = coo_array((weights, (first, second)), shape=(nodes, nodes)).tocsr()  # duplicates are added
    duplicates = (len(nonzero) - matrix.nnz) if weighted else 0
    if not weighted:
        matrix.data[:] = 1
    unequal = 0
    if not directed:
        transposed = matrix.T.tocsr()
        larger = matrix.maximum(transposed)
        # Where one end lists nothing, the minimum is 0: those are no contradiction.
        unequal = int(np.count_nonzero((larger - matrix.minimum(transposed)).data)) - 2 * (larger.nnz - matrix.nnz)
        unequal //= 2
        matrix = larger
    matrix.sort_indices()
    with np.errstate(over="ignore"):
        values = matrix.data.astype(np.float32)
    invalid = np.flatnonzero(~np.isfinite(values) | (values == 0))
    if len(invalid):
        raise FirthError(
            "invalid_value",
            "Weights must be from 1e-45 to 3e38, together too; got {got:g}.",
            got=matrix.data[invalid[0]],
        )
    return Rows(
        matrix.indptr.astype(np.int64),
        matrix.indices.astype(np.int32),
        None if (values == 1).all() else values,
        duplicates,
        len(edges.first) - len(nonzero),
        unequal,
    )


def edges_from(
    source: Any, layout: str, columns: Sequence[str] | None, weighted: bool, keys: Iterable[Any] | None
) -> Edges:
    """The edges of anything a graph can be made of."""
    is_matrix = hasattr(source, "tocoo")
    if keys is not None and not is_matrix:
        raise FirthError(
            "conflicting_options", "keys name the nodes of a sparse matrix; other sources name their nodes themselves."
        )
    if columns is not None:
        return table_edges(source, columns)
    if isinstance(source, Graph):
        weights = None if source.weights is None else source.weights.astype(np.float64)
        return Edges(source.keys, source.sources(), source.neighbors, weights, source.directed)
    if isinstance(source, (str, os.PathLike)):
        return read_graph(source, layout, weighted)
    if is_matrix:
        return matrix_edges(source, keys)
    if hasattr(source, "nodes") and hasattr(source, "is_directed"):
        return networkx_edges(source)
    if hasattr(source, "columns"):
        names = ", ".join(map(str, getattr(source, "column_names", source.columns)))
        raise FirthError(
            "unknown_column",
            "Which columns are the ends of an edge? Pass columns=(from, to) or (from, to, weight); there are "
            "{available}.",
            available=names,
        )
    if isinstance(source, np.ndarray) and source.ndim == 2 and source.shape[1] == 2 and source.dtype.kind in "iu":
        keys_, first, second = encode_node_pairs(source[:, 0], source[:, 1])
        return Edges([text_of(key) for key in keys_], first, second, None)
    if isinstance(source, Iterable):
        rows = ((f"Edge {number:,}", edge_row(edge, number)) for number, edge in enumerate(source, 1))
        return collect(rows)
    raise FirthError(
        "invalid_type", "A Graph is made of {sources}; got {got}.", sources=SOURCES, got=type(source).__name__
    )


def edge_row(edge: Any, number: int) -> tuple[Sequence[str], float | None]:
    """The names and the weight of one edge of an iterable."""
    if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or not 1 <= len(edge) <= 3:
        raise FirthError(
            "malformed_data",
            "Edge {path:,} must be (a, b) or (a, b, weight), or (a,) for a node alone; got {got!r}.",
            path=number,
            got=edge,
        )
    weight = None
    if len(edge) == 3:
        if not isinstance(edge[2], numbers.Real):
            raise FirthError(
                "malformed_data", "Edge {path:,}: the weight must be a number; got {got!r}.", path=number, got=edge[2]
            )
        weight = float(edge[2])
    return [node_key(node, f"Edge {number:,}") for node in edge[:2]], weight


def node_key(node: Any, where: str) -> str:
    """A node's name: text as it is, numbers as they are written."""
    if isinstance(node, str):
        return node
    if isinstance(node, numbers.Integral) and not isinstance(node, bool):
        return str(int(node))
    if node is None or (isinstance(node, numbers.Real) and not math.isfinite(node)):
        raise FirthError("malformed_data", "{where}: a node must have a name; got {got!r}.", where=where, got=node)
    return text_of(node) if isinstance(node, numbers.Real) else str(node)


def table_edges(source: Any, columns: Sequence[str]) -> Edges:
    """Edges of a table's named columns: from, to and, where there are three, weight."""
    if isinstance(columns, str) or not 2 <= len(columns) <= 3 or len(set(columns)) < len(columns):
        raise FirthError(
            "invalid_value",
            "{option} must name from and to, or from, to and weight; got {got!r}.",
            option="columns",
            got=columns,
        )
    table = Table(source, columns=columns, categories=columns[:2])
    ids, levels = [], []
    for name in columns[:2]:
        codes = table.codes(name)
        missing = np.flatnonzero(codes.ids < 0)
        if len(missing):
            raise FirthError(
                "malformed_data",
                "Row {row} has no node in column {name!r}; fill it or leave it out.",
                row=table.row_number(missing[0]),
                name=name,
            )
        ids.append(codes.ids)
        levels.append(codes.levels)
    weights = table.numbers(columns[2]) if len(columns) == 3 else None
    if weights is not None:
        invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(invalid):
            raise FirthError(
                "malformed_data",
                "Row {row}: weights must be finite and not negative; got {got:g}.",
                row=table.row_number(invalid[0]),
                got=weights[invalid[0]],
            )
    names: dict[str, int] = {}
    maps = [np.array([names.setdefault(key, len(names)) for key in part], np.int64) for part in levels]
    first, second = (map[id] if len(map) else id for map, id in zip(maps, ids, strict=True))
    return Edges(list(names), first, second, weights)


def matrix_edges(matrix: Any, keys: Iterable[Any] | None) -> Edges:
    """Edges of a square sparse matrix: entry (a, b) is the weight of the link from a to b."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise FirthError(
            "shape_mismatch", "The matrix of a graph must be square; got the shape {got}.", got=matrix.shape
        )
    names = list(map(str, range(matrix.shape[0])))
    if keys is not None:
        names = [node_key(key, f"Key {number:,}") for number, key in enumerate(keys, 1)]
        if len(names) != matrix.shape[0] or len(set(names)) != len(names):
            raise FirthError(
                "shape_mismatch",
                "keys must name each of the {shape:,} nodes, each differently; got {got:,} keys, {n_available:,} "
                "different ones.",
                shape=matrix.shape[0],
                got=len(names),
                n_available=len(set(names)),
            )
    entries = matrix.tocoo()
    weights = entries.data.astype(np.float64)
    invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid):
        row, column = entries.row[invalid[0]], entries.col[invalid[0]]
        raise FirthError(
            "non_finite",
            "Entry ({row}, {column}) of the matrix: weights must be finite and not negative; got {got:g}.",
            row=row,
            column=column,
            got=weights[invalid[0]],
        )
    return Edges(names, entries.row.astype(np.int64), entries.col.astype(np.int64), weights)


def networkx_edges(graph: Any) -> Edges:
    """Edges of a networkx graph, with their attribute `weight` where they have one."""
    nodes = ((str(node), ([node_key(node, "The graph")], None)) for node in graph.nodes)
    edges = (
        (f"Edge {a!r} to {b!r}", edge_row((a, b) if weight is None else (a, b, weight), number))
        for number, (a, b, weight) in enumerate(graph.edges(data="weight"), 1)
    )
    collected = collect(row for rows in (nodes, edges) for row in rows)
    if len(collected.keys) != len(graph.nodes):
        raise FirthError(
            "duplicate_name",
            "Two of the {n_nodes:,} nodes have the same name as text; rename one of them.",
            n_nodes=len(graph.nodes),
        )
    return collected._replace(directed=bool(graph.is_directed()))
