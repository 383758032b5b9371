"""The formulas of skip-gram and CBOW in plain NumPy: what cpp/predict.cpp computes, readable.

For a context word with input vector x and a target with output vector y and label ±1, z = ± x·y:
loss = −log σ(z), and the step along the gradient is ± (1 − σ(z)) times the other vector
(Mikolov et al. 2013b, eq. 4). Hierarchical softmax is the same with the inner nodes on the way to the
word as targets (eq. 3). Slow: for tests and for reading.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from numpy.typing import NDArray

from firth.kernels.predict import Table, Tally, Task

MASK = (1 << 64) - 1
GOLDEN = 0x9E3779B97F4A7C15


def mix(x: int) -> int:
    """The finalizer of splitmix64."""
    x = ((x ^ (x >> 30)) * 0xBF58476D1CE4E5B9) & MASK
    x = ((x ^ (x >> 27)) * 0x94D049BB133111EB) & MASK
    return x ^ (x >> 31)


class TwinTrainer:
    """`native_trainer`'s interface, one window after the other."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.seed = 0
        self.touched: tuple[set[int], set[int]] = set(), set()  # input and output rows changed in this round

    # ---- from raw tokens to windows ----

    def hash(self, position: int) -> int:
        return mix((self.seed + position * GOLDEN) & MASK)

    def kept(self, position: int) -> bool:
        return self.hash(position) >> 32 <= int(self.task.keep[self.task.ids[position]])

    def contexts(self, position: int, first: int, last: int) -> list[int]:
        """Ids of the kept tokens within reach of a centre, in the same document."""
        task = self.task
        bits = self.hash(position) & 0xFFFFFFFF
        reach = task.window - (bits * task.window >> 32) if task.shrink else task.window
        document = int(np.searchsorted(task.starts, position, side="right")) - 1
        begin, end = max(first, int(task.starts[document])), min(last, int(task.starts[document + 1]))
        before = [p for p in range(position - 1, begin - 1, -1) if self.kept(p)][:reach]
        after = [p for p in range(position + 1, end) if self.kept(p)][:reach]
        return [int(task.ids[p]) for p in [*before[::-1], *after]]

    def noise(self, centre: int, position: int) -> Iterator[list[int]]:
        """Noise words, draw after draw; a word drawn twice counts once and the centre never."""
        cut, other = self.task.noise.T
        state = self.hash(position)
        while True:
            drawn: list[int] = []
            for _ in range(self.task.negatives):
                state = (state + GOLDEN) & MASK
                bits = mix(state)
                slot = (bits >> 32) * len(cut) >> 32
                word = slot if bits & 0xFFFFFFFF < int(cut[slot]) else int(other[slot])
                if word != centre and word not in drawn:
                    drawn.append(word)
            yield drawn

    def targets(self, centre: int, noise: list[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Output rows and their labels."""
        task = self.task
        if task.loss == "hierarchical":
            part = slice(int(task.paths.starts[centre]), int(task.paths.starts[centre + 1]))
            return task.paths.nodes[part].tolist(), np.where(task.paths.turns[part], -1.0, 1.0).astype(np.float32)
        return [centre, *noise], np.array([1.0] + [-1.0] * len(noise), dtype=np.float32)

    # ---- one window ----

    def steps(self, inputs: Table, centre: int, rows: list[int], labels: Table, rate: float) -> tuple[Table, float]:
        """Steps (inputs × targets) and the summed loss, for input vectors against output rows."""
        scores = inputs @ self.task.outputs[rows].T
        if self.task.loss == "softmax":
            exponent = np.exp(scores - scores.max(axis=1, keepdims=True))
            probability = exponent / exponent.sum(axis=1, keepdims=True)
            truth = np.eye(len(rows), dtype=np.float32)[centre]
            return np.float32(rate) * (truth - probability), float(-np.log(probability[:, centre]).sum())
        right = 1 / (1 + np.exp(-labels * scores))
        return np.asarray(rate * labels * (1 - right), dtype=np.float32), float(-np.log(right).sum())

    def train_window(self, position: int, rate: float, first: int, last: int) -> Tally:
        task = self.task
        centre = int(task.ids[position])
        contexts = self.contexts(position, first, last)
        if not contexts:
            return Tally(0.0, 0, 1)
        noise = self.noise(centre, position)
        if task.loss == "softmax":
            rows, labels = list(range(len(task.outputs))), np.zeros(0, np.float32)
        else:
            rows, labels = self.targets(centre, next(noise) if task.loss == "negative" else [])
        if not rows:
            return Tally(0.0, 0, 1)
        self.touched[0].update(contexts)
        self.touched[1].update(rows)
        if task.architecture == "cbow":
            return self.train_cbow(centre, contexts, rows, labels, rate)
        if task.loss == "hierarchical" or (task.loss == "negative" and task.shared):
            return self.train_grid(centre, contexts, rows, labels, rate)
        tally = Tally(0.0, 0, 0)
        for turn, context in enumerate(contexts):
            if turn and task.loss == "negative":
                rows, labels = self.targets(centre, next(noise))
                self.touched[1].update(rows)
            tally += self.train_grid(centre, [context], rows, labels, rate)
        return tally._replace(words=1)

    def train_grid(self, centre: int, contexts: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        task = self.task
        before = task.inputs[contexts]
        steps, loss = self.steps(before, centre, rows, labels, rate)
        old = task.outputs[rows]
        change = np.zeros_like(old)
        for step, context in zip(steps, contexts, strict=True):  # a word that stands twice moves twice
            change += np.outer(step, task.inputs[context])
            task.inputs[context] += step @ old
        task.outputs[rows] = old + change
        return Tally(loss, len(contexts), 1)

    def train_cbow(self, centre: int, contexts: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        task = self.task
        share = np.float32(1 / len(contexts)) if task.mean else np.float32(1)
        hidden = task.inputs[contexts].sum(axis=0, keepdims=True) * share
        steps, loss = self.steps(hidden, centre, rows, labels, rate)
        old = task.outputs[rows]
        np.add.at(task.inputs, contexts, (steps @ old) * (share if task.exact else 1))
        task.outputs[rows] = old + steps.T @ hidden
        return Tally(loss, 1, 1)

    # ---- whole stretches ----

    def racing(self, first: int, last: int, seed: int, rate_first: float, rate_last: float, threads: int) -> Tally:
        """One thread, so nothing races."""
        self.seed = seed
        end = self.task.trained_tokens
        low, high = (0, end) if first < end else (end, len(self.task.ids))
        tally = Tally(0.0, 0, 0)
        for position in range(first, last):
            if self.kept(position):
                rate = rate_first + (rate_last - rate_first) * (position - low) / (high - low)
                tally += self.train_window(position, rate, low, high)
        return tally

    def ordered(
        self,
        cursors: NDArray[np.int64],
        windows: int,
        rounds: int,
        seed: int,
        rate_first: float,
        rate_last: float,
        threads: int,
    ) -> Tally:
        """Rounds: each stream's next windows from the same tables, then each row moves by the mean of its changes."""
        self.seed = seed
        task, tally = self.task, Tally(0.0, 0, 0)
        for _ in range(rounds):
            inputs, outputs = task.inputs.copy(), task.outputs.copy()
            input_changes, output_changes = np.zeros_like(inputs), np.zeros_like(outputs)
            changed_by = np.zeros(len(inputs)), np.zeros(len(outputs))  # how many streams changed a row
            for s in range(len(cursors)):
                task.inputs[:], task.outputs[:] = inputs, outputs
                self.touched = set(), set()
                for position, share in self.next_windows(cursors, s, windows):
                    rate = rate_first + (rate_last - rate_first) * share
                    tally += self.train_window(position, rate, 0, task.trained_tokens)
                input_changes += task.inputs - inputs
                output_changes += task.outputs - outputs
                for counts, rows in zip(changed_by, self.touched, strict=True):
                    counts[list(rows)] += 1
            task.inputs[:] = inputs + input_changes / np.maximum(changed_by[0], 1)[:, None]
            task.outputs[:] = outputs + output_changes / np.maximum(changed_by[1], 1)[:, None]
        return tally

    def next_windows(self, cursors: NDArray[np.int64], s: int, windows: int) -> Iterator[tuple[int, float]]:
        """The next kept positions of a stream, each with the share of the stream before it; moves its cursor."""
        first, last = self.stream_starts(len(cursors))[s : s + 2]
        found = 0
        while cursors[s] < last and (found < windows or not self.kept(int(cursors[s]))):
            if self.kept(int(cursors[s])):
                found += 1
                yield int(cursors[s]), (int(cursors[s]) - first) / (last - first)
            cursors[s] += 1

    def stream_starts(self, streams: int) -> list[int]:
        whole, rest = divmod(self.task.trained_tokens, streams)
        return [whole * s + min(rest, s) for s in range(streams + 1)]
