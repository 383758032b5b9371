"""A learner's tables on a GPU, the windows trained there, and what that came to."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.core.checkpoint import Checkpoints
from firth.core.errors import FirthError
from firth.core.report import human
from firth.kernels.predict import Table, Tally, Task
from firth.nets.windows_cuda import Rules, Windows
from firth.training.epoch_loop import Loop
from firth.training.gpu_choice import interpreted

MOST_PROGRAMS = 1024  # more are hardly faster; see benchmarks/gpu_words.py
ROWS_A_PROGRAM = 64  # with fewer, programs would move the same rows from the same old values all the time
MOST_AT_ONCE = 2.0  # see `fitting_programs`
LAID_BYTES = 44  # of a token beside its noise words: places, spans and what sorting them takes


def device() -> torch.device:
    return torch.device("cpu" if interpreted() else "cuda")


def upload(array: NDArray[Any], where: torch.device) -> Tensor:
    """A copy on the device; unsigned numbers as the signed ones of the same bits, which torch knows better."""
    signed = array.view(np.int32) if array.dtype == np.uint32 else array
    return torch.tensor(np.ascontiguousarray(signed), device=where)


class Card:
    """The tables of a task on a GPU. Those in memory are what they were at the last `fetch`."""

    def __init__(
        self, task: Task, tokens: int, counts: NDArray[np.int64], noise: NDArray[np.float64], rate: float
    ) -> None:
        """With room for slices of so many tokens; counts and noise weights of the rows, and the highest rate."""
        began = time.perf_counter()
        self.task, self.device = task, device()
        self.check_room(tokens)
        rules = Rules(task.architecture, task.window, task.negatives, task.shrink, task.mean, task.exact)
        inputs, outputs, keep, alias = (
            upload(table, self.device) for table in (task.inputs, task.outputs, task.keep, task.noise)
        )
        self.windows = Windows(rules, inputs, outputs, keep, alias)
        self.programs = fitting_programs(task, counts, noise, rate * self.windows.tiles.group)
        self.compile()
        self.starting_seconds = time.perf_counter() - began

    def compile(self) -> None:
        """Trains on an empty slice, so that no later one waits for compilers; counts begin anew."""
        self.seconds = self.laying_seconds = 0.0  # of the kernels that train, and of those that lay out
        self.words = self.pairs = self.bytes = 0
        raw, starts = (torch.zeros(0, dtype=kind, device=self.device) for kind in (torch.int32, torch.int64))
        self.train(raw, starts, 0, 0, 0, 0, (0.0, 0.0))
        self.seconds = self.laying_seconds = 0.0

    def check_room(self, tokens: int) -> None:
        task = self.task
        needed = task.inputs.nbytes + task.outputs.nbytes + tokens * (LAID_BYTES + 4 * task.negatives)
        if self.device.type == "cuda" and needed > (free := torch.cuda.mem_get_info()[0]):
            raise FirthError(
                "out_of_memory",
                "The tables and a slice of text need {needed}B, the GPU has {free}B left; a smaller dim or "
                "vocabulary needs less, device=cpu works.",
                needed=human(needed),
                free=human(free),
            )

    # ---- tables ----

    def send(self) -> None:
        """From memory to the card."""
        for mine, table in self.both():
            mine.copy_(torch.from_numpy(table))

    def fetch(self) -> None:
        """From the card to memory."""
        for mine, table in self.both():
            torch.from_numpy(table).copy_(mine)

    def both(self) -> tuple[tuple[Tensor, NDArray[np.float32]], ...]:
        return (self.windows.inputs, self.task.inputs), (self.windows.outputs, self.task.outputs)

    # ---- training ----

    def train(
        self, raw: Tensor, starts: Tensor, origin: int, first: int, last: int, seed: int, rates: tuple[float, float],
        move: bool = True,
    ) -> Tally:  # fmt: skip
        """`Windows.lay` and `Windows.train`, and what they came to; waits for the card."""
        times = [self.mark()]
        prepared = self.windows.prepare(raw, starts, origin, first, last, seed)
        times.append(self.mark())
        losses, pairs = self.windows.train(prepared, *rates, self.programs, move)
        times.append(self.mark())
        moved = self.windows.bytes_moved(prepared)
        loss, made, rows = torch.stack([losses.double().sum(), pairs.sum().double(), moved.double()]).tolist()
        words = prepared.last - prepared.first
        if move:
            self.laying_seconds += between(times[0], times[1])
            self.seconds += between(times[1], times[2])
            self.words += last - first
            self.pairs += int(made)
            self.bytes += int(rows)
        return Tally(loss, int(made), words)

    def mark(self) -> Any:
        """A moment, on the card's own clock."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def figures(self) -> dict[str, Any]:
        """Of this sitting. Bytes are those of the rows that windows read and add to, whether from memory or a cache."""
        found: dict[str, Any] = {
            "device": "Triton's interpreter",
            "programs": self.programs,
            "products": self.windows.tiles.dtype,
            "starting_seconds": self.starting_seconds,
            "kernel_seconds": self.seconds,
            "laying_seconds": self.laying_seconds,
        }
        if self.seconds:
            found["pairs_per_second"] = self.pairs / self.seconds
            found["bytes_per_second"] = self.bytes / self.seconds
        if self.device.type == "cuda":
            card = torch.cuda.get_device_properties(self.device)
            found["device"] = card.name
            clock, width = (getattr(card, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
            bandwidth = 2 * clock * 1000 * width / 8  # both edges of a clock in kHz, bits to bytes
            if bandwidth and self.seconds:
                found |= {"bandwidth": bandwidth, "bandwidth_share": found["bytes_per_second"] / bandwidth}
        return found


class OnCard(Loop):
    """A loop whose tables a card trains; before those of the CPU's training among the bases."""

    card: Card

    def go(self) -> dict[str, Any]:
        figures = super().go()
        self.card.fetch()
        return figures

    @property
    def tables(self) -> dict[str, Table]:
        self.card.fetch()
        return dict(super().tables)  # type: ignore[safe-super]

    def resume(self, checkpoints: Checkpoints) -> None:
        super().resume(checkpoints)
        if self.done():
            self.card.send()


def fitting_programs(task: Task, counts: NDArray[np.int64], noise: NDArray[np.float64], rate: float) -> int:
    """How many programs may move rows at the same moment. Each has some windows in its hands, computed from rows that
    the others are changing; what all of them add to the rows of a frequent context and a frequent noise word is
    `rate` times the pairs of the two under way. The matrix of these numbers has rank one, and where its norm is too
    large, each step overshoots the last until nothing is left but infinity (benchmarks/LOG.md)."""
    kept = counts * (task.keep / 2**32)
    common = np.linalg.norm(kept) / kept.sum() * np.linalg.norm(noise) / noise.sum()
    contexts = task.window + 1 if task.shrink else 2 * task.window
    most = MOST_AT_ONCE / (rate * contexts * task.negatives * common)
    return max(1, int(min(MOST_PROGRAMS, len(counts) // ROWS_A_PROGRAM, most)))


def between(begin: Any, end: Any) -> float:
    """Seconds between two marks that have both gone by."""
    return float(end - begin if isinstance(begin, float) else begin.elapsed_time(end) / 1000)
