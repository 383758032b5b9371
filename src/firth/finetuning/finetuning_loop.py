"""Fine-tuning: texts as token ids, and the training loop of a base network with a new head, over one or more trials.

Trials differ in learning rate and random seed. They are epochs of one run, so that one checkpoint holds all of it: the
weights of the current trial, and the best weights of all trials so far.
"""

from __future__ import annotations

import math
from abc import abstractmethod
from collections.abc import Callable, Iterator, Sequence
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TooLongError, note_truncated
from firth.core.report import Report
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.finetuning.finetuning_options import TuningOptions
from firth.nets.attention import Packed
from firth.nets.encoder import Encoder
from firth.nets.tuned import Tuned
from firth.training.gradient_loop import Batch, GradientLoop
from firth.training.optimizers import optimizer

EVALUATIONS = 12  # evaluations on dev data per trial
MIN_EVALUATED = 2000  # dev texts per evaluation, if there are that many
MAX_CACHE_BYTES = 2 << 30  # most bytes of cached vectors of a frozen base
Ids = NDArray[np.int32]


class Sequences(NamedTuple):
    """Token ids of texts or pairs, concatenated without padding."""

    ids: Ids  # (tokens,)
    starts: NDArray[np.int64]  # (sequences + 1,): offset of each sequence in `ids`, then the total
    seconds: NDArray[np.int64]  # (sequences,): position of the second text in its sequence; the length if there is none
    segments: bool = True  # the second text has segment 1, as the tokenizer's template says

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        """The number of tokens of each sequence."""
        return np.diff(self.starts)

    def take(self, rows: NDArray[np.int64]) -> Sequences:
        """Return the sequences `rows`, in that order."""
        parts = [self.ids[self.starts[row] : self.starts[row + 1]] for row in rows]
        return concatenate_ids(parts, self.seconds[rows], self.segments)

    def tensors(self, rows: Sequence[int], segments: bool) -> list[Tensor]:
        """Return ids, segment ids and starts of the sequences `rows`; without `segments`, all segment ids are 0."""
        selected = self.take(np.asarray(rows, np.int64))
        positions = np.arange(len(selected.ids)) - np.repeat(selected.starts[:-1], selected.lengths)
        is_second = np.zeros(len(positions), bool)
        if segments and self.segments:
            is_second = positions >= np.repeat(selected.seconds, selected.lengths)
        return [
            torch.from_numpy(selected.ids.astype(np.int64)),
            torch.from_numpy(is_second.astype(np.int64)),
            torch.from_numpy(selected.starts.astype(np.int32)),
        ]


def concatenate_ids(
    parts: Sequence[Sequence[int] | Ids], seconds: Sequence[int] | NDArray[np.int64], segments: bool = True
) -> Sequences:
    """Build `Sequences` from one list of token ids per text or pair."""
    ids = np.concatenate([np.zeros(0, np.int32), *(np.asarray(part, np.int32) for part in parts)])
    return Sequences(ids, np.cumsum([0, *map(len, parts)]), np.asarray(seconds, np.int64), segments)


def encode_texts(
    tokenizer: SubwordTokenizer, texts: Sequence[Any], max_length: int, overlong: str, report: Report
) -> Sequences:
    """Encode texts or pairs with the tokenizer's special tokens, such as [CLS] first [SEP] second [SEP].

    `overlong` says what happens to sequences of more than
    `max_length` tokens: `TRUNCATE` or `REFUSE`.
    """
    template = tokenizer.training_template
    pairs = bool(len(texts)) and not isinstance(texts[0], str)
    check_texts_or_pairs(texts, pairs)
    sides = list(zip(*texts, strict=True)) if pairs else [texts]
    ids = [tokenizer.ids_batch(checked_texts(list(side)), special=False) for side in sides]
    parts, seconds, n_truncated = [], [], 0
    room = max_length - (template.added_to_pair if pairs else template.added)
    for number, full in enumerate(zip(*ids, strict=True)):
        truncated, tokens = truncate(full, room), sum(map(len, full))
        if tokens > room and overlong == REFUSE:
            raise TooLongError(number, tokens + max_length - room, max_length, "Use overlong=truncate.")
        n_truncated += tokens > room
        sequence = template.text(truncated[0])
        part, second = template.pair(*truncated) if pairs else (sequence, len(sequence))
        parts.append(part)
        seconds.append(second)
    note_truncated(report, n_truncated, len(texts), max_length)
    return concatenate_ids(parts, seconds, template.segments)


def check_texts_or_pairs(texts: Sequence[Any], pairs: bool) -> None:
    """Refuse anything but a list of str or a list of pairs of str."""
    valid = all((len(text) == 2 and not isinstance(text, str)) if pairs else isinstance(text, str) for text in texts)
    if isinstance(texts, str) or not valid:
        got = "a single str" if isinstance(texts, str) else "a list that mixes types"
        raise FirthError("invalid_type", "Texts must be a list of str or a list of pairs of str; got {got}.", got=got)


def truncate(parts: Sequence[list[int]], room: int) -> list[list[int]]:
    """Cut a text, or the longer text of a pair first, so that at most `room` tokens are left."""
    if len(parts) == 1:
        return [parts[0][:room]]
    first, second = parts
    if len(first) + len(second) <= room:
        return [first, second]
    first_length = min(len(first), max(room - room // 2, room - len(second)))
    return [first[:first_length], second[: room - first_length]]


class FineTuning(GradientLoop):
    """Trains `net` on a task. A subclass defines the loss of a batch and the score on dev data."""

    unit: ClassVar[str] = "texts"
    method: TuningOptions

    def __init__(
        self, method: TuningOptions, net: Tuned, train: Sequences, dev: Sequences | None, fingerprint: str, run: Run
    ) -> None:
        net.freeze(method.top_layers(net.base.size.layers))
        method = method.for_rows(len(train), net.base.size.dim)
        super().__init__(method, net, fingerprint, run, len(train))
        self.net: Tuned = net
        self.cached: list[Tensor] = []  # vectors of train and dev, if the base is frozen
        self.rows, self.dev = train, dev
        assert method.epochs is not None
        self.trial_epochs: int = method.epochs
        self.learning_rates = method.rate_list()
        self.trials = len(self.learning_rates) * method.restarts
        self.segments = isinstance(net.base, Encoder) and net.base.size.segments > 1
        self.longest = int(max(train.lengths.max(), dev.lengths.max() if dev is not None and len(dev) else 0))
        if self.trials > 1 and not (dev is not None and len(dev)):
            raise FirthError(
                "conflicting_options",
                "learning_rates and restarts make {trials} trials, and the best one is selected on dev data. Give dev "
                "data or {option} above 0.",
                trials=self.trials,
                option="held_out",
            )
        if self.trials > 1 and run.budget:
            raise FirthError(
                "conflicting_options",
                "{option} works with one trial only; learning_rates and restarts make {trials}.",
                option="budget",
                trials=self.trials,
            )
        self.initial_weights = {name: tensor.detach().cpu().clone() for name, tensor in net.state_dict().items()}

    # ---- the task ----

    @abstractmethod
    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        """Return the correct outputs of these texts, as `error` takes them."""

    @abstractmethod
    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        """Return the loss, summed over texts."""

    @abstractmethod
    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], count: int) -> dict[str, float]:
        """Return metrics on the first `count` dev sequences; "score" is used for model selection (higher is better)."""

    def extra(self, targets: Sequence[Tensor]) -> Tensor | None:
        """Return the numeric features besides the text, which are part of the targets."""
        return None

    # ---- batches ----

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the shuffled batches of an epoch, sorted by length within a step, of at most `batch_tokens` tokens."""
        order = np.random.default_rng((self.run.seed, epoch)).permutation(len(self.rows))
        lengths, batches = self.rows.lengths, list[Batch]()
        for step, first in enumerate(range(0, len(order), self.method.batch_size)):
            shuffled = order[first : first + self.method.batch_size]
            step_rows = shuffled[np.argsort(lengths[shuffled], kind="stable")]
            total = int(lengths[step_rows].sum())
            parts = max(self.passes(), -(-total // self.method.batch_tokens))
            cuts = np.searchsorted(np.cumsum(lengths[step_rows]), [total * part / parts for part in range(1, parts)])
            batches += [Batch(rows.tolist(), len(rows), step) for rows in np.split(step_rows, cuts) if len(rows)]
        return batches

    def load(self, what: Any) -> list[Tensor]:
        return [*self.inputs(what, dev=False), *self.targets(what, dev=False)]

    def inputs(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        """Return the network's inputs: token ids, or cached vectors of a frozen base; then segment ids and starts."""
        texts = self.dev if dev else self.rows
        assert texts is not None
        ids, segments, starts = texts.tensors(rows, self.segments)
        if not self.cached:
            return [ids, segments, starts]
        if self.net.pool != "each":
            return [self.cached[dev][torch.tensor(rows)], segments, starts]
        token_rows = [np.arange(texts.starts[row], texts.starts[row + 1]) for row in rows]
        return [self.cached[dev][torch.from_numpy(np.concatenate(token_rows))], segments, starts]

    def logits(self, inputs: Tensor, segments: Tensor, packed: Packed, extra: Tensor | None) -> Tensor:
        """Return the head's outputs for token ids, or for cached vectors of a frozen base."""
        return self.net.top(inputs, extra) if self.cached else self.net(inputs, segments, packed, extra)

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        inputs, segments, starts, *targets = tensors
        packed = Packed(starts, self.longest)
        return self.error(self.logits(inputs, segments, packed, self.extra(targets)), packed, targets)

    def operations(self) -> float:
        if self.cached:
            weights = sum(part.numel() for part in self.net.parameters() if part.requires_grad)
            return 6.0 * weights * (float(self.rows.lengths.mean()) if self.net.pool == "each" else 1.0)
        return super().operations() * float(self.rows.lengths.mean())

    # ---- a frozen base ----

    def go(self) -> dict[str, Any]:
        if self.method.tune == "head":
            parts = [self.rows, *([self.dev] if self.dev is not None and len(self.dev) else [])]
            rows = sum(len(part.ids) if self.net.pool == "each" else len(part) for part in parts)
            if rows * self.net.base.size.dim * 4 <= MAX_CACHE_BYTES:
                with self.settings():
                    torch.set_num_threads(1 if self.run.deterministic else self.run.cores)
                    self.cached = [self.encode(part) for part in parts]
            else:
                self.run.report.note(
                    "The vectors of the frozen base exceed the cache; texts are encoded again in every epoch.",
                    code="vectors_not_cached",
                )
        return super().go()

    def encode(self, texts: Sequences) -> Tensor:
        """Return the frozen base's vectors of all texts, computed once for all epochs and trials, without dropout."""
        each, dim = self.net.pool == "each", self.net.base.size.dim
        vectors = torch.empty(len(texts.ids) if each else len(texts), dim)
        done = 0
        self.net.eval()
        self.run.report.begin("encoding texts", len(texts), self.unit)
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            for rows in batches_of(texts.lengths, self.method.batch_tokens):
                ids, segments, starts = (tensor.to(self.device) for tensor in texts.tensors(rows, self.segments))
                batch_vectors = self.net.bottom(ids, segments, Packed(starts, self.longest)).float().cpu()
                targets = [np.arange(texts.starts[row], texts.starts[row + 1]) for row in rows] if each else [rows]
                vectors[torch.from_numpy(np.concatenate(targets))] = batch_vectors
                done += len(rows)
                self.run.report.step(done)
        self.run.report.end()
        return vectors

    # ---- dev data ----

    def evaluate(self, most: int) -> dict[str, float]:
        if self.dev is None or not len(self.dev):
            return {}
        count = min(len(self.dev), max(most, MIN_EVALUATED))
        total = 0.0

        def batch_logits() -> Iterator[tuple[list[int], Tensor, Packed]]:
            nonlocal total
            for rows in batches_of(self.dev.lengths[:count], self.method.batch_tokens):  # type: ignore[union-attr]
                tensors = [*self.inputs(rows, dev=True), *self.targets(rows, dev=True)]
                inputs, segments, starts, *targets = (tensor.to(self.device) for tensor in tensors)
                packed = Packed(starts, self.longest)
                logits = self.logits(inputs, segments, packed, self.extra(targets))
                total += float(self.error(logits, packed, targets))
                yield rows, logits, packed

        metrics = self.scores(batch_logits(), count)
        return {"held_out_loss": total / count, **metrics}

    # ---- trials ----

    @property
    def epochs(self) -> int:
        return self.trial_epochs * self.trials

    @property
    def trial(self) -> int:
        """The number of the current trial, from 0."""
        return min(self.progress.epoch // self.trial_epochs, self.trials - 1)

    def peak_rate(self) -> float:
        return self.learning_rates[self.trial % len(self.learning_rates)]

    def begin_trial(self) -> None:
        """Reset the weights and the optimizer; a restart also draws a new head."""
        self.net.load_state_dict(self.initial_weights)
        restart = self.trial // len(self.learning_rates)
        if restart:
            torch.manual_seed(self.run.seed + restart)
            self.net.reset_new_layers()
        torch.manual_seed(self.run.seed + 1000 * restart + self.rank)
        self.optimizer = optimizer(self.method, self.net, self.device)
        self.progress.evaluated = 0.0

    def train(self, units: float, seed: int) -> Any:
        if not self.progress.batch and self.progress.epoch % self.trial_epochs == 0:
            self.begin_trial()
        return super().train(units, seed)

    def share(self, spent: float = 0.0) -> float:
        """Return the completed share of the current trial."""
        size = self.trial_epochs * self.size
        done = (self.done() - self.trial * size) / size
        if self.run.budget:
            done = max(done, (self.progress.seconds + spent) / self.run.budget)
        return min(1.0, done)

    def due(self, batches: int, spent: float) -> bool:
        """Return whether to evaluate now: after each epoch and several times within it, but never so often that
        evaluation takes longer than training."""
        epoch_over = self.progress.batch >= batches
        evaluated = min(len(self.dev), MIN_EVALUATED) if self.dev is not None else 0
        interval = max(1 / EVALUATIONS, evaluated / (self.trial_epochs * self.size))
        return epoch_over or self.share(spent) - self.progress.evaluated >= interval

    def measure(self, share: float) -> None:
        before = len(self.progress.measured)
        super().measure(share)
        for metrics in self.progress.measured[before:]:
            metrics |= {"try": self.trial + 1, "rate": self.peak_rate(), "epoch": self.progress.epoch + 1}

    def end_epoch(self) -> dict[str, float]:
        metrics = super().end_epoch()
        if self.stale():
            self.progress.epoch = (self.trial + 1) * self.trial_epochs - 1  # early stopping: the trial's last epoch
        return {name: value for name, value in metrics.items() if name not in ("rate", "try", "epoch")}

    def stale(self) -> bool:
        """Return whether the last `patience` epochs of this trial did not improve the dev score."""
        history = [metrics for metrics in self.progress.measured if metrics["try"] == self.trial + 1]
        last_older = self.progress.epoch + 1 - self.method.patience
        if not self.method.patience or not history or last_older < 1:
            return False
        older = [metrics["score"] for metrics in history if metrics["epoch"] <= last_older]
        newer = [metrics["score"] for metrics in history if metrics["epoch"] > last_older]
        return bool(older) and max(newer, default=-math.inf) <= max(older)

    def divergence_cause(self) -> str:
        return f"a learning rate of {self.peak_rate():g} is too high."

    def metrics(self) -> dict[str, Any]:
        metadata = super().metrics()
        metadata["tokens_per_text"] = float(self.rows.lengths.mean())
        metadata["tries"] = self.trials
        return metadata


def batches_of(lengths: NDArray[np.int64], max_tokens: int) -> Iterator[list[int]]:
    """Yield batches of row numbers, longest rows first, each of at most `max_tokens` tokens in total."""
    batch, tokens = list[int](), 0
    for row in np.argsort(-lengths, kind="stable").tolist():
        if batch and tokens + int(lengths[row]) > max_tokens:
            yield batch
            batch, tokens = [], 0
        batch.append(row)
        tokens += int(lengths[row])
    if batch:
        yield batch


@torch.inference_mode()
def predict_batches(
    net: Tuned, texts: Sequences, max_tokens: int, extra_of: Callable[[list[int]], Tensor | None] = lambda rows: None
) -> Iterator[tuple[list[int], Tensor, Packed]]:
    """Yield the row numbers and logits of all texts, batch by batch.

    `extra_of` returns the numeric features of the given rows, for a head that reads other columns as well.
    """
    device = next(net.parameters()).device
    use_segments = isinstance(net.base, Encoder) and net.base.size.segments > 1
    for rows in batches_of(texts.lengths, max_tokens):
        ids, segments, starts = (tensor.to(device) for tensor in texts.tensors(rows, use_segments))
        packed = Packed(starts, int(texts.lengths[rows].max()))
        extra = extra_of(rows)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = net(ids, segments, packed, extra if extra is None else extra.to(device))
        if not bool(torch.isfinite(logits).all()) and not net.training:
            finite_rows(logits.float().cpu().numpy(), "Output")
        yield rows, logits, packed
