"""Word vectors on a GPU. Text flows through in slices: while the card trains on one, the next is read from the file
into memory that can't be swapped out, and copied to the card. Only the tables and two slices have to fit there."""

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
from firth.words.window_training import Training, WindowMethod

SLICE = 1 << 25  # tokens
MARGIN = 64  # times the window: how far around a slice its contexts are looked for, thinned out as the text may be


class Part(NamedTuple):
    """A slice on the card: centres from `first` to `last`."""

    raw: Tensor  # the words from `origin` on
    starts: Tensor
    origin: int
    first: int
    last: int
    there: Any  # the event after which it is; None without a card


class CudaTraining(GPULoop, Training):
    """The loop over a text whose windows a GPU trains."""

    def __init__(self, method: WindowMethod, tokens: Tokens, run: Run, start: Any = None, held_out: float = 0) -> None:
        super().__init__(method, tokens, run, start, held_out)
        most = min(SLICE, SLICE * 5 // method.negatives) // kernel.BLOCK * kernel.BLOCK
        self.most = max(kernel.BLOCK, most)  # tokens of a slice; a CPU could go on wherever one ends
        counts = tokens.vocabulary.counts
        noise = kernel.noise_weights(counts, method.negative_exponent)
        self.gpu_tables = GPUTables(self.task(), min(self.most, len(tokens.ids)), counts, noise, method.learning_rate)
        cuda = self.gpu_tables.device.type == "cuda"
        self.copying = torch.cuda.Stream() if cuda else None  # type: ignore[no-untyped-call]
        self.reader: ThreadPoolExecutor | None = None
        self.coming: tuple[tuple[int, int], Future[Part]] | None = None

    def choose_group(self) -> dict[str, Any]:
        return {}  # a card has groups of its own

    # ---- the loop ----

    def go(self) -> dict[str, Any]:
        with self.reading():
            return super().go()

    @contextmanager
    def reading(self) -> Iterator[None]:
        with ThreadPoolExecutor(1) as self.reader:
            yield
        self.coming = None

    def train(self, units: float, seed: int) -> SliceResult:
        """One slice, whatever time it takes."""
        first = self.progress.position
        last = min(self.size, first + self.most)
        part = self.part(first, last)
        after = last if last < self.size else 0
        more = self.progress.epoch + 1 < self.method.epochs or last < self.size
        if more and (after, min(self.size, after + self.most)) != (first, last):
            self.prepare(after, min(self.size, after + self.most))
        tally = self.trained(part, seed, self.slice_rates(first, last))
        self.progress.position = last
        return SliceResult(tally.loss, tally.pairs, last == self.size)

    def slice_rates(self, first: int, last: int) -> tuple[float, float]:
        begin, end = self.rates()
        return begin + (end - begin) * first / self.size, begin + (end - begin) * last / self.size

    def trained(self, part: Part, seed: int, rates: tuple[float, float], move: bool = True) -> kernel.Tally:
        if part.there is not None:
            torch.cuda.current_stream().wait_event(part.there)
        return self.gpu_tables.train(*part[:5], seed, rates, move)

    def measured_loss(self, first: int, last: int) -> float:
        total = kernel.Tally(0.0, 0, 0)
        for begin in range(first, last, self.most):
            part = self.load(begin, min(last, begin + self.most))
            total += self.trained(part, self.run.seed, (0.0, 0.0), move=False)
        return total.loss / max(1, total.pairs)

    # ---- slices ----

    def part(self, first: int, last: int) -> Part:
        """A slice: one that is coming, else read now. It stays the one that is coming until another is prepared, so
        that a text of one slice is read once."""
        if self.coming is None or self.coming[0] != (first, last):
            self.prepare(first, last)
        assert self.coming is not None
        return self.coming[1].result()

    def prepare(self, first: int, last: int) -> None:
        assert self.reader is not None
        self.coming = (first, last), self.reader.submit(self.load, first, last)

    def load(self, first: int, last: int) -> Part:
        """On another thread: from the file to the card, beside what the card is doing."""
        tokens, margin = self.tokens, MARGIN * self.method.window
        low, high = (0, self.size) if first < self.size else (self.size, len(tokens.ids))
        begin, end = max(low, first - margin), min(high, last + margin)
        places = np.searchsorted(tokens.starts, [begin, end])
        parts = []
        for values, kind in ((tokens.ids[begin:end], torch.int32), (tokens.starts[slice(*places)], torch.int64)):
            here = torch.empty(len(values), dtype=kind, pin_memory=self.copying is not None)
            here.numpy()[:] = values
            parts.append(here)
        if self.copying is None:
            return Part(parts[0], parts[1], begin, first, last, None)
        with torch.cuda.stream(self.copying):
            sent = [part.to(self.gpu_tables.device, non_blocking=True) for part in parts]
            return Part(sent[0], sent[1], begin, first, last, self.copying.record_event())

    # ---- what it came to ----

    def metrics(self) -> dict[str, Any]:
        found, card = super().metrics(), self.gpu_tables
        figures = found | card.metrics()
        if card.seconds:
            raw = self.tokens.raw_tokens / max(1, len(self.tokens.ids))
            figures["kernel_words_per_second"] = card.words * raw / card.seconds
        return figures
