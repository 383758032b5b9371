"""Contextual word vectors: from any layer, averaged over contexts, and compared layer by layer.

BERT and GPT share this code. A model provides the token vectors of its layers (`states_of`) and the longest text
(`max_text_tokens`). Words are those of its tokenizer, which splits text into words before subwords.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.arguments import check_choice
from firth.core.embedding import check_texts
from firth.core.errors import FirthError
from firth.core.long_texts import CHUNK, REFUSE, TooLongError
from firth.core.model import Occurrence, Senses, WordsInContext
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.data.corpus import Corpus
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.nets.architecture import Architecture
from firth.transformers.pooling import COMBINE, combined, layer_numbers
from firth.transformers.word_spans import Reading, Span, WordMatcher, characters, chunks, in_windows, inside, read

SUBWORD_POOLING = ("mean", "first", "last")
BATCH_TOKENS = 4096  # per batch
CHUNK_REMEDY = 'Pass long="chunk" (--long chunk) to process it in parts.'
WINDOW = 64  # tokens per context of a longer document


class ContextualModel(ABC):
    """Mixin for models whose layers give each token a vector."""

    tokenizer: SubwordTokenizer

    @property
    @abstractmethod
    def size(self) -> Architecture:
        """The dimensions of the network."""

    @property
    @abstractmethod
    def max_text_tokens(self) -> int:
        """Maximum number of tokens of a text."""

    @abstractmethod
    def states_of(self, ids: Sequence[Sequence[int]]) -> list[Tensor]:
        """Return the token vectors of every layer for concatenated texts, without special tokens."""

    def word_vectors(
        self,
        texts: Sequence[str],
        layers: Sequence[int] = (-1,),
        combine: str = "mean",
        subword_pooling: str = "mean",
        long: str = REFUSE,
    ) -> list[WordsInContext]:
        """Return the words of each text with their contextual vectors, one entry per text.

        `layers` are counted from 0, the input; -1 is the last. Several layers are combined by their mean, sum or
        concatenation (concat). A word of several subwords gets their mean, or the vector of the first or last one.
        `long` is "refuse", so that a text that is too long raises text_too_long, or "chunk": it is processed in parts,
        split between words.
        """
        check_texts(texts)
        self.check_settings(layers, combine, subword_pooling)
        check_choice("long", long, (REFUSE, CHUNK))
        readings = read(self.tokenizer, texts)
        for number, reading in enumerate(readings):
            if len(reading.ids) > self.max_text_tokens and long == REFUSE:
                raise TooLongError(number, len(reading.ids), self.max_text_tokens, CHUNK_REMEDY)
        parts = [
            (number, part)
            for number, reading in enumerate(readings)
            for part in (self.parts_of(reading) if long == CHUNK else [reading])
        ]
        by_text = [[np.empty((0, self.width(layers, combine)), np.float32)] for _ in texts]
        vectors: dict[int, Matrix] = {}
        for batch in batches([len(part.ids) for _, part in parts]):
            ids = [parts[index][1].ids for index in batch]
            spans = [[(word.first, word.last) for word in parts[index][1].words] for index in batch]
            vectors |= zip(batch, self.span_vectors(ids, spans, layers, combine, subword_pooling), strict=True)
        for index, (number, _) in enumerate(parts):
            by_text[number].append(vectors[index])
        return [
            WordsInContext(
                [word.text for word in reading.words],
                [(word.begin, word.end) for word in reading.words],
                np.concatenate(rows),
            )
            for reading, rows in zip(readings, by_text, strict=True)
        ]

    def parts_of(self, reading: Reading) -> Iterator[Reading]:
        """Split a text into parts that fit the model."""
        for word in reading.words:
            if word.last - word.first > self.max_text_tokens:
                raise FirthError(
                    "text_too_long",
                    "The word {text!r}… has {tokens:,} tokens; the model accepts {limit:,}.",
                    text=word.text[:20],
                    tokens=word.last - word.first,
                    limit=self.max_text_tokens,
                )
        return in_windows(reading, self.max_text_tokens)

    def check_settings(self, layers: Sequence[int], combine: str, subword_pooling: str) -> list[int]:
        """Check the settings and return the layers counted from 0."""
        for name, value, choices in (
            ("combine", combine, COMBINE),
            ("subword_pooling", subword_pooling, SUBWORD_POOLING),
        ):
            check_choice(name, value, choices)
        return layer_numbers(layers, self.size.layers)

    def width(self, layers: Sequence[int], combine: str) -> int:
        """Return the dimension of the combined vectors."""
        return self.size.dim * (len(layers) if combine == "concat" else 1)

    @torch.inference_mode()
    def span_vectors(
        self,
        ids: Sequence[Sequence[int]],
        spans: Sequence[Sequence[Span]],
        layers: Sequence[int],
        combine: str,
        subword_pooling: str,
    ) -> list[Matrix]:
        """Return one row per token span, for each text."""
        layer_numbers = self.check_settings(layers, combine, subword_pooling)
        starts = np.cumsum([0, *map(len, ids)])
        flat = np.array(
            [(start + a, start + b) for start, each in zip(starts, spans, strict=False) for a, b in each], np.int64
        ).reshape(-1, 2)
        if not len(flat):
            return [np.empty((0, self.width(layers, combine)), np.float32) for _ in spans]
        states = self.states_of(ids)
        x = combined([states[layer].float() for layer in layer_numbers], combine).cpu().numpy()
        rows = finite_rows(pooled(x, flat, subword_pooling), "Word")
        ends = np.cumsum([0, *map(len, spans)])
        return [rows[a:b] for a, b in pairwise(ends)]

    # ---- one vector per word ----

    def static(
        self,
        data: Any,
        words: int | Sequence[str] = 20_000,
        *,
        layers: Sequence[int] = (-1,),
        combine: str = "mean",
        subword_pooling: str = "mean",
        contexts: int = 100,
        run: Run = Run(),
    ) -> Vectors:
        """Return one vector per word: the mean over its first `contexts` occurrences (Bommasani et al. 2020).

        `data` is a corpus, paths or texts. `words` is a list of words, or the number of most frequent words. Words that
        do not occur are left out and reported.
        """
        return self.averaged(data, words, layers, combine, subword_pooling, contexts, run).vectors

    def averaged(
        self,
        data: Any,
        words: int | Sequence[str],
        layers: Sequence[int],
        combine: str,
        subword_pooling: str,
        contexts: int,
        run: Run,
    ) -> Averaged:
        """Return the result of `static`, with the number of contexts of each word."""
        self.check_settings(layers, combine, subword_pooling)  # before reading the text
        if type(contexts) is not int or contexts < 1:
            raise FirthError(
                "invalid_value", "{option} must be at least 1; got {got!r}.", option="contexts", got=contexts
            )
        if isinstance(words, str):
            raise FirthError(
                "invalid_type", "words must be a list of words or a number; got the text {got!r:.40}.", got=words
            )
        corpus = data if isinstance(data, Corpus) else Corpus(data)
        keys = self.frequent(corpus, words, run) if isinstance(words, int) else list(dict.fromkeys(words))
        if not keys:
            raise FirthError("empty_data", "words is empty: name at least one word.")
        matcher = WordMatcher(self.tokenizer, keys)
        counts = np.zeros(len(keys), np.int64)
        sums = np.zeros((len(keys), self.width(layers, combine)), np.float32)
        for batch in self.contexts(corpus, matcher, counts, contexts, run):
            ids, spans = [context.ids for context in batch], [context.spans for context in batch]
            vectors = np.concatenate(self.span_vectors(ids, spans, layers, combine, subword_pooling))
            np.add.at(sums, [row for context in batch for row in context.rows], vectors)
        seen_rows = np.flatnonzero(counts)
        if not len(seen_rows):
            raise FirthError(
                "empty_data",
                "None of the {n_keys:,} words occurs in the text, for example {key!r}.",
                n_keys=len(keys),
                key=keys[0],
            )
        if len(seen_rows) < len(keys):
            missing = [key for key, count in zip(keys, counts, strict=True) if not count]
            run.report.note(
                f"{len(missing):,} of {len(keys):,} words do not occur in the text and have no vector, for example "
                f"{', '.join(missing[:3])}.",
                "words_not_in_text",
            )
        matrix = sums[seen_rows] / counts[seen_rows, None].astype(np.float32)
        return Averaged(
            Vectors([keys[row] for row in seen_rows], matrix, missing="it was not averaged"), counts[seen_rows]
        )

    def frequent(self, corpus: Corpus, limit: int, run: Run) -> list[str]:
        """Return the most frequent words, ties in alphabetical order; punctuation is not counted."""
        if limit < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="words", got=limit)
        counts = Counter[str]()
        run.report.begin("counting words", corpus.size, "B")
        for texts, done in chunks(corpus):
            for reading in read(self.tokenizer, texts):
                counts.update(word.name for word in reading.words)
            run.report.step(done)
        run.report.end()
        words = [(word, count) for word, count in counts.items() if any(map(str.isalnum, word))]
        return [word for word, _ in sorted(words, key=lambda item: (-item[1], item[0]))[:limit]]

    def contexts(
        self, corpus: Corpus, matcher: WordMatcher, counts: NDArray[np.int64], limit: int, run: Run
    ) -> Iterator[list[Context]]:
        """Yield batches of contexts that contain the words to match, and update `counts`.

        Texts without a word that still needs contexts are skipped, and reading stops when no word needs any more.
        """
        run.report.begin("reading contexts", corpus.size, "B")
        batch, tokens = list[Context](), 0
        for texts, done in chunks(corpus):
            for reading in read(self.tokenizer, texts):
                for part in in_windows(reading, min(WINDOW, self.max_text_tokens)):
                    context = Context(part.ids, [], [])
                    for row, span in matcher.within(part):
                        if counts[row] < limit:
                            counts[row] += 1
                            context.rows.append(row)
                            context.spans.append(span)
                    if context.rows:
                        batch.append(context)
                        tokens += len(part.ids)
                    if tokens >= BATCH_TOKENS:
                        yield sorted(batch, key=lambda each: len(each.ids))  # texts of equal length are batched
                        batch, tokens = [], 0
            run.report.step(done, contexts=float(counts.sum()))
            if counts.min() >= limit:
                break
        if batch:
            yield sorted(batch, key=lambda each: len(each.ids))
        run.report.end()

    # ---- several vectors per word ----

    def senses(self, texts: Sequence[str], word: str, subword_pooling: str = "mean") -> Senses:
        """Return every occurrence of the word in the texts, and the distances (1 − cosine) between them per layer.

        In the upper layers of many models all vectors lie in a narrow cone, so distances should be compared with those
        between other words: `others`.
        """
        check_texts(texts)
        readings = read(self.tokenizer, texts)
        for number, reading in enumerate(readings):
            if len(reading.ids) > self.max_text_tokens:
                raise TooLongError(number, len(reading.ids), self.max_text_tokens, "Shorten it.")
        matcher = WordMatcher(self.tokenizer, [word])
        word_spans = [[span for _, span in matcher.within(reading)] for reading in readings]
        for text, reading, spans in zip(texts, readings, word_spans, strict=True):
            if not spans:
                known = ", ".join(each.text for each in reading.words) or "none"
                raise FirthError(
                    "unknown_key",
                    "{word!r:.80} is not a word of {text!r:.80}, which has {available:.200}.",
                    word=word,
                    text=text,
                    available=known,
                )
        if sum(map(len, word_spans)) < 2:
            raise FirthError(
                "too_few", "Senses need at least 2 occurrences of {word!r:.80}; the texts have {got}.", word=word, got=1
            )
        others = [
            [each for each in reading.words if any(map(str.isalnum, each.name)) and not inside(each, spans)]
            for reading, spans in zip(readings, word_spans, strict=True)
        ]
        other_spans = [[(each.first, each.last) for each in words] for words in others]
        layers = range(self.size.layers + 1)
        ids = [reading.ids for reading in readings]
        states, other_states = (
            by_layer(np.concatenate(self.span_vectors(ids, spans, layers, "concat", subword_pooling)), len(layers))
            for spans in (word_spans, other_spans)
        )
        occurrences = [
            Occurrence(number, *characters(reading, span))
            for number, (reading, spans) in enumerate(zip(readings, word_spans, strict=True))
            for span in spans
        ]
        distances = np.stack([distance_matrix(layer) for layer in states])
        names = [(number, each.name) for number, words in enumerate(others) for each in words]
        return Senses(word, list(texts), occurrences, states, distances, mean_distances(other_states, names))


class Context(NamedTuple):
    """A part of a text, and the matched words in it."""

    ids: list[int]
    rows: list[int]  # row numbers of the words
    spans: list[Span]  # token spans of the words


class Averaged(NamedTuple):
    """Static vectors, and the number of contexts that each one averages."""

    vectors: Vectors
    contexts: NDArray[np.int64]


def batches(lengths: Sequence[int]) -> Iterator[list[int]]:
    """Yield batches of text numbers, sorted by length, of at most `BATCH_TOKENS` tokens."""
    batch, tokens = list[int](), 0
    for text in sorted(range(len(lengths)), key=lengths.__getitem__):
        if batch and tokens + lengths[text] > BATCH_TOKENS:
            yield batch
            batch, tokens = [], 0
        batch.append(text)
        tokens += lengths[text]
    if batch:
        yield batch


def pooled(x: Matrix, spans: NDArray[np.int64], subword_pooling: str) -> Matrix:
    """Return one row for each span (first, end) of the rows of x."""
    if subword_pooling != "mean":
        return np.asarray(x[spans[:, 0] if subword_pooling == "first" else spans[:, 1] - 1])
    lengths = spans[:, 1] - spans[:, 0]
    starts = np.cumsum(lengths) - lengths
    token_rows = np.arange(lengths.sum()) - np.repeat(starts - spans[:, 0], lengths)
    return np.asarray(np.add.reduceat(x[token_rows], starts) / lengths[:, None].astype(np.float32))


def by_layer(matrix: Matrix, layers: int) -> Matrix:
    """Reshape (words, layers · dim) to (layers, words, dim)."""
    dim = matrix.shape[1] // layers
    return np.ascontiguousarray(matrix.reshape(len(matrix), layers, dim).swapaxes(0, 1))


def distance_matrix(rows: Matrix) -> NDArray[np.float64]:
    """Return 1 − cosine between all rows."""
    unit = unit_rows(rows).astype(np.float64)
    distances = np.clip(1 - unit @ unit.T, 0, 2)
    np.fill_diagonal(distances, 0)
    return np.asarray(distances)


def mean_distances(layers: Matrix, words: Sequence[tuple[int, str]]) -> NDArray[np.float64]:
    """Return the mean distance in each layer between different words of different texts."""
    texts, names = np.array([text for text, _ in words]), np.array([name for _, name in words])
    comparable = (texts[:, None] != texts) & (names[:, None] != names)
    if not comparable.any():
        return np.full(len(layers), np.nan)
    return np.array([distance_matrix(layer)[comparable].mean() for layer in layers])
