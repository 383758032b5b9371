"""Texts that predict their labels: the native kernel (cpp/classify.cpp, cpp/labels.cpp), and the formulas in NumPy.

A text is the mean h of its input rows: of its words, of their n-grams of characters, and of its n-grams of words, the
latter two by fastText's hashes (Joulin et al. 2016). Each label has an output row o. The losses:

    softmax       −log e^(o · h) / Σ e^(o' · h), over all labels
    hierarchical  Σ −log σ(± o · h) over the inner nodes on the way to the label in Huffman's tree, + for a right turn
    one_vs_all    Σ −log σ(± o · h) over all labels, + for the text's own
    negative      −log σ(o · h) − Σ log σ(−o' · h), over noise labels drawn by the root of their counts

Of several labels, the losses that take one draw another one in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.predict import Paths, Table, alias_table, huffman_paths, new_table, no_paths
from firth.kernels.predict_twin import GOLDEN, MASK, mix
from firth.kernels.subwords import Ngrams

LOSSES = ("softmax", "hierarchical", "one_vs_all", "negative")
WORD_FACTOR = 116049371  # of fastText's hash of several words
NOISE_EXPONENT = 0.5

Ids = NDArray[np.int32]
Places = NDArray[np.int64]


class Texts(NamedTuple):
    """Word ids of each text and its labels: text i's words are ids[starts[i] : starts[i + 1]]."""

    ids: Ids
    starts: Places
    labels: Ids
    label_starts: Places


@dataclass(frozen=True)
class Inputs:
    """Which input rows words and n-grams have. Ids from `words` on are too rare for one, but have n-grams."""

    words: int
    hashes: NDArray[np.uint32]  # of each word
    ngrams: Ngrams  # buckets of each word's n-grams of characters
    bucket_rows: Ids  # −1: the bucket has no row, and its n-grams don't count
    word_ngrams: int = 1


@dataclass(frozen=True)
class Task:
    """Labelled texts, a pair of tables, an objective."""

    texts: Texts
    inputs: Inputs
    input_table: Table
    output_table: Table  # see `new_outputs`
    label_counts: NDArray[np.int64]
    loss: str = "softmax"
    negatives: int = 5

    @property
    def noise(self) -> NDArray[np.uint32]:
        return alias_table(self.label_counts.astype(np.float64) ** NOISE_EXPONENT)

    @property
    def paths(self) -> Paths:
        return huffman_paths(self.label_counts) if self.loss == "hierarchical" else no_paths()


def native_trainer(task: Task) -> _native.LabelTrainer:
    """The native kernel set up for `task`."""
    inputs = task.inputs
    return _native.LabelTrainer(
        *map(np.ascontiguousarray, task.texts),
        inputs.hashes.view(np.int32),
        *inputs.ngrams,
        inputs.bucket_rows,
        task.input_table,
        task.output_table,
        task.noise,
        *task.paths,
        inputs.words,
        inputs.word_ngrams,
        len(task.label_counts),
        LOSSES.index(task.loss),
        task.negatives,
    )


def new_outputs(labels: int, dim: int) -> Table:
    """Zeros: a row a label (of a tree: an inner node, and one to spare, as fastText has it), padded to 16 rows."""
    return new_table(-(-labels // 16) * 16, dim)


def touched_buckets(
    texts: Texts, inputs: Inputs, buckets: int, threads: int, without: Sequence[int] = (), unseen: Ids | None = None
) -> Ids:
    """The buckets that any n-gram of the texts falls into, in order. `without` are texts that are left out, ascending,
    `unseen` the ids of words that stand in those alone."""
    marks = np.zeros(buckets, dtype=np.uint8)
    counted = np.ones(len(inputs.ngrams.starts) - 1, dtype=bool)
    counted[[] if unseen is None else unseen] = False
    marks[inputs.ngrams.rows[np.repeat(counted, np.diff(inputs.ngrams.starts))]] = 1
    if inputs.word_ngrams > 1:
        for before, after in pairwise([-1, *without, len(texts.starts) - 1]):
            starts = texts.starts[before + 1 : after + 1]
            if len(starts) > 1:
                ids = np.ascontiguousarray(texts.ids[starts[0] : starts[-1]])
                arrays = ids, starts - starts[0], inputs.hashes.view(np.int32)
                _native.mark_buckets(*arrays, inputs.word_ngrams, marks, threads)
    return np.flatnonzero(marks).astype(np.int32)


def take_labels(
    data: NDArray[np.uint8], ends: Places, *, take: bool, separate: bool
) -> tuple[tuple[NDArray[np.uint8], Places], tuple[NDArray[np.uint8], Places]]:
    """Text without the words that begin with __label__, and these labels, a NUL after each; with the places where
    documents end in both. `separate` puts a NUL after each word of the text, cut at ASCII white space, and ends
    documents with </s>, as fastText reads them."""
    text, text_ends, labels, label_ends = _native.take_labels(data, ends, take, separate)
    return (text, text_ends), (labels, label_ends)


def label_children(counts: NDArray[np.int64]) -> Ids:
    """The tree of `huffman_paths` by its nodes: left and right child of each, an inner node before it or ~label. The
    last node is the root. In linear time and memory also where counts from a file make the tree a chain."""
    weights: list[int] = []
    children = np.empty((max(0, len(counts) - 1), 2), dtype=np.int32)
    leaf, node = len(counts) - 1, 0
    leaves = counts.tolist()
    for made in range(len(children)):
        weight = 0
        for side in (0, 1):
            if leaf >= 0 and (node >= len(weights) or leaves[leaf] < weights[node]):
                children[made, side] = ~leaf
                weight += leaves[leaf]
                leaf -= 1
            else:
                children[made, side] = node
                weight += weights[node]
                node += 1
        weights.append(weight)
    return children


# ---- in NumPy, for readers and tests ----


def word_ngram_buckets(hashes: Sequence[int], longest: int, buckets: int) -> list[int]:
    """fastText's buckets of the n-grams of two and more words. Hashes are widened to 64 bits with their sign."""
    signed = [hash - (1 << 32) if hash >> 31 else hash for hash in map(int, hashes)]
    found = []
    for first in range(len(signed)):
        hash = signed[first]
        for word in signed[first + 1 : first + longest]:
            hash = (hash * WORD_FACTOR + word) & MASK
            found.append(hash % buckets)
    return found


def rows_of(ids: Sequence[int], inputs: Inputs) -> list[int]:
    """The input rows of a text."""
    rows, buckets = [], []
    for id in ids:
        rows += [id] if id < inputs.words else []
        buckets += inputs.ngrams.rows[inputs.ngrams.starts[id] : inputs.ngrams.starts[id + 1]].tolist()
    if inputs.word_ngrams > 1:
        buckets += word_ngram_buckets(inputs.hashes[list(ids)].tolist(), inputs.word_ngrams, len(inputs.bucket_rows))
    return rows + [row for row in inputs.bucket_rows[buckets].tolist() if row >= 0]


def sigmoid(x: NDArray[np.floating]) -> NDArray[np.float32]:
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float32)


def sigmoid_looked_up(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """fastText's sigmoid of predictions: 512 steps from −8 to 8, each with its left end's value; 0 and 1 outside."""
    step = np.floor((np.clip(x, -8, 8) + 8) * 32) / 32 - 8
    return np.asarray(np.where(x < -8, 0, np.where(x > 8, 1, sigmoid(step))), dtype=np.float32)


def predicted(scores: NDArray[np.float32], loss: str, label_counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """The probability that predictions give each label, from the products of the output rows with a text's vector. As
    in fastText, 1e-5 is added to each factor."""
    if loss == "hierarchical":
        paths = huffman_paths(label_counts)
        turns = sigmoid(np.where(paths.turns == 1, 1, -1) * scores[paths.nodes])
        return np.asarray(np.multiply.reduceat(turns + 1e-5, paths.starts[:-1]), dtype=np.float32)
    if loss == "softmax":
        exponents = np.exp(scores - scores.max())
        return np.asarray(exponents / exponents.sum() + 1e-5, dtype=np.float32)
    return sigmoid_looked_up(scores) + np.float32(1e-5)


class TwinTrainer:
    """`native_trainer`'s interface, one text after the other."""

    def __init__(self, task: Task) -> None:
        self.task, self.noise, self.paths = task, task.noise, task.paths

    def train(
        self, order: Places, first: int, last: int, rate_first: float, rate_last: float, seed: int, threads: int
    ) -> tuple[float, int]:
        loss, trained = 0.0, 0
        texts = self.task.texts
        for place in range(first, last):
            text = int(order[place])
            labels = texts.labels[texts.label_starts[text] : texts.label_starts[text + 1]]
            rows = rows_of(texts.ids[texts.starts[text] : texts.starts[text + 1]].tolist(), self.task.inputs)
            if len(labels) and rows:
                rate = rate_first + (rate_last - rate_first) * place / len(order)
                loss += self.step(rows, labels, np.float32(rate), mix((seed + text * GOLDEN) & MASK))
                trained += 1
        return loss, trained

    def step(self, rows: list[int], labels: Ids, rate: np.float32, key: int) -> float:
        inputs, outputs = self.task.input_table, self.task.output_table
        hidden = inputs[rows].mean(axis=0)
        change = np.zeros_like(hidden)
        loss = 0.0
        for output_rows, answers in self.questions(labels, key):
            scores = outputs[output_rows] @ hidden
            if self.task.loss == "softmax":
                given = np.exp(scores - scores.max())
                given /= given.sum()
                loss -= float(np.log(given[answers]).sum())
            else:
                given = sigmoid(scores)
                loss -= float(np.log(np.where(answers, given, 1 - given)).sum())
            steps = rate * (answers - given)  # output rows
            change += steps @ outputs[output_rows]
            outputs[output_rows] += steps[:, None] * hidden
        np.add.at(inputs, rows, change / len(rows))  # a row that occurs twice moves twice
        return loss

    def questions(self, labels: Ids, key: int) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Output rows with the right answers; rows asked one after the other stand apart."""
        count = len(self.task.label_counts)
        every = np.arange(count)
        if self.task.loss == "one_vs_all":
            return [(every, np.isin(every, labels))]
        label = int(labels[((key >> 32) * len(labels)) >> 32])
        if self.task.loss == "softmax":
            return [(every, every == label)]
        if self.task.loss == "hierarchical":
            way = slice(self.paths.starts[label], self.paths.starts[label + 1])
            return [(self.paths.nodes[way].astype(np.int64), self.paths.turns[way] == 1)]
        asked = [label]
        while len(asked) <= self.task.negatives:
            key = (key + GOLDEN) & MASK
            bits = mix(key)
            slot = ((bits >> 32) * count) >> 32
            noise = slot if (bits & 0xFFFFFFFF) < self.noise[slot, 0] else int(self.noise[slot, 1])
            asked += [noise] if noise != label else []
        return [(np.array([row]), np.array([row == label])) for row in asked]
