"""Options for reading text as words, and the base classes of models with a vocabulary."""

from __future__ import annotations

import copy
import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core.data import Data
from firth.core.embedding import EmbeddedTexts, EmbedsTexts, check_texts
from firth.core.errors import FirthError
from firth.core.functions import check_tokenizer
from firth.core.method import Method
from firth.core.model import HasVectors, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_texts_of, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.cooccurrence import Cooccurrence
from firth.data.corpus import Corpus
from firth.data.phrases import Phrase, PhraseJoiner
from firth.data.token_lists import TokenLists, corpus_or_token_lists
from firth.data.tokenizer import NATIVE, TOKENIZERS, Splitting, tokenizer
from firth.data.tokens import Tokens, read_tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel
from firth.words.context_transform import learned_transform, window_rows

NATIVE_MIN_CHARACTERS = 1 << 20  # shorter texts are encoded in Python, without building a native vocabulary table
Phrases = Sequence[Sequence[Sequence[Any]]]  # the joined pairs of words, for each pass
Texts = Sequence[str | Sequence[str]]  # texts, or lists of their tokens
AnyWordOptions = TypeVar("AnyWordOptions", bound="WordOptions")
Averaging = TypeVar("Averaging", bound="AveragingModel")
#: Limits of word vectors, for model cards.
ONE_SENSE = "A word has one vector for all its meanings."
UNSEEN_WORDS = "Words outside the vocabulary have no vector and are left out of text vectors."
WORD_ORDER = "The vector of a text is the mean of its word vectors, so word order is ignored."
DEFAULT_WINDOW = 5  # context words on each side for a method without the option `window`
WHITESPACE = Splitting("whitespace", lowercase=False)  # fallback for vocabularies of token lists


@dataclass(frozen=True, kw_only=True)
class WordOptions(Method):
    """Options for splitting text into words and building a vocabulary."""

    data: ClassVar[type[Data]] = Corpus

    min_count: int | None = option(
        None, "minimum count of a word; none = 1 for small corpora, 5 from 400,000 words on", low=1
    )
    max_vocabulary: int | None = option(None, "maximum vocabulary size; the most frequent words are kept", low=1)
    tokenizer: str | Callable[[str], list[str]] = option(
        "words", "tokenizer; in Python also a function from text to tokens", choices=TOKENIZERS, functions=True
    )
    lowercase: bool = option(True, "convert text to lowercase")
    phrases: int = option(0, "passes that join frequent word pairs into phrases (new_york)", low=0, high=5)

    def read(self, data: Any, run: Run, start: TextModel | None = None, keys: bool = False) -> Tokens:
        """Read `data` (a corpus, anything it can be made from, or lists of tokens) as word ids.

        With `start`, the vocabulary begins with the words of that model, and its phrases are joined first.
        """
        data = data if isinstance(data, Tokens) else corpus_or_token_lists(data)
        if start is not None:
            data_splitting = data.splitting if isinstance(data, Tokens) else self.splitting
            self.check_splitting(start, None if isinstance(data, TokenLists) else data_splitting)
        return read_tokens(
            data,
            tokenizer=self.tokenizer,
            lowercase=self.lowercase,
            min_count=self.min_count,
            max_size=self.max_vocabulary,
            phrases=self.phrases,
            start_vocabulary=start.known if start else None,
            start_phrases=[[Phrase(*pair[:2]) for pair in phrase_pass] for phrase_pass in start.phrases]
            if start
            else (),
            keys=keys,
            run=run,
        )

    @property
    def splitting(self) -> Splitting:
        """The tokenizer and its case setting."""
        return Splitting(self.tokenizer, self.lowercase)

    def check_splitting(self, start: TextModel, splitting: Splitting | None) -> None:
        """Raise an error if `start` splits text differently; None stands for lists of tokens, which are not split."""
        check_tokenizer(start.method)
        start_splitting = start.method.splitting
        if splitting is not None and str(start_splitting) != str(splitting):
            raise FirthError(
                "incompatible_start",
                "start must split text like this method, by {expected}; it uses {got}.",
                got=str(start_splitting),
                expected=str(splitting),
            )

    def as_trained(
        self: AnyWordOptions,
        splitting: Splitting | None,
        vocabulary: Vocabulary,
        run: Run,
        start: TextModel | None = None,
    ) -> AnyWordOptions:
        """Return the method as stored in its model, which splits raw text like the training data (`splitting`).

        The tokenizer of token lists is unknown. In this case the model uses the tokenizer of `start`, or the method's
        own if it can produce every word of the vocabulary, or splits at whitespace without changing case.
        """
        if splitting is None:
            splitting = start.method.splitting if start else self.splitting
            unreachable_words = words_not_produced(splitting, vocabulary)
            if unreachable_words and start is None:
                splitting, unreachable_words = WHITESPACE, words_not_produced(WHITESPACE, vocabulary)
            if unreachable_words:
                run.report.note(
                    f"{len(unreachable_words):,} of {len(vocabulary):,} words, such as {unreachable_words[0]!r}, are "
                    f"only found in lists of tokens; {splitting}, used for raw text, cannot produce them.",
                    code="unreachable_words",
                )
        return self if splitting == self.splitting else replace(self, **splitting._asdict())


def words_not_produced(splitting: Splitting, vocabulary: Vocabulary) -> list[str]:
    """Return the words that a tokenizer cannot produce from any text; none for functions, which are not analyzed."""
    if callable(splitting.tokenizer):
        return []
    if splitting.tokenizer not in TOKENIZERS:  # fastText's tokenizer, which appends a word to each text
        return list(vocabulary.tokens)
    reachable = set(splitting.split()("\n".join(vocabulary.tokens)))
    return [word for word in vocabulary.tokens if word not in reachable]


def no_pairs_error(method: WordOptions, vocabulary: Vocabulary) -> FirthError:
    """Return the error for a corpus in which no document has two words."""
    return FirthError(
        "empty_vocabulary",
        "{method} needs documents with at least two words; no document has two of the {words:,} words with "
        "min_count={min_count}. Use unit=block or unit=file (--unit) to join lines into documents.",
        method=type(method).__name__,
        words=len(vocabulary),
        min_count=vocabulary.min_count,
    )


class EncodedTexts(NamedTuple):
    """Ids of the known words of several texts, concatenated, and the numbers of known and unknown words per text."""

    ids: NDArray[np.int32]
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class TextModel(EmbedsTexts):
    """A model with a vocabulary of words."""

    method: WordOptions
    accepts_token_lists = True

    def __init__(
        self, method: WordOptions, vocabulary: Vocabulary | Parts, training: Mapping[str, Any], phrases: Phrases = ()
    ) -> None:
        self.method, self.training = method, training
        self._vocabulary = vocabulary  # stored parts are read at the first use
        self._phrases = phrases

    @property
    def vocabulary(self) -> Vocabulary:
        """The words with their counts."""
        vocabulary = self._vocabulary
        if isinstance(vocabulary, Parts):
            with vocabulary.reading():
                document = vocabulary.documents["vocabulary"]
                self._phrases = [  # set before the vocabulary, which tells other threads that both have been read
                    [check_texts_of(list(pair), "A pair of words", 2) for pair in pairs]
                    for pairs in document.get("phrases", ())
                ]
                self._read_document(document)
                self._vocabulary = vocabulary = Vocabulary.from_json(document)
        return vocabulary

    def _read_document(self, document: Mapping[str, Any]) -> None:
        """Read what a subclass stores with the vocabulary."""

    @property
    def known(self) -> Vocabulary:
        """The words of the training corpus, with which continued training begins."""
        return self.vocabulary

    @property
    def phrases(self) -> Phrases:
        """The word pairs that are joined into phrases, for each pass."""
        _ = self.vocabulary
        return self._phrases

    def _tokens(self) -> Sequence[str]:
        return self.vocabulary.tokens

    def _missing_reason(self) -> str:
        dropped = self.vocabulary.dropped_types
        return f"min_count={self.vocabulary.min_count} dropped {dropped:,} words" if dropped else ""

    def tokenize(self, text: str | Sequence[str]) -> list[str]:
        """Split `text` into words, known or unknown, and join phrases. A list of tokens is not split."""
        tokens = self.split(text) if isinstance(text, str) else [token for token in text if token]
        return PhraseJoiner(self.phrases)(tokens) if self.phrases else tokens

    def split(self, text: str) -> list[str]:
        """Split `text` with the model's tokenizer."""
        return tokenizer(self.method.tokenizer, self.method.lowercase)(text)

    def word_ids(self, texts: Texts, threads: int) -> EncodedTexts:
        """Return the ids of the known words of texts."""
        name = self.method.tokenizer
        native = isinstance(name, str) and name in NATIVE and all(isinstance(text, str) for text in texts)
        if self.phrases or not native or sum(map(len, texts)) < NATIVE_MIN_CHARACTERS:
            token_lists = [self.tokenize(text) for text in texts]
            known_ids = [
                [id for token in tokens if (id := self.vocabulary.id(token)) is not None] for tokens in token_lists
            ]
            known = np.fromiter(map(len, known_ids), np.int64, len(known_ids))
            lengths = np.fromiter(map(len, token_lists), np.int64, len(token_lists))
            ids = np.fromiter(chain.from_iterable(known_ids), np.int32, int(known.sum()))
            return EncodedTexts(ids, known, lengths - known)
        encoder = kernel.TextEncoder(str(name), self.method.lowercase, threads)
        encoder.seed("".join(token + "\0" for token in self.vocabulary.tokens).encode("utf-8", "surrogatepass"))
        parts = [str(text).encode("utf-8", "surrogatepass") + b"\n" for text in texts]
        encoder.encode(kernel.as_bytes(b"".join(parts)), np.cumsum([len(part) for part in parts], dtype=np.int64))
        ids = np.concatenate([some for _, some in encoder.stretches()])
        ends = np.flatnonzero(ids == kernel.DOCUMENT_END)
        is_known = (ids >= 0) & (ids < len(self.vocabulary))  # larger ids are of unknown words
        known = np.diff(np.cumsum(is_known)[ends], prepend=0)
        return EncodedTexts(ids[is_known], known, np.diff(ends, prepend=-1) - 1 - known)

    def vocabulary_json(self) -> dict[str, Any]:
        """Return the vocabulary and phrases for storage."""
        vocabulary = self.vocabulary.to_json()
        if self.phrases:
            vocabulary["phrases"] = [[pair[:2] for pair in phrase_pass] for phrase_pass in self.phrases]
        return vocabulary


def sif_weights(counts: NDArray[Any], total: float, smoothing: float) -> NDArray[np.float64] | None:
    """Return the SIF weights a / (a + p) of words with these counts (Arora et al. 2017, eq. 3), None for a = 0.

    `smoothing` is a, and p = count / total is the frequency of a word in the training corpus.
    """
    if not 0 <= smoothing < math.inf:
        raise FirthError(
            "invalid_value",
            "{option} must be a finite number of at least 0; got {got}.",
            option="smoothing",
            got=smoothing,
        )
    return smoothing / (smoothing + counts / (total or 1)) if smoothing else None


def average_words(
    vectors: Matrix, rows: Sequence[Sequence[int]], weights: NDArray[np.float64] | None, lengths: Sequence[int]
) -> EmbeddedTexts:
    """Return the (weighted) mean of `vectors` over the rows of each text; zeros for a text without any.

    `lengths` are the numbers of words of each text, including those without a vector.
    """
    matrix = np.zeros((len(rows), vectors.shape[1]), dtype=np.float32)
    for text, text_rows in enumerate(rows):
        if text_rows:
            selected = vectors[text_rows]
            matrix[text] = selected.mean(axis=0) if weights is None else np.average(selected, 0, weights[text_rows])
    known = np.fromiter(map(len, rows), np.int64, len(rows))
    return EmbeddedTexts(finite_rows(matrix, "Text"), known, np.array(lengths, dtype=np.int64) - known)


class AveragingModel(TextModel):
    """A model that represents a text by the mean of its word vectors, which may be weighted."""

    _smoothing = 0.0
    _context_transform: Matrix | None = None

    @property
    def smoothing(self) -> float:
        """The smoothing of `embed` where none is given; 0 is the plain mean."""
        _ = self.vocabulary
        return self._smoothing

    def with_smoothing(self: Averaging, smoothing: float) -> Averaging:
        """Return the same model with another default of `smoothing`, which is saved with it."""
        sif_weights(np.zeros(1), 1, smoothing)  # checks the value
        model = copy.copy(self)
        _ = model.vocabulary  # which would set the stored value
        model._smoothing = float(smoothing)
        return model

    @property
    def context_transform(self) -> Matrix | None:
        """The matrix that `vector_from_contexts` multiplies the mean of context words by; None until it is learned."""
        _ = self.vocabulary
        return self._context_transform

    def with_context_transform(self: Averaging, data: Any, run: Run = Run()) -> Averaging:
        """Return the same model with a transform for `vector_from_contexts` that is learned from a corpus.

        `data` should be the training corpus, or text like it. The transform is saved with the model.
        """
        tokens = self.method.read(data, run, start=self)
        pairs = Cooccurrence.count(tokens, window=self.context_window, weighting="flat", run=run)
        vectors, contexts = self._words_and_contexts()
        counts = pairs.matrix[: len(vectors), : len(vectors)]
        model = copy.copy(self)
        model._context_transform = learned_transform(counts, contexts.matrix, vectors.matrix)
        return model

    def _words_and_contexts(self) -> tuple[Vectors, Vectors]:
        """Return the vectors of words, and as contexts; a model without the latter uses its word vectors for both."""
        assert isinstance(self, HasVectors)
        return self.vectors, self.tables.get("contexts", self.vectors)

    @property
    def context_window(self) -> int:
        """The number of words on each side that are the context of a word."""
        window = self.method.options().get("window")
        return window if isinstance(window, int) else DEFAULT_WINDOW

    def vector_from_contexts(self, word: str, texts: Texts) -> Matrix:
        """Return a vector for a word outside the vocabulary from texts in which it occurs (Khodak et al. 2018).

        It is the mean vector of the known words in the windows around it, multiplied by the transform of
        `with_context_transform`.
        """
        check_texts(texts, lists=True)
        transform = self.context_transform
        if transform is None:
            raise FirthError(
                "unsupported_model",
                "The model has no transform for vectors from contexts. Learn one with "
                "model.with_context_transform(corpus), or firth pooling MODEL -o FOLDER --contexts DATA.",
            )
        vectors, contexts = self._words_and_contexts()
        if len(transform) != vectors.dim:
            raise FirthError(
                "damaged_model",
                "context_transform has {got} rows for vectors of {dim} dimensions.",
                got=len(transform),
                dim=vectors.dim,
            )
        names = self.tokenize(word)
        if len(names) != 1:
            raise FirthError(
                "invalid_value",
                "{option} must be one word of the tokenizer; got {got!r}, which is split into {words}.",
                option="word",
                got=word,
                words=names,
            )
        tokens = [self.tokenize(text) for text in texts]
        rows, occurrences = window_rows(tokens, names[0], vectors.rows, self.context_window)
        if not rows:
            raise FirthError(
                "empty_data",
                "The texts have {occurrences} occurrences of {word!r} and no known word around any of them. "
                "Pass texts in which it is used.",
                occurrences=occurrences,
                word=word,
            )
        return finite_rows((transform @ contexts.matrix[rows].mean(axis=0))[None], "Word")[0]

    def vocabulary_json(self) -> dict[str, Any]:
        """Return the vocabulary, phrases, smoothing and transform for storage."""
        document = super().vocabulary_json() | ({"smoothing": self.smoothing} if self.smoothing else {})
        transform = self.context_transform
        return document if transform is None else document | {"context_transform": transform.tolist()}

    def _read_document(self, document: Mapping[str, Any]) -> None:
        stored = document.get("smoothing", 0.0)
        if type(stored) not in (int, float) or not 0 <= stored < math.inf:
            raise FirthError("damaged_model", "smoothing must be a number of at least 0; got {got!r:.60}.", got=stored)
        self._smoothing = float(stored)
        if "context_transform" in document:
            self._context_transform = stored_transform(document["context_transform"])


def stored_transform(rows: Any) -> Matrix:
    """Return the square matrix that `vocabulary_json` stored, after checking it."""
    try:
        matrix = np.array(rows, dtype=np.float32)
    except (TypeError, ValueError):
        matrix = np.zeros(0, np.float32)
    if matrix.ndim != 2 or len(matrix) != matrix.shape[1] or not len(matrix) or not np.isfinite(matrix).all():
        raise FirthError("damaged_model", "context_transform must be a square matrix of finite numbers.")
    return matrix


class WordModel(AveragingModel):
    """Word vectors.

    `vectors` are the input vectors. `tables["contexts"]` are the output vectors, if the loss trains one per word.
    """

    def __init__(
        self,
        method: WordOptions,
        vocabulary: Vocabulary | Parts,
        words: Matrix,
        outputs: Matrix,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, training, phrases)
        self.outputs = outputs
        self.vectors = Vectors(self._tokens, words, missing=self._missing_reason)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The word vectors, and the context vectors unless the loss is hierarchical."""
        if len(self.outputs) != len(self.vectors):  # rows of outputs are inner nodes of the Huffman tree, not words
            return {"words": self.vectors}
        return {"words": self.vectors, "contexts": Vectors(self._tokens, self.outputs, missing=self._missing_reason)}

    def embed_with_counts(self, texts: Texts, smoothing: float | None = None) -> EmbeddedTexts:
        """Return the mean vector of each text's known words; zeros for a text without any.

        With `smoothing` a > 0, a word with frequency p in the training corpus has the weight a / (a + p), which lowers
        the influence of frequent words (SIF; Arora et al. 2017, eq. 3). 1e-3 is a common value; 0 is the plain mean.
        The default is that of the model (`with_smoothing`).
        """
        check_texts(texts, lists=True)
        counts = self.vocabulary.counts
        weights = sif_weights(counts, counts.sum(), self.smoothing if smoothing is None else smoothing)
        rows, lengths = list[list[int]](), list[int]()
        for text in texts:
            tokens = self.tokenize(text)
            rows.append([row for token in tokens if (row := self.vectors.rows.get(token)) is not None])
            lengths.append(len(tokens))
        return average_words(self.vectors.matrix, rows, weights, lengths)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        return Parts({"words": self.vectors.matrix, "outputs": self.outputs}, {"vocabulary": self.vocabulary_json()})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> WordModel:
        """Return the model from stored parts, after checking their shapes."""
        assert isinstance(method, WordOptions)
        check_arrays(parts.arrays, words="float words dim", outputs="float outputs dim")
        words, outputs = parts.arrays["words"], parts.arrays["outputs"]
        hierarchical = method.options().get("loss") == "hierarchical"  # outputs are tree nodes instead of words
        if len(outputs) != (max(0, len(words) - 1) if hierarchical else len(words)):
            raise FirthError(
                "damaged_model",
                "outputs has {n_outputs:,} rows, which does not match {n_words:,} words.",
                n_outputs=len(outputs),
                n_words=len(words),
            )
        return cls(method, parts, words, outputs, training)

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.vectors):,} words × {self.vectors.dim}"
