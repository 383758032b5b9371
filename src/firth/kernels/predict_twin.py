"""The formulas of skip-gram, CBOW and their kin in plain NumPy: what cpp/predict.cpp computes, readable.

For a context word with input vector x and a target with output vector y and label ±1, z = ± x·y:
loss = −log σ(z), and the step along the gradient is ± (1 − σ(z)) times the other vector
(Mikolov et al. 2013b, eq. 4). Hierarchical softmax is the same with the inner nodes on the way to the
word as targets (eq. 3). Slow: for tests and for reading.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from itertools import islice

import numpy as np
from numpy.typing import NDArray

from firth.kernels.predict import Lists, Table, Tally, Task

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

    def document(self, position: int) -> int:
        return int(np.searchsorted(self.task.starts, position, side="right")) - 1

    def near(self, position: int, first: int, last: int) -> list[int]:
        """Where the kept tokens within reach of a centre stand, in the same document; for concat -1 where there is
        none."""
        task = self.task
        if not task.neighbors:
            return []
        bits = self.hash(position) & 0xFFFFFFFF
        reach = task.window - (bits * task.window >> 32) if task.shrink else task.window
        document = self.document(position)
        begin, end = max(first, int(task.starts[document])), min(last, int(task.starts[document + 1]))
        before = [p for p in range(position - 1, begin - 1, -1) if self.kept(p)][:reach]
        after = [p for p in range(position + 1, end) if self.kept(p)][:reach]
        if task.architecture == "concat":
            return [-1] * (reach - len(before)) + before[::-1] + after + [-1] * (reach - len(after))
        return [*before[::-1], *after]

    def contexts(self, position: int, first: int, last: int) -> list[int]:
        """The words that stand there."""
        return [int(self.task.ids[p]) if p >= 0 else -1 for p in self.near(position, first, last)]

    @property
    def grouped(self) -> bool:
        """Words are targets in groups, each with one draw of noise."""
        task = self.task
        kinds = "skipgram", "cbow"
        return task.architecture in kinds and task.loss == "negative" and task.shared and task.group > 1

    def windows(self, first: int, last: int) -> Iterator[tuple[int, int]]:
        """The centres of a stretch, each with where its window's centres end: behind it, or behind its group."""
        position = first
        while position < last:
            if not self.kept(position):
                position += 1
                continue
            size, document_end = self.task.group, int(self.task.starts[self.document(position) + 1])
            end = min((position // size + 1) * size, document_end, last) if self.grouped else position + 1
            yield position, end
            position = end

    def tags(self, position: int) -> list[int]:
        """Input rows of the centre's document."""
        return self.task.tags[self.document(position)].tolist() if len(self.task.tags.starts) else []

    def pieces(self, word: int) -> list[int]:
        """Input rows that make up a word."""
        return self.task.pieces[word].tolist() if len(self.task.pieces.starts) else [word]

    def draw(self, right: list[int], state: int) -> tuple[list[int], int]:
        """Noise words; a word drawn twice counts once, and those to be told from noise never. Also the next state."""
        cut, other = self.task.noise.T
        strata, drawn = self.task.drawn, list[int]()
        for i in range(strata or self.task.negatives):
            state = (state + GOLDEN) & MASK
            bits = mix(state)
            slot = (bits >> 32) * len(cut) >> 32
            if strata:  # the i-th draw has the i-th of equal stretches of the table
                slot = min(len(cut) - 1, int(((i << 32) + (bits >> 32)) * (len(cut) / (strata * 2.0**32))))
            word = slot if bits & 0xFFFFFFFF < int(cut[slot]) else int(other[slot])
            if word not in right and word not in drawn:
                drawn.append(word)
        return drawn, state

    def targets(self, centre: int, noise: list[int]) -> tuple[list[int], NDArray[np.float32]]:
        """Output rows and their labels."""
        task = self.task
        if task.loss == "softmax":
            return list(range(len(task.outputs))), np.zeros(0, np.float32)
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

    def train_window(self, position: int, end: int, rate: float, first: int, last: int) -> Tally:
        task = self.task
        if self.grouped:
            return self.train_group(position, end, rate, first, last)
        centre = int(task.ids[position])
        contexts, tags = self.contexts(position, first, last), self.tags(position)
        if not contexts and not tags:
            return Tally(0.0, 0, 1)
        if task.architecture == "forward":
            return self.train_forward(centre, contexts, position, rate)
        noise, state = self.draw([centre], self.hash(position))
        rows, labels = self.targets(centre, noise)
        if not rows:
            return Tally(0.0, 0, 1)
        self.touched[1].update(rows)
        if task.architecture == "concat":
            return self.train_concat(centre, tags + contexts, rows, labels, rate)
        inputs = [row for word in contexts for row in self.pieces(word)] + tags
        self.touched[0].update(inputs)
        if task.architecture == "cbow":
            return self.train_cbow(centre, inputs, rows, labels, rate)
        if task.loss == "hierarchical" or (task.loss == "negative" and task.shared):
            return self.train_grid(centre, inputs, rows, labels, rate)
        tally = Tally(0.0, 0, 0)
        for turn, row in enumerate(inputs):
            if turn and task.loss == "negative":
                noise, state = self.draw([centre], state)
                rows, labels = self.targets(centre, noise)
                self.touched[1].update(rows)
            tally += self.train_grid(centre, [row], rows, labels, rate)
        return tally._replace(words=1)

    def train_grid(self, centre: int, inputs: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        steps, loss = self.steps(self.task.inputs[inputs], centre, rows, labels, rate)
        self.move(inputs, rows, steps)
        return Tally(loss, len(inputs), 1)

    def move(self, inputs: list[int], rows: list[int], steps: Table) -> None:
        """Both tables, from the old rows; a word that stands twice among the inputs moves twice."""
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
        """One vector against its targets: its change and the loss; the targets move."""
        steps, loss = self.steps(hidden[None], word, rows, labels, rate)
        old = self.task.outputs[rows]
        for row, step in zip(rows, steps[0], strict=True):
            self.task.outputs[row] += step * hidden
        return steps[0] @ old, loss

    def train_cbow(self, centre: int, inputs: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        task = self.task
        share = np.float32(1 / len(inputs)) if task.mean else np.float32(1)
        hidden = task.inputs[inputs].sum(axis=0) * share
        change, loss = self.train_hidden(hidden, centre, rows, labels, rate)
        np.add.at(task.inputs, inputs, change * (share if task.exact else 1))
        return Tally(loss, 1, 1)

    def train_concat(self, centre: int, places: list[int], rows: list[int], labels: Table, rate: float) -> Tally:
        """Each place of the window has its own stretch of the outputs; where no word stands, it is zero."""
        task = self.task
        there = [place for place, row in enumerate(places) if row >= 0]
        inputs = [places[place] for place in there]
        hidden = np.zeros((len(places), task.inputs.shape[1]), np.float32)
        hidden[there] = task.inputs[inputs]
        change, loss = self.train_hidden(hidden.ravel(), centre, rows, labels, rate)
        np.add.at(task.inputs, inputs, change.reshape(hidden.shape)[there])
        self.touched[0].update(inputs)
        return Tally(loss, 1, 1)

    def train_group(self, position: int, end: int, rate: float, first: int, last: int) -> Tally:
        """The words near a group's centres, and the document's rows, against the centres' words and one draw of noise:
        a noise word counts as often as input and centres meet."""
        task = self.task
        centres = [p for p in range(position, end) if self.kept(p)]
        words = list(dict.fromkeys(int(task.ids[p]) for p in centres))
        near = {p: self.near(p, first, last) for p in centres}
        met: dict[int, list[int]] = {}  # a word that stands there twice is one input, which meets more centres
        for p in sorted({p for some in near.values() for p in some}):
            met.setdefault(int(task.ids[p]), []).extend(c for c in centres if p in near[c])
        inputs = [(row, with_whom) for word, with_whom in met.items() for row in self.pieces(word)]
        inputs += [(row, centres) for row in self.tags(position)]
        if not inputs:
            return Tally(0.0, 0, len(centres))
        noise, _ = self.draw(words, self.hash(position))
        if task.architecture == "cbow":
            return self.train_means(centres, near, noise, rate)
        weights = np.zeros((len(inputs), len(words) + len(noise)), np.float32)
        for weight, (_, with_whom) in zip(weights, inputs, strict=True):
            for p in with_whom:
                weight[words.index(int(task.ids[p]))] += 1
            weight[len(words) :] = -len(with_whom) * self.noise_weight
        rows = [row for row, _ in inputs]
        right = 1 / (1 + np.exp(-np.copysign(1, weights) * (task.inputs[rows] @ task.outputs[words + noise].T)))
        self.move(rows, words + noise, np.asarray(rate * weights * (1 - right), dtype=np.float32))
        pairs = sum(len(with_whom) for _, with_whom in inputs)
        return Tally(float(-(np.abs(weights) * np.log(right)).sum()), pairs, len(centres))

    @property
    def noise_weight(self) -> float:
        """How much one of a group's noise words counts."""
        return self.task.negatives / self.task.drawn if self.task.drawn else 1.0

    def train_means(self, centres: list[int], near: dict[int, list[int]], noise: list[int], rate: float) -> Tally:
        """CBOW for a group: the contexts of each centre predict its word, told from noise that all of them share; all
        from the old rows, but for a word that is a centre twice, which moves twice."""
        task = self.task
        contexts = [task.ids[near[p]].tolist() for p in centres]
        shares = [np.float32(1 / len(some) if task.mean else 1) for some in contexts]
        hidden = np.stack([task.inputs[some].sum(axis=0) * share for some, share in zip(contexts, shares, strict=True)])
        words = [int(task.ids[p]) for p in centres]
        right = 1 / (1 + np.exp(-(hidden * task.outputs[words]).sum(axis=1)))
        wrong = 1 / (1 + np.exp(-(hidden @ task.outputs[noise].T)))
        own, others = np.float32(rate) * (1 - right), np.float32(-rate * self.noise_weight) * wrong
        change = others @ task.outputs[noise]
        task.outputs[noise] += others.T @ hidden
        for c, word in enumerate(words):
            change[c] += own[c] * task.outputs[word]
            task.outputs[word] += own[c] * hidden[c]
        for some, share, moved in zip(contexts, shares, change, strict=True):
            np.add.at(task.inputs, some, moved * (share if task.exact else 1))
            self.touched[0].update(some)
        self.touched[1].update(words + noise)
        loss = -np.log(right).sum() - self.noise_weight * np.log(1 - wrong).sum()
        return Tally(float(loss), len(centres), len(centres))

    def train_shared(self, hidden: Table, words: list[int], position: int, rate: float) -> tuple[Table, float]:
        """One vector against several words and one draw of noise, which counts for each of them: change and loss."""
        noise, _ = self.draw(words, self.hash(position))
        parts = [(words, 1.0, 1), (noise, -1.0, len(words))]
        found = [
            self.steps(hidden[None], -1, part, np.full(len(part), label, np.float32), rate * times)
            for part, label, times in parts
        ]
        steps = np.concatenate([steps[0] for steps, _ in found])
        total = np.zeros_like(hidden)
        for row, step in zip(words + noise, steps, strict=True):  # a word that stands twice acts from its new row
            total += step * self.task.outputs[row]
            self.task.outputs[row] += step * hidden
        self.touched[1].update(words + noise)
        return total, sum(times * lost for (_, lost), (_, _, times) in zip(found, parts, strict=True))

    def train_forward(self, centre: int, contexts: list[int], position: int, rate: float) -> Tally:
        """The mean of the centre's rows predicts each context. A noise word shared by all contexts counts for each."""
        task, inputs = self.task, self.pieces(centre)
        share = np.float32(1 / len(inputs))
        back = share if task.exact else np.float32(1)
        hidden = task.inputs[inputs].sum(axis=0) * share
        total, loss = np.zeros_like(hidden), 0.0
        self.touched[0].update(inputs)
        if task.loss == "negative" and task.shared:
            total, loss = self.train_shared(hidden, contexts, position, rate)
            total *= back
        else:
            state = self.hash(position)
            for context in contexts:
                noise, state = self.draw([context], state)
                rows, labels = self.targets(context, noise)
                if not rows:
                    continue
                self.touched[1].update(rows)
                change, lost = self.train_hidden(hidden, context, rows, labels, rate)
                hidden, total, loss = hidden + change * back, total + change * back, loss + lost
        np.add.at(task.inputs, inputs, total)
        return Tally(loss, len(contexts), 1)

    # ---- whole stretches ----

    def racing(self, first: int, last: int, seed: int, rate_first: float, rate_last: float, threads: int) -> Tally:
        """One thread, so nothing races."""
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

    def next_windows(self, cursors: NDArray[np.int64], s: int, most: int) -> Iterator[tuple[int, int, float]]:
        """The next windows of a stream, each with the share of the stream before it; moves its cursor."""
        first, last = self.stream_starts(len(cursors))[s : s + 2]
        found = list(islice(self.windows(int(cursors[s]), last), most + 1))
        cursors[s] = found[most][0] if len(found) > most else last
        for position, end in found[:most]:
            yield position, end, (position - first) / (last - first)

    def stream_starts(self, streams: int) -> list[int]:
        whole, rest = divmod(self.task.trained_tokens, streams)
        return [whole * s + min(rest, s) for s in range(streams + 1)]

    def infer(self, rows: Table, epochs: int, rate: float, seed: int, threads: int) -> None:
        """New documents: the row of each learns by itself, everything else stays."""
        task = self.task
        for d, row in enumerate(rows):
            ids = task.ids[task.starts[d] : task.starts[d + 1]]
            inputs, outputs = np.vstack([task.inputs, row]), task.outputs.copy()
            tags = Lists(np.array([0, 1]), np.array([len(task.inputs)], np.int32))
            starts = np.array([0, len(ids)])
            alone = TwinTrainer(replace(task, ids=ids, starts=starts, inputs=inputs, outputs=outputs, tags=tags))
            words = 0xCBF29CE484222325  # FNV-1a: documents must not all meet the same noise at the same places
            for word in ids.tolist():
                words = (words ^ word) * 0x100000001B3 & MASK
            for epoch in range(epochs):
                alone.seed = seed + words + epoch
                for position, end in alone.windows(0, len(ids)):
                    now = rate * (epochs - epoch - position / len(ids)) / epochs
                    alone.train_window(position, end, now, 0, len(ids))
                    inputs[:-1], outputs[:] = task.inputs, task.outputs
            row[:] = inputs[-1]
