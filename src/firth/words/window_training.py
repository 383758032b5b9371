"""Training of word vectors by prediction within context windows: options, epochs, checkpoints and resuming.

The updates are implemented in `kernels/predict.py` (Mikolov et al. 2013a and 2013b).
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, Protocol, TypeVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.tokens import Tokens
from firth.data.vocabulary import Vocabulary
from firth.kernels import predict as kernel
from firth.training.epoch_loop import Loop, Progress, SliceResult, TrainsInEpochs
from firth.training.gpu_choice import on_gpu
from firth.training.network_options import networks
from firth.words.window_model import Word2VecModel
from firth.words.word_model import (
    ONE_SENSE,
    UNSEEN_WORDS,
    WORD_ORDER,
    TextModel,
    WordModel,
    WordOptions,
    no_pairs_error,
)

PROBED = 5000  # tokens on which the loss is measured before and after training
LEAST_RATE = 1e-4  # final learning rate as a share of the initial one, as in word2vec
MOST_STREAMS, MOST_WINDOWS = 8, 32  # deterministic runs: streams, and windows per stream between two merges
MOST_SOFTMAX_WORDS = 50_000
MAX_AUTOMATIC_EPOCHS = 200
GROUP_MIN_VOCABULARY = 5000  # windows are only grouped in larger vocabularies; sharing negatives harms smaller ones


def automatic_epochs(tokens: int, min_epochs: int, large_text: int) -> int:
    """Return the default number of epochs for a corpus of this size.

    It is `min_epochs` from `large_text` tokens on. Below, it grows with the square root of large_text / tokens, because
    vectors would otherwise stay close to their random initial values (benchmarks/small_data.py).
    """
    return max(min_epochs, min(MAX_AUTOMATIC_EPOCHS, round(min_epochs * math.sqrt(large_text / max(1, tokens)))))


class Group(NamedTuple):
    """Adjacent windows that are trained together and share negative samples."""

    tokens: int = 1  # corpus tokens whose windows form a group
    drawn: float = 1.0  # negative samples drawn per group, as a multiple of `negatives`
    counted: float = 1.0  # weight of these samples in the loss, as a multiple of `negatives`


AnyWindowMethod = TypeVar("AnyWindowMethod", bound="WindowMethod")


@dataclass(frozen=True, kw_only=True)
class WindowMethod(WordOptions):
    """Options of the methods that predict within context windows."""

    limits: ClassVar[tuple[str, ...]] = (
        ONE_SENSE,
        UNSEEN_WORDS,
        WORD_ORDER,
    )
    distributed: ClassVar[str] = "reading the text; training runs in this process"
    architecture: ClassVar[str]  # of `kernels.predict.Task`
    gpu: ClassVar[bool] = False  # whether training on a GPU is implemented
    group: ClassVar[Group] = Group()  # used from GROUP_MIN_VOCABULARY words on
    min_epochs: ClassVar[int] = 5  # default epochs from `large_text` tokens on
    large_text: ClassVar[int] = 4_000_000

    dim: int = option(100, "vector dimension", low=1, high=65536)
    window: int = option(5, "context words on each side", low=1, high=kernel.MAX_WINDOW)
    loss: str = option("negative", "negative sampling, hierarchical softmax, or softmax", choices=kernel.LOSSES)
    negatives: int = option(5, "negative samples per window (loss=negative)", low=1, high=1000)
    negative_exponent: float = option(0.75, "negative samples are drawn by count to this power", low=-2, high=2)
    subsample: float = option(1e-3, "frequency above which words are subsampled; 0 = off", low=0, high=1)
    shrink_window: bool = option(True, "draw the size of each window from 1 to window, so that near words weigh more")
    epochs: int | None = option(
        None, "passes over the corpus; none = 5 from 4 million words on, more for smaller corpora, up to 200", low=1
    )
    learning_rate: float = option(0.025, "initial learning rate, decayed linearly to 0", low=1e-9, high=100)

    def check_run(self, run: Run) -> None:
        """Raise an error if the method cannot run on the device."""
        if self.trains_copies and run.cluster:
            from firth.training.replicas import check_replicas

            check_replicas(run)
        elif self.gpu:
            on_gpu(self, run, 0)
        else:
            super().check_run(run)

    def kernel_settings(self) -> dict[str, Any]:
        """Return the fields of `kernels.predict.Task` that are specific to this method."""
        return {}

    def read_words(
        self, data: Any, run: Run, start: TextModel | None = None, keys: bool = False
    ) -> tuple[Tokens, float]:
        """Read the corpus and check that it can be trained on; return the tokens and the seconds taken."""
        started = time.monotonic()
        tokens = self.read(data, run, start, keys)
        self.check_words(tokens.vocabulary)
        return tokens, time.monotonic() - started

    def sized(self: AnyWindowMethod, tokens: Tokens) -> AnyWindowMethod:
        """Return this method with its unset options chosen by corpus size."""
        epochs = automatic_epochs(len(tokens.ids), self.min_epochs, self.large_text)
        return self.resolved(min_count=max(1, tokens.vocabulary.min_count), epochs=epochs)

    def check_words(self, vocabulary: Vocabulary) -> None:
        """Raise an error if the vocabulary is too small, or too large for the full softmax."""
        words = len(vocabulary)
        if words < 2:
            raise FirthError(
                "empty_vocabulary",
                "{method} needs at least two different words; min_count={min_count} leaves {words} and drops "
                "{dropped_types:,}. Lower min_count.",
                method=type(self).__name__,
                min_count=vocabulary.min_count,
                words=words,
                dropped_types=vocabulary.dropped_types,
            )
        if self.loss == "softmax" and words > MOST_SOFTMAX_WORDS:
            raise FirthError(
                "too_large",
                "loss=softmax supports at most {most_softmax_words:,} words, because every step updates all of them; "
                "got {got:,}. Use loss=hierarchical or max_vocabulary.",
                most_softmax_words=MOST_SOFTMAX_WORDS,
                got=words,
            )


@dataclass(frozen=True, kw_only=True)
class HoldingOut(WindowMethod):
    """Options of SkipGram, CBOW and FastText, which can measure the loss on a part of the corpus."""

    distributed: ClassVar[str] = "reading the text, and training, where each worker has a copy of the tables"
    trains_copies: ClassVar[bool] = True

    held_out: float = option(0.0, "share of the corpus, at its end, on which the loss is measured", low=0, high=0.9)


def read_sentences(method: WindowMethod, data: Any, run: Run, start: TextModel | None) -> tuple[Tokens, float]:
    """Read a corpus for word vectors, where at least one document must have two words."""
    tokens, seconds = method.read_words(data, run, start)
    if np.diff(tokens.starts).max() < 2:
        raise no_pairs_error(method, tokens.vocabulary)
    return tokens, seconds


def fit_word2vec(method: HoldingOut, data: Any, run: Run, start: Model | None) -> Word2VecModel:
    """Train SkipGram or CBOW, on the CPU or a GPU."""
    dim = method.dim
    if start is not None and not (isinstance(start, WordModel) and start.vectors.dim == dim):
        raise FirthError(
            "incompatible_start", "start must be a model of words with dim={dim}; got {got!r}.", dim=dim, got=start
        )
    tokens, reading_seconds = read_sentences(method, data, run, start)
    method, trainer_class = method.sized(tokens), Training
    if run.cluster:
        from firth.words.window_replicas import ReplicatedTraining

        trainer_class = ReplicatedTraining
    elif on_gpu(method, run, (method.epochs or 0) * len(tokens.ids)):
        with networks():
            from firth.words.window_training_gpu import CudaTraining
        trainer_class = CudaTraining
    training = trainer_class(method, tokens, run, start, method.held_out)
    metrics = training.go() | {"reading_seconds": reading_seconds}
    words, outputs = (np.ascontiguousarray(table[:, :dim]) for table in (training.inputs, training.outputs))
    vocabulary = merged_vocabulary(tokens.vocabulary, start.known) if start else tokens.vocabulary
    trained_method = method.as_trained(tokens.splitting, vocabulary, run, start)
    return Word2VecModel(trained_method, vocabulary, words, outputs, metrics, tokens.phrases)


@dataclass
class CorpusProgress(Progress):
    """Progress of a run, with its position in the corpus."""

    position: int = 0  # next token (Hogwild threads)
    cursors: list[int] = field(default_factory=list)  # next token of each stream (deterministic runs)


class TrainsWindows(TrainsInEpochs, Protocol):
    """A method whose loss is computed in context windows: what the loop and the kernel need of it."""

    architecture: ClassVar[str]
    group: ClassVar[Group]

    @property
    def dim(self) -> int: ...
    @property
    def window(self) -> int: ...
    @property
    def loss(self) -> str: ...
    @property
    def negatives(self) -> int: ...
    @property
    def negative_exponent(self) -> float: ...
    @property
    def subsample(self) -> float | None: ...
    @property
    def shrink_window(self) -> bool: ...
    @property
    def learning_rate(self) -> float: ...

    def kernel_settings(self) -> dict[str, Any]:
        """The fields of `kernels.predict.Task` that are specific to the method."""


class Training(Loop):
    """Training loop over a corpus: Hogwild threads, or ordered streams in deterministic runs."""

    unit: ClassVar[str] = "words"
    progress: CorpusProgress
    method: TrainsWindows

    def __init__(
        self, method: TrainsWindows, tokens: Tokens, run: Run, start: TextModel | None = None, held_out: float = 0
    ) -> None:
        super().__init__(method, tokens.fingerprint, run, int(len(tokens.ids) * (1 - held_out)))
        self.tokens, self.continued = tokens, start is not None
        # Counts over all corpora, as the model stores them: the Huffman tree must be reproducible from the model.
        self.total_counts = (merged_vocabulary(tokens.vocabulary, start.known) if start else tokens.vocabulary).counts
        self.inputs, self.outputs = self.first_tables(start)
        self.grouping = self.choose_group()
        self.trainer = kernel.native_trainer(self.task())
        # Each softmax window updates every row, too many to copy and merge. Deterministic runs use one thread for it.
        single_thread = run.deterministic and method.loss == "softmax"
        self.ordered = run.deterministic and not single_thread
        self.threads = 1 if single_thread else run.cores
        # Streams are merged after each round. In small corpora they soon update the same rows, so rounds are shorter.
        self.streams = max(1, min(MOST_STREAMS, self.size // 5000))
        self.tokens_per_round = max(8, min(MOST_WINDOWS, self.size // (1000 * self.streams)))
        self.progress = CorpusProgress()
        if run.budget and run.deterministic:
            run.report.note(
                "A run with a time budget is not deterministic: the word at which it stops varies.",
                code="nondeterministic_budget",
            )

    def first_tables(self, start: TextModel | None) -> tuple[kernel.Table, kernel.Table]:
        """Return initial inputs (uniform in ±1/(2·dim)) and outputs (zero), as in word2vec, or the rows of `start`."""
        words, dim, tree = len(self.tokens.vocabulary), self.method.dim, self.method.loss == "hierarchical"
        inputs = random_table(words, dim, self.run.seed)
        outputs = kernel.new_table(words - 1 if tree else words, dim)
        if isinstance(start, WordModel):
            rows = len(start.known)
            inputs[:rows, :dim] = start.vectors.matrix[:rows]
            # Nodes of a Huffman tree cannot be reused in another tree.
            if len(start.outputs) == len(start.vectors) and not tree:
                outputs[:rows, :dim] = start.outputs[:rows]
        return inputs, outputs

    @property
    def tables(self) -> dict[str, kernel.Table]:
        """The trained arrays by name, as checkpoints store them."""
        return {"inputs": self.inputs, "outputs": self.outputs}

    def choose_group(self) -> dict[str, Any]:
        """Return the kernel settings for grouped windows; none if windows are trained one by one."""
        method, group = self.method, self.method.group
        ungrouped = method.loss != "negative" or not method.kernel_settings().get("shared", True)
        if group.tokens == 1 or ungrouped or len(self.tokens.vocabulary) < GROUP_MIN_VOCABULARY:
            return {}
        drawn, counted = (math.ceil(share * method.negatives) for share in (group.drawn, group.counted))
        return {"group": group.tokens, "group_negatives": drawn, "negatives": counted}

    def task(self) -> kernel.Task:
        """Return the kernel's arguments."""
        method, counts = self.method, self.tokens.vocabulary.counts
        assert method.subsample is not None
        settings = {"architecture": method.architecture, "shrink": method.shrink_window, **method.kernel_settings()}
        settings |= {"negatives": method.negatives, **self.grouping}
        return kernel.Task(
            ids=self.tokens.ids,
            starts=np.ascontiguousarray(self.tokens.starts),
            inputs=self.inputs,
            outputs=self.outputs,
            keep=kernel.keep_thresholds(counts, method.subsample),
            noise=kernel.alias_table(kernel.noise_weights(counts, method.negative_exponent)),
            paths=kernel.huffman_paths(self.total_counts) if method.loss == "hierarchical" else kernel.no_paths(),
            loss=method.loss,
            window=method.window,
            last=self.size,
            **settings,
        )

    def position(self) -> int:
        """Return the number of tokens trained in this epoch."""
        progress = self.progress
        if self.ordered and progress.cursors:
            return sum(progress.cursors) - sum(self.trainer.stream_starts(self.streams)[:-1])
        return progress.position

    def is_inside(self) -> bool:
        """Return whether the position is within the corpus."""
        progress = self.progress
        if not progress.cursors:
            return progress.position <= self.size
        starts = self.trainer.stream_starts(self.streams)
        cursor_ranges = zip(starts[:-1], progress.cursors, starts[1:], strict=True)
        return self.ordered and all(
            type(cursor) is int and first <= cursor <= last for first, cursor, last in cursor_ranges
        )

    def train(self, units: float, seed: int) -> SliceResult:
        """Train about `units` tokens: one Hogwild call, or some rounds of ordered streams."""
        progress = self.progress
        first, last = self.rates()
        if self.ordered:
            starts = self.trainer.stream_starts(self.streams)
            cursors = np.array(progress.cursors or starts[:-1], dtype=np.int64)
            rounds = max(1, int(units / self.streams / self.tokens_per_round))
            windows = self.tokens_per_round // self.grouping.get("group", 1)
            tally = self.trainer.ordered(cursors, windows, rounds, seed, first, last, self.threads)
            progress.cursors = cursors.tolist()
            return SliceResult(tally[0], tally[1], progress.cursors == starts[1:])
        blocks = max(self.threads, int(units / kernel.BLOCK))
        last_position = min(self.size, progress.position + blocks * kernel.BLOCK)
        tally = self.trainer.racing(progress.position, last_position, seed, first, last, self.threads)
        progress.position = last_position
        return SliceResult(tally[0], tally[1], last_position == self.size)

    def rates(self) -> tuple[float, float]:
        """Return the learning rates at the first and last word of this epoch.

        The rate decays with the share of words trained, or with the share of the time budget if that is larger.
        """
        rate, epochs = self.method.learning_rate, self.epochs
        scales = [1 - (1 - LEAST_RATE) * (self.progress.epoch + share) / epochs for share in (0, 1)]
        if self.run.budget:
            spent = min(1.0, self.progress.seconds / self.run.budget)
            if spent > self.done() / (epochs * self.size):
                scales = [1 - (1 - LEAST_RATE) * spent] * 2
        return rate * scales[0], rate * scales[1]

    def end_epoch(self) -> dict[str, float]:
        """Reset the position and return the held-out loss, if there is any."""
        self.progress.position, self.progress.cursors = 0, []
        held_out = self.size < len(self.tokens.ids)
        return {"held_out_loss": self.measured_loss(self.size, len(self.tokens.ids))} if held_out else {}

    def measured_loss(self, first: int, last: int) -> float:
        """Return the loss on a part of the corpus without any update. Negative samples are the same each time."""
        threads = 1 if self.run.deterministic else self.threads
        loss, n_pairs, _ = self.trainer.racing(first, last, self.run.seed, 0.0, 0.0, threads)
        return loss / max(1, n_pairs)

    def probe_loss(self) -> float | None:
        """Return the loss on the first tokens, without any update; None for a continued model."""
        if self.continued:
            return None  # the loss of a trained model may not fall any further
        return self.measured_loss(0, min(self.size, PROBED // 50 if self.method.loss == "softmax" else PROBED))

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run."""
        progress = self.progress
        raw_per_id = self.tokens.raw_tokens / max(1, len(self.tokens.ids))  # speed counts the words of the raw text
        speed = progress.words * raw_per_id / progress.seconds if progress.seconds else 0.0
        return super().metrics() | {
            "words_per_second": speed,
            "tokens": self.tokens.raw_tokens,
            "vocabulary": len(self.tokens.vocabulary),
            "documents": len(self.tokens),
            "data": self.tokens.fingerprint,
            "seed": self.run.seed,
            "deterministic": self.run.deterministic,
            "threads": self.run.cores,
        }


def random_table(rows: int, dim: int, seed: int) -> kernel.Table:
    """Return a table of uniform random numbers in ±1/(2·dim)."""
    table = kernel.new_table(rows, dim)
    table[:, :dim] = (np.random.default_rng(seed).random((rows, dim), dtype=np.float32) - 0.5) / dim
    return table


def merged_vocabulary(new: Vocabulary, old: Vocabulary) -> Vocabulary:
    """Return the vocabulary of a continued model, with the counts of both corpora added."""
    counts = new.counts.copy()
    counts[: len(old)] += old.counts
    dropped = {"dropped_types": new.dropped_types, "dropped_tokens": new.dropped_tokens + old.dropped_tokens}
    return Vocabulary(new.tokens, counts, min_count=new.min_count, **dropped)
