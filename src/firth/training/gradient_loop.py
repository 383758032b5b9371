"""The one loop for everything learned by gradient: AdamW, warm-up and decay, clipping, accumulation, mixed precision,
held-out loss, the best weights kept, exact resume, a budget in seconds, one process or many under torchrun.

A learner says which batches there are and what the loss of one is; the rest stands here.
"""

from __future__ import annotations

import math
import sys
import time
from abc import abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from firth.core.checkpoint import Checkpoints
from firth.core.errors import FirthError
from firth.core.renamed import current_weight
from firth.core.run import Run
from firth.training.device import device_of, distributed, peak_of
from firth.training.epoch_loop import Loop, Progress, Slice, nothing_learned
from firth.training.network_options import LearningOptions
from firth.training.optimizers import optimizer, rate_share

AHEAD = 3  # batches that are loaded while one is learned from
MOST_SECONDS = 2.0  # of a slice
EVALUATIONS = 20  # times in a run that the held-out loss is measured
SHORT_STEP = 1e9  # multiplications and additions, some milliseconds of a core


def token_shares(ids: NDArray[np.int32], words: int) -> NDArray[np.float64]:
    """How frequent each of `words` tokens is among `ids`, each counted once more than it occurs."""
    counts = np.bincount(ids, minlength=words).astype(np.float64) + 1
    return np.asarray(counts / counts.sum())


class Batch(NamedTuple):
    """One batch of a plan: what to load, and how many tokens it trains on."""

    what: Any
    tokens: int


@dataclass
class Steps(Progress):
    """Where a run stands."""

    batch: int = 0  # of this epoch: the next one
    batches: int = 0  # of the plan that `batch` counts in; fewer or more processes may follow another
    position: int = 0  # tokens of this epoch that are done
    steps: int = 0
    phase: int = 0  # which plan of batches is followed, where there are several
    evaluated: float = 0.0  # the share of the run at the last evaluation
    best: float = math.inf
    measured: list[dict[str, float]] = field(default_factory=list)  # held-out figures, with the share of the run


class Gradient(Loop):
    """Learns `net`'s weights."""

    unit: ClassVar[str] = "tokens"
    compiles: ClassVar[bool] = False  # batches have one shape, so that torch.compile pays
    measures_start: ClassVar[bool] = False  # what is there before the first step may be the best
    baseline: ClassVar[str] = "that of guessing by frequency alone"
    progress: Steps
    method: LearningOptions

    def __init__(self, method: LearningOptions, net: nn.Module, fingerprint: str, run: Run, size: int) -> None:
        super().__init__(method, fingerprint, run, size)
        self.rank, self.world = distributed(run)
        self.device = device_of(run)
        self.net = net.to(self.device)
        self.optimizer = optimizer(method, net, self.device)
        self.progress = Steps()
        self.best: dict[str, Tensor] = {}
        self.mixed = self.device.type == "cuda"
        self.compiled = torch.compile(self.batch_loss, dynamic=False) if self.compiles and self.mixed else None
        self.shape: tuple[int, ...] = ()  # of the batches that it is compiled for: the first one's
        self.plans: tuple[tuple[int, int], Sequence[Batch]] = ((-1, 0), ())
        self.loader: ThreadPoolExecutor | None = None
        self.loading: dict[int, Future[list[Tensor]]] = {}  # by number of the batch

    # ---- what a learner says ----

    @abstractmethod
    def plan(self, epoch: int) -> Sequence[Batch]:
        """The batches of an epoch in order, the same for the same seed, epoch and `progress.phase`."""

    @abstractmethod
    def load(self, what: Any) -> Any:
        """A batch's tensors, on the CPU. For a GPU on another thread, ahead of time: depends on `what` alone."""

    def phase(self, share: float) -> int:
        """Which plan is followed at this share of the run; learners with one plan have one phase."""
        return 0

    @abstractmethod
    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """The summed loss of a batch over its tokens."""

    def evaluate(self, most: int) -> dict[str, float]:
        """Figures on about `most` tokens of what was held out, `held_out_loss` among them; maybe a `score`, the higher
        the better, to choose weights by. Nothing by default."""
        return {}

    def baseline_loss(self) -> float | None:
        """The held-out loss of a guess that needs no network; None where there is none."""
        return None

    def operations(self) -> float:
        """Multiplications and additions a token costs, forward and back: 6 a weight (Kaplan et al. 2020)."""
        return 6.0 * sum(part.numel() for part in self.net.parameters())

    def threads(self) -> int:
        """Threads worth starting: where a step is short, they wait for each other longer than they work."""
        short = self.operations() * self.method.batch_units < SHORT_STEP
        return 1 if self.run.deterministic or short else self.run.cores

    def peak_rate(self) -> float:
        """The highest learning rate."""
        return self.method.learning_rate

    # ---- the loop ----

    def go(self) -> dict[str, Any]:
        with self.settings(), ThreadPoolExecutor(1) as loader:
            self.loader = loader if self.device.type == "cuda" else None  # a CPU would only be taken from the net
            figures = super().go()
            if self.best:
                self.net.load_state_dict(self.best)
            self.net.eval()
            found = self.judge(self.judged_last())
            return figures | found | self.check_baseline(found)

    def check_baseline(self, found: Mapping[str, float]) -> dict[str, float]:
        """The held-out loss beside that of a model without a network; a note where the network is not better."""
        baseline = self.baseline_loss() if "held_out_loss" in found else None
        if baseline is None:
            return {}
        if found["held_out_loss"] >= baseline:
            text = nothing_learned(found["held_out_loss"], baseline, self.remedy(), self.baseline)
            self.run.report.note(text, "nothing_learned")
        return {"baseline_loss": baseline}

    def judged_last(self) -> int:
        """How much of what was held out is judged at the end: all, but where a budget ended the run, a third of what
        was trained on. That takes about a tenth of the time; all of a large text's share may take many budgets."""
        if self.unit != "tokens" or not self.out_of_time():  # dev texts are judged whole
            return sys.maxsize
        return max(1, self.progress.words // 3)

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Seeds and threads of this run, and the caller's own afterwards."""
        threads = torch.get_num_threads()
        torch.set_num_threads(self.threads())
        cuda = [self.device.index or 0] if self.device.type == "cuda" else []
        try:
            with torch.random.fork_rng(devices=cuda):
                torch.manual_seed(self.run.seed + self.rank)
                yield
        finally:
            torch.set_num_threads(threads)

    def batches(self) -> Sequence[Batch]:
        wanted = self.progress.epoch, self.progress.phase
        if self.plans[0] != wanted:
            self.plans = wanted, self.plan(self.progress.epoch)
            self.loading.clear()
        return self.plans[1]

    def enter_phase(self, share: float) -> None:
        """Another phase has other batches: its plan goes on at the same share of the epoch."""
        progress, phase = self.progress, self.phase(share)
        if phase != progress.phase:
            done = progress.batch / max(1, len(self.batches()))
            progress.phase = phase
            progress.batch = int(done * len(self.batches()))

    def position(self) -> int:
        return self.progress.position

    def out_of_time(self) -> bool:
        return bool(self.agreed(super().out_of_time()))  # all must stop at the same step

    def agreed(self, value: float) -> float:
        """The first process's: clocks differ."""
        if self.world == 1 or not self.run.budget:
            return value
        told = torch.tensor(float(value), dtype=torch.float64, device=self.device)
        dist.broadcast(told, 0)
        return float(told)

    def train(self, units: float, seed: int) -> Slice:
        self.net.train()
        if self.world > 1:
            units = 1  # a step at a time: where slices end depends on the clock, and processes must agree
        progress = self.progress
        began, first, trained = time.perf_counter(), progress.position, 0
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        batches = self.batches()
        if progress.batches:  # the same share of the epoch, where it was begun with another plan
            progress.batch = progress.batch * len(batches) // progress.batches
        if self.measures_start and not progress.steps:
            self.measure(0.0)
        while progress.batch < len(batches):
            # The first slice is of a guessed size: a slow net must not overrun its budget in it.
            if trained and (trained >= units or time.perf_counter() - began > MOST_SECONDS):
                break
            share = self.agreed(self.share(time.perf_counter() - began))
            self.enter_phase(share)
            batches = self.batches()
            group = self.next_group(batches)
            total += self.step(group, share)
            progress.batch += len(group)
            trained += sum(batch.tokens for batch in group)
            progress.position = first + trained
            progress.steps += 1
            # Here, not once a slice: where slices end depends on the clock, and the best weights must not.
            if self.due(len(batches), time.perf_counter() - began) and math.isfinite(float(total)):
                self.measure(self.share(time.perf_counter() - began))
        progress.batches = len(batches)
        over = progress.batch >= len(batches)
        if over:
            progress.position = self.size
        return Slice(float(total), trained, over)

    def next_group(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """The batches of one step: as many as make up `batch_units` on all processes together."""
        start, end, tokens = self.progress.batch, self.progress.batch, 0
        while end < len(batches) and (tokens < self.method.batch_units or (end - start) % self.world):
            tokens += batches[end].tokens
            end += 1
        return batches[start:end]

    def step(self, group: Sequence[Batch], share: float) -> Tensor:
        """One step along the mean gradient of a group's tokens. Each process takes its part of the group."""
        rate = self.peak_rate() * rate_share(self.method, share)
        for part in self.optimizer.param_groups:
            part["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        tokens = sum(batch.tokens for batch in group)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        for number in range(self.progress.batch + self.rank, self.progress.batch + len(group), self.world):
            tensors = [tensor.to(self.device, non_blocking=True) for tensor in self.loaded(number)]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                loss = self.loss_of(tensors)
            (loss / tokens).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        if self.world > 1:
            for parameter in self.net.parameters():
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)
            dist.all_reduce(total)
        if self.method.max_grad_norm:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.method.max_grad_norm)
        self.optimizer.step()
        return total

    def loaded(self, number: int) -> list[Tensor]:
        """A batch of the plan, while the next ones that this process takes are being loaded."""
        batches, end = self.batches(), number + (AHEAD + 1) * self.world
        if self.loader is None:
            return self.prepared(batches[number])
        for later in range(number, min(end, len(batches)), self.world):
            if later not in self.loading:
                self.loading[later] = self.loader.submit(self.prepared, batches[later])
        return self.loading.pop(number).result()

    def prepared(self, batch: Batch) -> list[Tensor]:
        tensors = self.load(batch.what)
        return [tensor.pin_memory() for tensor in tensors] if self.device.type == "cuda" else list(tensors)

    def loss_of(self, tensors: list[Tensor]) -> Tensor:
        """Compiled for batches of one shape; the odd last one of an epoch is not worth another compilation."""
        shape = tuple(tensors[0].shape)
        self.shape = self.shape or shape
        if self.compiled is None or shape != self.shape:
            return self.batch_loss(*tensors)
        return self.compiled(*tensors)

    def share(self, spent: float = 0.0) -> float:
        """How much of the run is done: of its tokens, or of its budget of seconds where that ends it sooner."""
        done = self.done() / (self.method.epochs * self.size)
        if self.run.budget:
            done = max(done, (self.progress.seconds + spent) / self.run.budget)
        return min(1.0, done)

    def due(self, batches: int, spent: float) -> bool:
        """Whether it is time to measure: some times in a run, and at its end."""
        progress, share = self.progress, self.share(spent)
        last = progress.batch >= batches and progress.epoch + 1 == self.method.epochs
        return last or share - progress.evaluated >= 1 / EVALUATIONS or progress.evaluated < 1 <= share

    def measure(self, share: float) -> None:
        """The held-out figures; the weights with the highest score are kept, without scores those with the least
        loss."""
        progress = self.progress
        whole = self.done() / share if share else self.method.epochs * self.size
        tenth = round(whole) // (10 * EVALUATIONS)  # together a tenth of what is trained on
        found = self.judge(tenth)
        self.net.train()
        progress.evaluated = share
        if not found:
            return
        progress.measured.append({"share": share, **found})
        loss = found.get("held_out_loss", 0.0)
        worth = 1e-9 * loss - found["score"] if "score" in found else loss  # of equal scores the one with less loss
        if worth < progress.best:
            progress.best = worth
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in self.net.state_dict().items()}

    def told(self) -> dict[str, float]:
        return super().told() | self.held_out_figures()

    def held_out_figures(self) -> dict[str, float]:
        """Those measured last."""
        found = self.progress.measured[-1:]
        return {name: value for figures in found for name, value in figures.items() if name != "share"}

    def judge(self, most: int) -> dict[str, float]:
        self.net.eval()
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            return self.evaluate(most)

    def end_epoch(self) -> dict[str, float]:
        self.progress.batch = self.progress.position = 0
        return self.held_out_figures()

    # ---- what a checkpoint keeps ----

    @property
    def tables(self) -> Mapping[str, NDArray[np.float32]]:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.net.state_dict().items()}

    def state(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        arrays, state = super().state()
        kept = {f"net.{name}": array for name, array in arrays.items()}
        kept |= {f"best.{name}": tensor.numpy() for name, tensor in self.best.items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            kept |= {f"moments.{number}.{name}": np.asarray(value.cpu().numpy()) for name, value in moments.items()}
        kept["random.cpu"] = torch.get_rng_state().numpy()
        if self.device.type == "cuda":
            kept["random.cuda"] = torch.cuda.get_rng_state(self.device).numpy()
        best = state["best"]
        return kept, state | {"best": best if math.isfinite(best) else None}

    def resume(self, checkpoints: Checkpoints) -> None:
        found = checkpoints.load() if self.rank == 0 else None
        if self.world > 1:  # one process reads and writes; the others are told
            told = [found]
            dist.broadcast_object_list(told)
            found = told[0]
        if not found:
            return
        arrays, state = found
        with checkpoints.restoring():
            self.restore({name: torch.from_numpy(array) for name, array in arrays.items()}, state)
        self.run.report.note(f"Going on from a checkpoint at {self.share():.0%}.")

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Everything is checked before anything is changed."""

        def part(prefix: str) -> dict[str, Tensor]:
            return {
                current_weight(name[len(prefix) :]): tensor
                for name, tensor in tensors.items()
                if name.startswith(prefix)
            }

        progress = self.progress_of(state | {"best": math.inf if state["best"] is None else state["best"]})
        weights, best = part("net."), part("best.")
        for name, tensor in self.net.state_dict().items():
            for kept in (weights, best) if best else (weights,):
                if kept[name].shape != tensor.shape or kept[name].dtype != tensor.dtype:
                    raise FirthError("damaged_checkpoint", "{name} does not fit the network", name=name)
        moments: dict[int, dict[str, Tensor]] = {}
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        for name, tensor in part("moments.").items():
            number, _, what = name.partition(".")
            moments.setdefault(int(number), {})[what] = tensor
            wanted = torch.Size() if what == "step" else parameters[int(number)].shape
            if tensor.shape != wanted or not tensor.is_floating_point():
                raise FirthError("damaged_checkpoint", "moments.{name} does not fit the network", name=name)
        if any(found.keys() != {"step", "exp_avg", "exp_avg_sq"} for found in moments.values()):
            raise FirthError("damaged_checkpoint", "the moments of AdamW are incomplete")
        if self.rank:  # each process leaves out other values
            torch.manual_seed(self.run.seed + self.rank + self.world * (1 + progress.steps))
        else:
            torch.set_rng_state(tensors["random.cpu"])
        if "random.cuda" in tensors and self.device.type == "cuda" and not self.rank:
            torch.cuda.set_rng_state(tensors["random.cuda"], self.device)
        self.net.load_state_dict(weights)
        self.best, self.progress = best, progress
        if moments:
            self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})

    def is_inside(self) -> bool:
        return self.phase(0.0) <= self.progress.phase <= self.phase(1.0)

    def figures(self) -> dict[str, Any]:
        progress = self.progress
        trained = sum(int(epoch["pairs"]) for epoch in progress.epochs) + progress.pairs
        speed = trained / progress.seconds if progress.seconds else 0.0
        figures = super().figures() | {
            f"{self.unit}_per_second": speed,
            "steps": progress.steps,
            "held_out": progress.measured,
        }
        figures["parameters"] = sum(part.numel() for part in self.net.parameters())
        if self.device.type == "cuda":
            figures["device"] = torch.cuda.get_device_name(self.device)
            peak = peak_of(self.device)
            if peak:
                figures["mfu"] = speed * self.operations() / (peak * self.world)
        return figures
