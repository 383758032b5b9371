"""Tables on a GPU: transfer, training on windows, and metrics."""

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
from firth.training.gpu_choice import runs_interpreted

MAX_PROGRAMS = 1024  # more are hardly faster; see benchmarks/gpu_words.py
ROWS_PER_PROGRAM = 64  # with fewer, programs would often update the same rows from stale values
MAX_CONCURRENT_UPDATE = 2.0  # see `stable_programs`
LAYOUT_BYTES_PER_TOKEN = 44  # positions, spans and their sorting buffers, without negative samples


def device() -> torch.device:
    """Return the GPU, or the CPU if Triton interprets kernels."""
    return torch.device("cpu" if runs_interpreted() else "cuda")


def upload(array: NDArray[Any], where: torch.device) -> Tensor:
    """Return a copy on the device; uint32 becomes int32 with the same bits, which torch supports better."""
    signed = array.view(np.int32) if array.dtype == np.uint32 else array
    return torch.tensor(np.ascontiguousarray(signed), device=where)


class GPUTables:
    """The tables of a task on a GPU. The arrays in host memory are as of the last `fetch`."""

    def __init__(
        self, task: Task, tokens: int, counts: NDArray[np.int64], noise: NDArray[np.float64], rate: float
    ) -> None:
        """Reserve memory for slices of `tokens` tokens.

        `counts` and `noise` have the count and the negative-sampling weight of each row; `rate` is the peak learning
        rate.
        """
        began = time.perf_counter()
        self.task, self.device = task, device()
        self.check_room(tokens)
        rules = Rules(task.architecture, task.window, task.negatives, task.shrink, task.mean, task.exact)
        inputs, outputs, keep, alias = (
            upload(table, self.device) for table in (task.inputs, task.outputs, task.keep, task.noise)
        )
        self.windows = Windows(rules, inputs, outputs, keep, alias)
        self.programs = stable_programs(task, counts, noise, rate * self.windows.tiles.group)
        self.compile()
        self.startup_seconds = time.perf_counter() - began

    def compile(self) -> None:
        """Compile the kernels by training on an empty slice, and reset the counters."""
        self.seconds = self.layout_seconds = 0.0  # of the training kernels and of the layout kernels
        self.words = self.pairs = self.bytes = 0
        raw, starts = (torch.zeros(0, dtype=kind, device=self.device) for kind in (torch.int32, torch.int64))
        self.train(raw, starts, 0, 0, 0, 0, (0.0, 0.0))
        self.seconds = self.layout_seconds = 0.0

    def check_room(self, tokens: int) -> None:
        """Refuse tables that do not fit into GPU memory."""
        task = self.task
        needed = task.inputs.nbytes + task.outputs.nbytes + tokens * (LAYOUT_BYTES_PER_TOKEN + 4 * task.negatives)
        if self.device.type == "cuda" and needed > (free := torch.cuda.mem_get_info()[0]):
            raise FirthError(
                "out_of_memory",
                "The tables and one slice of tokens need {needed}B, but the GPU has {free}B free. Reduce dim or the "
                "vocabulary, or use device=cpu.",
                needed=human(needed),
                free=human(free),
            )

    # ---- tables ----

    def send(self) -> None:
        """Copy the tables from host memory to the GPU."""
        for device_table, table in self.table_pairs():
            device_table.copy_(torch.from_numpy(table))

    def fetch(self) -> None:
        """Copy the tables from the GPU to host memory."""
        for device_table, table in self.table_pairs():
            torch.from_numpy(table).copy_(device_table)

    def table_pairs(self) -> tuple[tuple[Tensor, NDArray[np.float32]], ...]:
        """Return each table on the device with its array in host memory."""
        return (self.windows.inputs, self.task.inputs), (self.windows.outputs, self.task.outputs)

    # ---- training ----

    def train(
        self, raw: Tensor, starts: Tensor, origin: int, first: int, last: int, seed: int, rates: tuple[float, float],
        move: bool = True,
    ) -> Tally:  # fmt: skip
        """Lay out and train on a slice, wait for the GPU, and return the loss and counts."""
        times = [self.mark()]
        layout = self.windows.prepare(raw, starts, origin, first, last, seed)
        times.append(self.mark())
        losses, pairs = self.windows.train(layout, *rates, self.programs, move)
        times.append(self.mark())
        bytes_tensor = self.windows.bytes_moved(layout)
        loss, pair_count, bytes_moved = torch.stack(
            [losses.double().sum(), pairs.sum().double(), bytes_tensor.double()]
        ).tolist()
        words = layout.last - layout.first
        if move:
            self.layout_seconds += seconds_between(times[0], times[1])
            self.seconds += seconds_between(times[1], times[2])
            self.words += last - first
            self.pairs += int(pair_count)
            self.bytes += int(bytes_moved)
        return Tally(loss, int(pair_count), words)

    def mark(self) -> Any:
        """Return the current time, on the GPU's clock if there is one."""
        if self.device.type != "cuda":
            return time.perf_counter()
        event = torch.cuda.Event(enable_timing=True)  # type: ignore[no-untyped-call]
        event.record()
        return event

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of this session. Bytes are those of table rows read and updated, cached or not."""
        metrics: dict[str, Any] = {
            "device": "Triton's interpreter",
            "programs": self.programs,
            "products": self.windows.tiles.dtype,
            "startup_seconds": self.startup_seconds,
            "kernel_seconds": self.seconds,
            "preparation_seconds": self.layout_seconds,
        }
        if self.seconds:
            metrics["pairs_per_second"] = self.pairs / self.seconds
            metrics["bytes_per_second"] = self.bytes / self.seconds
        if self.device.type == "cuda":
            properties = torch.cuda.get_device_properties(self.device)
            metrics["device"] = properties.name
            clock, width = (getattr(properties, name, 0) for name in ("memory_clock_rate", "memory_bus_width"))
            bandwidth = 2 * clock * 1000 * width / 8  # both edges of a clock in kHz, bits to bytes
            if bandwidth and self.seconds:
                metrics |= {"bandwidth": bandwidth, "bandwidth_share": metrics["bytes_per_second"] / bandwidth}
        return metrics


class GPULoop(Loop):
    """A training loop whose tables are on the GPU; a mixin that precedes the CPU training class."""

    gpu_tables: GPUTables

    def go(self) -> dict[str, Any]:
        """Train, and copy the tables to host memory."""
        metrics = super().go()
        self.gpu_tables.fetch()
        return metrics

    @property
    def tables(self) -> dict[str, Table]:
        """The tables, copied from the GPU."""
        self.gpu_tables.fetch()
        return dict(super().tables)  # type: ignore[safe-super]

    def resume(self, checkpoints: Checkpoints) -> None:
        """Restore the latest checkpoint, and copy its tables to the GPU."""
        super().resume(checkpoints)
        if self.done():
            self.gpu_tables.send()


def stable_programs(task: Task, counts: NDArray[np.int64], noise: NDArray[np.float64], rate: float) -> int:
    """Return how many programs may update rows concurrently without diverging.

    Each program computes its windows from rows that the others are changing. Together they change the rows of a
    frequent context and a frequent negative sample by `rate` times the number of such pairs in flight. The matrix of
    these products has rank one; if its norm is too large, steps overshoot and the loss diverges (benchmarks/LOG.md).
    """
    sampled_counts = counts * (task.keep / 2**32)
    collision_rate = np.linalg.norm(sampled_counts) / sampled_counts.sum() * np.linalg.norm(noise) / noise.sum()
    contexts = task.window + 1 if task.shrink else 2 * task.window
    max_programs = MAX_CONCURRENT_UPDATE / (rate * contexts * task.negatives * collision_rate)
    return max(1, int(min(MAX_PROGRAMS, len(counts) // ROWS_PER_PROGRAM, max_programs)))


def seconds_between(begin: Any, end: Any) -> float:
    """Return the seconds between two past marks."""
    return float(end - begin if isinstance(begin, float) else begin.elapsed_time(end) / 1000)
