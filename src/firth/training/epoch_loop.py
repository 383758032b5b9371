"""The training loop: epochs in slices of a fraction of a second; progress, checkpoints, a time budget and Ctrl-C."""

from __future__ import annotations

import math
import time
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, fields
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from firth.core.checkpoint import Checkpoints, interrupts_held
from firth.core.errors import FirthError
from firth.core.run import Run
from firth.kernels.hashing import GOLDEN, MASK, mix

SLICE_SECONDS = 0.3
MIN_GAIN = 0.01  # smallest relative decrease of the loss that counts as learning


@dataclass
class Progress:
    """The state of a run besides the tables, as needed to resume it. Subclasses add the position within an epoch."""

    epoch: int = 0
    seconds: float = 0.0  # training time, over all sessions
    words: int = 0  # units trained on, over all epochs
    loss: float = 0.0  # summed over this epoch so far
    pairs: int = 0  # terms of that sum
    untrained: float | None = None  # loss before the first step
    epochs: list[dict[str, float]] = field(default_factory=list)

    def metrics(self) -> list[dict[str, float]]:
        """Return all stored metrics."""
        return self.epochs


def nothing_learned(loss: float, baseline: float, remedy: str, of: str) -> str:
    """Return the text of a note with the code nothing_learned."""
    return f"Nothing was learned: the loss is {loss:.4g}, {of} is {baseline:.4g}. Try {remedy}."


class SliceResult(NamedTuple):
    """The result of a slice of training."""

    loss: float
    pairs: int
    epoch_finished: bool


class TrainsInEpochs(Protocol):
    """A method that makes several passes over its data."""

    @property
    def epochs(self) -> int | None:
        """The number of passes; None if it is not yet chosen by the size of the data."""

    @classmethod
    def method_name(cls) -> str:
        """The name of the method in commands and saved folders."""

    def options(self) -> dict[str, Any]:
        """Option values by name, as they are saved."""


class Loop(ABC):
    """Trains `tables` in place, `size` units per epoch."""

    unit: ClassVar[str]
    baseline: ClassVar[str] = "the loss of the untrained model"
    progress: Progress
    method: TrainsInEpochs

    def __init__(self, method: TrainsInEpochs, fingerprint: str, run: Run, size: int) -> None:
        self.method = method
        self.fingerprint, self.run, self.size = fingerprint, run, size

    @property
    @abstractmethod
    def tables(self) -> Mapping[str, NDArray[np.float32]]:
        """The trained arrays by name, as stored in checkpoints."""

    @abstractmethod
    def position(self) -> int:
        """Return the number of units finished in this epoch."""

    @abstractmethod
    def train(self, units: float, seed: int) -> SliceResult:
        """Train on about `units` units and advance the position."""

    @abstractmethod
    def end_epoch(self) -> dict[str, float]:
        """Reset the position, and return metrics of the epoch in addition to its loss."""

    @property
    def epochs(self) -> int:
        """The number of epochs of the run."""
        epochs = self.method.epochs
        assert epochs is not None
        return epochs

    def done(self) -> int:
        """Return the number of units finished in all epochs."""
        return self.progress.epoch * self.size + self.position()

    def probe_loss(self) -> float | None:
        """Return the current loss on a small part of the data without training, or None if it is not measured."""
        return None

    def check_learned(self) -> dict[str, float]:
        """Return the loss before and after training on the same data; add a note if it did not fall."""
        before, after = self.progress.untrained, self.probe_loss()
        if before is None or after is None:
            return {}
        if before == 0:  # there was no pair to measure it on
            text = f"Nothing was learned: the {self.unit} form no training pairs. Try more data."
            self.run.report.note(text, "nothing_learned")
        elif after > (1 - MIN_GAIN) * before:
            self.run.report.note(nothing_learned(after, before, self.remedy(), self.baseline), "nothing_learned")
        return {"untrained_loss": before, "trained_loss": after}

    def remedy(self) -> str:
        """Return what to try if nothing was learned."""
        return f"more epochs than {self.epochs}, a higher learning_rate or more data"

    def go(self) -> dict[str, Any]:
        """Train to the end of the epochs or the budget, resuming from a checkpoint if there is one; return metrics."""
        checkpoints = self.checkpoints()
        self.resume(checkpoints)
        if not self.progress.words:
            self.progress.untrained = self.probe_loss()
        report, progress, epochs = self.run.report, self.progress, self.epochs
        report.begin(f"training {self.method.method_name()}", epochs * self.size, self.unit)
        try:
            while progress.epoch < epochs and not self.out_of_time():
                self.before_slice()
                with interrupts_held():
                    self.slice()
                report.step(self.done(), **self.progress_metrics())
                if self.is_due(checkpoints):
                    checkpoints.save(*self.state())
        except KeyboardInterrupt:
            checkpoints.save(*self.state())
            raise
        finally:
            report.end()
        if progress.seconds < 0.9 * self.run.budget:
            spent = f"{progress.seconds:.0f} of {self.run.budget:g} s"
            report.note(
                f"The run finished its epochs={epochs} before its time budget ({spent}). Increase epochs to use it.",
                "unused_budget",
            )
        return self.metrics() | self.check_learned()

    def checkpoints(self) -> Checkpoints:
        """Return the checkpoints of this run."""
        return Checkpoints(self.run.checkpoint_folder, self.run.checkpoint_every, self.identity())

    def is_due(self, checkpoints: Checkpoints) -> bool:
        """Return whether it is time for the next checkpoint."""
        return checkpoints.due()

    def identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on to be resumed."""
        return {
            "method": self.method.method_name(),
            "options": self.method.options(),
            "data": self.fingerprint,
            "seed": self.run.seed,
            "deterministic": self.run.deterministic,
        }

    def out_of_time(self) -> bool:
        """Return whether the time budget is used up."""
        return 0 < self.run.budget <= self.progress.seconds

    def before_slice(self) -> None:  # noqa: B027 (most loops need nothing)
        """Compute what the next slice needs. Interrupting it is harmless, because it changes neither the tables nor the
        progress."""

    def epoch_seed(self) -> int:
        """Return the seed of this epoch."""
        return mix((self.run.seed * GOLDEN + self.progress.epoch + 1) & MASK)

    def slice(self) -> None:
        """Train for a fraction of a second."""
        progress = self.progress
        speed = progress.words / progress.seconds if progress.seconds else 100_000
        before, began = self.done(), time.perf_counter()
        units = min(speed * SLICE_SECONDS, self.size)  # at most an epoch, whatever speed a checkpoint implies
        result = self.train(units, self.epoch_seed())
        progress.seconds += time.perf_counter() - began
        progress.words += self.done() - before
        progress.loss += result.loss
        progress.pairs += result.pairs
        if not math.isfinite(progress.loss):
            raise FirthError(
                "diverged",
                "The loss became NaN or infinite in epoch {epoch}: {cause}",
                epoch=progress.epoch + 1,
                cause=self.divergence_cause(),
            )
        if result.epoch_finished:
            metrics = {"loss": progress.loss / max(1, progress.pairs), "pairs": progress.pairs}
            progress.epochs.append(metrics | self.end_epoch())
            progress.epoch += 1
            progress.loss, progress.pairs = 0.0, 0

    def divergence_cause(self) -> str:
        """Return why the loss may have diverged."""
        return f"learning_rate={self.method.options()['learning_rate']:g} is too high for this text."

    def state(self) -> tuple[Mapping[str, NDArray[np.float32]], dict[str, Any]]:
        """Return the arrays and the progress of a checkpoint."""
        return self.tables, asdict(self.progress)

    def resume(self, checkpoints: Checkpoints) -> None:
        """Restore the latest checkpoint, if there is one."""
        checkpoint = checkpoints.load()
        if not checkpoint:
            return
        arrays, state = checkpoint
        with checkpoints.restoring():
            tables = dict(self.tables)
            self.progress = self.progress_of(state)
            for name, table in tables.items():
                if arrays[name].shape != table.shape or arrays[name].dtype != table.dtype:
                    raise FirthError(
                        "damaged_checkpoint",
                        "{name} must be {expected}; got {got}",
                        name=name,
                        got=f"{arrays[name].dtype} {arrays[name].shape}",
                        expected=f"{table.dtype} {table.shape}",
                    )
            for name, table in tables.items():
                table[:] = arrays[name]
            share = self.done() / (self.epochs * self.size)
        self.run.report.note(f"Resuming from a checkpoint at {share:.0%}.", "resumed")

    def progress_of(self, state: Mapping[str, Any]) -> Any:
        """Return the progress of a checkpoint, checked, because kernels index arrays by it."""
        progress, before = type(self.progress)(**state), self.progress
        for item in fields(progress):
            value, default = getattr(progress, item.name), getattr(before, item.name)
            if value is None and default is None:
                continue
            number = (default is None or isinstance(default, float)) and type(value) in (int, float)
            invalid = value != default and not math.isfinite(value) if number else type(value) is not type(default)
            if invalid or (type(value) is int and value < 0):
                raise FirthError(
                    "damaged_checkpoint", "{name} has the invalid value {got!r:.60}", name=item.name, got=value
                )
        stored = [value for metrics in progress.metrics() for value in metrics.values()]
        numbers = all(type(value) in (int, float) and math.isfinite(value) for value in stored)
        if not numbers or not all({"loss", "pairs"} <= metrics.keys() for metrics in progress.epochs):
            raise FirthError("damaged_checkpoint", "its epoch metrics are not finite numbers")
        try:
            self.progress = progress
            inside = progress.epoch <= self.epochs and self.is_inside()
        finally:
            self.progress = before
        if not inside:
            raise FirthError("damaged_checkpoint", "its position is beyond the end of the run")
        return progress

    def is_inside(self) -> bool:
        """Return whether the position is within an epoch."""
        return 0 <= self.position() <= self.size

    def progress_metrics(self) -> dict[str, float]:
        """Return the metrics shown during training; without a loss until there is one."""
        return {"loss": self.loss()} if self.progress.pairs or self.progress.epochs else {}

    def loss(self) -> float:
        """Return the mean loss of this epoch so far, or of the previous one at the start of an epoch."""
        progress = self.progress
        if progress.epochs and not progress.pairs:
            return progress.epochs[-1]["loss"]
        return progress.loss / max(1, progress.pairs)

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run."""
        progress = self.progress
        return {
            "epochs": progress.epochs,
            "loss": self.loss(),
            "seconds": progress.seconds,
            "finished_epochs": progress.epoch,
        }
