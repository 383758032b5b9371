"""`Graph`: nodes and edges, in memory."""

from __future__ import annotations

import hashlib
import math
import numbers
import os
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.data.corpus import Note
from firth.data.graph_files import Edges, collect, encode_node_pairs, read_graph
from firth.data.table import Table, text_of

LAYOUTS = ("edges", "adjacency")
MOST_NODES = 2**31 - 2  # ids are int32
SOURCES = "a file, edges (a, b) or (a, b, weight), a data frame with columns=…, a scipy.sparse matrix, a networkx graph"


class Graph(Data):
    """Nodes with text keys and their edges, in compressed sparse row format.

        Graph("edges.tsv")                                  # one edge per line: a b, or a b weight
        Graph("friends.txt.gz", layout="adjacency")         # one node per line, followed by its neighbors
        Graph("calls.csv", columns=("from", "to", "calls"))  # a table: csv, tsv, jsonl, Parquet, data frame
        Graph([("ann", "bob"), ("bob", "cid", 2.5), ("dan",)])
        Graph(sparse_matrix, keys=names), Graph(networkx_graph)

    Edges are undirected unless `directed` is set; with None, a networkx graph keeps its own direction. An undirected
    edge may be listed in one direction or both. If it is listed in both, it counts once, with the larger weight. An
    edge repeated in the same direction is a duplicate: the weights are added, and `duplicates` counts it. A row with a
    single name is an isolated node. Self-loops are kept. Weights must be finite and not negative; edges of weight 0
    are dropped. With `weighted=False` every edge has the weight 1, even if it is repeated.

    Immutable, so threads can share it.
    """

    noun = "graph"
    file_options = (
        FileOption("directed", "Edges lead from the first node to the second only.", "flag"),
        FileOption("weighted", "All edges have weight 1; a third column is ignored.", "flag", flag="unweighted"),
        FileOption(
            "layout", "A line is an edge (a b, or a b weight), or a node and all its neighbors.", "choice", LAYOUTS
        ),
        FileOption(
            "columns",
            "Columns of a table with a header: from,to or from,to,weight.",
            "columns",
            empty="from,to,weight in this order",
        ),
    )

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
        check_choice("layout", layout, LAYOUTS)
        edges = edges_from(source, layout, columns, weighted, keys)
        #: The node keys, in order of first occurrence.
        self.keys: list[str] = edges.keys
        self.directed = bool(edges.directed if directed is None else directed)
        rows = compress_edges(edges, self.directed, weighted)
        self.starts, self.neighbors, self.weights = rows.starts, rows.neighbors, rows.weights
        #: Number of repeated edges in the source.
        self.duplicates = rows.duplicates
        #: Number of edges of weight 0, which were dropped.
        self.zeros = rows.zeros
        #: Number of undirected edges with different weights in the two directions; the larger one counts.
        self.unequal = rows.unequal
        self._fingerprint = ""

    @classmethod
    def of(cls, data: Any) -> Graph:
        """Return `data` if it is a graph, or build a graph from it."""
        return data if isinstance(data, Graph) else cls(data)

    def __len__(self) -> int:
        """Return the number of nodes."""
        return len(self.keys)

    @property
    def edges(self) -> int:
        """Number of edges; an undirected edge counts once."""
        return len(self.neighbors) if self.directed else (len(self.neighbors) + self.loops) // 2

    @property
    def loops(self) -> int:
        """Number of self-loops."""
        return int((self.neighbors == self.sources()).sum())

    def sources(self) -> NDArray[np.int32]:
        """Return the source node of each entry of `neighbors`."""
        return np.repeat(np.arange(len(self), dtype=np.int32), np.diff(self.starts))

    def isolated(self) -> NDArray[np.bool_]:
        """Return a mask of the nodes without incoming or outgoing edges."""
        linked = np.diff(self.starts) > 0
        linked[self.neighbors] = True
        return ~linked

    def matrix(self) -> Any:
        """Return the adjacency matrix as a `scipy.sparse.csr_array`; entry (a, b) is the weight of edge a → b."""
        from scipy.sparse import csr_array

        weights = np.ones(len(self.neighbors), np.float32) if self.weights is None else self.weights
        return csr_array((weights, self.neighbors, self.starts), shape=(len(self), len(self)))

    def fingerprint(self) -> str:
        """Return a hash of the nodes and edges."""
        if not self._fingerprint:
            digest = hashlib.sha256(f"{self.directed} {len(self)} {self.weights is not None}\0".encode())
            digest.update("\0".join(self.keys).encode("utf-8", "surrogatepass"))
            for array in (self.starts, self.neighbors, self.weights):
                if array is not None:
                    digest.update(np.ascontiguousarray(array).data)
            self._fingerprint = digest.hexdigest()
        return self._fingerprint

    def notes(self) -> list[Note]:
        """Return notes about duplicate, zero-weight and asymmetric edges in the source."""
        counted = (
            (self.duplicates, "duplicate edges; the weights of each were added.", "duplicate_edges"),
            (self.zeros, "edges with a weight of 0 were left out.", "zero_weights"),
            (
                self.unequal,
                "edges have different weights in the two directions; the larger one counts.",
                "unequal_weights",
            ),
        )
        return [Note(f"{count:,} {text}", code) for count, text, code in counted if count]

    def _rows_shown(self) -> tuple[list[str], Iterator[list[str]]]:
        def row(node: int) -> list[str]:
            linked = self.neighbors[self.starts[node] : self.starts[node + 1]]
            return [self.keys[node], f"{len(linked):,}", ", ".join(self.keys[each] for each in linked[:10].tolist())]

        return ["node", "degree", "neighbors"], map(row, range(len(self)))

    def __repr__(self) -> str:
        kind = ("directed" if self.directed else "undirected") + (", weighted" if self.weights is not None else "")
        return f"Graph({len(self):,} nodes, {self.edges:,} edges, {kind})"


class CompressedEdges(NamedTuple):
    """A graph in compressed sparse row format, and what was changed while it was read."""

    starts: NDArray[np.int64]
    neighbors: NDArray[np.int32]
    weights: NDArray[np.float32] | None
    duplicates: int
    zeros: int
    unequal: int


def compress_edges(edges: Edges, directed: bool, weighted: bool) -> CompressedEdges:
    """Return the edges in compressed sparse row format, with the neighbors of each row in ascending order."""
    from scipy.sparse import coo_array

    nodes = len(edges.keys)
    if nodes > MOST_NODES:
        raise FirthError(
            "too_large", "A graph can have at most {maximum:,} nodes; got {got:,}.", maximum=MOST_NODES, got=nodes
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
        # If an edge is listed in one direction only, the minimum is 0; that is not a contradiction.
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
            "{option} and their sums must be between 1e-45 and 3e38; got {got:g}.",
            option="Edge weights",
            got=float(matrix.data[invalid[0]]),
        )
    return CompressedEdges(
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
    """Return the edges of any supported source."""
    is_matrix = hasattr(source, "tocoo")
    if keys is not None and not is_matrix:
        raise FirthError(
            "conflicting_options",
            "{option} names the nodes of a sparse matrix; {got} sources have their own node names.",
            option="keys",
            got=type(source).__name__,
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
            "The columns of the edges must be named: columns=(from, to) or (from, to, weight). The columns are "
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
        "invalid_type", "A Graph source must be {sources}; got {got}.", sources=SOURCES, got=type(source).__name__
    )


def edge_row(edge: Any, number: int) -> tuple[Sequence[str], float | None]:
    """Return the node names and the weight of one edge of an iterable."""
    if isinstance(edge, (str, bytes)) or not hasattr(edge, "__len__") or not 1 <= len(edge) <= 3:
        raise FirthError(
            "malformed_data",
            "{where} must be (a, b), (a, b, weight), or (a,) for an isolated node; got {got!r}.",
            where=f"Edge {number:,}",
            got=edge,
        )
    weight = None
    if len(edge) == 3:
        if not isinstance(edge[2], numbers.Real):
            raise FirthError(
                "malformed_data",
                "{where}: the {field} must be a number; got {got!r}.",
                where=f"Edge {number:,}",
                field="weight",
                got=edge[2],
            )
        try:
            weight = float(edge[2])
        except OverflowError:  # an integer beyond the range of floats
            weight = math.inf
    return [node_key(node, f"Edge {number:,}") for node in edge[:2]], weight


def node_key(node: Any, where: str) -> str:
    """Return a node's key: text unchanged, numbers as text."""
    if isinstance(node, str):
        return node
    if isinstance(node, numbers.Integral) and not isinstance(node, bool):
        return str(int(node))
    if node is None or (isinstance(node, numbers.Real) and not math.isfinite(node)):
        raise FirthError("malformed_data", "{where}: a node needs a name; got {got!r}.", where=where, got=node)
    return text_of(node) if isinstance(node, numbers.Real) else str(node)


def table_edges(source: Any, columns: Sequence[str]) -> Edges:
    """Return the edges in two or three named columns of a table: from, to and, optionally, weight."""
    if isinstance(columns, str) or not 2 <= len(columns) <= 3 or len(set(columns)) < len(columns):
        raise FirthError(
            "invalid_value",
            "{option} must name two or three different columns, (from, to) or (from, to, weight); got {got!r}.",
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
                "Row {row} has no value in the node column {column!r}. Fill it in, or remove the row.",
                row=table.row_number(missing[0]),
                column=name,
            )
        ids.append(codes.ids)
        levels.append(codes.levels)
    weights = table.numbers(columns[2]) if len(columns) == 3 else None
    if weights is not None:
        invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
        if len(invalid):
            raise FirthError(
                "malformed_data",
                "Row {row}: the {field} must be finite and not negative; got {got:g}.",
                row=table.row_number(invalid[0]),
                field="weight",
                got=float(weights[invalid[0]]),
            )
    names: dict[str, int] = {}
    maps = [np.array([names.setdefault(key, len(names)) for key in part], np.int64) for part in levels]
    first, second = (map[id] if len(map) else id for map, id in zip(maps, ids, strict=True))
    return Edges(list(names), first, second, weights)


def matrix_edges(matrix: Any, keys: Iterable[Any] | None) -> Edges:
    """Return the edges of a square sparse matrix; entry (a, b) is the weight of edge a → b."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise FirthError(
            "shape_mismatch", "The adjacency matrix must be square; got the shape {got}.", got=matrix.shape
        )
    names = list(map(str, range(matrix.shape[0])))
    if keys is not None:
        names = [node_key(key, f"Key {number:,}") for number, key in enumerate(keys, 1)]
        if len(names) != matrix.shape[0] or len(set(names)) != len(names):
            raise FirthError(
                "shape_mismatch",
                "keys must have {nodes:,} different names, one per node; got {got:,} names, {distinct:,} of them "
                "different.",
                nodes=matrix.shape[0],
                got=len(names),
                distinct=len(set(names)),
            )
    entries = matrix.tocoo()
    weights = entries.data.astype(np.float64)
    invalid = np.flatnonzero(~(np.isfinite(weights) & (weights >= 0)))
    if len(invalid):
        row, column = entries.row[invalid[0]], entries.col[invalid[0]]
        raise FirthError(
            "non_finite",
            "Entry ({row}, {column}) of the matrix: the weight must be finite and not negative; got {got:g}.",
            row=int(row),
            column=int(column),
            got=float(weights[invalid[0]]),
        )
    return Edges(names, entries.row.astype(np.int64), entries.col.astype(np.int64), weights)


def networkx_edges(graph: Any) -> Edges:
    """Return the edges of a networkx graph, with their attribute `weight` if they have one."""
    nodes = ((str(node), ([node_key(node, "The graph")], None)) for node in graph.nodes)
    edges = (
        (f"Edge {a!r} to {b!r}", edge_row((a, b) if weight is None else (a, b, weight), number))
        for number, (a, b, weight) in enumerate(graph.edges(data="weight"), 1)
    )
    collected = collect(row for rows in (nodes, edges) for row in rows)
    if len(collected.keys) != len(graph.nodes):
        raise FirthError(
            "duplicate_name",
            "Two of the {nodes:,} nodes have the same name when converted to text. Rename one of them.",
            nodes=len(graph.nodes),
        )
    return collected._replace(directed=bool(graph.is_directed()))
