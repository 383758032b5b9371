"""Doc2Vec (Le & Mikolov 2014): training, model and inference.

Each document and each tag has an input row after the rows of the words. It takes part in all windows of the document.
The update is implemented in `kernels/predict.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import cached_property
from itertools import chain
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts, check_texts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.run import Run, available_cores
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Hits, Matrix, Vectors
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.documents.document_matrix import stored_keys
from firth.kernels import predict as kernel
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.words.window_training import Training, random_table
from firth.words.word_model import Phrases, TextModel, Texts

if TYPE_CHECKING:
    from firth.documents.doc2vec import Doc2Vec

GROUP = 4  # tokens that share negative samples with mode=dbow
# Initial learning rate of inference, as a share of that of training: output vectors are trained already. With this
# share, a probe on held-out texts was one point more accurate than with the full rate (benchmarks/LOG.md).
INFER_SHARE = 0.5


class RowAssignment(NamedTuple):
    """Rows of documents and tags, which follow the rows of words."""

    documents: list[str]
    tags: list[str]
    lists: kernel.Lists  # rows of each text's document and tags, counted from the first document row

    @property
    def rows(self) -> int:
        """The number of rows of documents and tags."""
        return len(self.documents) + len(self.tags)


def assign_rows(tokens: Tokens, start: Doc2VecModel | None, run: Run) -> RowAssignment:
    """Assign one row to each key and each tag, those of `start` first. Texts with the same key share a row."""
    start_documents, start_tags = (start.documents.keys, start.tags.keys) if start else ((), ())
    documents, tags = ({key: row for row, key in enumerate(keys)} for keys in (start_documents, start_tags))
    document_rows = np.array([documents.setdefault(key, len(documents)) for key in tokens.keys], dtype=np.int32)
    repeated = len(tokens) - (len(documents) - len(start_documents))
    if repeated:
        owner = "another text or a document of start" if start else "another text"
        run.report.note(
            f"{repeated:,} of {len(tokens):,} texts have the key of {owner}. Texts with the same key share a vector.",
            code="shared_keys",
        )
    sizes = np.fromiter(map(len, tokens.tags), np.int64) if tokens.tags else np.zeros(len(tokens), np.int64)
    if sizes.max() >= kernel.MAX_TAGS:
        largest = int(sizes.argmax())
        raise FirthError(
            "too_large",
            "A document can have at most {most_tags} tags; {key!r} has {size:,}.",
            most_tags=kernel.MAX_TAGS - 1,
            key=tokens.keys[largest],
            size=sizes[largest],
        )
    tag_rows = [tags.setdefault(tag, len(tags)) for tag in chain.from_iterable(tokens.tags)]
    starts = np.concatenate([[0], np.cumsum(sizes + 1)])
    rows = np.empty(starts[-1], dtype=np.int32)
    is_document = np.zeros(len(rows), dtype=bool)
    is_document[starts[:-1]] = True
    rows[is_document], rows[~is_document] = document_rows, np.array(tag_rows, dtype=np.int32) + len(documents)
    return RowAssignment(list(documents), list(tags), kernel.Lists(starts, rows))


class DocumentTraining(Training):
    """Training loop with input rows for documents and tags."""

    method: Doc2Vec

    def __init__(
        self, method: Doc2Vec, tokens: Tokens, run: Run, layout: RowAssignment, start: Doc2VecModel | None
    ) -> None:
        self.layout = layout
        super().__init__(method, tokens, run, start)
        digest = hashlib.sha256(repr((tokens.fingerprint, layout.documents, layout.tags)).encode("utf-8", "replace"))
        digest.update(layout.lists.rows.tobytes())
        self.fingerprint = digest.hexdigest()  # a checkpoint with other keys or tags belongs to another run

    def first_tables(self, start: TextModel | None) -> tuple[kernel.Table, kernel.Table]:
        """Return initial tables as for words; with `start`, also the vectors of its documents and tags."""
        words, dim = len(self.tokens.vocabulary), self.method.dim
        inputs = random_table(words + self.layout.rows, dim, self.run.seed)
        outputs = output_table(self.method, words)
        if isinstance(start, Doc2VecModel):
            tags = words + len(self.layout.documents)
            for first, table in ((0, start.words), (words, start.documents), (tags, start.tags)):
                if table is not None:
                    inputs[first : first + len(table), :dim] = table.matrix
            # Nodes of a Huffman tree cannot be reused in another tree.
            if self.method.loss == start.method.loss == "negative":
                fill_padded(outputs, start.outputs, dim)
        return inputs, outputs

    def task(self) -> kernel.Task:
        """Return the kernel's arguments, with the rows of documents and tags."""
        starts, rows = self.layout.lists
        return replace(super().task(), tags=kernel.Lists(starts, rows + np.int32(len(self.tokens.vocabulary))))

    def result(self, start: Doc2VecModel | None) -> tuple[Matrix, Matrix, Matrix]:
        """Return the rows of words, documents and tags. Documents and tags without any known word are zero."""
        words, dim = len(self.tokens.vocabulary), self.method.dim
        starts, rows = self.layout.lists
        trained = np.zeros(self.layout.rows, dtype=bool)
        trained[rows[np.repeat(np.diff(self.tokens.starts) > 0, np.diff(starts))]] = True
        documents = len(self.layout.documents)
        if start is not None:
            trained[: len(start.documents)] = True
            trained[documents : documents + len(start.tags)] = True
        self.inputs[words:][~trained] = 0
        parts = np.split(self.inputs[:, :dim], [words, words + documents])
        return parts[0].copy(), parts[1].copy(), parts[2].copy()


def output_table(method: Doc2Vec, words: int) -> kernel.Table:
    """Return a table of zeros with one row per word or inner node, as wide as the concatenated inputs."""
    rows = words - 1 if method.loss == "hierarchical" else words
    return kernel.new_table(rows, method.n_concatenated * kernel.padded(method.dim))


def fill_padded(table: kernel.Table, rows: Matrix, dim: int) -> None:
    """Copy rows of count × dim numbers into the first rows of a padded table."""
    count = rows.shape[1] // dim
    table[: len(rows)].reshape(len(rows), count, -1)[:, :, :dim] = rows.reshape(len(rows), count, dim)


def without_padding(table: kernel.Table, count: int, dim: int) -> Matrix:
    """Return the rows without padding: the inverse of `fill_padded`."""
    return np.ascontiguousarray(table.reshape(len(table), count, -1)[:, :, :dim]).reshape(len(table), count * dim)


class Doc2VecModel(TextModel):
    """Vectors of `documents` and `tags`, and of `words` if they were trained (else None).

    `outputs` are the output vectors with which words are predicted.
    """

    method: Doc2Vec

    def __init__(
        self,
        method: Doc2Vec,
        vocabulary: Vocabulary | Parts,
        documents: Vectors,
        tags: Vectors,
        words: Matrix | None,
        outputs: Matrix,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        self.documents, self.tags, self.outputs = documents, tags, outputs
        self.words = None if words is None else Vectors(self._tokens, words, missing=self._missing_reason)

    @property
    def vectors(self) -> Vectors:
        """The document vectors."""
        return self.documents

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """Document vectors, and vectors of tags and words if there are any.

        `contexts` are the output vectors of words: the larger the dot product of a document with one of them, the more
        probable the word.
        """
        tables = {"documents": self.documents}
        if len(self.tags):
            tables["tags"] = self.tags
        if self.words is not None:
            tables["words"] = self.words
        if self.method.loss == "negative" and self.method.n_concatenated == 1:
            tables["contexts"] = Vectors(self._tokens, self.outputs, missing=self._missing_reason)
        return tables

    def embed_with_counts(self, texts: Texts, seed: int | None = None, threads: int = 0) -> EmbeddedTexts:
        """Infer the vectors of new documents by training them to predict their words, with all other weights fixed.

        A vector depends only on the text and on `seed` (by default that of training), not on the other texts or the
        number of threads. A text without known words is zero.
        """
        check_texts(texts, lists=True)
        threads = threads or available_cores()
        ids, known, unknown = self.word_ids(texts, threads)
        seed = int(self.training.get("seed", 1)) if seed is None else seed
        return EmbeddedTexts(finite_rows(self.infer(ids, known, seed, threads), "Text"), known, unknown)

    def infer(self, ids: NDArray[np.int32], lengths: NDArray[np.int64], seed: int, threads: int) -> Matrix:
        """Infer the vectors of texts given as concatenated word ids."""
        method, rows = self.method, kernel.new_table(len(lengths), self.method.dim)
        if len(ids):
            task = replace(self._task, ids=ids, starts=np.concatenate([[0], np.cumsum(lengths)]))
            rate, epochs = (
                INFER_SHARE * method.learning_rate,
                method.infer_epochs or method.epochs or method.min_epochs,
            )
            settings = (epochs, rate, mix(seed * GOLDEN & MASK), threads)
            kernel.native_trainer(task).infer(rows, *settings)
            untrained = np.flatnonzero((lengths > 0) & ~rows.any(axis=1))
            if len(untrained):  # all words of these short texts were subsampled: infer again without subsampling
                untrained_ids = np.concatenate([ids[task.starts[text] : task.starts[text + 1]] for text in untrained])
                starts = np.concatenate([[0], np.cumsum(lengths[untrained])])
                task = replace(
                    task, ids=untrained_ids, starts=starts, keep=kernel.keep_thresholds(self.vocabulary.counts, 0)
                )
                untrained_rows = kernel.new_table(len(untrained), method.dim)
                kernel.native_trainer(task).infer(untrained_rows, *settings)
                rows[untrained] = untrained_rows
        return np.ascontiguousarray(rows[:, : method.dim])

    @cached_property
    def _task(self) -> kernel.Task:
        """The kernel's arguments for inference, created at the first use."""
        method, counts = self.method, self.vocabulary.counts
        inputs, outputs = kernel.new_table(len(counts), method.dim), output_table(method, len(counts))
        if len(self.outputs) != len(outputs) or (self.words is not None and len(self.words) != len(inputs)):
            raise FirthError(
                "damaged_model",
                "The model is damaged: {name} does not match the {words:,} words of its vocabulary.",
                name="outputs" if len(self.outputs) != len(outputs) else "words",
                words=len(counts),
            )
        if self.words is not None:
            fill_padded(inputs, self.words.matrix, method.dim)
        fill_padded(outputs, self.outputs, method.dim)
        # Each word of a document is predicted in turn; only dm uses context words.
        settings = {"shrink": method.shrink_window, **method.kernel_settings()}
        settings |= {"neighbors": False, "group": GROUP} if method.mode == "dbow" else {}
        return kernel.Task(
            ids=np.zeros(0, np.int32),
            starts=np.zeros(2, np.int64),
            inputs=inputs,
            outputs=outputs,
            keep=kernel.keep_thresholds(counts, method.subsample),
            noise=kernel.alias_table(kernel.noise_weights(counts, method.negative_exponent)),
            paths=kernel.huffman_paths(counts) if method.loss == "hierarchical" else kernel.no_paths(),
            loss=method.loss,
            window=method.window,
            negatives=method.negatives,
            **settings,
        )

    def neighbors(self, text: str | Sequence[str], k: int = 10, metric: str = "cosine") -> Hits:
        """Return the documents nearest to a text (or list of its tokens), whose vector is inferred.

        `documents.neighbors` takes a key instead.
        """
        return self.documents.neighbors(self.embed([text])[0], k, metric=metric)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        arrays = {"documents": self.documents.matrix, "tags": self.tags.matrix, "outputs": self.outputs}
        if self.words is not None:
            arrays["words"] = self.words.matrix
        keys = {"keys": list(self.documents.keys)}, {"keys": list(self.tags.keys)}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "documents": keys[0], "tags": keys[1]})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Doc2VecModel:
        """Return the model from stored parts, after checking their shapes."""
        doc2vec = cast("Doc2Vec", method)
        table_names = ("documents", "tags", *(["words"] if "words" in parts.arrays else []))
        declared = {name: f"float {name} {doc2vec.dim}" for name in table_names}
        check_arrays(parts.arrays, **declared, outputs=f"float outputs {doc2vec.n_concatenated * doc2vec.dim}")
        documents, tags, outputs = (parts.arrays[name] for name in ("documents", "tags", "outputs"))
        words = parts.arrays.get("words")
        keys = (stored_keys(parts, name) for name in ("documents", "tags"))
        tables = [Vectors(names, table) for names, table in zip(keys, (documents, tags), strict=True)]
        return cls(doc2vec, parts, tables[0], tables[1], words, outputs, training)

    def __repr__(self) -> str:
        return f"Doc2Vec model: {len(self.documents):,} documents × {self.documents.dim}"
