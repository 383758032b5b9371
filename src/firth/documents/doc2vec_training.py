"""Vectors for documents that predict their words (Le & Mikolov 2014): training, the model, and inference.

A document has a row among the inputs, behind the words' rows, that takes part in each of its windows; so has each of
its tags. The arithmetic stands in `kernels/predict.py`.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from itertools import chain
from typing import Any, ClassVar, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import option
from firth.core.run import Run, available_cores
from firth.core.stored import check_arrays, finite_rows
from firth.core.vectors import Hits, Matrix, Vectors
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.documents.document_matrix import stored_keys
from firth.kernels import predict as kernel
from firth.kernels.predict_twin import GOLDEN, MASK, mix
from firth.words.window_training import Training, WindowMethod, drawn_table
from firth.words.word_model import Phrases, Pooled, TextModel, Texts, check_texts

MODES = ("dbow", "dm", "dm_concat")
GROUP = 4  # tokens whose words share noise where documents predict alone
# Inference begins at this share of the learning rate: a new document meets finished outputs from its first step on,
# where those of the corpus met outputs that still had to learn. On texts kept apart a probe named one point more of the
# groups than with the whole rate (benchmarks/LOG.md).
INFER_SHARE = 0.5


@dataclass(frozen=True, kw_only=True)
class DocumentMethod(WindowMethod):
    """A method whose windows give documents their vectors."""

    architecture: ClassVar[str] = "skipgram"  # of dbow; `kernel_settings` says that of the others
    least_epochs: ClassVar[int] = 20
    large_text: ClassVar[int] = 1_000_000

    mode: str = option(
        "dbow",
        "the document alone predicts each word, or together with the neighbours: their mean, or side by side",
        choices=MODES,
    )
    train_words: bool = option(False, "with dbow, words get vectors too, by skip-gram in the same space; slower")
    loss: str = option("negative", "noise words or a Huffman tree", choices=("negative", "hierarchical"))
    # Twice as many as for words: up to four words of a document share them, and with five a probe named a point less of
    # the groups of texts kept apart (benchmarks/LOG.md).
    negatives: int = option(10, "noise words a window, or for four words of dbow (loss=negative)", low=1, high=1000)
    epochs: int | None = option(
        None, "passes over the text; none = 20 from a million words on, more for a smaller text, up to 200", low=1
    )
    infer_epochs: int | None = option(None, "passes over a new document; none = epochs", low=1)

    def kernel_settings(self) -> dict[str, Any]:
        if self.mode == "dbow":
            group = 1 if self.train_words else GROUP
            return {"architecture": "skipgram", "neighbors": self.train_words, "group": group}
        if self.mode == "dm":
            return {"architecture": "cbow", "exact": False}
        return {"architecture": "concat", "shrink": False}  # each place of the window has a meaning of its own

    @property
    def places(self) -> int:
        """How many vectors stand side by side."""
        return 2 * self.window + 1 if self.mode == "dm_concat" else 1

    @property
    def has_words(self) -> bool:
        """Words have vectors of their own: a document that predicts alone leaves theirs as they were drawn."""
        return self.mode != "dbow" or self.train_words

    def check_start(self, start: Any) -> None:
        """Refuses a model whose vectors mean something else."""
        same = ["dim", "mode", *(["train_words"] if self.mode == "dbow" else [])]
        same += ["window"] if self.mode == "dm_concat" else []
        if isinstance(start, Doc2VecModel):
            same = [name for name in same if getattr(self, name) != getattr(start.method, name)]
            if not same:
                return
        wanted = ", ".join(f"{name}={getattr(self, name)}" for name in same)
        raise FirthError(
            "incompatible_start",
            "start must be a Doc2Vec model with {expected}; got {got!r}.",
            expected=wanted,
            got=start,
        )


class Layout(NamedTuple):
    """Whose rows stand behind the words' ones: documents first, then tags."""

    documents: list[str]
    tags: list[str]
    lists: kernel.Lists  # for each text its document's row and its tags' rows, counted from the first document

    @property
    def rows(self) -> int:
        return len(self.documents) + len(self.tags)


def lay_out(tokens: Tokens, start: Doc2VecModel | None, run: Run) -> Layout:
    """A row a key and a tag, those of `start` first. Texts with the same key share their row."""
    known, known_tags = (start.documents.keys, start.tags.keys) if start else ((), ())
    documents, tags = ({key: row for row, key in enumerate(keys)} for keys in (known, known_tags))
    own = np.array([documents.setdefault(key, len(documents)) for key in tokens.keys], dtype=np.int32)
    again = len(tokens) - (len(documents) - len(known))
    if again:
        whose = "the model to go on from, or of another text" if start else "another text"
        run.report.note(f"{again:,} of {len(tokens):,} texts have the key of {whose}: texts of one key share a vector.")
    sizes = np.fromiter(map(len, tokens.tags), np.int64) if tokens.tags else np.zeros(len(tokens), np.int64)
    if sizes.max() >= kernel.MAX_TAGS:
        most = int(sizes.argmax())
        raise FirthError(
            "too_large",
            "A document has at most {most_tags} tags; {key!r} has {size:,}.",
            most_tags=kernel.MAX_TAGS - 1,
            key=tokens.keys[most],
            size=sizes[most],
        )
    tagged = [tags.setdefault(tag, len(tags)) for tag in chain.from_iterable(tokens.tags)]
    starts = np.concatenate([[0], np.cumsum(sizes + 1)])
    rows = np.empty(starts[-1], dtype=np.int32)
    is_own = np.zeros(len(rows), dtype=bool)
    is_own[starts[:-1]] = True
    rows[is_own], rows[~is_own] = own, np.array(tagged, dtype=np.int32) + len(documents)
    return Layout(list(documents), list(tags), kernel.Lists(starts, rows))


class DocumentTraining(Training):
    """Training with rows for documents and tags."""

    def __init__(
        self, method: DocumentMethod, tokens: Tokens, run: Run, layout: Layout, start: Doc2VecModel | None
    ) -> None:
        self.layout = layout
        super().__init__(method, tokens, run, start)
        digest = hashlib.sha256(repr((tokens.fingerprint, layout.documents, layout.tags)).encode("utf-8", "replace"))
        digest.update(layout.lists.rows.tobytes())
        self.fingerprint = digest.hexdigest()  # of a checkpoint: other keys or tags are another run

    def first_tables(self, start: Any) -> tuple[kernel.Table, kernel.Table]:
        """As for words; with `start` also its documents and tags."""
        words, dim = len(self.tokens.vocabulary), self.method.dim
        inputs = drawn_table(words + self.layout.rows, dim, self.run.seed)
        outputs = output_table(self.method, words)
        if start is not None:
            tags = words + len(self.layout.documents)
            for first, table in ((0, start.words), (words, start.documents), (tags, start.tags)):
                if table is not None:
                    inputs[first : first + len(table), :dim] = table.matrix
            if self.method.loss == start.method.loss == "negative":  # a tree's nodes mean something else in a new tree
                fill(outputs, start.outputs, dim)
        return inputs, outputs

    def task(self) -> kernel.Task:
        starts, rows = self.layout.lists
        return replace(super().task(), tags=kernel.Lists(starts, rows + np.int32(len(self.tokens.vocabulary))))

    def result(self, start: Doc2VecModel | None) -> tuple[Matrix, Matrix, Matrix]:
        """The rows of words, documents and tags. Those that met no word are zero: nothing is known of them."""
        words, dim = len(self.tokens.vocabulary), self.method.dim
        starts, rows = self.layout.lists
        met = np.zeros(self.layout.rows, dtype=bool)
        met[rows[np.repeat(np.diff(self.tokens.starts) > 0, np.diff(starts))]] = True
        documents = len(self.layout.documents)
        if start is not None:
            met[: len(start.documents)] = True
            met[documents : documents + len(start.tags)] = True
        self.inputs[words:][~met] = 0
        parts = np.split(self.inputs[:, :dim], [words, words + documents])
        return parts[0].copy(), parts[1].copy(), parts[2].copy()


def output_table(method: DocumentMethod, words: int) -> kernel.Table:
    """Zeros: a row a word, or an inner node of the tree; as wide as all inputs side by side."""
    rows = words - 1 if method.loss == "hierarchical" else words
    return kernel.new_table(rows, method.places * kernel.padded(method.dim))


def fill(table: kernel.Table, rows: Matrix, dim: int) -> None:
    """Rows of places × dim numbers into the first of a padded table."""
    count = rows.shape[1] // dim
    table[: len(rows)].reshape(len(rows), count, -1)[:, :, :dim] = rows.reshape(len(rows), count, dim)


def without_padding(table: kernel.Table, count: int, dim: int) -> Matrix:
    """The inverse of `fill`."""
    return np.ascontiguousarray(table.reshape(len(table), count, -1)[:, :, :dim]).reshape(len(table), count * dim)


class Doc2VecModel(TextModel):
    """`documents` and `tags` with their vectors; `words` too where the method trained them (else None). `outputs` are
    what the vectors predict words with."""

    method: DocumentMethod

    def __init__(
        self,
        method: DocumentMethod,
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
        self.words = None if words is None else Vectors(self._tokens, words, missing=self._why_missing)

    @property
    def vectors(self) -> Vectors:
        return self.documents

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """Documents, then tags and words where there are any; `contexts` are the words as documents predict them: the
        larger the product of a document's vector with a word's, the likelier the word."""
        tables = {"documents": self.documents}
        if len(self.tags):
            tables["tags"] = self.tags
        if self.words is not None:
            tables["words"] = self.words
        if self.method.loss == "negative" and self.method.places == 1:
            tables["contexts"] = Vectors(self._tokens, self.outputs, missing=self._why_missing)
        return tables

    def pool(self, texts: Texts, seed: int | None = None, threads: int = 0) -> Pooled:
        """New documents inferred: the vector of each learns to predict its words, everything else stays as it is.

        It depends on the text and `seed` (the training's, if left out) alone, whatever the other texts and the number
        of threads are. A text without known words is zero.
        """
        check_texts(texts, lists=True)
        threads = threads or available_cores()
        ids, known, unknown = self.word_ids(texts, threads)
        seed = int(self.training.get("seed", 1)) if seed is None else seed
        return Pooled(finite_rows(self.infer(ids, known, seed, threads), "Text"), known, unknown)

    def infer(self, ids: NDArray[np.int32], lengths: NDArray[np.int64], seed: int, threads: int) -> Matrix:
        """`pool` for texts that are word ids, one after the other."""
        method, rows = self.method, kernel.new_table(len(lengths), self.method.dim)
        if len(ids):
            task = replace(self._task, ids=ids, starts=np.concatenate([[0], np.cumsum(lengths)]))
            rate, epochs = (
                INFER_SHARE * method.learning_rate,
                method.infer_epochs or method.epochs or method.least_epochs,
            )
            settings = (epochs, rate, mix(seed * GOLDEN & MASK), threads)
            kernel.native_trainer(task).infer(rows, *settings)
            left = np.flatnonzero((lengths > 0) & ~rows.any(axis=1))
            if len(left):  # short texts of frequent words, all thinned out: those are read in full
                part = np.concatenate([ids[task.starts[text] : task.starts[text + 1]] for text in left])
                starts = np.concatenate([[0], np.cumsum(lengths[left])])
                task = replace(task, ids=part, starts=starts, keep=kernel.keep_thresholds(self.vocabulary.counts, 0))
                again = kernel.new_table(len(left), method.dim)
                kernel.native_trainer(task).infer(again, *settings)
                rows[left] = again
        return np.ascontiguousarray(rows[:, : method.dim])

    @cached_property
    def _task(self) -> kernel.Task:
        """What the kernel infers with, made at the first use."""
        method, counts = self.method, self.vocabulary.counts
        inputs, outputs = kernel.new_table(len(counts), method.dim), output_table(method, len(counts))
        if len(self.outputs) != len(outputs) or (self.words is not None and len(self.words) != len(inputs)):
            raise FirthError(
                "damaged_model",
                "The model is broken: its {n_counts:,} words and its tables do not fit together.",
                n_counts=len(counts),
            )
        if self.words is not None:
            fill(inputs, self.words.matrix, method.dim)
        fill(outputs, self.outputs, method.dim)
        # All of a document's words are its window's centres in turn; only with dm do their neighbours help.
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
        """The documents nearest to a text (or to a list of its tokens), which need not be one of them;
        `documents.neighbors` takes a key."""
        return self.documents.neighbors(self.embed([text])[0], k, metric=metric)

    def parts(self) -> Parts:
        arrays = {"documents": self.documents.matrix, "tags": self.tags.matrix, "outputs": self.outputs}
        if self.words is not None:
            arrays["words"] = self.words.matrix
        keys = {"keys": list(self.documents.keys)}, {"keys": list(self.tags.keys)}
        return Parts(arrays, {"vocabulary": self.vocabulary_json(), "documents": keys[0], "tags": keys[1]})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> Doc2VecModel:
        assert isinstance(method, DocumentMethod)
        own = ("documents", "tags", *(["words"] if "words" in parts.arrays else []))
        declared = {name: f"float {name} {method.dim}" for name in own}
        check_arrays(parts.arrays, **declared, outputs=f"float outputs {method.places * method.dim}")
        documents, tags, outputs = (parts.arrays[name] for name in ("documents", "tags", "outputs"))
        words = parts.arrays.get("words")
        keys = (stored_keys(parts, name) for name in ("documents", "tags"))
        found = [Vectors(names, table) for names, table in zip(keys, (documents, tags), strict=True)]
        return cls(method, parts, found[0], found[1], words, outputs, training)

    def __repr__(self) -> str:
        return f"Doc2Vec model: {len(self.documents):,} documents × {self.documents.dim}"
