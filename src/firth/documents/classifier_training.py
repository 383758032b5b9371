"""Training of fastText's text classifier (Joulin et al. 2016): options and epochs.

The update is implemented in `kernels/classify.py`; the model is in `classifier_model`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import HasVectors, Model, Predicts
from firth.core.options import option
from firth.core.run import Run
from firth.data.labeled_texts import FASTTEXT, EncodedExamples, read_labeled_texts
from firth.data.tokenizer import TOKENIZERS
from firth.data.vocabulary import Vocabulary
from firth.kernels import classify as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.subwords import ngrams, word_hashes
from firth.training.epoch_loop import Loop, Progress, SliceResult
from firth.words.word_model import WordOptions

MAX_NGRAM = 100
MAX_BUCKETS = 1 << 28  # the table of their rows takes 1 GB
CHUNK_ROWS = 1 << 12  # few enough to stay in the cache
MAX_HELD_OUT = 2000  # texts; the standard error of the accuracy is then about 1%
#: From benchmarks/supervised_defaults.py: enough steps for few texts, and no more epochs than useful for many.
MIN_STEPS, MAX_EPOCHS, LARGE_TEXTS, DEFAULT_RATE = 250_000, 100, 200_000, 0.5


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(WordOptions):
    """Options of the text classifier."""

    limits: ClassVar[tuple[str, ...]] = (
        "Only labels of the training data can be predicted, also for texts to which none applies.",
        "Word order is seen within word n-grams only (word_ngrams).",
        "Probabilities are not calibrated.",
    )
    dim: int = option(100, "vector dimension", low=1, high=65536)
    loss: str = option("softmax", "loss; hierarchical is fast for many labels", choices=kernel.LOSSES)
    negatives: int = option(5, "negative samples per text (loss=negative)", low=1, high=1000)
    word_ngrams: int = option(1, "maximum length of word n-grams", low=1, high=MAX_NGRAM)
    minn: int = option(0, "minimum length of character n-grams", low=0, high=MAX_NGRAM)
    maxn: int = option(0, "maximum length of character n-grams; 0 = no n-grams", low=0, high=MAX_NGRAM)
    buckets: int = option(2_000_000, "number of hash buckets for n-grams", low=1, high=MAX_BUCKETS)
    epochs: int | None = option(None, "passes over the texts; none = automatic, 100 to 5 by their number", low=1)
    learning_rate: float | None = option(
        None, "initial learning rate, decayed linearly to 0; none = 0.5", low=1e-9, high=100
    )
    min_count: int = option(1, "minimum count of a word", low=1)
    tokenizer: str | Callable[[str], list[str]] = option(
        "words",
        "tokenizer; fasttext splits at ASCII whitespace and appends </s>; in Python also a function",
        choices=(*TOKENIZERS, FASTTEXT),
        functions=True,
    )
    held_out: float = option(
        0.1, "share of the texts held out to measure accuracy (at most 2,000); 0 = none", low=0, high=0.9
    )

    def for_texts(self, texts: int) -> ClassifierOptions:
        """Return these options with automatic values for unset epochs and learning_rate."""
        epochs = min(MAX_EPOCHS, max(10 if texts < LARGE_TEXTS else 5, MIN_STEPS // max(1, texts)))
        return self.resolved(epochs=epochs, learning_rate=DEFAULT_RATE)

    @property
    def hashed(self) -> bool:
        """Whether n-grams are used."""
        return self.maxn > 0 or self.word_ngrams > 1

    def read_examples(self, data: Any, run: Run) -> EncodedExamples:
        """Read labeled texts with all their words, whatever min_count is."""
        if self.maxn < self.minn:
            raise FirthError(
                "invalid_value",
                "{option} must be at most maxn={maxn}; got {got}.",
                option=f"{type(self).__name__}.minn",
                maxn=self.maxn,
                got=self.minn,
            )
        examples = read_labeled_texts(
            data, tokenizer=self.tokenizer, lowercase=self.lowercase, phrases=self.phrases, run=run
        )
        labels = examples.labels
        if len(labels) < 2:
            got = f"only {labels.tokens[0]!r}" if len(labels) else "none"
            raise FirthError(
                "too_few",
                "{method} needs texts with at least two different labels; got {got}.",
                method=type(self).__name__,
                got=got,
            )
        without = {"label": np.diff(examples.label_starts) == 0, "word": np.diff(examples.tokens.starts) == 0}
        for part, missing in without.items():
            if missing.any():
                run.report.note(
                    f"{missing.sum():,} of {len(missing):,} texts have no {part} and are not used for training.",
                    code=f"texts_without_{part}s",
                )
        return examples

    def choose_words(self, words: Vocabulary) -> Vocabulary:
        """Return the vocabulary limited by min_count and max_vocabulary."""
        count = int(np.searchsorted(-words.counts, -self.min_count, side="right"))  # most frequent first
        count = min(count, self.max_vocabulary or count)
        if not count:
            raise FirthError(
                "empty_vocabulary",
                "No word occurs min_count={min_count} times; the most frequent of {n_words:,} words occurs {count:,} "
                "times. Lower min_count.",
                min_count=self.min_count,
                n_words=len(words),
                count=int(words.counts[0]),
            )
        dropped = words.dropped_types + len(words) - count
        tokens_dropped = words.dropped_tokens + int(words.counts[count:].sum())
        settings = {"min_count": self.min_count, "dropped_types": dropped, "dropped_tokens": tokens_dropped}
        return Vocabulary(words.tokens[:count], words.counts[:count], **settings)


@dataclass
class TextProgress(Progress):
    """Progress of a run, with its position in the shuffled texts."""

    position: int = 0


class Training(Loop):
    """Training loop; texts are shuffled in each epoch."""

    unit: ClassVar[str] = "texts"
    progress: TextProgress
    method: ClassifierOptions

    def __init__(self, method: ClassifierOptions, examples: EncodedExamples, run: Run, start: Model | None) -> None:
        self.held_out = held_out_texts(examples, method.held_out, run.seed)
        self.rows = np.setdiff1d(np.arange(len(examples.tokens)), self.held_out)
        super().__init__(method.for_texts(len(self.rows)), examples.fingerprint, run, len(self.rows))
        self.examples = examples
        self.vocabulary = method.choose_words(examples.tokens.vocabulary)
        self.counts = trained_counts(examples, self.held_out)
        # Several threads can only be used without locks (Hogwild), so deterministic runs use one.
        self.threads = 1 if run.deterministic else run.cores
        words = examples.tokens.vocabulary.tokens
        features = kernel.Inputs(
            words=len(self.vocabulary),
            hashes=word_hashes(words),
            ngrams=ngrams(words, method.minn, method.maxn, method.buckets),
            bucket_rows=np.zeros(0, dtype=np.int32),
            word_ngrams=method.word_ngrams,
        )
        self.buckets = np.zeros(0, dtype=np.int32)
        if method.hashed:
            excluded = self.held_out.tolist(), np.flatnonzero(self.counts == 0).astype(np.int32)
            self.buckets = kernel.touched_buckets(examples.texts, features, method.buckets, run.cores, *excluded)
        rows = rows_of_buckets(method, len(self.vocabulary), self.buckets, zero_row=True)
        features = kernel.Inputs(features.words, features.hashes, features.ngrams, rows, features.word_ngrams)
        self.inputs = self.first_inputs(start)
        self.outputs = kernel.new_outputs(len(examples.labels), method.dim)
        task = kernel.Task(
            examples.texts, features, self.inputs, self.outputs, examples.labels.counts, method.loss, method.negatives
        )
        self.trainer = kernel.native_trainer(task)
        self.progress = TextProgress()
        self._order = (0, np.zeros(0, dtype=np.int64))

    def first_inputs(self, start: Model | None) -> Table:
        """Return initial input rows: uniform in ±1/dim, as in fastText, or the word vectors of `start`.

        If n-grams are hashed, the last row stays zero; it stands for the buckets without a training n-gram.
        """
        dim, words = self.method.dim, len(self.vocabulary)
        filled = words + len(self.buckets)
        table = new_table(filled + self.method.hashed, dim)
        random = np.random.default_rng(self.run.seed)
        for first in range(0, filled, CHUNK_ROWS):
            part = table[first : min(first + CHUNK_ROWS, filled), :dim]
            part[:] = random.random(part.shape, dtype=np.float32)
            part -= np.float32(0.5)
            part *= np.float32(2 / dim)
        if start is not None:
            if isinstance(start, Predicts):
                raise FirthError(
                    "incompatible_start",
                    "start must be a model of word vectors, not a classifier, whose labels would be lost; got {got!r}. "
                    "Train on all examples together.",
                    got=start,
                )
            if not isinstance(start, HasVectors) or start.vectors.dim != dim:
                raise FirthError(
                    "incompatible_start",
                    "start must be a model of words with dim={dim}; got {got!r}.",
                    dim=dim,
                    got=start,
                )
            start_rows = [(row, start.vectors.rows.get(word)) for row, word in enumerate(self.vocabulary.tokens)]
            pairs = np.array([pair for pair in start_rows if pair[1] is not None], dtype=np.int64).reshape(-1, 2)
            if not len(pairs):
                raise FirthError(
                    "incompatible_start",
                    "start has no vector for any of the {words:,} words of the examples, such as {example!r}.",
                    words=words,
                    example=self.vocabulary.tokens[0],
                )
            table[pairs[:, 0], :dim] = start.vectors.matrix[pairs[:, 1]]
        return table

    @property
    def tables(self) -> dict[str, Table]:
        """The trained arrays by name, as checkpoints store them."""
        return {"inputs": self.inputs, "outputs": self.outputs}

    def position(self) -> int:
        """Return the number of texts trained in this epoch."""
        return self.progress.position

    def order(self, seed: int) -> NDArray[np.int64]:
        """Return the texts in random order for an epoch; files are often sorted by label, which harms training."""
        if self._order[0] != seed or not len(self._order[1]):
            self._order = (seed, self.rows[np.random.default_rng(seed).permutation(self.size)])
        return self._order[1]

    def train(self, units: float, seed: int) -> SliceResult:
        """Train about `units` texts."""
        progress = self.progress
        last = min(self.size, progress.position + max(32 * self.threads, int(units)))
        loss, texts = self.trainer.train(self.order(seed), progress.position, last, *self.rates(), seed, self.threads)
        progress.position = last
        return SliceResult(loss, texts, last == self.size)

    def rates(self) -> tuple[float, float]:
        """Return the learning rates at the start and end of this epoch.

        The rate decays with the share of texts trained, or with the share of the time budget if that is larger.
        """
        rate, epochs = self.method.learning_rate or DEFAULT_RATE, self.epochs
        scales = [1 - (self.progress.epoch + share) / epochs for share in (0, 1)]
        if self.run.budget:
            spent = min(1.0, self.progress.seconds / self.run.budget)
            if spent > self.done() / (epochs * self.size):
                scales = [1 - spent] * 2
        return rate * scales[0], rate * scales[1]

    def end_epoch(self) -> dict[str, float]:
        """Reset the position."""
        self.progress.position = 0
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run."""
        progress, tokens = self.progress, self.examples.tokens
        words = progress.words * tokens.raw_tokens / max(1, len(tokens))
        return super().metrics() | {"words_per_second": words / progress.seconds if progress.seconds else 0.0}


def held_out_texts(examples: EncodedExamples, share: float, seed: int) -> NDArray[np.int64]:
    """Return the held-out texts in order: sampled in proportion to labels, leaving each label at least one text."""
    labels, words = np.diff(examples.label_starts), np.diff(examples.tokens.starts)
    usable = np.flatnonzero((labels > 0) & (words > 0))
    count = min(MAX_HELD_OUT, round(share * len(usable)))
    if not count:
        return np.zeros(0, np.int64)
    drawn = np.random.default_rng(seed).permutation(usable)
    first = examples.label_ids[examples.label_starts[drawn]]
    by_label = drawn[np.argsort(first, kind="stable")]
    held_out = np.sort(by_label[((np.arange(count) + 0.5) * len(usable) / count).astype(np.int64)])
    label_ids = [examples.label_ids[examples.label_starts[row] : examples.label_starts[row + 1]] for row in held_out]
    remaining = examples.labels.counts - np.bincount(np.concatenate(label_ids), minlength=len(examples.labels))
    return held_out[[bool((remaining[ids] > 0).all()) for ids in label_ids]]


def trained_counts(examples: EncodedExamples, held_out: NDArray[np.int64]) -> NDArray[np.int64]:
    """Return the count of each word in the training texts."""
    ids, starts, words = examples.tokens.ids, examples.tokens.starts, examples.tokens.vocabulary
    held_out_ids = [ids[starts[row] : starts[row + 1]] for row in held_out]
    return np.asarray(words.counts - np.bincount(np.concatenate([ids[:0], *held_out_ids]), minlength=len(words)))


def rows_of_buckets(
    method: ClassifierOptions, words: int, buckets: NDArray[np.int32], zero_row: bool
) -> NDArray[np.int32]:
    """Return the row of each bucket: rows after the words for `buckets`, and the last row or −1 for all others."""
    if not method.hashed:
        return np.zeros(0, dtype=np.int32)
    rows = np.full(method.buckets, words + len(buckets) if zero_row else -1, dtype=np.int32)
    rows[buckets] = np.arange(words, words + len(buckets), dtype=np.int32)
    return rows
