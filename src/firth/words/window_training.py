"""Learning word vectors by predicting neighbours: the options, the epochs, checkpoints and resuming.

The arithmetic stands in `kernels/predict.py`; Mikolov et al. 2013a and 2013b describe it.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels import predict as kernel
from firth.training.epoch_loop import Loop, Progress, Slice
from firth.training.gpu_choice import on_gpu
from firth.training.network_options import learner
from firth.words.window_model import PredictedWords
from firth.words.word_model import TextModel, WordModel, WordOptions, no_neighbours

PROBED = 5000  # tokens on which the loss is measured before and after training
LEAST_RATE = 1e-4  # share of the learning rate that is left at the end, as in word2vec
MOST_STREAMS, MOST_WINDOWS = 8, 32  # of deterministic runs: streams, and windows of each between two merges
MOST_SOFTMAX_WORDS = 50_000
MOST_PASSES = 200  # over a small text, where none are given
GROUPED = 5000  # words of a vocabulary from which on windows are trained in groups: fewer lose by shared noise


def automatic_epochs(tokens: int, least: int, from_tokens: int) -> int:
    """`least` passes over a text of `from_tokens` tokens or more; over a smaller one more, by the square root of its
    size, or its vectors would be left near their random first values (benchmarks/small_data.py)."""
    return max(least, min(MOST_PASSES, round(least * math.sqrt(from_tokens / max(1, tokens)))))


class Group(NamedTuple):
    """Windows that are trained together and share noise words."""

    tokens: int = 1  # raw tokens whose windows they are
    drawn: float = 1.0  # noise words that they share for each of `negatives`
    counted: float = 1.0  # how many these count as, for each of `negatives`


@dataclass(frozen=True, kw_only=True)
class PredictOptions(Method):
    """What all have in common that predict within windows."""

    dim: int = option(100, "length of the vectors", low=1, high=65536)
    window: int = option(5, "words each side", low=1, high=kernel.MAX_WINDOW)
    loss: str = option("negative", "noise words, a Huffman tree, or the exact softmax", choices=kernel.LOSSES)
    negatives: int = option(5, "noise words for each window (loss=negative)", low=1, high=1000)
    negative_exponent: float = option(0.75, "noise words are drawn by count to this power", low=-2, high=2)
    subsample: float = option(
        1e-3, "frequent words are thinned out above this share of the text; 0 = off", low=0, high=1
    )
    shrink_window: bool = option(True, "each centre's window is drawn from 1 to window: near words count more")
    epochs: int | None = option(
        None, "passes over the text; none = 5 from 4 million words on, more for a smaller text, up to 200", low=1
    )
    learning_rate: float = option(0.025, "at the start; it falls to nothing linearly", low=1e-9, high=100)


Windowed = TypeVar("Windowed", bound="WindowMethod")


@dataclass(frozen=True, kw_only=True)
class WindowMethod(WordOptions, PredictOptions):
    """A method that learns by predicting within windows; subclasses say which way round."""

    architecture: ClassVar[str]
    gpu: ClassVar[bool] = False  # it can be trained there, see `on_gpu`
    group: ClassVar[Group] = Group()  # where there are words enough
    least_epochs: ClassVar[int] = 5  # over a text of so many tokens:
    large_text: ClassVar[int] = 4_000_000

    def check_run(self, run: Run) -> None:
        if self.gpu:
            on_gpu(self, run, 0)
        else:
            super().check_run(run)

    def kernel_settings(self) -> dict[str, Any]:
        """What the kernel needs to know beyond the common options."""
        return {}

    def read_words(
        self, data: Any, run: Run, start: TextModel | None = None, keys: bool = False
    ) -> tuple[Tokens, float]:
        """`read`, refusing what can't be learned from, and the seconds it took."""
        began = time.monotonic()
        tokens = self.read(data, run, start, keys)
        self.check_words(tokens.vocabulary)
        return tokens, time.monotonic() - began

    def sized(self: Windowed, tokens: Tokens) -> Windowed:
        """This method with the options that were left out chosen by the size of the text."""
        epochs = automatic_epochs(len(tokens.ids), self.least_epochs, self.large_text)
        return self.resolved(min_count=max(1, tokens.vocabulary.min_count), epochs=epochs)

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Refuses vocabularies too small to predict in, or too large for the exact softmax."""
        words = len(vocabulary)
        if words < 2:
            raise FirthError(
                "empty_vocabulary",
                "{method} needs at least two different words; min_count={min_count} left {words} "
                "({dropped_types:,} dropped). A smaller min_count keeps more.",
                method=type(self).__name__,
                min_count=vocabulary.min_count,
                words=words,
                dropped_types=vocabulary.dropped_types,
            )
        if self.loss == "softmax" and words > MOST_SOFTMAX_WORDS:
            raise FirthError(
                "too_large",
                "loss=softmax touches every word at every step: at most {most_softmax_words:,} words, got "
                "{got:,}; use loss=hierarchical or max_vocabulary.",
                most_softmax_words=MOST_SOFTMAX_WORDS,
                got=words,
            )


@dataclass(frozen=True, kw_only=True)
class PredictingMethod(WindowMethod):
    """A method whose windows give words their vectors."""

    model: ClassVar[type[Model]] = PredictedWords

    held_out: float = option(0.0, "share of the text, at its end, kept to measure the loss on", low=0, high=0.9)

    def read_words(
        self, data: Any, run: Run, start: TextModel | None = None, keys: bool = False
    ) -> tuple[Tokens, float]:
        tokens, seconds = super().read_words(data, run, start, keys)
        if np.diff(tokens.starts).max() < 2:
            raise no_neighbours(self, tokens.vocabulary)
        return tokens, seconds

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a corpus (or Tokens, paths, texts). With `start`, goes on from that model: its words keep
        their vectors, new words are added."""
        if start is not None and not (isinstance(start, WordModel) and start.vectors.dim == self.dim):
            raise FirthError(
                "incompatible_start",
                "start must be a model of words with dim={dim}; got {got!r}.",
                dim=self.dim,
                got=start,
            )
        tokens, reading = self.read_words(data, run, start)
        method, chosen = self.sized(tokens), Training
        if self.gpu and on_gpu(method, run, (method.epochs or 1) * len(tokens.ids)):
            chosen = learner("words.window_training_gpu").CudaTraining
        training = chosen(method, tokens, run, start, self.held_out)
        figures = training.go() | {"reading_seconds": reading}
        words, outputs = (np.ascontiguousarray(table[:, : self.dim]) for table in (training.inputs, training.outputs))
        vocabulary = grown(tokens.vocabulary, start.known) if start else tokens.vocabulary
        kept = method.as_trained(tokens.splitting, vocabulary, run, start)
        return PredictedWords(kept, vocabulary, words, outputs, figures, tokens.phrases)


@dataclass
class Reading(Progress):
    """Where in the text a run stands."""

    position: int = 0  # the next token, for racing threads
    cursors: list[int] = field(default_factory=list)  # the next token of each stream, for deterministic runs


class Training(Loop):
    """The tables and the loop over them."""

    unit: ClassVar[str] = "words"
    progress: Reading

    def __init__(self, method: WindowMethod, tokens: Tokens, run: Run, start: Any = None, held_out: float = 0) -> None:
        super().__init__(method, tokens.fingerprint, run, int(len(tokens.ids) * (1 - held_out)))
        self.tokens, self.continued = tokens, start is not None
        # How often words were met in all texts: what the model will say, and so the tree that it can make again.
        self.met = (grown(tokens.vocabulary, start.known) if start else tokens.vocabulary).counts
        self.inputs, self.outputs = self.first_tables(start)
        self.grouping = self.choose_group()
        self.trainer = kernel.native_trainer(self.task())
        # Each window of a softmax touches every row, too many to copy and merge: there deterministic means one thread.
        alone = run.deterministic and method.loss == "softmax"
        self.ordered = run.deterministic and not alone
        self.threads = 1 if alone else run.cores
        # The fewer words, the sooner two streams change the same rows: small texts merge more often.
        self.streams = max(1, min(MOST_STREAMS, self.size // 5000))
        self.round = max(8, min(MOST_WINDOWS, self.size // (1000 * self.streams)))  # tokens of a stream
        self.progress = Reading()
        if run.budget and run.deterministic:
            run.report.note("A budget of seconds ends a run at another word each time: it can't be deterministic.")

    def first_tables(self, start: WordModel | None) -> tuple[kernel.Table, kernel.Table]:
        """Inputs drawn from ±1/(2·dim), outputs zero, as in word2vec; the rows of `start` where there are any."""
        words, dim, tree = len(self.tokens.vocabulary), self.method.dim, self.method.loss == "hierarchical"
        inputs = drawn_table(words, dim, self.run.seed)
        outputs = kernel.new_table(words - 1 if tree else words, dim)
        if start is not None:
            rows = len(start.known)
            inputs[:rows, :dim] = start.vectors.matrix[:rows]
            if len(start.outputs) == len(start.vectors) and not tree:
                outputs[:rows, :dim] = start.outputs[:rows]  # a tree's nodes mean something else in a new tree
        return inputs, outputs

    @property
    def tables(self) -> dict[str, kernel.Table]:
        return {"inputs": self.inputs, "outputs": self.outputs}

    def choose_group(self) -> dict[str, Any]:
        """How many windows are trained together, how many noise words they share and how many these count as."""
        method, group = self.method, self.method.group
        alone = method.loss != "negative" or not method.kernel_settings().get("shared", True)
        if group.tokens == 1 or alone or len(self.tokens.vocabulary) < GROUPED:
            return {}
        drawn, counted = (math.ceil(share * method.negatives) for share in (group.drawn, group.counted))
        return {"group": group.tokens, "group_negatives": drawn, "negatives": counted}

    def task(self) -> kernel.Task:
        method, counts = self.method, self.tokens.vocabulary.counts
        settings = {"architecture": method.architecture, "shrink": method.shrink_window, **method.kernel_settings()}
        settings |= {"negatives": method.negatives, **self.grouping}
        return kernel.Task(
            ids=self.tokens.ids,
            starts=np.ascontiguousarray(self.tokens.starts),
            inputs=self.inputs,
            outputs=self.outputs,
            keep=kernel.keep_thresholds(counts, method.subsample),
            noise=kernel.alias_table(kernel.noise_weights(counts, method.negative_exponent)),
            paths=kernel.huffman_paths(self.met) if method.loss == "hierarchical" else kernel.no_paths(),
            loss=method.loss,
            window=method.window,
            last=self.size,
            **settings,
        )

    def position(self) -> int:
        progress = self.progress
        if self.ordered and progress.cursors:
            return sum(progress.cursors) - sum(self.trainer.stream_starts(self.streams)[:-1])
        return progress.position

    def is_inside(self) -> bool:
        progress = self.progress
        if not progress.cursors:
            return progress.position <= self.size
        starts = self.trainer.stream_starts(self.streams)
        within = zip(starts[:-1], progress.cursors, starts[1:], strict=True)
        return self.ordered and all(type(at) is int and first <= at <= last for first, at, last in within)

    def train(self, units: float, seed: int) -> Slice:
        progress = self.progress
        first, last = self.rates()
        if self.ordered:
            starts = self.trainer.stream_starts(self.streams)
            cursors = np.array(progress.cursors or starts[:-1], dtype=np.int64)
            rounds = max(1, int(units / self.streams / self.round))
            windows = self.round // self.grouping.get("group", 1)
            tally = self.trainer.ordered(cursors, windows, rounds, seed, first, last, self.threads)
            progress.cursors = cursors.tolist()
            return Slice(tally[0], tally[1], progress.cursors == starts[1:])
        blocks = max(self.threads, int(units / kernel.BLOCK))
        to = min(self.size, progress.position + blocks * kernel.BLOCK)
        tally = self.trainer.racing(progress.position, to, seed, first, last, self.threads)
        progress.position = to
        return Slice(tally[0], tally[1], to == self.size)

    def rates(self) -> tuple[float, float]:
        """The learning rate at the first and the last word of this epoch. Under a budget that binds, the share of time
        spent takes the place of the share of words."""
        rate, epochs = self.method.learning_rate, self.epochs
        at = [1 - (1 - LEAST_RATE) * (self.progress.epoch + share) / epochs for share in (0, 1)]
        if self.run.budget:
            spent = min(1.0, self.progress.seconds / self.run.budget)
            if spent > self.done() / (epochs * self.size):
                at = [1 - (1 - LEAST_RATE) * spent] * 2
        return rate * at[0], rate * at[1]

    def end_epoch(self) -> dict[str, float]:
        self.progress.position, self.progress.cursors = 0, []
        held_out = self.size < len(self.tokens.ids)
        return {"held_out_loss": self.measured_loss(self.size, len(self.tokens.ids))} if held_out else {}

    def measured_loss(self, first: int, last: int) -> float:
        """The loss on a part of the text: the same negative samples each time, and no step taken."""
        threads = 1 if self.run.deterministic else self.threads
        loss, pairs, _ = self.trainer.racing(first, last, self.run.seed, 0.0, 0.0, threads)
        return loss / max(1, pairs)

    def probe_loss(self) -> float | None:
        if self.continued:
            return None  # a trained model may have nothing more to learn
        return self.measured_loss(0, min(self.size, PROBED // 50 if self.method.loss == "softmax" else PROBED))

    def figures(self) -> dict[str, Any]:
        progress = self.progress
        raw = self.tokens.raw_tokens / max(1, len(self.tokens.ids))  # speed is told in words of the text
        speed = progress.words * raw / progress.seconds if progress.seconds else 0.0
        return super().figures() | {
            "words_per_second": speed,
            "tokens": self.tokens.raw_tokens,
            "vocabulary": len(self.tokens.vocabulary),
            "documents": len(self.tokens),
            "data": self.tokens.fingerprint,
            "seed": self.run.seed,
            "deterministic": self.run.deterministic,
            "threads": self.run.cores,
        }


def drawn_table(rows: int, dim: int, seed: int) -> kernel.Table:
    """Numbers from ±1/(2·dim)."""
    table = kernel.new_table(rows, dim)
    table[:, :dim] = (np.random.default_rng(seed).random((rows, dim), dtype=np.float32) - 0.5) / dim
    return table


def grown(new: Vocabulary, old: Vocabulary) -> Vocabulary:
    """The vocabulary of a model that went on: counts of both texts together."""
    counts = new.counts.copy()
    counts[: len(old)] += old.counts
    dropped = {"dropped_types": new.dropped_types, "dropped_tokens": new.dropped_tokens + old.dropped_tokens}
    return Vocabulary(new.tokens, counts, min_count=new.min_count, **dropped)
