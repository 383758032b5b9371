"""Documents and the words in them: the counted matrix, its weights, and the models that keep it.

The matrix has a row a document and a column a word; turned round it is the words by their documents.
"""

from __future__ import annotations

import os
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.sparse import SparseVectors, dense, row_sums
from firth.core.storage import saying_where
from firth.core.stored import check_arrays, check_finite, check_texts_of, finite_rows
from firth.core.vectors import Hits, Vectors
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels.sparse import Rows, count_words
from firth.words.word_model import Phrases, Pooled, TextModel, Texts, WordOptions, check_texts

TF = ("count", "boolean", "log", "sublinear")
IDF = ("plain", "smooth", "plus_one", "probabilistic", "bm25", "none")
STRETCH = 1 << 20  # entries that are weighed at a time
IN_MEMORY = 1 << 28  # bytes; a longer array is mapped from a temporary file, so that counts need not fit into memory

Numbers = NDArray[np.float64]


class Weights(NamedTuple):
    """How counts become weights: a function of the count, times one of the word, then a length for the row."""

    tf: str
    idf: str
    norm: str
    k1: float = 1.2
    b: float = 0.75


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(WordOptions):
    """How text becomes documents of words."""

    min_count: int = option(1, "words that occur less often are left out", low=1)

    @abstractmethod
    def weights(self) -> Weights:
        """How counts are weighed."""

    def count(self, data: Any, run: Run, start: Model | None) -> Counted:
        """The documents of `data`, counted and weighed."""
        name = type(self).__name__
        if start is not None:
            raise FirthError(
                "unsupported_start",
                "{name} counts all documents at once and can't go on from a model; leave start out.",
                name=name,
            )
        began = time.monotonic()
        tokens = self.read(data, run, keys=True)
        rows = count_words(tokens.ids, tokens.starts, len(tokens.vocabulary), run.cores, allocate=room)
        lengths = np.diff(tokens.starts).astype(np.float64)
        idf = inverse_frequencies(rows, len(tokens.vocabulary), self.weights().idf)
        average = float(lengths.mean())
        weigh(rows, lengths, self.weights(), idf, average)
        seconds = time.monotonic() - began
        figures = {
            "tokens": tokens.raw_tokens,
            "vocabulary": len(tokens.vocabulary),
            "documents": len(tokens),
            "empty_documents": int((lengths == 0).sum()),
            "nonzeros": len(rows.columns),
            "seconds": seconds,
            "words_per_second": tokens.raw_tokens / max(seconds, 1e-9),
            "data": tokens.fingerprint,
        }
        return Counted(tokens, rows, Scale(idf, average), figures)


@dataclass(frozen=True, kw_only=True)
class WeightOptions(DocumentOptions):
    """How counts become weights."""

    tf: str = option("count", "what a word's count in a document becomes", choices=(*TF, "bm25"))
    idf: str = option("plain", "what a word weighs by how many documents hold it", choices=IDF)
    norm: str = option("l2", "each document's vector has length 1, or stays as it is", choices=("l2", "none"))
    k1: float = option(1.2, "how soon further occurrences stop counting (tf=bm25)", low=0, high=1000)
    b: float = option(0.75, "how much long documents are held back (tf=bm25)", low=0, high=1)

    def weights(self) -> Weights:
        return Weights(self.tf, self.idf, self.norm, self.k1, self.b)


class Scale(NamedTuple):
    """What new documents are weighed by: the words' idf and the mean length of the documents that were counted."""

    idf: Numbers
    average: float


class Counted(NamedTuple):
    """A corpus as weighed rows, with what the model needs besides."""

    tokens: Tokens
    rows: Rows
    scale: Scale
    figures: dict[str, Any]


def room(size: int, kind: Any) -> NDArray[Any]:
    """An array, in a file that disappears with it if it is long."""
    if size * np.dtype(kind).itemsize <= IN_MEMORY:
        return np.empty(size, dtype=kind)
    folder = Path(tempfile.gettempdir())
    with saying_where(folder):
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        if hasattr(os, "posix_fallocate"):  # or a full disk kills whoever writes to the map (SIGBUS)
            os.posix_fallocate(file.fileno(), 0, size * np.dtype(kind).itemsize)
        return np.memmap(file, dtype=kind, mode="w+", shape=(size,))


def as_csr(rows: Rows, words: int) -> Any:
    """A scipy.sparse matrix on the same arrays (beyond 2³¹ entries scipy makes its own, wider column numbers)."""
    from scipy import sparse

    return sparse.csr_matrix((rows.values, rows.columns, rows.starts), shape=(len(rows.starts) - 1, words), copy=False)


def stretches(starts: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Rows with about STRETCH entries (at least one row), and their entries."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + STRETCH, side="right")) - 1)
        yield slice(first, last), slice(int(starts[first]), int(starts[last]))
        first = last


def inverse_frequencies(rows: Rows, words: int, name: str) -> Numbers:
    """Each word's weight from N, the number of documents, and df, how many of them hold the word."""
    documents = float(len(rows.starts) - 1)
    df = np.zeros(words)
    for _, part in stretches(rows.starts):
        df += np.bincount(rows.columns[part], minlength=words)
    if name == "none":
        return np.ones(words)
    if name == "smooth":  # scikit-learn: as if one document more held every word
        return np.log((1 + documents) / (1 + df)) + 1
    if name == "bm25":  # Robertson & Zaragoza 2009, with Lucene's 1 + … that keeps it above zero
        return np.log1p((documents - df + 0.5) / (df + 0.5))
    df = np.maximum(df, 1)  # words of the vocabulary that no document holds weigh nothing anyway
    if name == "probabilistic":  # Croft & Harper 1979, not below zero
        return np.maximum(0, np.log(np.maximum(documents - df, 1e-300) / df))
    plain = np.log(documents / df)
    return plain + 1 if name == "plus_one" else plain


def weigh(rows: Rows, lengths: Numbers, weights: Weights, idf: Numbers, average: float) -> None:
    """Counts in `rows` become weights, in place. `lengths` are the documents' numbers of words."""
    for documents, part in stretches(rows.starts):
        counts = rows.values[part].astype(np.float64)
        starts = rows.starts[documents.start : documents.stop + 1] - part.start
        sizes = np.diff(starts)
        if weights.tf == "boolean":
            counts[:] = 1
        elif weights.tf == "log":
            counts = np.log1p(counts)
        elif weights.tf == "sublinear":
            counts = 1 + np.log(counts)
        elif weights.tf == "bm25":  # Robertson & Zaragoza 2009, eq. 3.15
            longer = 1 - weights.b + weights.b * lengths[documents] / max(average, 1e-300)
            counts *= (weights.k1 + 1) / (counts + weights.k1 * np.repeat(longer, sizes))
        if weights.idf != "none":
            counts *= idf[rows.columns[part]]
        if weights.norm == "l2":
            norms = np.sqrt(row_sums(counts**2, starts))
            counts /= np.repeat(np.where(norms == 0, 1, norms), sizes)
        rows.values[part] = counts


class DocumentModel(TextModel):
    """What every model of documents keeps: words, documents, and how new texts are weighed."""

    method: DocumentOptions
    words: Vectors
    documents: Vectors

    def __init__(
        self,
        method: DocumentOptions,
        vocabulary: Vocabulary | Parts,
        scale: Scale,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        self.scale = scale

    @property
    def vectors(self) -> Vectors:
        return self.words

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return {"words": self.words, "documents": self.documents}

    def weighed(self, texts: Texts) -> Weighed:
        """New texts (or lists of their tokens) as rows of the matrix, with how many of their words it knows."""
        check_texts(texts, lists=True)
        ids, starts, unknown = list[int](), [0], list[int]()
        for text in texts:
            found = [self.vocabulary.id(token) for token in self.tokenize(text)]
            ids += [id for id in found if id is not None]
            unknown.append(len(found) - len(ids) + starts[-1])
            starts.append(len(ids))
        rows = count_words(np.array(ids, dtype=np.int32), np.array(starts, dtype=np.int64), len(self.scale.idf))
        known = np.diff(starts)
        weigh(rows, known.astype(np.float64), self.method.weights(), *self.scale)
        return Weighed(as_csr(rows, len(self.scale.idf)), known, np.array(unknown, dtype=np.int64))

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        """The documents nearest to a text (or to a list of its tokens), which need not be one of them."""
        return self.documents.neighbors(self.embed([text])[0], k, metric=metric)

    def shared_parts(self) -> Parts:
        arrays = {"idf": self.scale.idf, "average_length": np.array([self.scale.average])}
        keys = {"keys": list(self.documents.keys)}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "documents": keys})

    def __repr__(self) -> str:
        name = type(self.method).__name__
        return f"{name} model: {len(self.documents):,} documents, {len(self.words):,} words"


class Weighed(NamedTuple):
    """New texts as rows, with how many words of each were known."""

    matrix: Any  # scipy.sparse, texts × words
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


def stored_scale(parts: Parts) -> Scale:
    """The inverse of `shared_parts`, checked."""
    check_arrays(parts.arrays, idf="float64 words", average_length="float 1")
    idf, average = parts.arrays["idf"], parts.arrays["average_length"]
    check_finite({"idf": idf, "average_length": average})
    return Scale(np.asarray(idf), float(average[0]))


def stored_keys(parts: Parts, name: str = "documents") -> Callable[[], Sequence[str]]:
    """The documents' keys, read at their first use."""

    def keys() -> Sequence[str]:
        with parts.reading():
            return check_texts_of(parts.documents[name]["keys"], f"keys of {name}.json")

    return keys


class SparseModel(DocumentModel):
    """The weighed matrix itself, from both sides: `documents` by their words and `words` by their documents."""

    def __init__(
        self,
        method: DocumentOptions,
        vocabulary: Vocabulary | Parts,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        rows: Rows,
        scale: Scale,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, scale, training, phrases)
        self._keys, self.rows = keys, rows

    @cached_property
    def documents(self) -> SparseVectors:  # type: ignore[override]
        """A row a document, a column a word."""
        check_rows(self.rows, len(self.scale.idf))
        return SparseVectors(self._keys, as_csr(self.rows, len(self.scale.idf)))

    @cached_property
    def words(self) -> SparseVectors:  # type: ignore[override]
        """A row a word, a column a document: `documents` turned round, at the first use."""
        return SparseVectors(self._tokens, self.matrix.T.tocsr(), missing=self._why_missing)

    @property
    def matrix(self) -> Any:
        """scipy.sparse, documents × words."""
        return self.documents.sparse

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.documents.keys, self.words.keys

    def transform(self, texts: Texts) -> Any:
        """New texts as rows of the matrix (scipy.sparse); `weighed` also tells how many words are unknown."""
        return self.weighed(texts).matrix

    def pool(self, texts: Texts) -> Pooled:
        """`transform` with its zeros written out, where that fits into memory."""
        found = self.weighed(texts)
        return Pooled(finite_rows(dense(found.matrix), "Text"), found.known, found.unknown)

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        return self.documents.neighbors(self.transform([text]), k, metric=metric)

    def parts(self) -> Parts:
        shared = self.shared_parts()
        return Parts({**shared.arrays, **self.rows._asdict()}, shared.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> SparseModel:
        assert isinstance(method, DocumentOptions)
        sizes = check_arrays(parts.arrays, starts="int64 rows+1", columns="int32 entries", values="float32 entries")
        if sizes["rows"] < 0:
            raise FirthError("damaged_model", "The array starts is empty.")
        rows = Rows(*(parts.arrays[name] for name in Rows._fields))
        return cls(method, parts, stored_keys(parts), rows, stored_scale(parts), training)


def check_rows(rows: Rows, words: int) -> None:
    """Refuses a matrix from a file whose numbers lead outside of it. At the first use: opening reads nothing."""
    starts, columns = rows.starts, rows.columns
    right = starts[0] == 0 and starts[-1] == len(columns) == len(rows.values) and (starts[:-1] <= starts[1:]).all()
    if not right or (len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < words):
        raise FirthError(
            "damaged_model", "The matrix of counts is broken: its starts must rise and its columns be words."
        )
    check_finite({"values": rows.values})


def fit_sparse(method: DocumentOptions, data: Any, run: Run, start: Model | None) -> SparseModel:
    """The whole of learning for methods that keep the matrix as it is."""
    counted = method.count(data, run, start)
    tokens = counted.tokens
    kept = method.as_trained(tokens.splitting, tokens.vocabulary, run)
    return SparseModel(
        kept, tokens.vocabulary, tokens.keys, counted.rows, counted.scale, counted.figures, tokens.phrases
    )
