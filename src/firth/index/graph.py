"""Approximate search: HNSW (Malkov & Yashunin 2018) by the package usearch, over the first rows of an index.

The graph is an optional cache. It proposes candidates, which are rescored with the stored vectors; rows that are not in
the graph are scanned. usearch does not validate the files it reads, so a graph file is only opened if it carries a seal
(HMAC-SHA256 with a 32-byte key in the user's cache folder). A file that was modified or comes from another machine is
ignored until `optimize` rebuilds it.
"""

from __future__ import annotations

import fcntl
import hashlib
import hmac
import importlib
import importlib.util
import json
import re
import secrets
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.extras import missing_package
from firth.core.storage import new_file, saying_where, sync
from firth.core.vectors import Matrix, row_lengths, unit_rows
from firth.data.cache import cache_folder
from firth.index.scan import merge_results, scan
from firth.index.segment import BLOCK, QUANTIZED_FROM, Positions, Segment, Space, damaged
from firth.index.snapshot import Snapshot
from firth.kernels.search import SearchResult, quantize_rows

CONNECTIONS, ADDING, SEARCHING = 16, 128, 128  # HNSW's M, ef_construction and ef_search
SCAN_SHARE = 0.05  # share of permitted rows below which scanning them is faster
SEAL, SEAL_BYTES = "seal.key", 32
FILE = re.compile(r"graph-\d{1,18}\.usearch")


class Graph:
    """An HNSW graph of the first `rows` positions; under cosine, zero vectors are left out. It does not change once it
    is searched. A lock serializes searches, because usearch keeps the state of a search in the graph."""

    @staticmethod
    def missing() -> FirthError:
        """Return the error that usearch is not installed."""
        return missing_package("Approximate search needs", "usearch", "scale")

    def __init__(self, space: Space, max_norm: float = 0.0) -> None:
        """Create an empty graph. `max_norm` is the norm of the longest row under dot, else 0."""
        if not self.available():
            raise self.missing()
        self.space, self.rows, self.max_norm, self.epoch = space, 0, max_norm, 0
        self._searching = threading.Lock()
        index_class: Any = importlib.import_module("usearch.index").Index
        self.index = index_class(
            ndim=self.encode(np.ones((1, space.dim), dtype=np.float32), rows=True).shape[1],
            metric="cos" if space.metric == "cosine" else "l2sq",
            dtype=graph_dtype(space),
            connectivity=CONNECTIONS,
            expansion_add=ADDING,
            expansion_search=SEARCHING,
            enable_key_lookups=False,
        )

    @staticmethod
    def available() -> bool:
        """Return whether usearch is installed."""
        return importlib.util.find_spec("usearch") is not None

    @classmethod
    def over(cls, segments: Sequence[Segment], space: Space, previous: Graph | None, threads: int) -> Graph:
        """Build a graph of all rows. If possible, only the new rows are added to a copy of the previous graph."""
        max_norm = longest_row(segments) if space.metric == "dot" else 0.0
        if not np.isfinite(max_norm):
            raise damaged(segments[0].path, "a vector contains NaN or infinity")
        graph = previous.copy() if previous is not None and max_norm <= previous.max_norm else cls(space, max_norm)
        first = 0
        for segment in segments:
            for start in range(max(0, graph.rows - first), len(segment), BLOCK):
                rows = np.asarray(segment.array("vectors")[start : start + BLOCK], dtype=np.float32)
                positions = first + start + np.arange(len(rows), dtype=np.uint64)
                if space.metric == "cosine":
                    positions, rows = positions[rows.any(axis=1)], rows[rows.any(axis=1)]
                if len(rows):
                    graph.index.add(positions, graph.encode(rows, rows=True), threads=threads)
                graph.rows = first + start + min(BLOCK, len(segment) - start)
            first += len(segment)
        return graph

    def copy(self) -> Graph:
        """Return an independent copy."""
        copied = Graph(self.space, self.max_norm)
        with self._searching:
            copied.index, copied.rows, copied.epoch = self.index.copy(), self.rows, self.epoch
        return copied

    def encode(self, vectors: Matrix, rows: bool) -> NDArray[Any]:
        """Return rows or queries in the form that the graph stores. HNSW needs a distance. For cosine, vectors are
        normalized or quantized, which preserves their direction. For dot, rows get one more value, √(max_norm² −
        |row|²), and queries a zero, so that |q − x|² = max_norm² + |q|² − 2 q·x (Bachrach et al. 2014)."""
        if self.space.metric == "cosine":
            return quantize_rows(vectors).codes if graph_dtype(self.space) == "i8" else unit_rows(vectors)
        if self.space.metric == "euclidean":
            return vectors
        extra = np.zeros((len(vectors), 1), dtype=np.float32)
        if rows:
            extra[:, 0] = np.sqrt(np.maximum(self.max_norm**2 - row_lengths(vectors) ** 2, 0))
        return np.hstack([vectors, extra])

    def search(self, queries: Matrix, k: int, permitted: int, flags: Any, threads: int) -> Positions | None:
        """Return candidate positions for each query, padded with −1. Return None if a scan is faster, because `flags`
        (one per position) permit so few rows that most candidates would be discarded."""
        share = permitted / max(1, self.rows)
        if flags is not None and share < SCAN_SHARE:
            return None
        candidates = min(self.index.size, int(max(2 * k, k + 16) / share) if share else 0)
        if not candidates:
            return np.zeros((len(queries), 0), dtype=np.int64)
        encoded = self.encode(queries, rows=False)
        with self._searching:
            self.index.expansion_search = max(SEARCHING, candidates)
            matches = self.index.search(encoded, candidates, threads=min(threads, len(encoded)))
        keys = np.asarray(matches.keys).reshape(len(queries), -1).astype(np.int64)
        counts = np.asarray(getattr(matches, "counts", [keys.shape[1]])).reshape(-1, 1)
        positions = np.where(np.arange(keys.shape[1]) < counts, keys, -1)
        if flags is None:
            return positions
        positions[~flags[np.maximum(positions, 0)]] = -1
        enough = (positions >= 0).sum(axis=1) >= min(k, permitted)
        return positions if enough.all() else None

    def write(self, folder: Path, name: str, id: str) -> dict[str, Any]:
        """Write the graph and return its manifest record with the seal, which is bound to the index's id."""
        path = folder / name
        with saying_where(path):
            self.index.save(str(path))
            sync(path)
        record = {
            "rows": self.rows,
            "epoch": self.epoch,
            "reach": self.max_norm,
            "kind": graph_dtype(self.space),
            "file": name,
        }
        return {**record, "bytes": path.stat().st_size, "seal": seal(path, id, record, create_key())}

    @classmethod
    def read(cls, folder: Path, record: Mapping[str, Any], id: str, space: Space) -> Graph | None:
        """Read the graph of a folder; None if it is missing, incomplete or not sealed by this user for this index."""
        name, key = str(record.get("file")), seal_key()
        path = folder / name
        if not cls.available() or key is None or not FILE.fullmatch(name) or record.get("kind") != graph_dtype(space):
            return None
        if not path.is_file() or path.stat().st_size != record.get("bytes"):
            return None
        if not hmac.compare_digest(seal(path, id, record, key).encode(), str(record.get("seal")).encode()):
            return None
        graph = cls(space, float(record["reach"]))
        wanted = (graph.index.ndim, graph.index.dtype, graph.index.metric_kind)
        try:
            graph.index.load(str(path))
        except (RuntimeError, ValueError):  # written by another version of usearch
            return None
        if (graph.index.ndim, graph.index.dtype, graph.index.metric_kind) != wanted:
            return None  # the manifest was modified later
        graph.rows, graph.epoch = record["rows"], record["epoch"]
        return graph


def graph_dtype(space: Space) -> str:
    """Return usearch's name of the dtype in the graph. Candidates are rescored with the stored vectors, so int8 is
    enough for wide rows. Other metrics need float32, because half precision ends at 65,504."""
    if space.metric != "cosine":
        return "f32"
    return "i8" if space.dim >= QUANTIZED_FROM else "f16"


def longest_row(segments: Sequence[Segment]) -> float:
    """Return the largest norm of a row."""
    blocks = (s.array("vectors")[i : i + BLOCK] for s in segments for i in range(0, len(s), BLOCK))
    return max((float(row_lengths(block).max()) for block in blocks), default=0.0)


def approximate(
    graph: Graph, state: Snapshot, listed: Sequence[Positions | None], queries: Matrix, k: int, threads: int
) -> SearchResult:
    """Search as `scan` does: rescore the graph's candidates with the stored vectors, and scan the rows behind them."""
    unindexed: list[Positions | None] = []
    permitted = 0  # rows of the graph that pass the filter
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        indexed = min(max(graph.rows - first, 0), len(segment))
        rest = np.arange(indexed, len(segment)) if rows is None else rows[np.searchsorted(rows, indexed) :]
        unindexed.append(rows if indexed == 0 else rest)
        permitted += indexed if rows is None else len(rows) - len(rest)
    candidates = graph.search(queries, k, permitted, flags(state, listed), threads)
    if candidates is None:
        return scan(state, listed, queries, k, threads)
    nearest = SearchResult(
        np.full((len(queries), k), -np.inf, dtype=np.float32), np.full((len(queries), k), -1, dtype=np.int64)
    )
    for number, candidate_rows in enumerate(candidates):
        scanned = scan(state, segment_rows(state, candidate_rows), queries[number : number + 1], k, threads=1)
        nearest.scores[number, : scanned.rows.shape[1]], nearest.rows[number, : scanned.rows.shape[1]] = (
            scanned.scores[0],
            scanned.rows[0],
        )
    return merge_results([nearest, scan(state, unindexed, queries, k, threads)], k)


def segment_rows(state: Snapshot, positions: Positions) -> list[Positions | None]:
    """Return positions, without −1, as row numbers of each segment."""
    rising = np.sort(positions)
    cuts = np.searchsorted(rising, state.starts).tolist()
    return [rising[a:b] - first for a, b, first in zip(cuts, cuts[1:], state.starts.tolist(), strict=False)]


def flags(state: Snapshot, listed: Sequence[Positions | None]) -> NDArray[np.bool_] | None:
    """Return a mask of the permitted positions; None if all are."""
    if all(rows is None for rows in listed):
        return None
    permitted = np.zeros(state.rows, dtype=bool)
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        permitted[first : first + len(segment)] |= rows is None
        if rows is not None:
            permitted[first + rows] = True
    return permitted


def seal(path: Path, id: str, record: Mapping[str, Any], key: bytes) -> str:
    """Return the HMAC of a graph file and its record, with this user's key."""
    header = json.dumps([id, *(record.get(name) for name in ("rows", "epoch", "reach", "kind"))])
    digest = hmac.new(key, header.encode(), hashlib.sha256)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def seal_key() -> bytes | None:
    """Return this user's key, or None if it is missing or has the wrong length."""
    try:
        key = (cache_folder() / SEAL).read_bytes()
    except OSError:
        return None
    return key if len(key) == SEAL_BYTES else None


def create_key() -> bytes:
    """Return this user's key. If there is none, create it atomically; a lock makes all processes use the same key."""
    path = cache_folder() / SEAL
    with saying_where(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{SEAL}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            key = seal_key()
            if key is None:
                if path.exists():
                    text = f"{path} had {path.stat().st_size:,} bytes instead of {SEAL_BYTES}; a new key was created. "
                    text += "Graphs sealed with the old key are ignored until `optimize` rebuilds them."
                    warnings.warn(FirthWarning(text, "replaced_key"), stacklevel=2)
                key = secrets.token_bytes(SEAL_BYTES)
                with new_file(path) as work:
                    work.chmod(0o600)
                    work.write_bytes(key)
    return key
