"""Learning to label texts as fastText does (Joulin et al. 2016): the options and the epochs.

The arithmetic stands in `kernels/classify.py`, what comes out in `classifier`.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
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
from firth.training.epoch_loop import Loop, Progress, Slice
from firth.words.word_model import WordOptions

MOST_NGRAM = 100
MOST_BUCKETS = 1 << 28  # a table says where each has its row: 1 GB
AT_A_TIME = 1 << 12  # rows: few enough to stay in the cache
MOST_HELD_OUT = 2000  # texts: their accuracy has a standard error of about 1%
#: Chosen by benchmarks/supervised_defaults.py: enough steps for few texts, and no more passes than help for many.
STEPS, MOST_EPOCHS, MANY, RATE = 250_000, 100, 200_000, 0.5


@dataclass(frozen=True, kw_only=True)
class ClassifierOptions(WordOptions):
    """What a text is made of, and how it is learned."""

    dim: int = option(100, "length of the vectors", low=1, high=65536)
    loss: str = option("softmax", "how labels compete; hierarchical: quick for many labels", choices=kernel.LOSSES)
    negatives: int = option(5, "noise labels for each text (loss=negative)", low=1, high=1000)
    word_ngrams: int = option(1, "longest run of words that counts as one feature", low=1, high=MOST_NGRAM)
    minn: int = option(0, "shortest run of characters that counts as a feature", low=0, high=MOST_NGRAM)
    maxn: int = option(0, "longest one; 0 = none", low=0, high=MOST_NGRAM)
    buckets: int = option(2_000_000, "places that runs of words and characters are hashed to", low=1, high=MOST_BUCKETS)
    epochs: int = option(0, "passes over the texts; 0 = chosen by their number (100 to 5)", low=0)
    learning_rate: float = option(0.0, "at the start, it falls to 0 linearly; 0 = chosen (0.5)", low=0, high=100)
    min_count: int = option(1, "words that occur less often are left out", low=1)
    tokenizer: str | Callable[[str], list[str]] = option(
        "words",
        "how text is split; fasttext: at ASCII white space, with </s> at the end; in Python also a function",
        choices=(*TOKENIZERS, FASTTEXT),
        functions=True,
    )
    held_out: float = option(
        0.1, "share of the texts (at most 2,000) that is not trained on but scored; 0 = none", low=0, high=0.9
    )

    def for_texts(self, texts: int) -> ClassifierOptions:
        """These options with a value for each that was left to be chosen. What is given stays."""
        epochs = min(MOST_EPOCHS, max(10 if texts < MANY else 5, STEPS // max(1, texts)))
        return replace(self, epochs=self.epochs or epochs, learning_rate=self.learning_rate or RATE)

    @property
    def hashed(self) -> bool:
        """Whether n-grams need rows."""
        return self.maxn > 0 or self.word_ngrams > 1

    def read_examples(self, data: Any, run: Run) -> EncodedExamples:
        """Labelled texts, with every word that they have."""
        if self.maxn < self.minn:
            raise FirthError(
                "invalid_value",
                "{method}.minn must be at most maxn={maxn}; got {got}.",
                method=type(self).__name__,
                maxn=self.maxn,
                got=self.minn,
            )
        examples = read_labeled_texts(
            data, tokenizer=self.tokenizer, lowercase=self.lowercase, phrases=self.phrases, run=run
        )
        labels = examples.labels
        if len(labels) < 2:
            found = f"only {labels.tokens[0]!r}" if len(labels) else "none"
            raise FirthError(
                "too_few",
                "{method} needs texts with at least two different labels; got {got}.",
                method=type(self).__name__,
                got=found,
            )
        told = {"label": np.diff(examples.label_starts) == 0, "word": np.diff(examples.tokens.starts) == 0}
        for what, missing in told.items():
            if missing.any():
                run.report.note(f"{missing.sum():,} of {len(missing):,} texts have no {what} and are not learned from.")
        return examples

    def choose_words(self, words: Vocabulary) -> Vocabulary:
        """The words that get a vector: frequent enough, and not too many."""
        count = int(np.searchsorted(-words.counts, -self.min_count, side="right"))  # most frequent first
        count = min(count, self.max_vocabulary or count)
        if not count:
            raise FirthError(
                "empty_vocabulary",
                "No word occurs min_count={min_count} times: the most frequent of {n_words:,} occurs {count:,} "
                "times. A smaller min_count keeps some.",
                min_count=self.min_count,
                n_words=len(words),
                count=int(words.counts[0]),
            )
        dropped = words.dropped_types + len(words) - count
        tokens_dropped = words.dropped_tokens + int(words.counts[count:].sum())
        facts = {"min_count": self.min_count, "dropped_types": dropped, "dropped_tokens": tokens_dropped}
        return Vocabulary(words.tokens[:count], words.counts[:count], **facts)


@dataclass
class Reading(Progress):
    """Where in the shuffled texts a run stands."""

    position: int = 0


class Training(Loop):
    """The tables and the loop over them. The texts come in another random order in each epoch."""

    unit: ClassVar[str] = "texts"
    progress: Reading

    def __init__(self, method: ClassifierOptions, examples: EncodedExamples, run: Run, start: Model | None) -> None:
        self.asked = method
        self.held_out = held_out_texts(examples, method.held_out, run.seed)
        self.rows = np.setdiff1d(np.arange(len(examples.tokens)), self.held_out)
        super().__init__(method.for_texts(len(self.rows)), examples.fingerprint, run, len(self.rows))
        self.examples = examples
        self.vocabulary = method.choose_words(examples.tokens.vocabulary)
        self.counts = trained_counts(examples, self.held_out)
        # Racing threads are the only way to use several: deterministic means one.
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
            apart = self.held_out.tolist(), np.flatnonzero(self.counts == 0).astype(np.int32)
            self.buckets = kernel.touched_buckets(examples.texts, features, method.buckets, run.cores, *apart)
        rows = rows_of_buckets(method, len(self.vocabulary), self.buckets, zero_row=True)
        features = kernel.Inputs(features.words, features.hashes, features.ngrams, rows, features.word_ngrams)
        self.inputs = self.first_inputs(start)
        self.outputs = kernel.new_outputs(len(examples.labels), method.dim)
        task = kernel.Task(
            examples.texts, features, self.inputs, self.outputs, examples.labels.counts, method.loss, method.negatives
        )
        self.trainer = kernel.native_trainer(task)
        self.progress = Reading()
        self._order = (0, np.zeros(0, dtype=np.int64))

    def first_inputs(self, start: Model | None) -> Table:
        """Drawn from ±1/dim, as fastText does; words of `start` begin with its vectors. Where n-grams are hashed, the
        last row stays zero: buckets that the training texts don't touch lead there."""
        dim, words = self.method.dim, len(self.vocabulary)
        filled = words + len(self.buckets)
        table = new_table(filled + self.method.hashed, dim)
        random = np.random.default_rng(self.run.seed)
        for first in range(0, filled, AT_A_TIME):
            part = table[first : min(first + AT_A_TIME, filled), :dim]
            part[:] = random.random(part.shape, dtype=np.float32)
            part -= np.float32(0.5)
            part *= np.float32(2 / dim)
        if start is not None:
            if isinstance(start, Predicts):
                raise FirthError(
                    "incompatible_start",
                    "A classifier cannot continue from another, whose labels would be lost. Fit on all examples "
                    "together, or give start a model of words; got {got!r}.",
                    got=start,
                )
            if not isinstance(start, HasVectors) or start.vectors.dim != dim:
                raise FirthError(
                    "incompatible_start",
                    "start must be a model of words with dim={dim}; got {got!r}.",
                    dim=dim,
                    got=start,
                )
            known = [(row, start.vectors.rows.get(word)) for row, word in enumerate(self.vocabulary.tokens)]
            pairs = np.array([pair for pair in known if pair[1] is not None], dtype=np.int64).reshape(-1, 2)
            if not len(pairs):
                raise FirthError(
                    "incompatible_start",
                    "start has a vector for none of the {words:,} words of the examples, such as {example!r}.",
                    words=words,
                    example=self.vocabulary.tokens[0],
                )
            table[pairs[:, 0], :dim] = start.vectors.matrix[pairs[:, 1]]
        return table

    @property
    def tables(self) -> dict[str, Table]:
        return {"inputs": self.inputs, "outputs": self.outputs}

    def position(self) -> int:
        return self.progress.position

    def order(self, seed: int) -> NDArray[np.int64]:
        """The texts, shuffled for an epoch: files are often sorted by label, which would be learned and forgotten."""
        if self._order[0] != seed or not len(self._order[1]):
            self._order = (seed, self.rows[np.random.default_rng(seed).permutation(self.size)])
        return self._order[1]

    def train(self, units: float, seed: int) -> Slice:
        progress = self.progress
        to = min(self.size, progress.position + max(32 * self.threads, int(units)))
        loss, texts = self.trainer.train(self.order(seed), progress.position, to, *self.rates(), seed, self.threads)
        progress.position = to
        return Slice(loss, texts, to == self.size)

    def rates(self) -> tuple[float, float]:
        """The learning rate at the first and after the last text of this epoch. Under a budget that binds, the share of
        time spent takes the place of the share of texts."""
        rate, epochs = self.method.learning_rate, self.method.epochs
        at = [1 - (self.progress.epoch + share) / epochs for share in (0, 1)]
        if self.run.budget:
            spent = min(1.0, self.progress.seconds / self.run.budget)
            if spent > self.done() / (epochs * self.size):
                at = [1 - spent] * 2
        return rate * at[0], rate * at[1]

    def end_epoch(self) -> dict[str, float]:
        self.progress.position = 0
        return {}

    def figures(self) -> dict[str, Any]:
        progress, tokens = self.progress, self.examples.tokens
        words = progress.words * tokens.raw_tokens / max(1, len(tokens))
        return super().figures() | {"words_per_second": words / progress.seconds if progress.seconds else 0.0}


def held_out_texts(examples: EncodedExamples, share: float, seed: int) -> NDArray[np.int64]:
    """Texts to score, in order: drawn from all labels in proportion, and never the last one of a label."""
    labels, words = np.diff(examples.label_starts), np.diff(examples.tokens.starts)
    known = np.flatnonzero((labels > 0) & (words > 0))
    count = min(MOST_HELD_OUT, round(share * len(known)))
    if not count:
        return np.zeros(0, np.int64)
    drawn = np.random.default_rng(seed).permutation(known)
    first = examples.label_ids[examples.label_starts[drawn]]
    by_label = drawn[np.argsort(first, kind="stable")]
    held = np.sort(by_label[((np.arange(count) + 0.5) * len(known) / count).astype(np.int64)])
    own = [examples.label_ids[examples.label_starts[row] : examples.label_starts[row + 1]] for row in held]
    left = examples.labels.counts - np.bincount(np.concatenate(own), minlength=len(examples.labels))
    return held[[bool((left[ids] > 0).all()) for ids in own]]


def trained_counts(examples: EncodedExamples, held_out: NDArray[np.int64]) -> NDArray[np.int64]:
    """How often each word stands in the texts that are trained on."""
    ids, starts, words = examples.tokens.ids, examples.tokens.starts, examples.tokens.vocabulary
    held = [ids[starts[row] : starts[row + 1]] for row in held_out]
    return np.asarray(words.counts - np.bincount(np.concatenate([ids[:0], *held]), minlength=len(words)))


def rows_of_buckets(
    method: ClassifierOptions, words: int, buckets: NDArray[np.int32], zero_row: bool
) -> NDArray[np.int32]:
    """The row of each bucket: behind the words those of `buckets`; of the others the last row, or −1, none."""
    if not method.hashed:
        return np.zeros(0, dtype=np.int32)
    rows = np.full(method.buckets, words + len(buckets) if zero_row else -1, dtype=np.int32)
    rows[buckets] = np.arange(words, words + len(buckets), dtype=np.int32)
    return rows
