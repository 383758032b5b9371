"""The document–term matrix: counting, weighting, and models that store it.

The matrix has one row per document and one column per word.
"""

from __future__ import annotations

import os
import tempfile
import time
from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts, Text, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.sparse import SparseVectors, dense, row_sums
from firth.core.storage import saying_where
from firth.core.stored import check_arrays, check_finite, check_texts_of, finite_rows
from firth.core.vectors import Hits, Matrix, Vectors
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels.sparse import CSRMatrix, count_words
from firth.words.word_model import Phrases, TextModel, Texts, WordOptions

TF = ("count", "boolean", "log", "sublinear")
IDF = ("plain", "smooth", "plus_one", "probabilistic", "bm25", "none")
BLOCK_ENTRIES = 1 << 20  # entries weighted at a time
IN_MEMORY = 1 << 28  # bytes; larger arrays are mapped from a temporary file, so that counts need not fit into memory

FloatArray = NDArray[np.float64]


class Weights(NamedTuple):
    """A weighting scheme: term frequency, inverse document frequency and normalization."""

    tf: str
    idf: str
    norm: str
    k1: float = 1.2
    b: float = 0.75


@dataclass(frozen=True, kw_only=True)
class DocumentOptions(WordOptions):
    """Options of methods that count words in documents."""

    limits: ClassVar[tuple[str, ...]] = (
        "A document is a bag of words: word order is ignored.",
        "Words outside the vocabulary are ignored.",
        "Documents without common words have similarity 0, even if they mean the same.",
    )
    distributed: ClassVar[str] = "reading, counting and weighting the documents"
    min_count: int = option(1, "minimum count of a word", low=1)

    @abstractmethod
    def weights(self) -> Weights:
        """Return the weighting of counts."""

    def count(self, data: Any, run: Run, start: Model | None) -> WeightedCorpus:
        """Count and weight the words of the documents of `data`."""
        if start is not None:
            raise FirthError(
                "unsupported_start",
                "{method} cannot continue from a model. Leave out start and train on all documents.",
                method=type(self).__name__,
            )
        started = time.monotonic()
        tokens = self.read(data, run, keys=True)
        lengths = np.diff(tokens.starts).astype(np.float64)
        rows, statistics = weighted_rows(tokens, lengths, self.weights(), run)
        seconds = time.monotonic() - started
        metrics = {
            "tokens": tokens.raw_tokens,
            "vocabulary": len(tokens.vocabulary),
            "documents": len(tokens),
            "empty_documents": int((lengths == 0).sum()),
            "nonzeros": len(rows.columns),
            "seconds": seconds,
            "words_per_second": tokens.raw_tokens / max(seconds, 1e-9),
            "data": tokens.fingerprint,
        }
        return WeightedCorpus(tokens, rows, statistics, metrics)


@dataclass(frozen=True, kw_only=True)
class WeightOptions(DocumentOptions):
    """Options of the weighting."""

    tf: str = option("count", "term frequency: function of a word's count in a document", choices=(*TF, "bm25"))
    idf: str = option(
        "plain", "inverse document frequency: function of the number of documents with the word", choices=IDF
    )
    norm: str = option("l2", "normalization of document vectors to length 1", choices=("l2", "none"))
    k1: float = option(1.2, "saturation of term frequency (tf=bm25)", low=0, high=1000)
    b: float = option(0.75, "strength of length normalization (tf=bm25)", low=0, high=1)

    def weights(self) -> Weights:
        """Return the weighting of counts."""
        return Weights(self.tf, self.idf, self.norm, self.k1, self.b)


class CorpusStatistics(NamedTuple):
    """Corpus statistics for weighting new documents: the idf of words and the mean document length."""

    idf: FloatArray
    average_length: float


class WeightedCorpus(NamedTuple):
    """A corpus as weighted rows, with its statistics."""

    tokens: Tokens
    rows: CSRMatrix
    statistics: CorpusStatistics
    metrics: dict[str, Any]


def allocate(size: int, dtype: Any) -> NDArray[Any]:
    """Return a new array; a large one is mapped from a temporary file, which is deleted with it."""
    if size * np.dtype(dtype).itemsize <= IN_MEMORY:
        return np.empty(size, dtype=dtype)
    folder = Path(tempfile.gettempdir())
    with saying_where(folder):
        file = tempfile.TemporaryFile(dir=folder)  # noqa: SIM115
        if hasattr(os, "posix_fallocate"):  # otherwise writing to the map on a full disk kills the process (SIGBUS)
            os.posix_fallocate(file.fileno(), 0, size * np.dtype(dtype).itemsize)
        return np.memmap(file, dtype=dtype, mode="w+", shape=(size,))


def as_csr(rows: CSRMatrix, words: int) -> Any:
    """Return a scipy.sparse matrix on the same arrays (from 2³¹ entries on, scipy copies the column indices)."""
    from scipy import sparse

    return sparse.csr_matrix((rows.values, rows.columns, rows.starts), shape=(len(rows.starts) - 1, words), copy=False)


def row_blocks(starts: NDArray[np.int64]) -> Iterator[tuple[slice, slice]]:
    """Yield blocks of rows with about BLOCK_ENTRIES entries (at least one row): slices of rows and entries."""
    first = 0
    while first < len(starts) - 1:
        last = max(first + 1, int(np.searchsorted(starts, starts[first] + BLOCK_ENTRIES, side="right")) - 1)
        yield slice(first, last), slice(int(starts[first]), int(starts[last]))
        first = last


def weighted_rows(
    tokens: Tokens, lengths: FloatArray, weights: Weights, run: Run
) -> tuple[CSRMatrix, CorpusStatistics]:
    """Count and weight the words of all documents, whose numbers of words are `lengths`."""
    if run.cluster:
        from firth.documents import shard_rows

        return shard_rows.weighted_rows(tokens, weights, run)
    words = len(tokens.vocabulary)
    rows = count_words(tokens.ids, tokens.starts, words, run.cores, allocate=allocate)
    frequencies = np.zeros(words)
    for _, entries in row_blocks(rows.starts):
        frequencies += np.bincount(rows.columns[entries], minlength=words)
    statistics = CorpusStatistics(inverse_frequencies(frequencies, len(tokens), weights.idf), float(lengths.mean()))
    apply_weights(rows, lengths, weights, *statistics)
    return rows, statistics


def inverse_frequencies(df: FloatArray, documents: float, idf: str) -> FloatArray:
    """Return the idf of each word, computed from the number of documents and the document frequency df."""
    words = len(df)
    if idf == "none":
        return np.ones(words)
    if idf == "smooth":  # as in scikit-learn: as if one more document contained every word
        return np.log((1 + documents) / (1 + df)) + 1
    if idf == "bm25":  # Robertson & Zaragoza 2009, with Lucene's 1 + …, which keeps it positive
        return np.log1p((documents - df + 0.5) / (df + 0.5))
    df = np.maximum(df, 1)  # words in no document have no entries to weight
    if idf == "probabilistic":  # Croft & Harper 1979, clipped at zero
        return np.maximum(0, np.log(np.maximum(documents - df, 1e-300) / df))
    plain = np.log(documents / df)
    return plain + 1 if idf == "plus_one" else plain


def apply_weights(rows: CSRMatrix, lengths: FloatArray, weights: Weights, idf: FloatArray, average: float) -> None:
    """Replace the counts in `rows` by weights, in place. `lengths` are the documents' numbers of words."""
    for documents, entries in row_blocks(rows.starts):
        counts = rows.values[entries].astype(np.float64)
        starts = rows.starts[documents.start : documents.stop + 1] - entries.start
        sizes = np.diff(starts)
        if weights.tf == "boolean":
            counts[:] = 1
        elif weights.tf == "log":
            counts = np.log1p(counts)
        elif weights.tf == "sublinear":
            counts = 1 + np.log(counts)
        elif weights.tf == "bm25":  # Robertson & Zaragoza 2009, eq. 3.15
            length_factor = 1 - weights.b + weights.b * lengths[documents] / max(average, 1e-300)
            counts *= (weights.k1 + 1) / (counts + weights.k1 * np.repeat(length_factor, sizes))
        if weights.idf != "none":
            counts *= idf[rows.columns[entries]]
        if weights.norm == "l2":
            norms = np.sqrt(row_sums(counts**2, starts))
            counts /= np.repeat(np.where(norms == 0, 1, norms), sizes)
        rows.values[entries] = counts


class DocumentModel(TextModel):
    """Base class of models with vectors of words and documents, and statistics for weighting new texts."""

    method: DocumentOptions
    words: Vectors
    documents: Vectors

    def __init__(
        self,
        method: DocumentOptions,
        vocabulary: Vocabulary | Parts,
        statistics: CorpusStatistics,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        self.statistics = statistics

    @property
    def vectors(self) -> Vectors:
        """The word vectors."""
        return self.words

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The word vectors and the document vectors."""
        return {"words": self.words, "documents": self.documents}

    def weighted(self, texts: Texts) -> WeightedTexts:
        """Return new texts (or lists of their tokens) as rows of the matrix, with their known and unknown words."""
        check_texts(texts, lists=True)
        ids, starts, unknown = list[int](), [0], list[int]()
        for text in texts:
            token_ids = [self.vocabulary.id(token) for token in self.tokenize(text)]
            ids += [id for id in token_ids if id is not None]
            unknown.append(len(token_ids) - len(ids) + starts[-1])
            starts.append(len(ids))
        rows = count_words(np.array(ids, dtype=np.int32), np.array(starts, dtype=np.int64), len(self.statistics.idf))
        known = np.diff(starts)
        apply_weights(rows, known.astype(np.float64), self.method.weights(), *self.statistics)
        return WeightedTexts(as_csr(rows, len(self.statistics.idf)), known, np.array(unknown, dtype=np.int64))

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        """Return the documents nearest to a text (or list of its tokens)."""
        return self.documents.neighbors(self.embed([text])[0], k, metric=metric)

    def shared_parts(self) -> Parts:
        """Return the parts that all models of documents store."""
        arrays = {"idf": self.statistics.idf, "average_length": np.array([self.statistics.average_length])}
        keys = {"keys": list(self.documents.keys)}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "documents": keys})

    def __repr__(self) -> str:
        name = type(self.method).__name__
        return f"{name} model: {len(self.documents):,} documents, {len(self.words):,} words"


class WeightedTexts(NamedTuple):
    """New texts as weighted rows, with the numbers of known and unknown words per text."""

    matrix: Any  # scipy.sparse, texts × words
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


def stored_statistics(parts: Parts) -> CorpusStatistics:
    """Return the statistics stored by `shared_parts`, after checking them."""
    check_arrays(parts.arrays, idf="float64 words", average_length="float 1")
    idf, average = parts.arrays["idf"], parts.arrays["average_length"]
    check_finite({"idf": idf, "average_length": average})
    return CorpusStatistics(np.asarray(idf), float(average[0]))


def stored_keys(parts: Parts, name: str = "documents") -> Callable[[], Sequence[str]]:
    """Return a function that reads the keys of documents, called at their first use."""

    def keys() -> Sequence[str]:
        with parts.reading():
            return check_texts_of(parts.documents[name]["keys"], f"keys of {name}.json")

    return keys


class SparseModel(DocumentModel):
    """The weighted matrix: `documents` are its rows, `words` its columns."""

    def __init__(
        self,
        method: DocumentOptions,
        vocabulary: Vocabulary | Parts,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        rows: CSRMatrix,
        statistics: CorpusStatistics,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, statistics, training, phrases)
        self._keys, self.rows = keys, rows

    @cached_property
    def documents(self) -> SparseVectors:  # type: ignore[override]
        """The documents as sparse vectors, one column per word."""
        check_rows(self.rows, len(self.statistics.idf))
        return SparseVectors(self._keys, as_csr(self.rows, len(self.statistics.idf)))

    @cached_property
    def words(self) -> SparseVectors:  # type: ignore[override]
        """The words as sparse vectors, one column per document; transposed at the first use."""
        return SparseVectors(self._tokens, self.matrix.T.tocsr(), missing=self._missing_reason)

    @property
    def matrix(self) -> Any:
        """The scipy.sparse matrix, documents × words."""
        return self.documents.sparse

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        """Keys of the rows and columns of `matrix`."""
        return self.documents.keys, self.words.keys

    def transform(self, texts: Texts) -> Any:
        """Return new texts as rows of the matrix (scipy.sparse); `weighted` also counts unknown words."""
        return self.weighted(texts).matrix

    def embed_with_counts(self, texts: Texts) -> EmbeddedTexts:
        """Return `transform` as a dense matrix, if that fits into memory."""
        weighted = self.weighted(texts)
        return EmbeddedTexts(finite_rows(dense(weighted.matrix), "Text"), weighted.known, weighted.unknown)

    def _embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[Matrix]:
        """Keep all batches sparse until the total is known, which `dense` refuses if it is too large."""
        from scipy import sparse

        parts = [self.weighted(batch).matrix for batch in batches]
        if parts:
            yield finite_rows(dense(sparse.vstack(parts, format="csr")), "Text")

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        """Return the documents nearest to a text (or list of its tokens)."""
        return self.documents.neighbors(self.transform([text]), k, metric=metric)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        shared = self.shared_parts()
        return Parts({**shared.arrays, **self.rows._asdict()}, shared.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> SparseModel:
        """Return the model from stored parts, after checking their shapes."""
        assert isinstance(method, DocumentOptions)
        sizes = check_arrays(parts.arrays, starts="int64 rows+1", columns="int32 entries", values="float32 entries")
        if sizes["rows"] < 0:
            raise FirthError("damaged_model", "The array {name} is empty.", name="starts")
        rows = CSRMatrix(*(parts.arrays[name] for name in CSRMatrix._fields))
        return cls(method, parts, stored_keys(parts), rows, stored_statistics(parts), training)


def check_rows(rows: CSRMatrix, words: int) -> None:
    """Raise an error if a stored matrix is inconsistent; called at the first use, because opening reads nothing."""
    starts, columns = rows.starts, rows.columns
    valid = starts[0] == 0 and starts[-1] == len(columns) == len(rows.values) and (starts[:-1] <= starts[1:]).all()
    if not valid or (len(columns) and not 0 <= int(columns.min()) <= int(columns.max()) < words):
        raise FirthError(
            "damaged_model",
            "The matrix is damaged: {name} must be increasing, and columns from 0 to {last:,}.",
            name="starts",
            last=words - 1,
        )
    check_finite({"values": rows.values})


def fit_sparse(method: DocumentOptions, data: Any, run: Run, start: Model | None) -> SparseModel:
    """Train a method whose model is the weighted matrix itself."""
    counted = method.count(data, run, start)
    tokens = counted.tokens
    trained_method = method.as_trained(tokens.splitting, tokens.vocabulary, run)
    return SparseModel(
        trained_method,
        tokens.vocabulary,
        tokens.keys,
        counted.rows,
        counted.statistics,
        counted.metrics,
        tokens.phrases,
    )
