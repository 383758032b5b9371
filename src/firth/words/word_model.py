"""What all methods that give words their vectors share: how text is read, and the model that comes out."""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any, NamedTuple, TypeVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.functions import check_tokenizer
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_texts_of, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.phrases import Phrase, PhraseJoiner
from firth.data.token_lists import TokenLists, corpus_or_token_lists
from firth.data.tokenizer import NATIVE, TOKENIZERS, Splitting, is_token_list, tokenizer
from firth.data.tokens import Tokens, read_tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel

LONG = 1 << 20  # characters of texts from which on a native table of the vocabulary is worth making
Phrases = Sequence[Sequence[Sequence[Any]]]  # for each pass over the text, pairs of words
Texts = Sequence[str | Sequence[str]]  # each a text, or a list of its tokens
Kept = TypeVar("Kept", bound="WordOptions")
AT_BLANKS = Splitting("whitespace", lowercase=False)  # how raw text meets words that no other tokenizer gives


@dataclass(frozen=True, kw_only=True)
class WordOptions(Method):
    """How text becomes words."""

    min_count: int | None = option(
        None, "words that occur less often are left out; none = 1 for a small text, 5 from 400,000 words on", low=1
    )
    max_vocabulary: int | None = option(None, "keep only this many words, the most frequent", low=1)
    tokenizer: str | Callable[[str], list[str]] = option(
        "words", "how text is split; in Python also a function from text to tokens", choices=TOKENIZERS, functions=True
    )
    lowercase: bool = option(True, "fold case")
    phrases: int = option(0, "passes that join words often met together (new_york)", low=0, high=5)

    def read(self, data: Any, run: Run, start: TextModel | None = None, keys: bool = False) -> Tokens:
        """`data` (a corpus, anything one can be made of, or lists of tokens) as word ids; with `start`, its words and
        phrases first."""
        data = data if isinstance(data, Tokens) else corpus_or_token_lists(data)
        if start is not None:
            given = data.splitting if isinstance(data, Tokens) else self.splitting
            self.check_splitting(start, None if isinstance(data, TokenLists) else given)
        return read_tokens(
            data,
            tokenizer=self.tokenizer,
            lowercase=self.lowercase,
            min_count=self.min_count,
            max_size=self.max_vocabulary,
            phrases=self.phrases,
            start_vocabulary=start.known if start else None,
            start_phrases=[[Phrase(*pair[:2]) for pair in found] for found in start.phrases] if start else (),
            keys=keys,
            run=run,
        )

    @property
    def splitting(self) -> Splitting:
        return Splitting(self.tokenizer, self.lowercase)

    def check_splitting(self, start: TextModel, ours: Splitting | None) -> None:
        """Refuses to continue from a model whose words would not be met; lists of tokens (None) are not split."""
        check_tokenizer(start.method)
        theirs = start.method.splitting
        if ours is not None and str(theirs) != str(ours):
            raise FirthError(
                "incompatible_start",
                "start splits text by {got}, this method by {expected}; both must do the same.",
                got=str(theirs),
                expected=str(ours),
            )

    def as_trained(
        self: Kept, splitting: Splitting | None, vocabulary: Vocabulary, run: Run, start: TextModel | None = None
    ) -> Kept:
        """The method as its model keeps it: raw text is split as what it was trained on (`splitting`).

        Of lists of tokens nobody knows how they came about. Then raw text is split by the tokenizer of `start`, or by
        the method's own if that gives back every word of the vocabulary, and otherwise at white space, case kept.
        """
        if splitting is None:
            splitting = start.method.splitting if start else self.splitting
            lost = unreachable(splitting, vocabulary)
            if lost and start is None:
                splitting, lost = AT_BLANKS, unreachable(AT_BLANKS, vocabulary)
            if lost:
                run.report.note(
                    f"{len(lost):,} of {len(vocabulary):,} words, such as {lost[0]!r}, are found in lists of tokens "
                    f"alone: {splitting}, by which this model splits raw text, does not give them.",
                    code="unreachable_words",
                )
        return self if splitting == self.splitting else replace(self, **splitting._asdict())


def unreachable(splitting: Splitting, vocabulary: Vocabulary) -> list[str]:
    """Words that no text gives, split in this way. What a function does to other texts can't be told."""
    if callable(splitting.tokenizer):
        return []
    if splitting.tokenizer not in TOKENIZERS:  # fastText's, which adds a word to each text
        return list(vocabulary.tokens)
    met = set(splitting.split()("\n".join(vocabulary.tokens)))
    return [word for word in vocabulary.tokens if word not in met]


def no_neighbours(method: WordOptions, vocabulary: Vocabulary) -> FirthError:
    return FirthError(
        "empty_vocabulary",
        "{method} needs words that stand near each other; no document has two of the {words:,} words that "
        "min_count={min_count} left. unit=block or file (--unit) joins lines.",
        method=type(method).__name__,
        words=len(vocabulary),
        min_count=vocabulary.min_count,
    )


class KnownWords(NamedTuple):
    """The words of several texts that a model knows, one after the other, and how many each text has and lacks."""

    ids: NDArray[np.int32]
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class Pooled(NamedTuple):
    """Texts as vectors, with how many words of each text were known to the model."""

    matrix: Matrix
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class TextModel(Model):
    """A model that reads text as words of its vocabulary."""

    method: WordOptions

    def __init__(
        self, method: WordOptions, vocabulary: Vocabulary | Parts, training: Mapping[str, Any], phrases: Phrases = ()
    ) -> None:
        self.method, self.training = method, training
        self._vocabulary = vocabulary  # stored parts are read at the first use
        self._phrases = phrases

    @property
    def vocabulary(self) -> Vocabulary:
        found = self._vocabulary
        if isinstance(found, Parts):
            with found.reading():
                document = found.documents["vocabulary"]
                self._phrases = [  # before the vocabulary, by which other threads see that it is read
                    [check_texts_of(list(pair), "A pair of words", 2) for pair in pairs]
                    for pairs in document.get("phrases", ())
                ]
                self._vocabulary = found = Vocabulary.from_json(document)
        return found

    @property
    def known(self) -> Vocabulary:
        """The words that were read: those that going on from this model begins with."""
        return self.vocabulary

    @property
    def phrases(self) -> Phrases:
        """Pairs of words joined to one, pass by pass."""
        _ = self.vocabulary
        return self._phrases

    def _tokens(self) -> Sequence[str]:
        return self.vocabulary.tokens

    def _why_missing(self) -> str:
        dropped = self.vocabulary.dropped_types
        return f"min_count={self.vocabulary.min_count} dropped {dropped:,} words" if dropped else ""

    def tokenize(self, text: str | Sequence[str]) -> list[str]:
        """`text` as this model's words, known or not; a list of tokens as it is."""
        tokens = self.split(text) if isinstance(text, str) else [token for token in text if token]
        return PhraseJoiner(self.phrases)(tokens) if self.phrases else tokens

    def split(self, text: str) -> list[str]:
        return tokenizer(self.method.tokenizer, self.method.lowercase)(text)

    def word_ids(self, texts: Texts, threads: int) -> KnownWords:
        """The known words of texts."""
        name = self.method.tokenizer
        native = isinstance(name, str) and name in NATIVE and all(isinstance(text, str) for text in texts)
        if self.phrases or not native or sum(map(len, texts)) < LONG:
            words = [self.tokenize(text) for text in texts]
            found = [[id for token in tokens if (id := self.vocabulary.id(token)) is not None] for tokens in words]
            known = np.fromiter(map(len, found), np.int64, len(found))
            lengths = np.fromiter(map(len, words), np.int64, len(words))
            ids = np.fromiter(chain.from_iterable(found), np.int32, int(known.sum()))
            return KnownWords(ids, known, lengths - known)
        encoder = kernel.TextEncoder(str(name), self.method.lowercase, threads)
        encoder.seed("".join(token + "\0" for token in self.vocabulary.tokens).encode("utf-8", "surrogatepass"))
        parts = [str(text).encode("utf-8", "surrogatepass") + b"\n" for text in texts]
        encoder.encode(kernel.as_bytes(b"".join(parts)), np.cumsum([len(part) for part in parts], dtype=np.int64))
        ids = np.concatenate([some for _, some in encoder.stretches()])
        ends = np.flatnonzero(ids == kernel.DOCUMENT_END)
        there = (ids >= 0) & (ids < len(self.vocabulary))  # ids from there on are of words that are not known
        known = np.diff(np.cumsum(there)[ends], prepend=0)
        return KnownWords(ids[there], known, np.diff(ends, prepend=-1) - 1 - known)

    @abstractmethod
    def pool(self, texts: Texts) -> Pooled:
        """Texts, or lists of their tokens, as vectors, with how many words of each were known."""

    def embed(self, inputs: Texts) -> Matrix:
        """One row per text (or list of its tokens): `pool`, without the counts."""
        return self.pool(inputs).matrix

    def vocabulary_json(self) -> dict[str, Any]:
        """The vocabulary and phrases, for storage."""
        vocabulary = self.vocabulary.to_json()
        if self.phrases:
            vocabulary["phrases"] = [[pair[:2] for pair in found] for found in self.phrases]
        return vocabulary


def check_texts(texts: Texts, lists: bool = False) -> None:
    """Refuses what is no list of texts; with `lists`, a text may also be a list of its tokens."""
    if isinstance(texts, str):
        raise FirthError("invalid_type", "A list of texts is needed; got one text. Put it in a list.")
    if hasattr(texts, "columns"):
        raise FirthError("invalid_type", "A list of texts is needed; got a data frame. Pass one column of it.")
    if not (hasattr(texts, "__len__") and hasattr(texts, "__getitem__")):
        raise FirthError(
            "invalid_type", "A list of texts is needed; got a {got}. Pass list(texts).", got=type(texts).__name__
        )
    for place, text in enumerate(texts):
        if not isinstance(text, str) and not (lists and is_token_list(text)):
            raise FirthError(
                "invalid_type",
                "A text must be str{or_list}; number {path} is {text!r:.40}. An empty text may stand for none.",
                or_list=" or a list of str" if lists else "",
                path=place,
                text=text,
            )


class WordModel(TextModel):
    """Words with their vectors. `vectors` are the input vectors; `tables["contexts"]` the output vectors, where
    the loss gives one to each word."""

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
        self.vectors = Vectors(self._tokens, words, missing=self._why_missing)

    @property
    def tables(self) -> Mapping[str, Vectors]:
        if len(self.outputs) != len(self.vectors):  # inner nodes of a tree are nobody's vectors
            return {"words": self.vectors}
        return {"words": self.vectors, "contexts": Vectors(self._tokens, self.outputs, missing=self._why_missing)}

    def pool(self, texts: Texts, smoothing: float = 0.0) -> Pooled:
        """The mean of the vectors of each text's known words; zeros for a text that has none.

        With `smoothing` a > 0 a word of share p in the training text weighs a / (a + p), so that rare words say what a
        text is about (Arora et al. 2017, eq. 3); 1e-3 is usual, 0 is the plain mean.
        """
        check_texts(texts, lists=True)
        weights = self._weights(smoothing)
        matrix = np.zeros((len(texts), self.vectors.dim), dtype=np.float32)
        known, unknown = np.zeros(len(texts), np.int64), np.zeros(len(texts), np.int64)
        for place, text in enumerate(texts):
            tokens = self.tokenize(text)
            rows = [row for row in map(self.vectors.rows.get, tokens) if row is not None]
            known[place], unknown[place] = len(rows), len(tokens) - len(rows)
            if rows:
                found = self.vectors.matrix[rows]
                matrix[place] = found.mean(axis=0) if weights is None else np.average(found, 0, weights[rows])
        return Pooled(finite_rows(matrix, "Text"), known, unknown)

    def _weights(self, smoothing: float) -> NDArray[np.float64] | None:
        if not 0 <= smoothing < math.inf:
            raise FirthError(
                "invalid_value", "{option} must be at least 0; got {got}.", option="smoothing", got=smoothing
            )
        counts = self.vocabulary.counts
        return smoothing / (smoothing + counts / max(1, counts.sum())) if smoothing else None

    def parts(self) -> Parts:
        return Parts({"words": self.vectors.matrix, "outputs": self.outputs}, {"vocabulary": self.vocabulary_json()})

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> WordModel:
        assert isinstance(method, WordOptions)
        check_arrays(parts.arrays, words="float words dim", outputs="float outputs dim")
        words, outputs = parts.arrays["words"], parts.arrays["outputs"]
        inner = getattr(method, "loss", "") == "hierarchical"  # nodes of a tree, in the place of words
        if len(outputs) != (max(0, len(words) - 1) if inner else len(words)):
            raise FirthError(
                "damaged_model",
                "There are {n_outputs:,} outputs for {n_words:,} words.",
                n_outputs=len(outputs),
                n_words=len(words),
            )
        return cls(method, parts, words, outputs, training)

    def __repr__(self) -> str:
        return f"{type(self.method).__name__} model: {len(self.vectors):,} words × {self.vectors.dim}"
