"""Fine-tuning: texts as ids, and the loop that teaches a net with one new layer, try after try.

Tries differ in learning rate and random numbers. They are epochs of one run, so that a checkpoint holds all of it: the
net that learns now, and the best one of all tries so far.
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
from firth.core.options import chosen_values
from firth.core.report import Report
from firth.core.run import Run
from firth.core.stored import finite_rows
from firth.data.subword_tokenizer import SubwordTokenizer, checked_texts
from firth.finetuning.finetuning_options import TuningOptions
from firth.nets.attention import Packed
from firth.nets.bert import Bert
from firth.nets.tuned import Tuned
from firth.training.gradient_loop import Batch, Gradient
from firth.training.optimizers import optimizer

EVALUATIONS = 12  # times in a try that dev data are measured
LEAST_EVALUATED = 2000  # texts of them, where there are so many
MOST_ENCODED = 2 << 30  # bytes of a frozen base's vectors that are kept
END = "<|endoftext|>"  # what a GPT's texts begin and end with

Ids = NDArray[np.int32]


class Sequences(NamedTuple):
    """Texts, or pairs, as ids one behind the other."""

    ids: Ids
    starts: NDArray[np.int64]  # where each begins, and the end of the last
    seconds: NDArray[np.int64]  # where in it the second text begins; its length where there is none

    def __len__(self) -> int:
        return len(self.starts) - 1

    @property
    def lengths(self) -> NDArray[np.int64]:
        return np.diff(self.starts)

    def take(self, rows: NDArray[np.int64]) -> Sequences:
        return joined([self.ids[self.starts[row] : self.starts[row + 1]] for row in rows], self.seconds[rows])

    def tensors(self, rows: Sequence[int], segments: bool) -> list[Tensor]:
        """ids, segments and starts of some of them."""
        taken = self.take(np.asarray(rows, np.int64))
        places = np.arange(len(taken.ids)) - np.repeat(taken.starts[:-1], taken.lengths)
        kinds = places >= np.repeat(taken.seconds, taken.lengths) if segments else np.zeros(len(places), bool)
        return [
            torch.from_numpy(taken.ids.astype(np.int64)),
            torch.from_numpy(kinds.astype(np.int64)),
            torch.from_numpy(taken.starts.astype(np.int32)),
        ]


def joined(parts: Sequence[Sequence[int] | Ids], seconds: Sequence[int] | NDArray[np.int64]) -> Sequences:
    ids = np.concatenate([np.zeros(0, np.int32), *(np.asarray(part, np.int32) for part in parts)])
    return Sequences(ids, np.cumsum([0, *map(len, parts)]), np.asarray(seconds, np.int64))


def sequences(tokenizer: SubwordTokenizer, texts: Sequence[Any], most: int, longer: str, report: Report) -> Sequences:
    """[CLS] text [SEP], or [CLS] first [SEP] second [SEP]; for a GPT, its token of ends in their places."""
    first, last = ends_of(tokenizer)
    pairs = bool(len(texts)) and not isinstance(texts[0], str)
    check_kinds(texts, pairs)
    sides = list(zip(*texts, strict=True)) if pairs else [texts]
    ids = [tokenizer.ids_batch(checked_texts(list(side)), special=False) for side in sides]
    parts, seconds, cut = [], [], 0
    room = most - 1 - len(ids)
    for whole in zip(*ids, strict=True):
        kept = fitted(whole, room)
        cut += kept != list(whole)
        parts.append([first, *(id for part in kept for id in (*part, last))])
        seconds.append(2 + len(kept[0]))
    if cut and longer == "refuse":
        raise FirthError(
            "text_too_long",
            "{cut:,} of {n_texts:,} texts have more than {limit:,} tokens; overlong=cut cuts them.",
            cut=cut,
            n_texts=len(texts),
            limit=most,
        )
    if cut:
        report.note(f"{cut:,} of {len(texts):,} texts have more than {most:,} tokens: cut behind them.")
    return joined(parts, seconds)


def check_kinds(texts: Sequence[Any], pairs: bool) -> None:
    right = all((len(text) == 2 and not isinstance(text, str)) if pairs else isinstance(text, str) for text in texts)
    if isinstance(texts, str) or not right:
        raise FirthError(
            "invalid_type", "Texts are a list of str, or of pairs of str; not one text, and not both kinds at once."
        )


def ends_of(tokenizer: SubwordTokenizer) -> tuple[int, int]:
    """The tokens before a text and behind it."""
    if "[CLS]" in tokenizer.ids:
        return tokenizer.ids["[CLS]"], tokenizer.ids["[SEP]"]
    return tokenizer.special_id(END), tokenizer.special_id(END)


def fitted(parts: Sequence[list[int]], room: int) -> list[list[int]]:
    """Of a pair the longer one is cut first."""
    if len(parts) == 1:
        return [parts[0][:room]]
    first, second = parts
    if len(first) + len(second) <= room:
        return [first, second]
    kept = min(len(first), max(room - room // 2, room - len(second)))
    return [first[:kept], second[: room - kept]]


class Tuning(Gradient):
    """Teaches `net` the task that a subclass tells: what the loss of a batch is, what the score on dev data."""

    unit: ClassVar[str] = "texts"
    method: TuningOptions

    def __init__(
        self, method: TuningOptions, net: Tuned, train: Sequences, dev: Sequences | None, fingerprint: str, run: Run
    ) -> None:
        net.freeze(method.top_layers(net.base.size.layers))
        self.asked, method = method, method.for_rows(len(train), net.base.size.dim)
        super().__init__(method, net, fingerprint, run, len(train))
        self.net: Tuned = net
        self.encoded: list[Tensor] = []  # of train and dev, where the base stays as it is
        self.rows, self.dev = train, dev
        self.learning_rates = method.rate_list()
        self.tries = len(self.learning_rates) * method.restarts
        self.segments = isinstance(net.base, Bert) and net.base.input.segments.num_embeddings > 1
        self.longest = int(max(train.lengths.max(), dev.lengths.max() if dev is not None and len(dev) else 0))
        if self.tries > 1 and not (dev is not None and len(dev)):
            raise FirthError(
                "conflicting_options",
                "Several rates or restarts need dev data to choose by: give dev, or held_out above 0.",
            )
        if self.tries > 1 and run.budget:
            raise FirthError(
                "conflicting_options",
                "A budget is for one try; rates and restarts make {tries} of them.",
                tries=self.tries,
            )
        self.begun = {name: tensor.detach().cpu().clone() for name, tensor in net.state_dict().items()}

    # ---- what a task says ----

    @abstractmethod
    def targets(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        """What is right for these texts, in the order of `error`."""

    @abstractmethod
    def error(self, logits: Tensor, packed: Packed, targets: Sequence[Tensor]) -> Tensor:
        """The summed loss over texts."""

    @abstractmethod
    def scores(self, logits: Iterator[tuple[list[int], Tensor, Packed]], most: int) -> dict[str, float]:
        """Figures on dev data, `score` among them: the higher the better."""

    def extra(self, targets: Sequence[Tensor]) -> Tensor | None:
        """Numbers beside the text, which stand among the targets."""
        return None

    # ---- batches ----

    def plan(self, epoch: int) -> Sequence[Batch]:
        """Each step's texts, drawn; by length within a step, in parts of at most `batch_tokens`."""
        order = np.random.default_rng((self.run.seed, epoch)).permutation(len(self.rows))
        lengths, found = self.rows.lengths, list[Batch]()
        for step, first in enumerate(range(0, len(order), self.method.batch_size)):
            drawn = order[first : first + self.method.batch_size]
            chosen = drawn[np.argsort(lengths[drawn], kind="stable")]
            total = int(lengths[chosen].sum())
            parts = max(self.world, -(-total // self.method.batch_tokens))
            cuts = np.searchsorted(np.cumsum(lengths[chosen]), [total * part / parts for part in range(1, parts)])
            found += [Batch((step, rows.tolist()), len(rows)) for rows in np.split(chosen, cuts) if len(rows)]
        return found

    def next_group(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        start = end = self.progress.batch
        while end < len(batches) and batches[end].what[0] == batches[start].what[0]:
            end += 1
        return batches[start:end]

    def load(self, what: Any) -> list[Tensor]:
        _, rows = what
        return [*self.inputs(rows, dev=False), *self.targets(rows, dev=False)]

    def inputs(self, rows: Sequence[int], dev: bool) -> list[Tensor]:
        """What the net reads of these texts: ids, or what the base made of them; then segments and starts."""
        texts = self.dev if dev else self.rows
        assert texts is not None
        ids, segments, starts = texts.tensors(rows, self.segments)
        if not self.encoded:
            return [ids, segments, starts]
        if self.net.pool != "each":
            return [self.encoded[dev][torch.tensor(rows)], segments, starts]
        places = [np.arange(texts.starts[row], texts.starts[row + 1]) for row in rows]
        return [self.encoded[dev][torch.from_numpy(np.concatenate(places))], segments, starts]

    def logits(self, read: Tensor, segments: Tensor, packed: Packed, extra: Tensor | None) -> Tensor:
        return self.net.top(read, extra) if self.encoded else self.net(read, segments, packed, extra)

    def batch_loss(self, *tensors: Tensor) -> Tensor:
        read, segments, starts, *targets = tensors
        packed = Packed(starts, self.longest)
        return self.error(self.logits(read, segments, packed, self.extra(targets)), packed, targets)

    def operations(self) -> float:
        if self.encoded:
            weights = sum(part.numel() for part in self.net.parameters() if part.requires_grad)
            return 6.0 * weights * (float(self.rows.lengths.mean()) if self.net.pool == "each" else 1.0)
        return super().operations() * float(self.rows.lengths.mean())

    # ---- a base that stays as it is ----

    def go(self) -> dict[str, Any]:
        if self.method.tune == "head":
            parts = [self.rows, *([self.dev] if self.dev is not None and len(self.dev) else [])]
            rows = sum(len(part.ids) if self.net.pool == "each" else len(part) for part in parts)
            if rows * self.net.base.size.dim * 4 <= MOST_ENCODED:
                with self.settings():
                    torch.set_num_threads(1 if self.run.deterministic else self.run.cores)
                    self.encoded = [self.encode(part) for part in parts]
            else:
                self.run.report.note("The base's vectors would not fit into memory: texts are encoded in every epoch.")
        figures = super().go()
        return figures | {"chosen": chosen_values(self.asked, self.method)}

    def encode(self, texts: Sequences) -> Tensor:
        """What the base makes of all texts, once for all epochs and tries: while only new layers learn it stays the
        same, and nothing is left out in it."""
        each, dim = self.net.pool == "each", self.net.base.size.dim
        found = torch.empty(len(texts.ids) if each else len(texts), dim)
        done = 0
        self.net.eval()
        self.run.report.begin("encoding texts", len(texts), self.unit)
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            for rows in batches_of(texts.lengths, self.method.batch_tokens):
                ids, segments, starts = (tensor.to(self.device) for tensor in texts.tensors(rows, self.segments))
                some = self.net.bottom(ids, segments, Packed(starts, self.longest)).float().cpu()
                places = [np.arange(texts.starts[row], texts.starts[row + 1]) for row in rows] if each else [rows]
                found[torch.from_numpy(np.concatenate(places))] = some
                done += len(rows)
                self.run.report.step(done)
        self.run.report.end()
        return found

    # ---- dev data ----

    def evaluate(self, most: int) -> dict[str, float]:
        if self.dev is None or not len(self.dev):
            return {}
        most = min(len(self.dev), max(most, LEAST_EVALUATED))
        total = 0.0

        def read() -> Iterator[tuple[list[int], Tensor, Packed]]:
            nonlocal total
            for rows in batches_of(self.dev.lengths[:most], self.method.batch_tokens):  # type: ignore[union-attr]
                tensors = [*self.inputs(rows, dev=True), *self.targets(rows, dev=True)]
                given, segments, starts, *targets = (tensor.to(self.device) for tensor in tensors)
                packed = Packed(starts, self.longest)
                logits = self.logits(given, segments, packed, self.extra(targets))
                total += float(self.error(logits, packed, targets))
                yield rows, logits, packed

        found = self.scores(read(), most)
        return {"held_out_loss": total / most, **found}

    # ---- tries ----

    @property
    def epochs(self) -> int:
        return self.method.epochs * self.tries

    @property
    def number(self) -> int:
        """Of the try under way."""
        return min(self.progress.epoch // self.method.epochs, self.tries - 1)

    def peak_rate(self) -> float:
        return self.learning_rates[self.number % len(self.learning_rates)]

    def begin_try(self) -> None:
        self.net.load_state_dict(self.begun)
        restart = self.number // len(self.learning_rates)
        if restart:
            torch.manual_seed(self.run.seed + restart)
            self.net.reset_new_layers()
        torch.manual_seed(self.run.seed + 1000 * restart + self.rank)
        self.optimizer = optimizer(self.method, self.net, self.device)
        self.progress.evaluated = 0.0

    def train(self, units: float, seed: int) -> Any:
        if not self.progress.batch and self.progress.epoch % self.method.epochs == 0:
            self.begin_try()
        return super().train(units, seed)

    def share(self, spent: float = 0.0) -> float:
        """Of the try under way."""
        size = self.method.epochs * self.size
        done = (self.done() - self.number * size) / size
        if self.run.budget:
            done = max(done, (self.progress.seconds + spent) / self.run.budget)
        return min(1.0, done)

    def due(self, batches: int, spent: float) -> bool:
        """At the end of each epoch, and some times within; not so often that it takes longer than learning."""
        over = self.progress.batch >= batches
        judged = min(len(self.dev), LEAST_EVALUATED) if self.dev is not None else 0
        apart = max(1 / EVALUATIONS, judged / (self.method.epochs * self.size))
        return over or self.share(spent) - self.progress.evaluated >= apart

    def measure(self, share: float) -> None:
        before = len(self.progress.measured)
        super().measure(share)
        for found in self.progress.measured[before:]:
            found |= {"try": self.number + 1, "rate": self.peak_rate(), "epoch": self.progress.epoch + 1}

    def end_epoch(self) -> dict[str, float]:
        found = super().end_epoch()
        if self.stale():
            self.progress.epoch = (self.number + 1) * self.method.epochs - 1  # this was the last one of the try
        return {name: value for name, value in found.items() if name not in ("rate", "try", "epoch")}

    def stale(self) -> bool:
        """Whether the last epochs brought no better score than those before them, in this try."""
        here = [found for found in self.progress.measured if found["try"] == self.number + 1]
        late = self.progress.epoch + 1 - self.method.patience
        if not self.method.patience or not here or late < 1:
            return False
        older = [found["score"] for found in here if found["epoch"] <= late]
        newer = [found["score"] for found in here if found["epoch"] > late]
        return bool(older) and max(newer, default=-math.inf) <= max(older)

    def trouble(self) -> str:
        return f"a learning rate of {self.peak_rate():g} is too high."

    def figures(self) -> dict[str, Any]:
        found = super().figures()
        found["tokens_per_text"] = float(self.rows.lengths.mean())
        found["tries"] = self.tries
        return found


def batches_of(lengths: NDArray[np.int64], most: int) -> Iterator[list[int]]:
    """Texts by length, longest first, so many that together they have at most `most` tokens."""
    batch, tokens = list[int](), 0
    for row in np.argsort(-lengths, kind="stable").tolist():
        if batch and tokens + int(lengths[row]) > most:
            yield batch
            batch, tokens = [], 0
        batch.append(row)
        tokens += int(lengths[row])
    if batch:
        yield batch


@torch.inference_mode()
def read_all(
    net: Tuned, rows: Sequences, most: int, made: Callable[[list[int]], Tensor | None] = lambda rows: None
) -> Iterator[tuple[list[int], Tensor, Packed]]:
    """The logits of all texts, some at a time; `made` gives the numbers beside them."""
    device = next(net.parameters()).device
    segments = isinstance(net.base, Bert) and net.base.input.segments.num_embeddings > 1
    for chosen in batches_of(rows.lengths, most):
        ids, kinds, starts = (tensor.to(device) for tensor in rows.tensors(chosen, segments))
        packed = Packed(starts, int(rows.lengths[chosen].max()))
        extra = made(chosen)
        with torch.autocast(device.type, torch.bfloat16, enabled=device.type == "cuda"):
            logits = net(ids, kinds, packed, extra if extra is None else extra.to(device))
        if not bool(torch.isfinite(logits).all()) and not net.training:
            finite_rows(logits.float().cpu().numpy(), "Output")
        yield chosen, logits, packed
