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
from firth.core.run import Run
from firth.training.device import device_of, distributed, peak_of
from firth.training.epoch_loop import Loop, Progress, SliceResult, nothing_learned
from firth.training.network_options import LearningOptions
from firth.training.optimizers import optimizer, rate_share

PREFETCHED_BATCHES = 3  # batches that are loaded while one is learned from
MAX_SLICE_SECONDS = 2.0  # of a slice
EVALUATIONS = 20  # times in a run that the held-out loss is measured
SHORT_STEP_OPERATIONS = 1e9  # multiplications and additions, some milliseconds of a core


def token_shares(ids: NDArray[np.int32], words: int) -> NDArray[np.float64]:
    """How frequent each of `words` tokens is among `ids`, each counted once more than it occurs."""
    counts = np.bincount(ids, minlength=words).astype(np.float64) + 1
    return np.asarray(counts / counts.sum())


class Batch(NamedTuple):
    """One batch of a plan: what to load, and how many tokens it trains on."""

    what: Any
    tokens: int


@dataclass
class GradientProgress(Progress):
    """Where a run stands."""

    batch: int = 0  # of this epoch: the next one
    batches: int = 0  # of the plan that `batch` counts in; fewer or more processes may follow another
    position: int = 0  # tokens of this epoch that are done
    steps: int = 0
    phase: int = 0  # which plan of batches is followed, where there are several
    evaluated: float = 0.0  # the share of the run at the last evaluation
    best: float = math.inf
    measured: list[dict[str, float]] = field(default_factory=list)  # held-out figures, with the share of the run


class GradientLoop(Loop):
    """Learns `net`'s weights."""

    unit: ClassVar[str] = "tokens"
    compiles: ClassVar[bool] = False  # batches have one shape, so that torch.compile pays
    measures_start: ClassVar[bool] = False  # what is there before the first step may be the best
    baseline: ClassVar[str] = "that of guessing by frequency alone"
    progress: GradientProgress
    method: LearningOptions

    def __init__(self, method: LearningOptions, net: nn.Module, fingerprint: str, run: Run, size: int) -> None:
        super().__init__(method, fingerprint, run, size)
        self.rank, self.world = distributed(run)
        self.device = device_of(run)
        self.net = net.to(self.device)
        self.optimizer = optimizer(method, net, self.device)
        self.progress = GradientProgress()
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
        return 6.0 * sum(parameter.numel() for parameter in self.net.parameters())

    def threads(self) -> int:
        """Threads worth starting: where a step is short, they wait for each other longer than they work."""
        short = self.operations() * self.method.batch_units < SHORT_STEP_OPERATIONS
        return 1 if self.run.deterministic or short else self.run.cores

    def peak_rate(self) -> float:
        """The highest learning rate."""
        return self.method.learning_rate

    # ---- the loop ----

    def go(self) -> dict[str, Any]:
        with self.settings(), ThreadPoolExecutor(1) as loader:
            self.loader = loader if self.device.type == "cuda" else None  # a CPU would only be taken from the net
            metrics = super().go()
            if self.best:
                self.net.load_state_dict(self.best)
            self.net.eval()
            held_out_metrics = self.evaluate_held_out(self.final_evaluation_size())
            return metrics | held_out_metrics | self.check_baseline(held_out_metrics)

    def check_baseline(self, held_out_metrics: Mapping[str, float]) -> dict[str, float]:
        """The held-out loss beside that of a model without a network; a note where the network is not better."""
        baseline = self.baseline_loss() if "held_out_loss" in held_out_metrics else None
        if baseline is None:
            return {}
        if held_out_metrics["held_out_loss"] >= baseline:
            text = nothing_learned(held_out_metrics["held_out_loss"], baseline, self.remedy(), self.baseline)
            self.run.report.note(text, "nothing_learned")
        return {"baseline_loss": baseline}

    def final_evaluation_size(self) -> int:
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
        plan_key = self.progress.epoch, self.progress.phase
        if self.plans[0] != plan_key:
            self.plans = plan_key, self.plan(self.progress.epoch)
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
        return bool(self.broadcast_value(super().out_of_time()))  # all must stop at the same step

    def broadcast_value(self, value: float) -> float:
        """The first process's: clocks differ."""
        if self.world == 1 or not self.run.budget:
            return value
        tensor = torch.tensor(float(value), dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, 0)
        return float(tensor)

    def train(self, units: float, seed: int) -> SliceResult:
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
            if trained and (trained >= units or time.perf_counter() - began > MAX_SLICE_SECONDS):
                break
            share = self.broadcast_value(self.share(time.perf_counter() - began))
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
        epoch_finished = progress.batch >= len(batches)
        if epoch_finished:
            progress.position = self.size
        return SliceResult(float(total), trained, epoch_finished)

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
        for group_options in self.optimizer.param_groups:
            group_options["lr"] = rate
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
        batches, end = self.batches(), number + (PREFETCHED_BATCHES + 1) * self.world
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
        total = self.done() / share if share else self.method.epochs * self.size
        size = round(total) // (10 * EVALUATIONS)  # together a tenth of what is trained on
        metrics = self.evaluate_held_out(size)
        self.net.train()
        progress.evaluated = share
        if not metrics:
            return
        progress.measured.append({"share": share, **metrics})
        loss = metrics.get("held_out_loss", 0.0)
        cost = 1e-9 * loss - metrics["score"] if "score" in metrics else loss  # of equal scores the one with less loss
        if cost < progress.best:
            progress.best = cost
            self.best = {name: tensor.detach().cpu().clone() for name, tensor in self.net.state_dict().items()}

    def progress_metrics(self) -> dict[str, float]:
        return super().progress_metrics() | self.latest_evaluation()

    def latest_evaluation(self) -> dict[str, float]:
        """Those measured last."""
        latest = self.progress.measured[-1:]
        return {name: value for metrics in latest for name, value in metrics.items() if name != "share"}

    def evaluate_held_out(self, most: int) -> dict[str, float]:
        self.net.eval()
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            return self.evaluate(most)

    def end_epoch(self) -> dict[str, float]:
        self.progress.batch = self.progress.position = 0
        return self.latest_evaluation()

    # ---- what a checkpoint keeps ----

    @property
    def tables(self) -> Mapping[str, NDArray[np.float32]]:
        return {name: tensor.detach().cpu().numpy() for name, tensor in self.net.state_dict().items()}

    def state(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        arrays, state = super().state()
        stored = {f"net.{name}": array for name, array in arrays.items()}
        stored |= {f"best.{name}": tensor.numpy() for name, tensor in self.best.items()}
        for number, moments in self.optimizer.state_dict()["state"].items():
            stored |= {f"moments.{number}.{name}": np.asarray(value.cpu().numpy()) for name, value in moments.items()}
        stored["random.cpu"] = torch.get_rng_state().numpy()
        if self.device.type == "cuda":
            stored["random.cuda"] = torch.cuda.get_rng_state(self.device).numpy()
        best = state["best"]
        return stored, state | {"best": best if math.isfinite(best) else None}

    def resume(self, checkpoints: Checkpoints) -> None:
        checkpoint = checkpoints.load() if self.rank == 0 else None
        if self.world > 1:  # one process reads and writes; the others are told
            values = [checkpoint]
            dist.broadcast_object_list(values)
            checkpoint = values[0]
        if not checkpoint:
            return
        arrays, state = checkpoint
        with checkpoints.restoring():
            self.restore({name: torch.from_numpy(array) for name, array in arrays.items()}, state)
        self.run.report.note(f"Resuming from a checkpoint at {self.share():.0%}.", "resumed")

    def restore(self, tensors: Mapping[str, Tensor], state: dict[str, Any]) -> None:
        """Everything is checked before anything is changed."""

        def with_prefix(prefix: str) -> dict[str, Tensor]:
            return {name[len(prefix) :]: tensor for name, tensor in tensors.items() if name.startswith(prefix)}

        progress = self.progress_of(state | {"best": math.inf if state["best"] is None else state["best"]})
        weights, best = with_prefix("net."), with_prefix("best.")
        for name, tensor in self.net.state_dict().items():
            for stored in (weights, best) if best else (weights,):
                if stored[name].shape != tensor.shape or stored[name].dtype != tensor.dtype:
                    raise FirthError("damaged_checkpoint", "{name} does not fit the network", name=name)
        moments: dict[int, dict[str, Tensor]] = {}
        parameters = [parameter for group in self.optimizer.param_groups for parameter in group["params"]]
        for name, tensor in with_prefix("moments.").items():
            number, _, moment_name = name.partition(".")
            moments.setdefault(int(number), {})[moment_name] = tensor
            expected_shape = torch.Size() if moment_name == "step" else parameters[int(number)].shape
            if tensor.shape != expected_shape or not tensor.is_floating_point():
                raise FirthError("damaged_checkpoint", "moments.{name} does not fit the network", name=name)
        if any(moment.keys() != {"step", "exp_avg", "exp_avg_sq"} for moment in moments.values()):
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

    def metrics(self) -> dict[str, Any]:
        progress = self.progress
        trained = sum(int(epoch["pairs"]) for epoch in progress.epochs) + progress.pairs
        speed = trained / progress.seconds if progress.seconds else 0.0
        metrics = super().metrics() | {
            f"{self.unit}_per_second": speed,
            "steps": progress.steps,
            "held_out": progress.measured,
        }
        metrics["parameters"] = sum(parameter.numel() for parameter in self.net.parameters())
        if self.device.type == "cuda":
            metrics["device"] = torch.cuda.get_device_name(self.device)
            peak = peak_of(self.device)
            if peak:
                metrics["mfu"] = speed * self.operations() / (peak * self.world)
        return metrics
