"""Training of word vectors on a GPU.

The corpus is processed in slices. While the GPU trains on one slice, the next is read into pinned memory and copied.
Only the tables and two slices have to fit into GPU memory.
"""

from __future__ import annotations

from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import contextmanager
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from firth.core.run import Run
from firth.data.tokens import Tokens
from firth.kernels import predict as kernel
from firth.training.epoch_loop import SliceResult
from firth.training.gpu_tables import GPULoop, GPUTables
from firth.words.window_training import Training, TrainsWindows
from firth.words.word_model import TextModel

SLICE = 1 << 25  # tokens
MARGIN = 64  # times the window: tokens read around a slice for its contexts, enough even after subsampling


class TextSlice(NamedTuple):
    """A slice of the corpus on the GPU, with center words from `first` to `last`."""

    raw: Tensor  # word ids from `origin` on
    starts: Tensor
    origin: int
    first: int
    last: int
    ready: Any  # CUDA event recorded after the copy; None without a GPU


class CudaTraining(GPULoop, Training):
    """Training loop whose windows are trained on a GPU."""

    def __init__(
        self, method: TrainsWindows, tokens: Tokens, run: Run, start: TextModel | None = None, held_out: float = 0
    ) -> None:
        super().__init__(method, tokens, run, start, held_out)
        slice_tokens = min(SLICE, SLICE * 5 // method.negatives) // kernel.BLOCK * kernel.BLOCK
        # A multiple of the CPU's block, so that a CPU can resume after any slice.
        self.slice_tokens = max(kernel.BLOCK, slice_tokens)
        counts = tokens.vocabulary.counts
        noise = kernel.noise_weights(counts, method.negative_exponent)
        self.gpu_tables = GPUTables(
            self.task(), min(self.slice_tokens, len(tokens.ids)), counts, noise, method.learning_rate
        )
        cuda = self.gpu_tables.device.type == "cuda"
        self.copy_stream = torch.cuda.Stream() if cuda else None  # type: ignore[no-untyped-call]
        self.reader: ThreadPoolExecutor | None = None
        self.pending: tuple[tuple[int, int], Future[TextSlice]] | None = None

    def choose_group(self) -> dict[str, Any]:
        """Return no settings: GPU kernels group windows by themselves."""
        return {}

    # ---- training loop ----

    def go(self) -> dict[str, Any]:
        """Train to the end, reading slices on another thread."""
        with self.reading():
            return super().go()

    @contextmanager
    def reading(self) -> Iterator[None]:
        """Run a thread that reads slices in advance."""
        with ThreadPoolExecutor(1) as self.reader:
            yield
        self.pending = None

    def train(self, units: float, seed: int) -> SliceResult:
        """Train one slice, however long it takes."""
        first = self.progress.position
        last = min(self.size, first + self.slice_tokens)
        text_slice = self.next_slice(first, last)
        after = last if last < self.size else 0
        more = self.progress.epoch + 1 < self.epochs or last < self.size
        if more and (after, min(self.size, after + self.slice_tokens)) != (first, last):
            self.prepare(after, min(self.size, after + self.slice_tokens))
        tally = self.train_slice(text_slice, seed, self.slice_rates(first, last))
        self.progress.position = last
        return SliceResult(tally.loss, tally.pairs, last == self.size)

    def slice_rates(self, first: int, last: int) -> tuple[float, float]:
        """Return the learning rates at the first and last token of a slice."""
        begin, end = self.rates()
        return begin + (end - begin) * first / self.size, begin + (end - begin) * last / self.size

    def train_slice(
        self, text_slice: TextSlice, seed: int, rates: tuple[float, float], move: bool = True
    ) -> kernel.Tally:
        """Train one slice on the GPU; with move=False, only measure its loss."""
        if text_slice.ready is not None:
            torch.cuda.current_stream().wait_event(text_slice.ready)
        return self.gpu_tables.train(*text_slice[:5], seed, rates, move)

    def measured_loss(self, first: int, last: int) -> float:
        """Return the loss on a part of the corpus without any update."""
        total = kernel.Tally(0.0, 0, 0)
        for begin in range(first, last, self.slice_tokens):
            text_slice = self.load(begin, min(last, begin + self.slice_tokens))
            total += self.train_slice(text_slice, self.run.seed, (0.0, 0.0), move=False)
        return total.loss / max(1, total.pairs)

    # ---- slices ----

    def next_slice(self, first: int, last: int) -> TextSlice:
        """Return a slice, which has been read in advance or is read now.

        It stays pending until another slice is prepared, so that a corpus of one slice is read only once.
        """
        if self.pending is None or self.pending[0] != (first, last):
            self.prepare(first, last)
        assert self.pending is not None
        return self.pending[1].result()

    def prepare(self, first: int, last: int) -> None:
        """Start reading a slice on another thread."""
        assert self.reader is not None
        self.pending = (first, last), self.reader.submit(self.load, first, last)

    def load(self, first: int, last: int) -> TextSlice:
        """Copy a slice from the file to the GPU, concurrently with training."""
        tokens, margin = self.tokens, MARGIN * self.method.window
        low, high = (0, self.size) if first < self.size else (self.size, len(tokens.ids))
        begin, end = max(low, first - margin), min(high, last + margin)
        start_range = np.searchsorted(tokens.starts, [begin, end])
        buffers = []
        for values, dtype in ((tokens.ids[begin:end], torch.int32), (tokens.starts[slice(*start_range)], torch.int64)):
            pinned = torch.empty(len(values), dtype=dtype, pin_memory=self.copy_stream is not None)
            pinned.numpy()[:] = values
            buffers.append(pinned)
        if self.copy_stream is None:
            return TextSlice(buffers[0], buffers[1], begin, first, last, None)
        with torch.cuda.stream(self.copy_stream):
            on_device = [buffer.to(self.gpu_tables.device, non_blocking=True) for buffer in buffers]
            return TextSlice(on_device[0], on_device[1], begin, first, last, self.copy_stream.record_event())

    # ---- metrics ----

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run."""
        gpu = self.gpu_tables
        metrics = super().metrics() | gpu.metrics()
        if gpu.seconds:
            raw = self.tokens.raw_tokens / max(1, len(self.tokens.ids))
            metrics["kernel_words_per_second"] = gpu.words * raw / gpu.seconds
        return metrics
