"""Skip-gram, CBOW and related models in NumPy: the readable twin of cpp/predict.cpp.

For a context word with input vector x and a target with output vector y and label ±1, let z = ± x·y. The loss is
−log σ(z), and the gradient step is ± (1 − σ(z)) times the other vector (Mikolov et al. 2013b, eq. 4). Hierarchical
softmax is the same with the inner nodes on the path to the word as targets (eq. 3). Slow: for tests and for readers.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.predict import Lists, Table, Tally, Task


class TwinTrainer:
    """The NumPy twin of `native_trainer`: one window after the other."""

    def __init__(self, task: Task) -> None:
        self.task = task
        self.seed = 0
        self.touched: tuple[set[int], set[int]] = set(), set()  # input and output rows changed in this round

    # ---- from raw tokens to windows ----

    def hash(self, position: int) -> int:
        """Return the random bits of a raw token."""
        return mix((self.seed + position * GOLDEN) & MASK)

    def is_kept(self, position: int) -> bool:
        """Return whether a raw token survives subsampling."""
        return self.hash(position) >> 32 <= int(self.task.keep[self.task.ids[position]])

    def document(self, position: int) -> int:
        """Return the document of a raw token."""
        return int(np.searchsorted(self.task.starts, position, side="right")) - 1

    def context_positions(self, position: int, first: int, last: int) -> list[int]:
        """Return the positions of the kept tokens within a center's window, in the same document.

        For concat, missing contexts are -1.
        """
        task = self.task
        if not task.neighbors:
            return []
        bits = self.hash(position) & 0xFFFFFFFF
        reach = task.window - (bits * task.window >> 32) if task.shrink else task.window
        document = self.document(position)
        begin, end = max(first, int(task.starts[document])), min(last, int(task.starts[document + 1]))
        before = [p for p in range(position - 1, begin - 1, -1) if self.is_kept(p)][:reach]
        after = [p for p in range(position + 1, end) if self.is_kept(p)][:reach]
        if task.architecture == "concat":
            return [-1] * (reach - len(before)) + before[::-1] + after + [-1] * (reach - len(after))
        return [*before[::-1], *after]

    def contexts(self, position: int, first: int, last: int) -> list[int]:
        """Return the words at `context_positions`."""
        return [int(self.task.ids[p]) if p >= 0 else -1 for p in self.context_positions(position, first, last)]

    @property
    def grouped(self) -> bool:
        """Whether center words are trained in groups that share their negative samples."""
        task = self.task
        return task.architecture in ("skipgram", "cbow") and task.loss == "negative" and task.shared and task.group > 1

    def windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """Yield (position, end) for each window of a range: its centers are the kept tokens in [position, end)."""
        position = first
        while position < last:
            if not self.is_kept(position):
                position += 1
                continue
            size, document_end = self.task.group, int(self.task.starts[self.document(position) + 1])
            end = min((position // size + 1) * size, document_end, last) if self.grouped else position + 1
            yield position, end
            position = end

    def tags(self, position: int) -> list[int]:
        """Return the input rows of the document at a position."""
        return self.task.tags[self.document(position)].tolist() if len(self.task.tags.starts) else []

    def subwords(self, word: int) -> list[int]:
        """Return the input rows of a word."""
        return self.task.subwords[word].tolist() if len(self.task.subwords.starts) else [word]

    def sample_negatives(self, positives: list[int], state: int) -> tuple[list[int], int]:
        """Return distinct negative samples, never one of the positives, and the next random state."""
        cut, other = self.task.noise.T
        strata, negatives = self.task.group_negatives, list[int]()
        for i in range(strata or self.task.negatives):
            state = (state + GOLDEN) & MASK
            bits = mix(state)
            slot = (bits >> 32) * len(cut) >> 32
            if strata:  # stratified: the i-th draw comes from the i-th equal part of the table
                slot = min(len(cut) - 1, int(((i << 32) + (bits >> 32)) * (len(cut) / (strata * 2.0**32))))
            word = slot if bits & 0xFFFFFFFF < int(cut[slot]) else int(other[slot])
            if word not in positives and word not in negatives:
                negatives.append(word)
        return negatives, state

    def targets(self, center: int, negatives: list[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Return output rows and their labels."""
        task = self.task
        if task.loss == "softmax":
            return list(range(len(task.outputs))), np.zeros(0, np.float32)
        if task.loss == "hierarchical":
            part = slice(int(task.paths.starts[center]), int(task.paths.starts[center + 1]))
            return task.paths.nodes[part].tolist(), np.where(task.paths.turns[part], -1.0, 1.0).astype(np.float32)
        return [center, *negatives], np.array([1.0] + [-1.0] * len(negatives), dtype=np.float32)

    # ---- one window ----

    def steps(self, inputs: Table, center: int, rows: list[int], labels: Table, rate: float) -> tuple[Table, float]:
        """Return the steps (inputs × targets) and the summed loss of input vectors against output rows."""
        scores = inputs @ self.task.outputs[rows].T
        if self.task.loss == "softmax":
            exponent = np.exp(scores - scores.max(axis=1, keepdims=True))
            probability = exponent / exponent.sum(axis=1, keepdims=True)
            truth = np.eye(len(rows), dtype=np.float32)[center]
            return np.float32(rate) * (truth - probability), float(-np.log(probability[:, center]).sum())
        likelihood = 1 / (1 + np.exp(-labels * scores))
        return np.asarray(rate * labels * (1 - likelihood), dtype=np.float32), float(-np.log(likelihood).sum())

    def train_window(self, position: int, end: int, rate: float, first: int, last: int) -> Tally:
        """Train one window, or one group of windows."""
        task = self.task
        if self.grouped:
            return self.train_group(position, end, rate, first, last)
        center = int(task.ids[position])
        contexts, tags = self.contexts(position, first, last), self.tags(position)
        if not contexts and not tags:
            return Tally(0.0, 0, 1)
        if task.architecture == "forward":
            return self.train_forward(center, contexts, position, rate)
        negatives, state = self.sample_negatives([center], self.hash(position))
        rows, labels = self.targets(center, negatives)
        if not rows:
            return Tally(0.0, 0, 1)
        self.touched[1].update(rows)
        if task.architecture == "concat":
            return self.train_concat(center, tags + contexts, rows, labels, rate)
        inputs = [row for word in contexts for row in self.subwords(word)] + tags
        self.touched[0].update(inputs)
        if task.architecture == "cbow":
            return self.train_cbow(center, inputs, rows, labels, rate)
        if task.loss == "hierarchical" or (task.loss == "negative" and task.shared):
            return self.train_grid(center, inputs, rows, labels, rate)
        tally = Tally(0.0, 0, 0)
        for i, row in enumerate(inputs):
            if i and task.loss == "negative":
                negatives, state = self.sample_negatives([center], state)
                rows, labels = self.targets(center, negatives)
                self.touched[1].update(rows)
            tally += self.train_grid(center, [row], rows, labels, rate)
        return tally._replace(words=1)

    def train_grid(self, center: int, inputs: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        """Train all inputs against all targets at once."""
        steps, loss = self.steps(self.task.inputs[inputs], center, rows, labels, rate)
        self.update(inputs, rows, steps)
        return Tally(loss, len(inputs), 1)

    def update(self, inputs: list[int], rows: list[int], steps: Table) -> None:
        """Update both tables from the old rows; a word that occurs twice among the inputs moves twice."""
        task = self.task
        old = task.outputs[rows]
        change = np.zeros_like(old)
        for step, row in zip(steps, inputs, strict=True):
            change += np.outer(step, task.inputs[row])
            task.inputs[row] += step @ old
        task.outputs[rows] = old + change
        self.touched[0].update(inputs)
        self.touched[1].update(rows)

    def train_hidden(
        self, hidden: Table, word: int, rows: list[int], labels: Table, rate: float
    ) -> tuple[Table, float]:
        """Train one vector against its targets: update the targets, return the vector's change and the loss."""
        steps, loss = self.steps(hidden[None], word, rows, labels, rate)
        old = self.task.outputs[rows]
        for row, step in zip(rows, steps[0], strict=True):
            self.task.outputs[row] += step * hidden
        return steps[0] @ old, loss

    def train_cbow(self, center: int, inputs: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        """Train the mean (or sum) of the inputs against the targets."""
        task = self.task
        share = np.float32(1 / len(inputs)) if task.mean else np.float32(1)
        hidden = task.inputs[inputs].sum(axis=0) * share
        change, loss = self.train_hidden(hidden, center, rows, labels, rate)
        np.add.at(task.inputs, inputs, change * (share if task.exact else 1))
        return Tally(loss, 1, 1)

    def train_concat(self, center: int, slots: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        """Train the concatenation of the inputs; slots of the window without a word (-1) are zero."""
        task = self.task
        filled = [slot for slot, row in enumerate(slots) if row >= 0]
        inputs = [slots[slot] for slot in filled]
        hidden = np.zeros((len(slots), task.inputs.shape[1]), np.float32)
        hidden[filled] = task.inputs[inputs]
        change, loss = self.train_hidden(hidden.ravel(), center, rows, labels, rate)
        np.add.at(task.inputs, inputs, change.reshape(hidden.shape)[filled])
        self.touched[0].update(inputs)
        return Tally(loss, 1, 1)

    def train_group(self, position: int, end: int, rate: float, first: int, last: int) -> Tally:
        """Train a group: its contexts and document rows against its center words and shared negative samples.

        The weight of a negative sample is the number of (input, center) pairs it stands for.
        """
        task = self.task
        centers = [p for p in range(position, end) if self.is_kept(p)]
        words = list(dict.fromkeys(int(task.ids[p]) for p in centers))
        contexts = {p: self.context_positions(p, first, last) for p in centers}
        centers_of: dict[int, list[int]] = {}  # a word that occurs twice is one input with more centers
        for p in sorted({p for positions in contexts.values() for p in positions}):
            centers_of.setdefault(int(task.ids[p]), []).extend(c for c in centers if p in contexts[c])
        inputs = [(row, paired) for word, paired in centers_of.items() for row in self.subwords(word)]
        inputs += [(row, centers) for row in self.tags(position)]
        if not inputs:
            return Tally(0.0, 0, len(centers))
        negatives, _ = self.sample_negatives(words, self.hash(position))
        if task.architecture == "cbow":
            return self.train_means(centers, contexts, negatives, rate)
        weights = np.zeros((len(inputs), len(words) + len(negatives)), np.float32)
        for weight, (_, paired) in zip(weights, inputs, strict=True):
            for p in paired:
                weight[words.index(int(task.ids[p]))] += 1
            weight[len(words) :] = -len(paired) * self.negative_weight
        rows = [row for row, _ in inputs]
        scores = task.inputs[rows] @ task.outputs[words + negatives].T
        likelihood = 1 / (1 + np.exp(-np.copysign(1, weights) * scores))
        self.update(rows, words + negatives, np.asarray(rate * weights * (1 - likelihood), dtype=np.float32))
        pairs = sum(len(paired) for _, paired in inputs)
        return Tally(float(-(np.abs(weights) * np.log(likelihood)).sum()), pairs, len(centers))

    @property
    def negative_weight(self) -> float:
        """The weight of one of a group's negative samples."""
        return self.task.negatives / self.task.group_negatives if self.task.group_negatives else 1.0

    def train_means(
        self, centers: list[int], positions: dict[int, list[int]], negatives: list[int], rate: float
    ) -> Tally:
        """Train CBOW for a group: the contexts of each center predict its word, with shared negative samples.

        All updates are from the old rows, except that a word that is a center twice moves twice.
        """
        task = self.task
        contexts = [task.ids[positions[p]].tolist() for p in centers]
        shares = [np.float32(1 / len(some) if task.mean else 1) for some in contexts]
        hidden = np.stack([task.inputs[some].sum(axis=0) * share for some, share in zip(contexts, shares, strict=True)])
        words = [int(task.ids[p]) for p in centers]
        positive_score = 1 / (1 + np.exp(-(hidden * task.outputs[words]).sum(axis=1)))
        negative_score = 1 / (1 + np.exp(-(hidden @ task.outputs[negatives].T)))
        positive_step = np.float32(rate) * (1 - positive_score)
        negative_step = np.float32(-rate * self.negative_weight) * negative_score
        change = negative_step @ task.outputs[negatives]
        task.outputs[negatives] += negative_step.T @ hidden
        for c, word in enumerate(words):
            change[c] += positive_step[c] * task.outputs[word]
            task.outputs[word] += positive_step[c] * hidden[c]
        for some, share, moved in zip(contexts, shares, change, strict=True):
            np.add.at(task.inputs, some, moved * (share if task.exact else 1))
            self.touched[0].update(some)
        self.touched[1].update(words + negatives)
        loss = -np.log(positive_score).sum() - self.negative_weight * np.log(1 - negative_score).sum()
        return Tally(float(loss), len(centers), len(centers))

    def train_shared(self, hidden: Table, words: list[int], position: int, rate: float) -> tuple[Table, float]:
        """Train one vector against several words with shared negative samples; return its change and the loss."""
        negatives, _ = self.sample_negatives(words, self.hash(position))
        parts = [(words, 1.0, 1), (negatives, -1.0, len(words))]
        results = [
            self.steps(hidden[None], -1, part, np.full(len(part), label, np.float32), rate * times)
            for part, label, times in parts
        ]
        steps = np.concatenate([steps[0] for steps, _ in results])
        total = np.zeros_like(hidden)
        for row, step in zip(words + negatives, steps, strict=True):  # a word that occurs twice acts from its new row
            total += step * self.task.outputs[row]
            self.task.outputs[row] += step * hidden
        self.touched[1].update(words + negatives)
        return total, sum(times * loss for (_, loss), (_, _, times) in zip(results, parts, strict=True))

    def train_forward(self, center: int, contexts: list[int], position: int, rate: float) -> Tally:
        """Train the mean of the center's rows to predict each context; shared negatives count for each context."""
        task, inputs = self.task, self.subwords(center)
        share = np.float32(1 / len(inputs))
        gradient_share = share if task.exact else np.float32(1)
        hidden = task.inputs[inputs].sum(axis=0) * share
        total, loss = np.zeros_like(hidden), 0.0
        self.touched[0].update(inputs)
        if task.loss == "negative" and task.shared:
            total, loss = self.train_shared(hidden, contexts, position, rate)
            total *= gradient_share
        else:
            state = self.hash(position)
            for context in contexts:
                negatives, state = self.sample_negatives([context], state)
                rows, labels = self.targets(context, negatives)
                if not rows:
                    continue
                self.touched[1].update(rows)
                change, context_loss = self.train_hidden(hidden, context, rows, labels, rate)
                change = change * gradient_share
                hidden, total, loss = hidden + change, total + change, loss + context_loss
        np.add.at(task.inputs, inputs, total)
        return Tally(loss, len(contexts), 1)

    # ---- ranges of the corpus ----

    def racing(self, first: int, last: int, seed: int, rate_first: float, rate_last: float, threads: int) -> Tally:
        """Train on raw tokens [first, last). The native kernel is Hogwild; the twin uses one thread."""
        self.seed = seed
        end = self.task.trained_tokens
        low, high = (0, end) if first < end else (end, len(self.task.ids))
        tally = Tally(0.0, 0, 0)
        for position, end in self.windows(first, last):
            rate = rate_first + (rate_last - rate_first) * (position - low) / (high - low)
            tally += self.train_window(position, end, rate, low, high)
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
        """Train in rounds: each stream trains its next windows on the same tables, then averages changes per row."""
        self.seed = seed
        task, tally = self.task, Tally(0.0, 0, 0)
        for _ in range(rounds):
            inputs, outputs = task.inputs.copy(), task.outputs.copy()
            input_changes, output_changes = np.zeros_like(inputs), np.zeros_like(outputs)
            changed_by = np.zeros(len(inputs)), np.zeros(len(outputs))  # how many streams changed a row
            for s in range(len(cursors)):
                task.inputs[:], task.outputs[:] = inputs, outputs
                self.touched = set(), set()
                for position, end, share in self.next_windows(cursors, s, windows):
                    rate = rate_first + (rate_last - rate_first) * share
                    tally += self.train_window(position, end, rate, 0, task.trained_tokens)
                input_changes += task.inputs - inputs
                output_changes += task.outputs - outputs
                for counts, rows in zip(changed_by, self.touched, strict=True):
                    counts[list(rows)] += 1
            task.inputs[:] = inputs + input_changes / np.maximum(changed_by[0], 1)[:, None]
            task.outputs[:] = outputs + output_changes / np.maximum(changed_by[1], 1)[:, None]
        return tally

    def next_windows(self, cursors: NDArray[np.int64], s: int, limit: int) -> Iterator[tuple[int, int, float]]:
        """Yield the next windows of a stream, each with its relative position in the stream; advance the cursor."""
        first, last = self.stream_starts(len(cursors))[s : s + 2]
        windows = list(islice(self.windows(int(cursors[s]), last), limit + 1))
        cursors[s] = windows[limit][0] if len(windows) > limit else last
        for position, end in windows[:limit]:
            yield position, end, (position - first) / (last - first)

    def stream_starts(self, streams: int) -> list[int]:
        """Return the boundaries of equal streams over the trained tokens."""
        size, remainder = divmod(self.task.trained_tokens, streams)
        return [size * s + min(remainder, s) for s in range(streams + 1)]

    def infer(self, rows: Table, epochs: int, rate: float, seed: int, threads: int) -> None:
        """Infer the rows of new documents: each is trained alone while all other parameters stay fixed."""
        task = self.task
        for d, row in enumerate(rows):
            ids = task.ids[task.starts[d] : task.starts[d + 1]]
            inputs, outputs = np.vstack([task.inputs, row]), task.outputs.copy()
            tags = Lists(np.array([0, 1]), np.array([len(task.inputs)], np.int32))
            starts = np.array([0, len(ids)])
            trainer = TwinTrainer(replace(task, ids=ids, starts=starts, inputs=inputs, outputs=outputs, tags=tags))
            # FNV-1a of the words: else all documents would get the same negative samples at the same positions.
            document_hash = 0xCBF29CE484222325
            for word in ids.tolist():
                document_hash = (document_hash ^ word) * 0x100000001B3 & MASK
            for epoch in range(epochs):
                trainer.seed = seed + document_hash + epoch
                for position, end in trainer.windows(0, len(ids)):
                    current_rate = rate * (epochs - epoch - position / len(ids)) / epochs
                    trainer.train_window(position, end, current_rate, 0, len(ids))
                    inputs[:-1], outputs[:] = task.inputs, task.outputs
            row[:] = inputs[-1]
