"""Approximate search: HNSW (Malkov & Yashunin 2018) by the package usearch, over the first rows of an index.

The graph is a cache. It finds candidates, which the index's own numbers judge; what it lacks is scanned; and it is
never needed. usearch's reader trusts what it reads, so a file is opened only with a seal that this machine's user made
(HMAC-SHA256 with a key of 32 bytes in the cache folder): from anywhere else, or altered, it is left alone until
`optimize` builds it anew.
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
from firth.index.scan import best, scan
from firth.index.segment import BLOCK, SKETCHED, Positions, Segment, Space, damaged
from firth.index.snapshot import Snapshot
from firth.kernels.search import SearchResult, sketch_rows

CONNECTIONS, ADDING, SEARCHING = 16, 128, 128  # edges a row; candidates looked at when a row is added, when asked
SHORT = 0.05  # of the rows permitted, below which a scan of these is quicker
SEAL, SEAL_BYTES = "seal.key", 32
FILE = re.compile(r"graph-\d{1,18}\.usearch")


class Graph:
    """`rows` positions, from the first on; zero rows under cosine are in none of its nodes. Once it is searched it does
    not change; threads search it one after another, since usearch keeps what a search needs with the graph."""

    @staticmethod
    def needed() -> FirthError:
        """Why there is none."""
        return missing_package("Approximate search needs", "usearch", "scale")

    def __init__(self, space: Space, reach: float = 0.0) -> None:
        """`reach`: the longest row, under dot."""
        if not self.available():
            raise self.needed()
        self.space, self.rows, self.reach, self.epoch = space, 0, reach, 0
        self._searching = threading.Lock()
        made: Any = importlib.import_module("usearch.index").Index
        self.index = made(
            ndim=self.given(np.ones((1, space.dim), dtype=np.float32), rows=True).shape[1],
            metric="cos" if space.metric == "cosine" else "l2sq",
            dtype=stored(space),
            connectivity=CONNECTIONS,
            expansion_add=ADDING,
            expansion_search=SEARCHING,
            enable_key_lookups=False,
        )

    @staticmethod
    def available() -> bool:
        return importlib.util.find_spec("usearch") is not None

    @classmethod
    def over(cls, segments: Sequence[Segment], space: Space, known: Graph | None, threads: int) -> Graph:
        """A graph of all rows: a copy of the known one with the rows that it has not got yet, where that can be."""
        reach = longest(segments) if space.metric == "dot" else 0.0
        if not np.isfinite(reach):
            raise damaged(segments[0].path, "a vector holds NaN or infinity")
        graph = known.copy() if known is not None and reach <= known.reach else cls(space, reach)
        first = 0
        for segment in segments:
            for start in range(max(0, graph.rows - first), len(segment), BLOCK):
                rows = np.asarray(segment.array("vectors")[start : start + BLOCK], dtype=np.float32)
                positions = first + start + np.arange(len(rows), dtype=np.uint64)
                if space.metric == "cosine":
                    positions, rows = positions[rows.any(axis=1)], rows[rows.any(axis=1)]
                if len(rows):
                    graph.index.add(positions, graph.given(rows, rows=True), threads=threads)
                graph.rows = first + start + min(BLOCK, len(segment) - start)
            first += len(segment)
        return graph

    def copy(self) -> Graph:
        made = Graph(self.space, self.reach)
        with self._searching:
            made.index, made.rows, made.epoch = self.index.copy(), self.rows, self.epoch
        return made

    def given(self, vectors: Matrix, rows: bool) -> NDArray[Any]:
        """What stands for rows or queries. Graphs are of distances. Of length 1, cosine is one, and a vector's bytes
        have its direction; under dot, rows get a number more, √(reach² − |row|²), and queries a zero, so that
        |q − x|² = reach² + |q|² − 2 q·x (Bachrach et al. 2014)."""
        if self.space.metric == "cosine":
            return sketch_rows(vectors).codes if stored(self.space) == "i8" else unit_rows(vectors)
        if self.space.metric == "euclidean":
            return vectors
        more = np.zeros((len(vectors), 1), dtype=np.float32)
        if rows:
            more[:, 0] = np.sqrt(np.maximum(self.reach**2 - row_lengths(vectors) ** 2, 0))
        return np.hstack([vectors, more])

    def search(self, queries: Matrix, k: int, permitted: int, flags: Any, threads: int) -> Positions | None:
        """Candidates for each query, −1 where there are fewer; None where a scan is better: `flags` (a position each)
        permit so few of the rows that most candidates would be thrown away."""
        share = permitted / max(1, self.rows)
        if flags is not None and share < SHORT:
            return None
        wide = min(self.index.size, int(max(2 * k, k + 16) / share) if share else 0)
        if not wide:
            return np.zeros((len(queries), 0), dtype=np.int64)
        asked = self.given(queries, rows=False)
        with self._searching:
            self.index.expansion_search = max(SEARCHING, wide)
            matches = self.index.search(asked, wide, threads=min(threads, len(asked)))
        keys = np.asarray(matches.keys).reshape(len(queries), -1).astype(np.int64)
        counts = np.asarray(getattr(matches, "counts", [keys.shape[1]])).reshape(-1, 1)
        found = np.where(np.arange(keys.shape[1]) < counts, keys, -1)
        if flags is None:
            return found
        found[~flags[np.maximum(found, 0)]] = -1
        enough = (found >= 0).sum(axis=1) >= min(k, permitted)
        return found if enough.all() else None

    def write(self, folder: Path, name: str, id: str) -> dict[str, Any]:
        """Writes it and says how it is recognised: as part of the index of that id."""
        path = folder / name
        with saying_where(path):
            self.index.save(str(path))
            sync(path)
        record = {"rows": self.rows, "epoch": self.epoch, "reach": self.reach, "kind": stored(self.space), "file": name}
        return {**record, "bytes": path.stat().st_size, "seal": sealed(path, id, record, made_key())}

    @classmethod
    def read(cls, folder: Path, record: Mapping[str, Any], id: str, space: Space) -> Graph | None:
        """The graph of a folder, if it is there, whole and made here for this index."""
        name, key = str(record.get("file")), seal_key()
        path = folder / name
        if not cls.available() or key is None or not FILE.fullmatch(name) or record.get("kind") != stored(space):
            return None
        if not path.is_file() or path.stat().st_size != record.get("bytes"):
            return None
        if not hmac.compare_digest(sealed(path, id, record, key).encode(), str(record.get("seal")).encode()):
            return None
        graph = cls(space, float(record["reach"]))
        wanted = (graph.index.ndim, graph.index.dtype, graph.index.metric_kind)
        try:
            graph.index.load(str(path))
        except (RuntimeError, ValueError):  # of another version of usearch
            return None
        if (graph.index.ndim, graph.index.dtype, graph.index.metric_kind) != wanted:
            return None  # the manifest was altered since
        graph.rows, graph.epoch = record["rows"], record["epoch"]
        return graph


def stored(space: Space) -> str:
    """Numbers in the graph. The index's own judge what it finds, so that bytes do where rows are wide; half precision
    ends at 65,504."""
    if space.metric != "cosine":
        return "f32"
    return "i8" if space.dim >= SKETCHED else "f16"


def longest(segments: Sequence[Segment]) -> float:
    blocks = (s.array("vectors")[i : i + BLOCK] for s in segments for i in range(0, len(s), BLOCK))
    return max((float(row_lengths(block).max()) for block in blocks), default=0.0)


def approximate(
    graph: Graph, state: Snapshot, listed: Sequence[Positions | None], queries: Matrix, k: int, threads: int
) -> SearchResult:
    """As `scan`: what the graph finds among its rows, judged by the stored numbers, and a scan of those behind them."""
    behind: list[Positions | None] = []
    permitted = 0  # rows of the graph that may be found
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        known = min(max(graph.rows - first, 0), len(segment))
        may = np.arange(known, len(segment)) if rows is None else rows[np.searchsorted(rows, known) :]
        behind.append(rows if known == 0 else may)
        permitted += known if rows is None else len(rows) - len(may)
    found = graph.search(queries, k, permitted, flags(state, listed), threads)
    if found is None:
        return scan(state, listed, queries, k, threads)
    near = SearchResult(
        np.full((len(queries), k), -np.inf, dtype=np.float32), np.full((len(queries), k), -1, dtype=np.int64)
    )
    for number, own in enumerate(found):
        one = scan(state, chosen(state, own), queries[number : number + 1], k, threads=1)
        near.scores[number, : one.rows.shape[1]], near.rows[number, : one.rows.shape[1]] = one.scores[0], one.rows[0]
    return best([near, scan(state, behind, queries, k, threads)], k)


def chosen(state: Snapshot, positions: Positions) -> list[Positions | None]:
    """Positions (−1 is none) as rows of each segment."""
    rising = np.sort(positions)
    cuts = np.searchsorted(rising, state.starts).tolist()
    return [rising[a:b] - first for a, b, first in zip(cuts, cuts[1:], state.starts.tolist(), strict=False)]


def flags(state: Snapshot, listed: Sequence[Positions | None]) -> NDArray[np.bool_] | None:
    """Which positions may be found; None for all."""
    if all(rows is None for rows in listed):
        return None
    found = np.zeros(state.rows, dtype=bool)
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        found[first : first + len(segment)] |= rows is None
        if rows is not None:
            found[first + rows] = True
    return found


def sealed(path: Path, id: str, record: Mapping[str, Any], key: bytes) -> str:
    """Of a file's content and what it is part of, by this user's key."""
    facts = json.dumps([id, *(record.get(name) for name in ("rows", "epoch", "reach", "kind"))])
    digest = hmac.new(key, facts.encode(), hashlib.sha256)
    with path.open("rb") as file:
        while block := file.read(1 << 20):
            digest.update(block)
    return digest.hexdigest()


def seal_key() -> bytes | None:
    """This user's key, if there is one; of another length it is none."""
    try:
        key = (cache_folder() / SEAL).read_bytes()
    except OSError:
        return None
    return key if len(key) == SEAL_BYTES else None


def made_key() -> bytes:
    """This user's key, made where there is none: whole or not there at all, and the same for all processes."""
    path = cache_folder() / SEAL
    with saying_where(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        with path.with_name(f".{SEAL}.lock").open("a") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            key = seal_key()
            if key is None:
                if path.exists():
                    text = f"{path} had {path.stat().st_size:,} bytes, not {SEAL_BYTES}: a new key was made"
                    text += "; a graph sealed with the old one is not used until `optimize` builds it anew."
                    warnings.warn(FirthWarning(text, "replaced_key"), stacklevel=2)
                key = secrets.token_bytes(SEAL_BYTES)
                with new_file(path) as work:
                    work.chmod(0o600)
                    work.write_bytes(key)
    return key
