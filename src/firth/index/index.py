"""`Index`: vectors with keys and attributes, searched by similarity, by words (BM25) or by both; in memory or on
disk."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from firth.core.arguments import as_floats, check_choice, check_count
from firth.core.errors import FirthError, FirthWarning
from firth.core.model import HasVectors, Model
from firth.core.notebook import ShowsRows
from firth.core.remote import is_url
from firth.core.remote_folders import local_copy
from firth.core.run import available_cores
from firth.core.vectors import Matrix, Vectors, row_lengths
from firth.index.graph import Graph, approximate
from firth.index.hits import Hits, reciprocal_rank_fusion
from firth.index.lookup import allowed, by_words, embedded_queries, hits, zero_query
from firth.index.rows import (
    attribute_table,
    check_identity,
    check_json,
    check_keys,
    check_known,
    check_matrix,
    check_space,
    identity_of,
)
from firth.index.scan import scan
from firth.index.segment import DTYPES, Segment, Space, check_lengths, make_segment
from firth.index.snapshot import Snapshot
from firth.index.store import Store
from firth.kernels.search import SearchResult

GRAPH_VALUES = 1 << 28  # rows × dim from which `optimize` builds a graph: one core scans as many bytes in about 20 ms
FUSION_DEPTH = 100  # rows of each ranking that are fused, at least
MODES = ("vector", "words", "both")


class Index(ShowsRows):
    """A searchable collection of vectors, created by `Index.create`, `Index.open` or `Index.of`.

    Every change (`add`, `update`, `delete`, `optimize`) is an atomic commit. Threads can share an `Index`: changes are
    serialized, and a search sees the last commit before it began.
    """

    def __init__(self, store: Store, model: Model | None = None) -> None:
        self.store, self.space, self.model = store, store.state.space, model
        self._opening = threading.Lock()  # guards the graph, so that graph and commit match
        self._graph: Graph | None = None
        self._graph_record: dict[str, Any] = {}  # of the graph that was opened or rejected
        self._graph_unused = False  # whether to warn that the graph was rejected

    # ---- creating and opening ----

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str] | None = None,
        *,
        dim: int,
        metric: str = "cosine",
        dtype: str = "float32",
        model: Model | None = None,
        model_path: str | None = None,
        metadata: Mapping[str, Any] | None = None,
    ) -> Index:
        """Create an empty index in a new folder, or in memory if `folder` is None.

        `dtype` is the storage dtype. float32: full precision; rows of 64 or more values are also stored as int8 codes,
        which let a search skip most rows. float16: half the memory. int8: float32 with int8 codes for rows of any
        width. `model` is the model that computes the vectors. With it, queries can be texts, and other models are
        refused. `metadata` is stored with the index as JSON.
        """
        check_space("Index", dim, metric, dtype, DTYPES)
        properties = {"model": None if model is None else identity_of(model, model_path), "about": dict(metadata or {})}
        path = None if folder is None else Path(folder)
        return cls(Store.create(path, Space(dim, metric, dtype), **properties), model)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], model: Model | None = None) -> Index:
        """Open the last commit of the index in a folder. Files are memory-mapped, not read."""
        with local_copy(folder) as path:
            store = Store.open(path)
        store.url = str(folder) if is_url(folder) else None
        if model is not None:
            check_identity(store.manifest.get("model"), model, str(folder))
        return cls(store, model)

    @classmethod
    def of(
        cls,
        source: Vectors | HasVectors,
        folder: str | os.PathLike[str] | None = None,
        *,
        metric: str = "cosine",
        dtype: str = "float32",
    ) -> Index:
        """Create an index of `Vectors`, or of a model's main table."""
        if not isinstance(source, (Vectors, HasVectors)):
            raise FirthError(
                "invalid_type", "Index.of needs Vectors or a model with vectors; got {got}.", got=type(source).__name__
            )
        vectors = source if isinstance(source, Vectors) else source.vectors
        index = cls.create(folder, dim=vectors.dim, metric=metric, dtype=dtype)
        index.add(vectors.keys, vectors.matrix)
        return index

    def close(self) -> None:
        """Release the write lock, so that another process can write."""
        self.store.release()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- contents ----

    @property
    def folder(self) -> Path | None:
        """The folder of the index; None if it is in memory."""
        return self.store.folder

    def __len__(self) -> int:
        return len(self.store.state)

    @property
    def columns(self) -> dict[str, Any]:
        """The names and Arrow types of the attributes."""
        return self.store.state.columns

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.store.state.positions([key]))

    def __getitem__(self, key: str) -> Matrix:
        """Return the vector of a key."""
        state = self.store.state
        vector: Matrix = state.vectors(np.array([state.position(key)]))[0]
        return vector

    def attributes(self, key: str) -> dict[str, Any]:
        """Return the attributes of a key."""
        state = self.store.state
        return state.row(state.position(key))[1]

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        return f"Index of {len(self):,} × {self.space.dim} ({self.space.metric}, {self.space.dtype}) {where}"

    def _rows_shown(self) -> tuple[list[str], Iterator[list[Any]]]:
        state = self.store.state
        deleted = set(np.asarray(state.deleted).tolist())
        rows = (state.row(position) for position in range(state.rows) if position not in deleted)
        return ["key", *state.columns], ([key, *(values.get(name) for name in state.columns)] for key, values in rows)

    # ---- changes ----

    def add(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """Add rows; existing keys are refused. `attributes` is a data frame, an Arrow table, or a mapping of lists. The
        attribute `text` is indexed for word search."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            existing = state.positions(keys)
            if existing:
                examples = ", ".join(map(repr, list(existing)[:3]))
                raise FirthError(
                    "duplicate_name",
                    "The index already has {count:,} of these keys ({examples}). Use update to replace them.",
                    count=len(existing),
                    examples=examples,
                )
            self.store.commit(self._segment(keys, vectors, attributes))

    def update(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """Add rows, and replace the vectors and attributes of existing keys."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            added = self._segment(keys, vectors, attributes)
            self.store.commit(added, list(state.positions(keys).values()))

    def delete(self, keys: Sequence[str]) -> None:
        """Delete keys, all of which must exist."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            existing = state.positions(keys)
            check_known(keys, existing)
            self.store.commit(deleted_positions=list(existing.values()))

    @property
    def metadata(self) -> dict[str, Any]:
        """Metadata of the index, as JSON values."""
        return dict(self.store.manifest.get("about") or {})

    def add_metadata(self, **values: Any) -> None:
        """Add entries to `metadata`."""
        check_json(values)
        with self.store.writing():
            self.store.commit(about={**self.metadata, **values})

    def optimize(self, approximate: bool | None = None, threads: int = 0) -> None:
        """Merge all segments, drop deleted rows, and build the HNSW graph for approximate search. Unless `approximate`
        decides, a graph is built from 268 million values on (700,000 rows of 384)."""
        threads = available_cores() if type(threads) is int and threads == 0 else check_count("threads", threads)
        with self.store.writing():
            self.store.compact()
            state, existing = self._view()
            wanted = state.rows * self.space.dim >= GRAPH_VALUES if approximate is None else approximate
            if not wanted or not state.rows or (existing is not None and existing.rows == state.rows):
                return
            if approximate is None and not Graph.available():
                message = f"Search over {state.rows:,} rows stays exact. {Graph.missing()}"
                warnings.warn(FirthWarning(message, "missing_package"), stacklevel=2)
                return
            self._build_graph(state, existing, threads)

    def _segment(self, keys: list[str], vectors: ArrayLike, attributes: Any) -> Segment:
        matrix = check_matrix(vectors, keys, self.space.dim)
        if self.folder is None and matrix.flags.writeable and np.may_share_memory(matrix, np.asarray(vectors)):
            matrix = matrix.copy()  # the index must not change with the caller's array
        if self.space.metric == "cosine":
            zero = np.flatnonzero(~matrix.any(axis=1))
            if len(zero):
                message = f"{len(zero):,} vectors are zero ({keys[zero[0]]!r}, …). They have no direction, so a search "
                message += "by cosine never returns them."
                warnings.warn(FirthWarning(message, "zero_vectors"), stacklevel=3)
        segments = self.store.state.segments
        return make_segment(
            self.space, matrix, attribute_table(keys, attributes, segments[0].table.schema if segments else None)
        )

    # ---- approximate search ----

    def _build_graph(self, state: Snapshot, existing: Graph | None, threads: int) -> None:
        manifest = state.manifest
        graph = Graph.over(state.segments, self.space, existing, threads)
        graph.epoch = manifest["epoch"]
        record: dict[str, Any] = {"rows": graph.rows, "epoch": graph.epoch}
        if self.folder:
            record = graph.write(self.folder, f"graph-{manifest['commit'] + 1}.usearch", manifest["id"])
        with self._opening:
            self.store.commit(graph=record)
            self._graph, self._graph_record = graph, record

    def _view(self) -> tuple[Snapshot, Graph | None]:
        """Return the last commit, and its graph if it is valid and row positions have not changed since it was
        built."""
        with self._opening:
            state = self.store.state
            record = state.manifest.get("graph")
            if not record or record["epoch"] != state.manifest["epoch"] or record["rows"] > state.rows:
                return state, None
            if self.folder and self._graph_record != record:
                self._graph_record = dict(record)
                self._graph = Graph.read(self.folder, record, state.manifest["id"], self.space)
                self._graph_unused = self._graph is None
            return state, self._graph

    def _warn_once(self) -> None:
        with self._opening:
            pending, self._graph_unused = self._graph_unused, False
        if pending and self.folder:
            file = str(self._graph_record.get("file"))
            reason = f"{self.folder / file} is missing, was modified or comes from another machine, and is not used."
            message = (
                f"{reason if Graph.available() else Graph.missing()} Search is exact until `optimize` rebuilds it."
            )
            warnings.warn(FirthWarning(message, "exact_search"), stacklevel=4)

    # ---- search ----

    @overload
    def search(
        self,
        query: str,
        k: int = ...,
        *,
        where: str | None = ...,
        mode: str = ...,
        exact: bool = ...,
        prompt: str | None = ...,
        prompt_text: str | None = ...,
    ) -> Hits: ...
    @overload
    def search(
        self,
        query: Any,
        k: int = ...,
        *,
        where: str | None = ...,
        mode: str = ...,
        exact: bool = ...,
        prompt: str | None = ...,
        prompt_text: str | None = ...,
    ) -> Any: ...
    def search(
        self,
        query: Any,
        k: int = 10,
        *,
        where: str | None = None,
        mode: str = "vector",
        exact: bool = False,
        prompt: str | None = None,
        prompt_text: str | None = None,
    ) -> Hits | list[Hits]:
        """Return the `k` nearest rows to a vector or a text; for a matrix or a list of texts, one result per query.

        `where` filters by attributes: `year >= 2020 and language in ("en", "de")`. `mode` is "vector" (similarity),
        "words" (BM25 over the column text) or "both" (the two rankings fused). `exact` scans all rows even if there is
        an HNSW graph. A text query has the model's prompt for queries before it, or the prompt that `prompt` names, or
        `prompt_text`.
        """
        check_choice("mode", mode, MODES)
        k = check_count("k", k)
        texts = [query] if isinstance(query, str) else query
        are_texts = isinstance(texts, (list, tuple)) and bool(texts) and all(isinstance(text, str) for text in texts)
        if mode != "vector" and not are_texts:
            raise FirthError("conflicting_options", "mode={mode!r} needs a text as query, not a vector.", mode=mode)
        state, graph = self._state(exact or mode == "words")
        if mode == "words":
            results = [hits(state, by_words(state, text, k, where)) for text in texts]
            return results[0] if isinstance(query, str) else results
        matrix = self._as_matrix(self._embedded(texts, prompt, prompt_text) if are_texts else query)
        zero_rows = np.flatnonzero(~matrix.any(axis=1)).tolist() if are_texts else []
        if mode == "both":  # a query of out-of-vocabulary words can still match by words
            matrix[zero_rows] = 1
        elif zero_rows:
            raise zero_query(zero_rows[0])
        depth = k if mode == "vector" else max(k, FUSION_DEPTH)
        nearest = self._nearest(state, graph, self._prepare_queries(np.atleast_2d(matrix)), depth, where)
        rankings = [
            [(row, score) for row, score in zip(rows, scores, strict=True) if row >= 0]
            for rows, scores in zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)
        ]
        if mode == "both":
            for number in zero_rows:
                rankings[number] = []
            for number, text in enumerate(texts):
                words = [row for row, _ in by_words(state, text, depth, where)]
                rankings[number] = reciprocal_rank_fusion([[row for row, _ in rankings[number]], words], k)
        results = [hits(state, ranking) for ranking in rankings]
        return results[0] if isinstance(query, str) or matrix.ndim == 1 else results

    def find(self, queries: ArrayLike, k: int = 10, *, where: str | None = None, exact: bool = False) -> SearchResult:
        """Search with arrays: scores and row positions, one row per query, padded with −1."""
        prepared = self._prepare_queries(self._as_matrix(queries))
        return self._nearest(*self._state(exact), prepared, check_count("k", k), where)

    def _state(self, exact: bool) -> tuple[Snapshot, Graph | None]:
        """Return the snapshot and the graph that a search uses throughout."""
        if exact:
            return self.store.state, None
        view = self._view()
        self._warn_once()
        return view

    def _nearest(
        self, state: Snapshot, graph: Graph | None, queries: Matrix, k: int, where: str | None
    ) -> SearchResult:
        k = min(k, max(1, len(state)))
        listed = allowed(state, where)
        threads = available_cores()
        if graph is not None:
            nearest = approximate(graph, state, listed, queries, k, threads)
        else:
            nearest = scan(state, listed, queries, k, threads)
        if self.space.metric == "euclidean":
            return SearchResult(np.sqrt(np.maximum(-nearest.scores, 0)), nearest.rows)
        return nearest

    def _as_matrix(self, query: Any) -> Matrix:
        return as_floats(f"A query (a text, or {self.space.dim} values)", query)

    def _prepare_queries(self, queries: Matrix) -> Matrix:
        if queries.ndim != 2 or queries.shape[1] != self.space.dim:
            shape = " × ".join(map(str, queries.shape)) or "one number"
            raise FirthError(
                "shape_mismatch",
                "The index has vectors of dimension {dim}; the query has the shape {shape}.",
                dim=self.space.dim,
                shape=shape,
            )
        if not np.isfinite(queries).all():
            raise FirthError("non_finite", "The query contains NaN, infinity, or values beyond float32.")
        lengths = row_lengths(queries)
        if self.space.metric != "cosine":
            check_lengths(lengths, self.space.metric, lambda row: f"the query (number {row + 1})")
            return np.ascontiguousarray(queries)
        if not lengths.all():
            raise zero_query(int(np.argmin(lengths)))
        return np.asarray(queries / lengths[:, None], dtype=np.float32)

    def _embedded(self, texts: Sequence[str], prompt: str | None, prompt_text: str | None) -> Matrix:
        if self.model is None:
            identity = self.store.manifest.get("model")
            hint = f"; the vectors are from {identity['method']}, {identity.get('path')}" if identity else ""
            raise FirthError(
                "missing_model",
                "A text query needs the model that computed the vectors: Index.open(…, model=…){hint}.",
                hint=hint,
            )
        return embedded_queries(self.model, texts, prompt, prompt_text)
