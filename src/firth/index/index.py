"""`Index`: vectors with keys and attributes, searched by nearness, by words, or by both; in memory or in a folder."""

from __future__ import annotations

import os
import threading
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from firth.core.arguments import as_floats, check_choice, check_count
from firth.core.errors import FirthError, FirthWarning
from firth.core.model import HasVectors
from firth.core.run import available_cores
from firth.core.vectors import Matrix, Vectors, row_lengths
from firth.index.graph import Graph, approximate
from firth.index.hits import Hits, fused
from firth.index.lookup import allowed, by_words, hits, zero_query
from firth.index.rows import (
    attribute_table,
    check_identity,
    check_json,
    check_keys,
    check_matrix,
    check_space,
    identity_of,
)
from firth.index.scan import scan
from firth.index.segment import NUMBERS, Segment, Space, check_lengths, make_segment
from firth.index.snapshot import Snapshot
from firth.index.store import Store
from firth.kernels.search import SearchResult

EXACT_NUMBERS = 1 << 28  # from here on `optimize` builds a graph: a look at so many bytes takes a core some 20 ms
FUSED = 100  # how deep the two rankings are looked at that become one
MODES = ("vector", "words", "both")


class Index:
    """Made by `Index.create`, `Index.open` or `Index.of`.

    Every change (`add`, `update`, `delete`, `optimize`) is a commit: whole, or as if it had not been begun. Threads can
    share an `Index`: changes follow each other, and a search sees the last commit before it began.
    """

    def __init__(self, store: Store, model: Any = None) -> None:
        self.store, self.space, self.model = store, store.state.space, model
        self._opening = threading.Lock()  # of the graph; whoever holds it sees graph and commit that belong together
        self._graph: Graph | None = None
        self._graph_record: dict[str, Any] = {}  # of the graph that was opened, or was not worth it
        self._tell = False  # that the graph is not used

    # ---- how it comes to be ----

    @classmethod
    def create(
        cls,
        folder: str | os.PathLike[str] | None = None,
        *,
        dim: int,
        metric: str = "cosine",
        numbers: str = "float32",
        model: Any = None,
        model_path: str | None = None,
        about: Mapping[str, Any] | None = None,
    ) -> Index:
        """An empty index, in a new folder or (None) in memory.

        `numbers`: float32, and with 64 numbers a row and more also bytes, by which a search rules most rows out;
        float16, half the memory; int8, float32 with bytes however narrow the rows are.
        `model`: what makes its vectors; it then takes texts as queries, and another model is refused.
        """
        check_space("Index", dim, metric, numbers, NUMBERS)
        facts = {"model": None if model is None else identity_of(model, model_path), "about": dict(about or {})}
        place = None if folder is None else Path(folder)
        return cls(Store.create(place, Space(dim, metric, numbers), **facts), model)

    @classmethod
    def open(cls, folder: str | os.PathLike[str], model: Any = None) -> Index:
        """The index in a folder, as it was last committed; files are mapped, not read."""
        store = Store.open(Path(folder))
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
        numbers: str = "float32",
    ) -> Index:
        """An index of `Vectors`, or of a model's main table."""
        if not isinstance(source, (Vectors, HasVectors)):
            raise FirthError(
                "invalid_type", "Index.of takes Vectors or a model with vectors; got {got}.", got=type(source).__name__
            )
        vectors = source if isinstance(source, Vectors) else source.vectors
        index = cls.create(folder, dim=vectors.dim, metric=metric, numbers=numbers)
        index.add(vectors.keys, vectors.matrix)
        return index

    def close(self) -> None:
        """Lets another process write."""
        self.store.release()

    def __enter__(self) -> Index:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- what it holds ----

    @property
    def folder(self) -> Path | None:
        return self.store.folder

    def __len__(self) -> int:
        return len(self.store.state)

    @property
    def columns(self) -> dict[str, Any]:
        """The attributes' names and Arrow types."""
        return self.store.state.columns

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.store.state.positions([key]))

    def __getitem__(self, key: str) -> Matrix:
        """The vector of a key."""
        state = self.store.state
        vector: Matrix = state.vectors(np.array([state.position(key)]))[0]
        return vector

    def attributes(self, key: str) -> dict[str, Any]:
        """The attributes of a key."""
        state = self.store.state
        return state.row(state.position(key))[1]

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        return f"Index of {len(self):,} × {self.space.dim} ({self.space.metric}, {self.space.numbers}) {where}"

    # ---- changes ----

    def add(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """New rows; a key that is there already is refused. `attributes`: a data frame, an Arrow table, or lists by
        name; a column `text` is searched for words."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            there = state.positions(keys)
            if there:
                some = ", ".join(map(repr, list(there)[:3]))
                raise FirthError(
                    "duplicate_name",
                    "{n_available:,} keys are in the index already ({examples}); update replaces them.",
                    n_available=len(there),
                    examples=some,
                )
            self.store.commit(self._segment(keys, vectors, attributes))

    def update(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """As `add`; keys that are there already get the new vectors and attributes."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            added = self._segment(keys, vectors, attributes)
            self.store.commit(added, gone=list(state.positions(keys).values()))

    def delete(self, keys: Sequence[str]) -> None:
        """Keys, all of which must be there."""
        keys = check_keys(keys)
        with self.store.writing() as state:
            there = state.positions(keys)
            missing = [key for key in keys if key not in there]
            if missing:
                raise FirthError(
                    "unknown_key",
                    "The index has no key {missing!r} ({n_missing:,} of {n_keys:,} are missing).",
                    missing=missing[0],
                    n_missing=len(missing),
                    n_keys=len(keys),
                )
            self.store.commit(gone=list(there.values()))

    @property
    def about(self) -> dict[str, Any]:
        """What its maker noted; JSON."""
        return dict(self.store.manifest.get("about") or {})

    def note(self, **facts: Any) -> None:
        """Adds to `about`."""
        check_json(facts)
        with self.store.writing():
            self.store.commit(about={**self.about, **facts})

    def optimize(self, approximate: bool | None = None, threads: int = 0) -> None:
        """Makes one segment, without the deleted rows, and builds what searches quickly and approximately (HNSW): from
        268 million numbers on (700,000 rows of 384), or as `approximate` says."""
        threads = available_cores() if type(threads) is int and threads == 0 else check_count("threads", threads)
        with self.store.writing():
            self.store.compact()
            state, known = self._view()
            wanted = state.rows * self.space.dim >= EXACT_NUMBERS if approximate is None else approximate
            if not wanted or not state.rows or (known is not None and known.rows == state.rows):
                return
            if approximate is None and not Graph.available():
                say = f"{state.rows:,} rows are searched exactly. {Graph.needed()}"
                warnings.warn(FirthWarning(say, "missing_package"), stacklevel=2)
                return
            self._build_graph(state, known, threads)

    def _segment(self, keys: list[str], vectors: ArrayLike, attributes: Any) -> Segment:
        matrix = check_matrix(vectors, keys, self.space.dim)
        if self.folder is None and matrix.flags.writeable and np.may_share_memory(matrix, np.asarray(vectors)):
            matrix = matrix.copy()  # what is kept in memory must not change with the caller's array
        if self.space.metric == "cosine":
            zero = np.flatnonzero(~matrix.any(axis=1))
            if len(zero):
                some = f"{len(zero):,} vectors are zero ({keys[zero[0]]!r}, …)"
                warnings.warn(f"{some}: without a direction, cosine never finds them.", FirthWarning, stacklevel=3)
        segments = self.store.state.segments
        return make_segment(
            self.space, matrix, attribute_table(keys, attributes, segments[0].table.schema if segments else None)
        )

    # ---- approximate search ----

    def _build_graph(self, state: Snapshot, known: Graph | None, threads: int) -> None:
        manifest = state.manifest
        graph = Graph.over(state.segments, self.space, known, threads)
        graph.epoch = manifest["epoch"]
        record: dict[str, Any] = {"rows": graph.rows, "epoch": graph.epoch}
        if self.folder:
            record = graph.write(self.folder, f"graph-{manifest['commit'] + 1}.usearch", manifest["id"])
        with self._opening:
            self.store.commit(graph=record)
            self._graph, self._graph_record = graph, record

    def _view(self) -> tuple[Snapshot, Graph | None]:
        """The last commit, and its graph if rows kept their positions since and it was made here."""
        with self._opening:
            state = self.store.state
            record = state.manifest.get("graph")
            if not record or record["epoch"] != state.manifest["epoch"] or record["rows"] > state.rows:
                return state, None
            if self.folder and self._graph_record != record:
                self._graph_record = dict(record)
                self._graph = Graph.read(self.folder, record, state.manifest["id"], self.space)
                self._tell = self._graph is None
            return state, self._graph

    def _tell_once(self) -> None:
        with self._opening:
            tell, self._tell = self._tell, False
        if tell and self.folder:
            file = str(self._graph_record.get("file"))
            why = f"{self.folder / file} is missing, altered or from elsewhere and not used."
            say = f"{why if Graph.available() else Graph.needed()} Search is exact until `optimize` builds it anew."
            warnings.warn(FirthWarning(say, "exact_search"), stacklevel=4)

    # ---- search ----

    @overload
    def search(
        self, query: str, k: int = ..., *, where: str | None = ..., mode: str = ..., exact: bool = ...
    ) -> Hits: ...
    @overload
    def search(
        self, query: Any, k: int = ..., *, where: str | None = ..., mode: str = ..., exact: bool = ...
    ) -> Any: ...
    def search(
        self, query: Any, k: int = 10, *, where: str | None = None, mode: str = "vector", exact: bool = False
    ) -> Hits | list[Hits]:
        """The `k` nearest rows (all, where there are fewer) of a vector or a text; of a matrix or a list of texts, a
        list of them.

        `where` is a condition on attributes: `year >= 2020 and language in ("en", "de")`. `mode`: "vector" by nearness;
        "words" by BM25 over the column text; "both", the two rankings fused. `exact` looks at every row, also where
        there is something quicker.
        """
        check_choice("mode", mode, MODES)
        k = check_count("k", k)
        texts = [query] if isinstance(query, str) else query
        are_texts = isinstance(texts, (list, tuple)) and bool(texts) and all(isinstance(text, str) for text in texts)
        if mode != "vector" and not are_texts:
            raise FirthError(
                "conflicting_options", "mode={mode!r} searches for words: give a text, not a vector.", mode=mode
            )
        state, graph = self._state(exact or mode == "words")
        if mode == "words":
            found = [hits(state, by_words(state, text, k, where)) for text in texts]
            return found[0] if isinstance(query, str) else found
        matrix = self._numbers(self._embedded(texts) if are_texts else query)
        without = np.flatnonzero(~matrix.any(axis=1)).tolist() if are_texts else []
        if mode == "both":  # a text of unknown words is still found by its words
            matrix[without] = 1
        elif without:
            raise zero_query(without[0], len(texts))
        depth = k if mode == "vector" else max(k, FUSED)
        nearest = self._nearest(state, graph, self._queries(np.atleast_2d(matrix)), depth, where)
        rankings = [
            [(row, score) for row, score in zip(rows, scores, strict=True) if row >= 0]
            for rows, scores in zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)
        ]
        if mode == "both":
            for number in without:
                rankings[number] = []
            for number, text in enumerate(texts):
                words = [row for row, _ in by_words(state, text, depth, where)]
                rankings[number] = fused([[row for row, _ in rankings[number]], words], k)
        found = [hits(state, ranking) for ranking in rankings]
        return found[0] if isinstance(query, str) or matrix.ndim == 1 else found

    def find(self, queries: ArrayLike, k: int = 10, *, where: str | None = None, exact: bool = False) -> SearchResult:
        """`search` for arrays: scores and positions (−1 where there are fewer than k), a row a query."""
        asked = self._queries(self._numbers(queries))
        return self._nearest(*self._state(exact), asked, check_count("k", k), where)

    def _state(self, exact: bool) -> tuple[Snapshot, Graph | None]:
        """What a search sees from its beginning to its end."""
        if exact:
            return self.store.state, None
        found = self._view()
        self._tell_once()
        return found

    def _nearest(self, state: Snapshot, graph: Graph | None, asked: Matrix, k: int, where: str | None) -> SearchResult:
        k = min(k, max(1, len(state)))
        listed = allowed(state, where)
        threads = available_cores()
        if graph is not None:
            found = approximate(graph, state, listed, asked, k, threads)
        else:
            found = scan(state, listed, asked, k, threads)
        if self.space.metric == "euclidean":
            return SearchResult(np.sqrt(np.maximum(-found.scores, 0)), found.rows)
        return found

    def _numbers(self, query: Any) -> Matrix:
        return as_floats(f"A query (a text, or {self.space.dim} numbers)", query)

    def _queries(self, asked: Matrix) -> Matrix:
        if asked.ndim != 2 or asked.shape[1] != self.space.dim:
            shape = " × ".join(map(str, asked.shape)) or "one number"
            raise FirthError(
                "shape_mismatch",
                "The index holds vectors of {dim} numbers; the query has the shape {shape}.",
                dim=self.space.dim,
                shape=shape,
            )
        if not np.isfinite(asked).all():
            raise FirthError("non_finite", "The query holds NaN, infinity, or numbers beyond what 32 bits hold.")
        lengths = row_lengths(asked)
        if self.space.metric != "cosine":
            check_lengths(lengths, self.space.metric, lambda row: f"the query (number {row + 1})")
            return np.ascontiguousarray(asked)
        if not lengths.all():
            raise zero_query(int(np.argmin(lengths)), len(asked))
        return np.asarray(asked / lengths[:, None], dtype=np.float32)

    def _embedded(self, texts: Sequence[str]) -> Matrix:
        if self.model is None:
            made = self.store.manifest.get("model")
            by = f"; its vectors were made by {made['method']}, {made.get('path')}" if made else ""
            raise FirthError(
                "missing_model",
                "A text is searched with the model that made the vectors: Index.open(…, model=…){by}.",
                by=by,
            )
        found: Matrix = self.model.embed(list(texts))
        return found
