"""The training loop of all networks.

It has AdamW, a learning rate schedule, gradient clipping and accumulation, mixed precision, held-out evaluation,
selection of the best weights, exact resume, a time budget, and several processes, which divide the batches of each step
and, if asked, the weights.

A subclass defines the batches and the loss of a batch.
"""

from __future__ import annotations

import math
import sys
import time
from abc import abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from typing import Any, ClassVar, NamedTuple, TypeVar

import numpy as np
import torch
import torch.distributed as dist
from numpy.typing import NDArray
from torch import Tensor, nn

from firth.core.checkpoint import Checkpoints, interrupts_held
from firth.core.errors import FirthError
from firth.core.run import Run
from firth.training.device import device_of, group_of, losses_reported, peak_of
from firth.training.epoch_loop import Loop, Progress, SliceResult, nothing_learned
from firth.training.network_options import LearningOptions
from firth.training.optimizers import optimizer, rate_share
from firth.training.weight_shards import ShardedNet, copy_rows, moments_of, own, rows_to_store, rows_to_write

T = TypeVar("T")
PREFETCHED_BATCHES = 3  # batches loaded ahead of the current one
MAX_SLICE_SECONDS = 2.0
EVALUATIONS = 20  # held-out evaluations per run
SHORT_STEP_OPERATIONS = 1e9  # multiplications and additions; some milliseconds on one core


def token_shares(ids: NDArray[np.int32], words: int) -> NDArray[np.float64]:
    """Return the relative frequency of each of `words` tokens in `ids`, with add-one smoothing."""
    counts = np.bincount(ids, minlength=words).astype(np.float64) + 1
    return np.asarray(counts / counts.sum())


def parameter_counts(net: nn.Module) -> dict[str, int]:
    """Return the number of parameters of a network, and of those that are trained if some are frozen."""
    counts = {"parameters": 0, "trained_parameters": 0}
    for parameter in net.parameters():
        counts["parameters"] += parameter.numel()
        counts["trained_parameters"] += parameter.numel() * parameter.requires_grad
    return counts if counts["trained_parameters"] < counts["parameters"] else {"parameters": counts["parameters"]}


class Batch(NamedTuple):
    """One batch of a plan: what to load, its number of tokens, and the number of its step.

    The batches of a step are divided among the processes, each of which accumulates the gradients of its own.
    """

    what: Any
    tokens: int
    step: int


@dataclass
class GradientProgress(Progress):
    """The state of a run, as stored in checkpoints."""

    batch: int = 0  # the next batch of this epoch
    batches: int = 0  # in the plan that `batch` refers to; another number of processes may use another plan
    position: int = 0  # finished tokens of this epoch
    steps: int = 0
    phase: int = 0  # of the plan, if there are several
    evaluated: float = 0.0  # share of the run at the last evaluation
    best: float = math.inf
    measured: list[dict[str, float]] = field(default_factory=list)  # held-out metrics, with the share of the run

    def metrics(self) -> list[dict[str, float]]:
        """Return all stored metrics."""
        return [*self.epochs, *self.measured]


class GradientLoop(Loop):
    """Trains the weights of `net`."""

    unit: ClassVar[str] = "tokens"
    compiles: ClassVar[bool] = False  # whether batches have one shape, so that torch.compile is worthwhile
    measures_start: ClassVar[bool] = False  # whether the initial weights may be the best
    baseline: ClassVar[str] = "the loss of predicting by frequency"
    progress: GradientProgress
    method: LearningOptions

    def __init__(self, method: LearningOptions, net: nn.Module, fingerprint: str, run: Run, size: int) -> None:
        super().__init__(method, fingerprint, run, size)
        self.device = device_of(run)
        self.group = group_of(self.device)
        self.rank, self.world = self.group.rank, self.group.world
        self.sharded = ShardedNet(net, self.device) if run.shard_weights and self.world > 1 else None
        self.whole = net  # complete weights for the model, used in training unless they are sharded
        self.net = net.to(self.device) if self.sharded is None else self.sharded.net
        self.optimizer = optimizer(method, self.net, self.device)
        self.progress = GradientProgress()
        self.best: dict[str, Tensor] = {}
        self.mixed = self.device.type == "cuda"
        compiles = self.compiles and self.mixed and self.sharded is None
        self.compiled = torch.compile(self.batch_loss, dynamic=False) if compiles else None
        self.shape: tuple[int, ...] = ()  # of the first batch, for which the loss is compiled
        self.plans: tuple[tuple[int, int], Sequence[Batch]] = ((-1, 0), ())
        self.loader: ThreadPoolExecutor | None = None
        self.loading: dict[int, Future[list[Tensor]]] = {}  # by batch number
        self.signals: Sequence[Any] = ()  # Ctrl-C and SIGTERM that this process has received

    # ---- defined by subclasses ----

    @abstractmethod
    def plan(self, epoch: int) -> Sequence[Batch]:
        """Return the batches of an epoch in order, determined by seed, epoch and `progress.phase`."""

    @abstractmethod
    def load(self, what: Any) -> Any:
        """Return the tensors of a batch on the CPU. Another thread may call it ahead of time: only use `what`."""

    def phase(self, share: float) -> int:
        """Return the phase at this share of the run; each phase has its own plan of batches."""
        return 0

    @abstractmethod
    def batch_loss(self, *tensors: Tensor) -> Tensor:
        """Return the loss of a batch, summed over its tokens."""

    def normalized(self, batches: list[list[Tensor]], tokens: int) -> list[list[Tensor]]:
        """Return this process's batches of a step of `tokens` tokens.

        A loss that has another denominator than the tokens of the step sets it here, so that the gradient does not
        depend on how the step is divided.
        """
        return batches

    def evaluate(self, most: int) -> dict[str, float]:
        """Return metrics on about `most` held-out tokens, including `held_out_loss`; empty by default.

        A metric called `score` (higher is better) selects the weights instead of the loss.
        """
        return {}

    def baseline_loss(self) -> float | None:
        """Return the held-out loss of a baseline without a network, or None."""
        return None

    def operations(self) -> float:
        """Return the operations per token of the forward and backward pass: 6 per weight (Kaplan et al. 2020)."""
        return 6.0 * sum(parameter.numel() for parameter in self.net.parameters())

    def threads(self) -> int:
        """Return the number of threads; one if steps are so short that synchronization would dominate."""
        short = self.operations() * self.method.batch_units < SHORT_STEP_OPERATIONS
        return 1 if self.run.deterministic or short else self.run.cores

    def peak_rate(self) -> float:
        """Return the peak learning rate."""
        return self.method.learning_rate

    # ---- the loop ----

    def go(self) -> dict[str, Any]:
        """Train, select the best weights, and return the metrics."""
        # Several processes must stop at the same step: each holds its signals until all have heard of them.
        holding = interrupts_held() if self.world > 1 else nullcontext(())
        with losses_reported(self.group), self.settings(), ThreadPoolExecutor(1) as loader, holding as self.signals:
            # On a CPU, loading in another thread would compete with training.
            self.loader = loader if self.device.type == "cuda" else None
            metrics = super().go()
            if self.best:
                self.set_weights(self.best)
            self.net.eval()
            held_out_metrics = self.evaluate_held_out(self.final_evaluation_size())
            metrics |= held_out_metrics | self.check_baseline(held_out_metrics)
            if self.sharded is not None:
                self.sharded.copy_to(self.whole)
                self.net, self.sharded = self.whole.eval(), None
            return metrics

    def compute(self, function: Callable[..., T], *arguments: Any) -> T:
        """Return function(*arguments), which uses the network."""
        if self.sharded is None:
            return function(*arguments)
        result: T = self.sharded(function, *arguments)
        return result

    def copy_of_weights(self) -> dict[str, Tensor]:
        """Return a copy of the weights that this process stores."""
        return {name: own(tensor).cpu().clone() for name, tensor in self.net.state_dict().items()}

    def set_weights(self, weights: Mapping[str, Tensor]) -> None:
        """Set the weights to a copy that `copy_of_weights` returned."""
        for name, tensor in self.net.state_dict().items():
            own(tensor).copy_(weights[name])

    def check_baseline(self, held_out_metrics: Mapping[str, float]) -> dict[str, float]:
        """Return the baseline loss; add a note if the held-out loss is not lower."""
        baseline = self.compute(self.baseline_loss) if "held_out_loss" in held_out_metrics else None
        if baseline is None:
            return {}
        if held_out_metrics["held_out_loss"] >= baseline:
            text = nothing_learned(held_out_metrics["held_out_loss"], baseline, self.remedy(), self.baseline)
            self.run.report.note(text, "nothing_learned")
        return {"baseline_loss": baseline}

    def final_evaluation_size(self) -> int:
        """Return the number of held-out tokens of the final evaluation: all of them, unless a budget ended the run.

        Then it is a third of the tokens trained on, which takes about a tenth of the time; evaluating all held-out
        tokens of a large text could take many times the budget.
        """
        if self.unit != "tokens" or not self.out_of_time():  # development sets are evaluated completely
            return sys.maxsize
        return max(1, self.progress.words // 3)

    @contextmanager
    def settings(self) -> Iterator[None]:
        """Use the seed and threads of this run, and restore those of the caller afterwards."""
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
        """Return the plan of the current epoch and phase."""
        plan_key = self.progress.epoch, self.progress.phase
        if self.plans[0] != plan_key:
            self.plans = plan_key, self.plan(self.progress.epoch)
            self.loading.clear()
        return self.plans[1]

    def enter_phase(self, share: float) -> None:
        """Switch to the plan of another phase, at the same share of the epoch."""
        progress, phase = self.progress, self.phase(share)
        if phase != progress.phase:
            done = progress.batch / max(1, len(self.batches()))
            progress.phase = phase
            progress.batch = self.first_of_step(int(done * len(self.batches())))

    def first_of_step(self, number: int) -> int:
        """Return the first batch of the step that batch `number` belongs to."""
        batches = self.batches()
        while 0 < number < len(batches) and batches[number].step == batches[number - 1].step:
            number -= 1
        return number

    def passes(self, most: int = sys.maxsize) -> int:
        """Return the number of batches per step, of at most `most` tokens each: a multiple of the processes."""
        count = max(self.world * self.run.accumulation, -(-self.method.batch_units // most))
        return -(-count // self.world) * self.world

    def position(self) -> int:
        """Return the number of units finished in this epoch."""
        return self.progress.position

    def out_of_time(self) -> bool:
        """Return whether the time budget of rank 0 is used up."""
        return bool(self.broadcast_value(super().out_of_time()))  # all processes must stop at the same step

    def broadcast_value(self, value: float) -> float:
        """Broadcast rank 0's value, because clocks differ between processes."""
        if self.world == 1 or not self.run.budget:
            return value
        tensor = torch.tensor(float(value), dtype=torch.float64, device=self.device)
        dist.broadcast(tensor, 0)
        return float(tensor)

    def agreed(self, value: bool) -> bool:
        """Return whether the value is true on any process."""
        if self.world == 1:
            return value
        flag = torch.tensor(float(value), device=self.device)
        dist.all_reduce(flag, dist.ReduceOp.MAX)
        return bool(flag)

    def is_due(self, checkpoints: Checkpoints) -> bool:
        """Return whether it is time for the next checkpoint by the clock of rank 0."""
        return self.agreed(checkpoints.due() and not self.rank)

    def slice(self) -> None:
        """Train for one slice; stop if a process has received Ctrl-C or SIGTERM."""
        super().slice()
        if self.world > 1 and self.agreed(bool(self.signals)):
            raise KeyboardInterrupt

    def train(self, units: float, seed: int) -> SliceResult:
        """Take the optimizer steps of one slice."""
        self.net.train()
        if self.world > 1:
            units = 1  # one step per slice: slices end by the clock, but processes must agree
        progress = self.progress
        began, first, trained = time.perf_counter(), progress.position, 0
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        batches = self.batches()
        if progress.batches not in (0, len(batches)):  # resumed by other processes: another plan of the same texts
            ends = np.cumsum([batch.tokens for batch in batches])
            progress.batch = self.first_of_step(int(np.searchsorted(ends, progress.position, side="right")))
        if self.measures_start and not progress.steps:
            self.measure(0.0)
        while progress.batch < len(batches):
            # The size of the first slice is a guess, and a slow network must not exceed its budget.
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
            # Evaluated by step, not by slice: slices end by the clock, and the best weights must not depend on it.
            if self.due(len(batches), time.perf_counter() - began) and math.isfinite(float(total)):
                self.measure(self.share(time.perf_counter() - began))
        progress.batches = len(batches)
        epoch_finished = progress.batch >= len(batches)
        if epoch_finished:
            progress.position = self.size
        return SliceResult(float(total), trained, epoch_finished)

    def next_group(self, batches: Sequence[Batch]) -> Sequence[Batch]:
        """Return the batches of the next step."""
        start = end = self.progress.batch
        while end < len(batches) and batches[end].step == batches[start].step:
            end += 1
        return batches[start:end]

    def step(self, group: Sequence[Batch], share: float) -> Tensor:
        """Take one optimizer step on the mean gradient of a group's tokens, and return the summed loss.

        Each process computes its part of the group.
        """
        rate = self.peak_rate() * rate_share(self.method, share)
        for group_options in self.optimizer.param_groups:
            group_options["lr"] = rate
        self.optimizer.zero_grad(set_to_none=True)
        tokens = sum(batch.tokens for batch in group)
        total = torch.zeros((), dtype=torch.float64, device=self.device)
        first = self.progress.batch
        numbers = range(first + self.rank, first + len(group), self.world)
        parts = self.normalized([self.loaded(number) for number in numbers], tokens)
        scale = 1 / tokens
        if self.sharded is not None:
            scale *= self.world  # FSDP2 divides the sum of the gradients by the processes
            # All processes collect the weights equally often, also those that have no batch left.
            idle = -(-len(group) // self.world) - len(parts)
            parts = parts + idle * [self.prepared(group[0])]
        for number, tensors in enumerate(parts):
            on_device = [tensor.to(self.device, non_blocking=True) for tensor in tensors]
            with torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
                loss = self.compute(self.loss_of, on_device) * (number < len(numbers))
            (loss * scale).backward()  # type: ignore[no-untyped-call]
            total += loss.detach()
        if self.world > 1:
            self.sum_over_processes(total)
        if self.method.max_grad_norm:
            nn.utils.clip_grad_norm_(self.net.parameters(), self.method.max_grad_norm)
        self.optimizer.step()
        return total

    def sum_over_processes(self, total: Tensor) -> None:
        """Sum the loss and, unless FSDP2 has done it, the gradients."""
        dist.all_reduce(total)
        for parameter in self.net.parameters() if self.sharded is None else ():
            if parameter.requires_grad:
                if parameter.grad is None:
                    parameter.grad = torch.zeros_like(parameter)
                dist.all_reduce(parameter.grad)

    def loaded(self, number: int) -> list[Tensor]:
        """Return a batch of the plan, and start loading the next ones of this process."""
        batches, end = self.batches(), number + (PREFETCHED_BATCHES + 1) * self.world
        if self.loader is None:
            return self.prepared(batches[number])
        for later in range(number, min(end, len(batches)), self.world):
            if later not in self.loading:
                self.loading[later] = self.loader.submit(self.prepared, batches[later])
        return self.loading.pop(number).result()

    def prepared(self, batch: Batch) -> list[Tensor]:
        """Return the tensors of a batch, in pinned memory for a GPU."""
        tensors = self.load(batch.what)
        return [tensor.pin_memory() for tensor in tensors] if self.device.type == "cuda" else list(tensors)

    def loss_of(self, tensors: list[Tensor]) -> Tensor:
        """Return the loss of a batch, compiled if it has the usual shape; the last batch of an epoch may differ."""
        shape = tuple(tensors[0].shape)
        self.shape = self.shape or shape
        if self.compiled is None or shape != self.shape:
            return self.batch_loss(*tensors)
        return self.compiled(*tensors)

    def share(self, spent: float = 0.0) -> float:
        """Return the finished share of the run, by tokens or by time budget, whichever is larger."""
        done = self.done() / (self.method.epochs * self.size)
        if self.run.budget:
            done = max(done, (self.progress.seconds + spent) / self.run.budget)
        return min(1.0, done)

    def due(self, batches: int, spent: float) -> bool:
        """Return whether an evaluation is due: `EVALUATIONS` times in a run, and at its end."""
        progress, share = self.progress, self.share(spent)
        last = progress.batch >= batches and progress.epoch + 1 == self.method.epochs
        return last or share - progress.evaluated >= 1 / EVALUATIONS or progress.evaluated < 1 <= share

    def measure(self, share: float) -> None:
        """Evaluate on held-out data, and keep the weights with the highest score, or else the lowest loss."""
        progress = self.progress
        total = self.done() / share if share else self.method.epochs * self.size
        size = round(total) // (10 * EVALUATIONS)  # all evaluations together: a tenth of the training tokens
        metrics = self.evaluate_held_out(size)
        self.net.train()
        progress.evaluated = share
        if not metrics:
            return
        progress.measured.append({"share": share, **metrics})
        loss = metrics.get("held_out_loss", 0.0)
        cost = 1e-9 * loss - metrics["score"] if "score" in metrics else loss  # the loss breaks ties between scores
        if cost < progress.best:
            progress.best = cost
            self.best = self.copy_of_weights()

    def progress_metrics(self) -> dict[str, float]:
        """Return the metrics shown during training."""
        return super().progress_metrics() | self.latest_evaluation()

    def latest_evaluation(self) -> dict[str, float]:
        """Return the metrics of the last evaluation."""
        latest = self.progress.measured[-1:]
        return {name: value for metrics in latest for name, value in metrics.items() if name != "share"}

    def evaluate_held_out(self, most: int) -> dict[str, float]:
        """Return the metrics of `evaluate`, in evaluation mode and without gradients."""
        self.net.eval()
        with torch.no_grad(), torch.autocast(self.device.type, torch.bfloat16, enabled=self.mixed):
            return self.compute(self.evaluate, most)

    def end_epoch(self) -> dict[str, float]:
        """Reset the position, and return the latest held-out metrics."""
        self.progress.batch = self.progress.position = 0
        return self.latest_evaluation()

    # ---- checkpoints ----

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints of this run; every process writes its rows of the weights."""
        return Checkpoints(self.run.checkpoint_folder, self.run.checkpoint_every, self.identity(), self.group)

    @property
    def tables(self) -> Mapping[str, NDArray[np.float32]]:
        """The weights of the network that this process stores."""
        return {name: tensor.numpy() for name, tensor in self.copy_of_weights().items()}

    def state(self) -> tuple[Mapping[str, NDArray[Any]], dict[str, Any]]:
        """Return the rows of a checkpoint that this process writes, and the progress.

        They are weights, best weights, moments, and the random states of each process in a row of their own.
        """
        _, state = super().state()
        weights = self.net.state_dict()
        tensors = {f"net.{name}": rows_to_write(own(like), like, self.group) for name, like in weights.items()}
        for name, tensor in self.best.items():
            tensors[f"best.{name}"] = rows_to_write(tensor, weights[name], self.group)
        for number, moments in self.optimizer.state_dict()["state"].items():
            for name, moment in moments.items():
                tensors[f"moments.{number}.{name}"] = rows_to_write(own(moment), moment, self.group)
        tensors["random.cpu"] = torch.get_rng_state()[None]
        if self.device.type == "cuda":
            tensors["random.cuda"] = torch.cuda.get_rng_state(self.device)[None]
        best = state["best"]
        return (
            {name: np.asarray(tensor.cpu().numpy()) for name, tensor in tensors.items()},
            state | {"best": best if math.isfinite(best) else None},
        )

    def resume(self, checkpoints: Checkpoints) -> None:
        """Restore the latest checkpoint on all processes, if there is one."""
        checkpoint = checkpoints.load()
        if not checkpoint:
            return
        with checkpoints.restoring():
            self.restore(*checkpoint)
        self.run.report.note(f"Resuming from a checkpoint at {self.share():.0%}.", "resumed")

    def restore(self, arrays: Mapping[str, NDArray[Any]], state: dict[str, Any]) -> None:
        """Restore a checkpoint; everything is checked before anything is changed."""

        def with_prefix(prefix: str) -> dict[str, Tensor]:
            names = [name for name in arrays if name.startswith(prefix)]
            return {name[len(prefix) :]: torch.from_numpy(np.array(arrays[name])) for name in names}

        progress = self.progress_of(state | {"best": math.inf if state["best"] is None else state["best"]})
        weights, best, random = with_prefix("net."), with_prefix("best."), with_prefix("random.")
        for name, tensor in self.net.state_dict().items():
            for stored in (weights, best) if best else (weights,):
                if stored[name].shape != tensor.shape or stored[name].dtype != tensor.dtype:
                    raise FirthError("damaged_checkpoint", "{name} does not fit the network", name=name)
        moments = moments_of(self.optimizer, with_prefix("moments."), self.group)
        self.restore_random(random, progress.steps)
        for name, tensor in self.net.state_dict().items():
            copy_rows(tensor, weights[name], self.group)
        if best:
            self.best = {
                name: rows_to_store(best[name], tensor, self.group) for name, tensor in self.net.state_dict().items()
            }
        self.progress = progress
        if moments:
            self.optimizer.load_state_dict(self.optimizer.state_dict() | {"state": moments})

    def restore_random(self, states: Mapping[str, Tensor], steps: int) -> None:
        """Restore the random state of this process; if there were other processes, only that of rank 0."""
        rows = {name: state.reshape(-1, state.shape[-1]) for name, state in states.items()}  # earlier versions: 1-D
        if self.rank and len(rows["cpu"]) != self.world:
            torch.manual_seed(self.run.seed + self.rank + self.world * (1 + steps))  # another dropout mask than others
            return
        torch.set_rng_state(rows["cpu"][self.rank].clone())
        if "cuda" in rows and self.device.type == "cuda":
            torch.cuda.set_rng_state(rows["cuda"][self.rank].clone(), self.device)

    def is_inside(self) -> bool:
        """Return whether the phase is one of this run."""
        return self.phase(0.0) <= self.progress.phase <= self.phase(1.0)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run, with its speed and, on known GPUs, its utilization (MFU)."""
        progress = self.progress
        trained = sum(int(epoch["pairs"]) for epoch in progress.epochs) + progress.pairs
        speed = trained / progress.seconds if progress.seconds else 0.0
        metrics = super().metrics() | {
            f"{self.unit}_per_second": speed,
            "steps": progress.steps,
            "held_out": progress.measured,
        }
        metrics |= parameter_counts(self.net)
        if self.device.type == "cuda":
            metrics["device"] = torch.cuda.get_device_name(self.device)
            peak = peak_of(self.device)
            if peak:
                metrics["mfu"] = speed * self.operations() / (peak * self.world)
        return metrics
