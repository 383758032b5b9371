"""`Index`: vectors with keys and attributes, searched by nearness, by words, or by both; in memory or in a folder."""

from __future__ import annotations

import os
import warnings
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, overload

import numpy as np
from numpy.typing import ArrayLike

from firth.core.errors import FirthError, FirthWarning
from firth.core.model import HasVectors
from firth.core.run import available_cores
from firth.core.vectors import METRICS, Matrix, Vectors, row_lengths, top_rows
from firth.index.graph import Graph, approximate
from firth.index.hits import Hit, Hits, fused
from firth.index.rows import attribute_table, check_identity, check_keys, check_matrix, identity_of
from firth.index.scan import scan
from firth.index.segment import KEY, NUMBERS, TEXT, Positions, Segment, Space, make_segment
from firth.index.store import Store
from firth.index.where import mask, parse
from firth.index.words import Searched, bm25
from firth.kernels.search import Found

EXACT_NUMBERS = 1 << 28  # from here on `optimize` builds a graph: a look at so many bytes takes a core some 20 ms
FUSED = 100  # how deep the two rankings are looked at that become one
MODES = ("vector", "words", "both")


class Index:
    """Made by `Index.create`, `Index.open` or `Index.of`.

    Every change (`add`, `update`, `delete`, `optimize`) is a commit: whole, or as if it had not been begun.
    """

    def __init__(self, store: Store, model: Any = None) -> None:
        self.store, self.space, self.model = store, store.space, model
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
        if type(dim) is not int or dim < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got!r}.", option="Index.dim", got=dim)
        if metric not in METRICS or numbers not in NUMBERS:
            rule = f"metric must be one of {', '.join(METRICS)} and numbers one of {', '.join(NUMBERS)}"
            raise FirthError(
                "invalid_value", "Index: {rule}; got {got!r} and {numbers!r}.", rule=rule, got=metric, numbers=numbers
            )
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
        return self.store.rows - len(self.store.deleted)

    @property
    def columns(self) -> dict[str, Any]:
        """The attributes' names and Arrow types."""
        schema = self.store.segments[0].table.schema if self.store.segments else ()
        return {column.name: column.type for column in schema if column.name != KEY}

    def __contains__(self, key: object) -> bool:
        return isinstance(key, str) and bool(self.store.positions([key]))

    def __getitem__(self, key: str) -> Matrix:
        """The vector of a key."""
        vector: Matrix = self.store.vectors(np.array([self.store.position(key)]))[0]
        return vector

    def attributes(self, key: str) -> dict[str, Any]:
        """The attributes of a key."""
        return self.store.row(self.store.position(key))[1]

    def __repr__(self) -> str:
        where = "in memory" if self.folder is None else f"in {self.folder}"
        return f"Index of {len(self):,} × {self.space.dim} ({self.space.metric}, {self.space.numbers}) {where}"

    # ---- changes ----

    def add(self, keys: Sequence[str], vectors: ArrayLike, attributes: Any = None) -> None:
        """New rows; a key that is there already is refused. `attributes`: a data frame, an Arrow table, or lists by
        name; a column `text` is searched for words."""
        keys = check_keys(keys)
        self.store.write()
        there = self.store.positions(keys)
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
        self.store.write()
        added = self._segment(keys, vectors, attributes)
        self.store.commit(added, gone=list(self.store.positions(keys).values()))

    def delete(self, keys: Sequence[str]) -> None:
        """Keys, all of which must be there."""
        keys = check_keys(keys)
        self.store.write()
        there = self.store.positions(keys)
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
        self.store.write()
        self.store.commit(about={**self.about, **facts})

    def optimize(self, approximate: bool | None = None, threads: int = 0) -> None:
        """Makes one segment, without the deleted rows, and builds what searches quickly and approximately (HNSW): from
        268 million numbers on (700,000 rows of 384), or as `approximate` says."""
        self.store.write()
        self.store.compact()
        rows = self.store.rows
        wanted = rows * self.space.dim >= EXACT_NUMBERS if approximate is None else approximate
        known = self._open_graph()
        if not wanted or (known is not None and known.rows == rows):
            return
        if approximate is None and not Graph.available():
            say = f"{rows:,} rows are searched exactly. {Graph.needed()}"
            warnings.warn(FirthWarning(say, "missing_package"), stacklevel=2)
            return
        self._build_graph(known, threads or available_cores())

    def _segment(self, keys: list[str], vectors: ArrayLike, attributes: Any) -> Segment:
        matrix = check_matrix(vectors, keys, self.space.dim)
        if self.folder is None and matrix.flags.writeable and np.may_share_memory(matrix, np.asarray(vectors)):
            matrix = matrix.copy()  # what is kept in memory must not change with the caller's array
        if self.space.metric == "cosine":
            zero = np.flatnonzero(~matrix.any(axis=1))
            if len(zero):
                some = f"{len(zero):,} vectors are zero ({keys[zero[0]]!r}, …)"
                warnings.warn(f"{some}: without a direction, cosine never finds them.", FirthWarning, stacklevel=3)
        schema = self.store.segments[0].table.schema if self.store.segments else None
        return make_segment(self.space, matrix, attribute_table(keys, attributes, schema))

    # ---- approximate search ----

    def _build_graph(self, known: Graph | None, threads: int) -> None:
        manifest = self.store.manifest
        graph = Graph.over(self.store.segments, self.space, known, threads)
        graph.epoch = manifest["epoch"]
        record: dict[str, Any] = {"rows": graph.rows, "epoch": graph.epoch}
        if self.folder:
            record = graph.write(self.folder, f"graph-{manifest['commit'] + 1}.usearch", manifest["id"])
        self.store.commit(graph=record)
        self._graph, self._graph_record = graph, record

    def _open_graph(self) -> Graph | None:
        """The graph, if rows kept their positions since and it was made here; else it is not opened."""
        record = self.store.manifest.get("graph")
        if not record or record["epoch"] != self.store.manifest["epoch"]:
            return None
        if self.folder and self._graph_record != record:
            self._graph_record = dict(record)
            self._graph = Graph.read(self.folder, record, self.store.manifest["id"], self.space)
            self._tell = self._graph is None
        return self._graph

    def _tell_once(self) -> None:
        if self._tell and self.folder:
            self._tell = False
            why = f"{self.folder / self._graph_record['file']} is missing, altered or from elsewhere and not used"
            why = why if Graph.available() else str(Graph.needed()).rstrip(".")
            say = f"{why}; search is exact until `optimize` builds it anew."
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
        if mode not in MODES:
            raise FirthError(
                "invalid_value",
                "{option} must be one of {choices}; got {got!r}.",
                option="mode",
                choices=", ".join(MODES),
                got=mode,
            )
        if k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="k", got=k)
        texts = [query] if isinstance(query, str) else query
        are_texts = isinstance(texts, (list, tuple)) and bool(texts) and isinstance(texts[0], str)
        if mode != "vector" and not are_texts:
            raise FirthError(
                "conflicting_options", "mode={mode!r} searches for words: give a text, not a vector.", mode=mode
            )
        if mode == "words":
            found = [self._hits(self._by_words(text, k, where)) for text in texts]
            return found[0] if isinstance(query, str) else found
        matrix = self._embedded(texts) if are_texts else self._numbers(query)
        without = np.flatnonzero(~matrix.any(axis=1)).tolist() if are_texts else []
        if mode == "both":  # a text of unknown words is still found by its words
            matrix[without] = 1
        elif without:
            raise zero_query(without[0], len(texts))
        depth = k if mode == "vector" else max(k, FUSED)
        nearest = self.find(np.atleast_2d(matrix), depth, where=where, exact=exact)
        rankings = [
            [(row, score) for row, score in zip(rows, scores, strict=True) if row >= 0]
            for rows, scores in zip(nearest.rows.tolist(), nearest.scores.tolist(), strict=True)
        ]
        if mode == "both":
            for number in without:
                rankings[number] = []
            for number, text in enumerate(texts):
                words = [row for row, _ in self._by_words(text, depth, where)]
                rankings[number] = fused([[row for row, _ in rankings[number]], words], k)
        found = [self._hits(ranking) for ranking in rankings]
        return found[0] if isinstance(query, str) or matrix.ndim == 1 else found

    def find(self, queries: ArrayLike, k: int = 10, *, where: str | None = None, exact: bool = False) -> Found:
        """`search` for arrays: scores and positions (−1 where there are fewer than k), a row a query."""
        asked = self._queries(queries)
        if k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="k", got=k)
        k = min(k, max(1, len(self)))
        listed = self._listed(where)
        graph = None if exact else self._open_graph()
        if not exact:
            self._tell_once()
        threads = available_cores()
        if graph is not None:
            found = approximate(graph, self.store, listed, asked, k, threads)
        else:
            found = scan(self.store, listed, asked, k, threads)
        if self.space.metric == "euclidean":
            return Found(np.sqrt(np.maximum(-found.scores, 0)), found.rows)
        return found

    def _numbers(self, query: Any) -> Matrix:
        try:
            with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite and is refused as that
                return np.ascontiguousarray(query, dtype=np.float32)
        except (TypeError, ValueError) as error:
            raise FirthError(
                "invalid_type", "A query is a text, or {dim} numbers: {reason}.", dim=self.space.dim, reason=str(error)
            ) from None

    def _queries(self, queries: ArrayLike) -> Matrix:
        asked = self._numbers(queries)
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
        if self.space.metric != "cosine":
            return asked
        lengths = row_lengths(asked)
        if not lengths.all():
            raise zero_query(int(np.argmin(lengths)), len(asked))
        return np.asarray(asked / lengths[:, None], dtype=np.float32)

    def _embedded(self, texts: Sequence[str]) -> Matrix:
        if self.model is None:
            made = self.store.manifest.get("model")
            by = f"; its vectors were made by {made['method']}, {made['path']}" if made else ""
            raise FirthError(
                "missing_model",
                "A text is searched with the model that made the vectors: Index.open(…, model=…){by}.",
                by=by,
            )
        found: Matrix = self.model.embed(list(texts))
        return found

    def _listed(self, where: str | None) -> list[Positions | None]:
        """For each segment the rows that may be found; None for all."""
        if where is None:
            return [self.store.living(number) for number in range(len(self.store.segments))]
        condition = parse(where, [KEY, *self.columns])
        listed: list[Positions | None] = []
        for number, segment in enumerate(self.store.segments):
            true, alive = mask(condition, segment.table), self.store.alive(number)
            listed.append(np.flatnonzero(true if alive is None else true & alive))
        return listed

    def _by_words(self, text: str, k: int, where: str | None) -> list[tuple[int, float]]:
        """Positions by BM25, best first; those without any word of the text are none."""
        if self.store.segments and self.store.segments[0].terms is None:
            raise FirthError(
                "unknown_column",
                "The index has no column {text!r} to search for words; mode='vector' needs none.",
                text=TEXT,
            )
        parts = [
            Searched(segment.arrays, segment.terms, self.store.alive(number))
            for number, segment in enumerate(self.store.segments)
        ]
        scores = [np.zeros(0, dtype=np.float32), *bm25(parts, text)]
        for own, rows in zip(scores[1:], self._listed(where), strict=True):
            if rows is not None:
                kept = own[rows]
                own[:] = 0
                own[rows] = kept
        every = np.concatenate(scores)
        return [(int(row), float(every[row])) for row in top_rows(every, k) if every[row] > 0]

    def _hits(self, ranking: Sequence[tuple[int, float]]) -> Hits:
        found = Hits()
        for position, score in ranking:
            key, attributes = self.store.row(position)
            found.append(Hit(key, score, attributes))
        return found


def zero_query(place: int, queries: int) -> FirthError:
    which = f" (number {place + 1})" if queries > 1 else ""
    return FirthError(
        "zero_vector",
        "The query{which} is a zero vector, which has no direction: no word of it may be known.",
        which=which,
    )
