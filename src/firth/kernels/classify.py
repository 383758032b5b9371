"""fastText's text classifier: the native kernel (cpp/classify.cpp, cpp/labels.cpp) and its NumPy twin.

A text is the mean h of its input rows: those of its words, of their character n-grams, and of its word n-grams. N-grams
are hashed into buckets as fastText does it (Joulin et al. 2016). Each label has an output row o. The losses:

    softmax       −log e^(o · h) / Σ e^(o' · h), over all labels
    hierarchical  Σ −log σ(± o · h) over the inner nodes on the path to the label in a Huffman tree, + for a right turn
    one_vs_all    Σ −log σ(± o · h) over all labels, + for the text's own
    negative      −log σ(o · h) − Σ log σ(−o' · h), over negative labels sampled by the square root of their counts

Softmax, hierarchical and negative use one label per step: of several labels, one is sampled anew in each epoch.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.kernels.predict import Paths, Table, alias_table, huffman_paths, new_table, no_paths
from firth.kernels.subwords import Ngrams

LOSSES = ("softmax", "hierarchical", "one_vs_all", "negative")
WORD_FACTOR = 116049371  # multiplier of fastText's word n-gram hash
NOISE_EXPONENT = 0.5

Ids = NDArray[np.int32]
Offsets = NDArray[np.int64]


class Texts(NamedTuple):
    """The word ids and labels of each text; text i has the words ids[starts[i] : starts[i + 1]]."""

    ids: Ids
    starts: Offsets
    labels: Ids
    label_starts: Offsets


@dataclass(frozen=True)
class Inputs:
    """The input rows of words and n-grams. Word ids from `words` on have no row of their own, only their n-grams."""

    words: int
    hashes: NDArray[np.uint32]  # of each word
    ngrams: Ngrams  # buckets of each word's character n-grams
    bucket_rows: Ids  # −1: the bucket has no row, and its n-grams are ignored
    word_ngrams: int = 1


@dataclass(frozen=True)
class Task:
    """Labeled texts, the tables to train, and the loss."""

    texts: Texts
    inputs: Inputs
    input_table: Table
    output_table: Table  # see `new_outputs`
    label_counts: NDArray[np.int64]
    loss: str = "softmax"
    negatives: int = 5

    @property
    def noise(self) -> NDArray[np.uint32]:
        """The alias table that negative labels are sampled from."""
        return alias_table(self.label_counts.astype(np.float64) ** NOISE_EXPONENT)

    @property
    def paths(self) -> Paths:
        """The Huffman paths of the labels; empty for other losses."""
        return huffman_paths(self.label_counts) if self.loss == "hierarchical" else no_paths()


def native_trainer(task: Task) -> _native.LabelTrainer:
    """Return the native trainer for a task."""
    inputs = task.inputs
    return _native.LabelTrainer(
        ids=np.ascontiguousarray(task.texts.ids),
        starts=np.ascontiguousarray(task.texts.starts),
        labels=np.ascontiguousarray(task.texts.labels),
        label_starts=np.ascontiguousarray(task.texts.label_starts),
        hashes=inputs.hashes.view(np.int32),
        ngram_starts=inputs.ngrams.starts,
        ngrams=inputs.ngrams.rows,
        bucket_rows=inputs.bucket_rows,
        inputs=task.input_table,
        outputs=task.output_table,
        noise=task.noise,
        path_starts=task.paths.starts,
        path_nodes=task.paths.nodes,
        path_turns=task.paths.turns,
        words=inputs.words,
        word_ngrams=inputs.word_ngrams,
        label_count=len(task.label_counts),
        loss=LOSSES.index(task.loss),
        negatives=task.negatives,
    )


def new_outputs(labels: int, dim: int) -> Table:
    """Return a zero output table: one row per label or inner node of the tree, padded to a multiple of 16 rows."""
    return new_table(-(-labels // 16) * 16, dim)


def touched_buckets(
    texts: Texts,
    inputs: Inputs,
    buckets: int,
    threads: int,
    excluded_texts: Sequence[int] = (),
    excluded_words: Ids | None = None,
) -> Ids:
    """Return the sorted buckets of all n-grams in the texts.

    `excluded_texts` are ignored (ascending), and so are `excluded_words`, the ids of words that occur in those texts
    only.
    """
    used = np.zeros(buckets, dtype=np.uint8)
    included = np.ones(len(inputs.ngrams.starts) - 1, dtype=bool)
    included[[] if excluded_words is None else excluded_words] = False
    used[inputs.ngrams.rows[np.repeat(included, np.diff(inputs.ngrams.starts))]] = 1
    if inputs.word_ngrams > 1:
        for before, after in pairwise([-1, *excluded_texts, len(texts.starts) - 1]):
            starts = texts.starts[before + 1 : after + 1]
            if len(starts) > 1:
                ids = np.ascontiguousarray(texts.ids[starts[0] : starts[-1]])
                arrays = ids, starts - starts[0], inputs.hashes.view(np.int32)
                _native.mark_buckets(*arrays, inputs.word_ngrams, used, threads)
    return np.flatnonzero(used).astype(np.int32)


def take_labels(
    data: NDArray[np.uint8], ends: Offsets, *, take: bool, separate: bool
) -> tuple[tuple[NDArray[np.uint8], Offsets], tuple[NDArray[np.uint8], Offsets]]:
    """Split fastText's file format into text and labels, the words that begin with __label__.

    Returns the text and the labels (each label followed by a NUL), each with the end offsets of the documents.
    `separate` splits the text at ASCII whitespace, puts a NUL after each word and ends each document with </s>, as
    fastText reads it. Without `take`, labels stay in the text.
    """
    text, text_ends, labels, label_ends = _native.take_labels(data, ends, take, separate)
    return (text, text_ends), (labels, label_ends)


def label_children(counts: NDArray[np.int64]) -> Ids:
    """Return the Huffman tree of `huffman_paths` as the left and right child of each inner node; the last is the root.

    A child is an earlier inner node or ~label. Time and memory are linear even if the counts make the tree a chain.
    """
    weights: list[int] = []
    children = np.empty((max(0, len(counts) - 1), 2), dtype=np.int32)
    leaf, node = len(counts) - 1, 0
    leaves = counts.tolist()
    for parent in range(len(children)):
        weight = 0
        for side in (0, 1):
            if leaf >= 0 and (node >= len(weights) or leaves[leaf] < weights[node]):
                children[parent, side] = ~leaf
                weight += leaves[leaf]
                leaf -= 1
            else:
                children[parent, side] = node
                weight += weights[node]
                node += 1
        weights.append(weight)
    return children


# ---- NumPy reference implementation ----


def word_ngram_buckets(hashes: Sequence[int], longest: int, buckets: int) -> list[int]:
    """Return fastText's buckets of the n-grams of 2 to `longest` words; hashes are sign-extended to 64 bits."""
    signed = [hash - (1 << 32) if hash >> 31 else hash for hash in map(int, hashes)]
    ngram_buckets = []
    for first in range(len(signed)):
        hash = signed[first]
        for word in signed[first + 1 : first + longest]:
            hash = (hash * WORD_FACTOR + word) & MASK
            ngram_buckets.append(hash % buckets)
    return ngram_buckets


def input_rows(ids: Sequence[int], inputs: Inputs) -> list[int]:
    """Return the input rows of a text."""
    rows, buckets = [], []
    for id in ids:
        rows += [id] if id < inputs.words else []
        buckets += inputs.ngrams.rows[inputs.ngrams.starts[id] : inputs.ngrams.starts[id + 1]].tolist()
    if inputs.word_ngrams > 1:
        buckets += word_ngram_buckets(inputs.hashes[list(ids)].tolist(), inputs.word_ngrams, len(inputs.bucket_rows))
    return rows + [row for row in inputs.bucket_rows[buckets].tolist() if row >= 0]


def sigmoid(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return 1 / (1 + exp(−x))."""
    return np.asarray(1 / (1 + np.exp(-x)), dtype=np.float32)


def tabulated_sigmoid(x: NDArray[np.floating]) -> NDArray[np.float32]:
    """Return the sigmoid as fastText tabulates it for predictions: 512 steps from −8 to 8, 0 and 1 outside."""
    step = np.floor((np.clip(x, -8, 8) + 8) * 32) / 32 - 8
    return np.asarray(np.where(x < -8, 0, np.where(x > 8, 1, sigmoid(step))), dtype=np.float32)


def label_probabilities(scores: NDArray[np.float32], loss: str, label_counts: NDArray[np.int64]) -> NDArray[np.float32]:
    """Return the predicted probability of each label from the scores o · h.

    As in fastText, 1e-5 is added to each factor.
    """
    if loss == "hierarchical":
        paths = huffman_paths(label_counts)
        turns = sigmoid(np.where(paths.turns == 1, 1, -1) * scores[paths.nodes])
        return np.asarray(np.multiply.reduceat(turns + 1e-5, paths.starts[:-1]), dtype=np.float32)
    if loss == "softmax":
        exponents = np.exp(scores - scores.max())
        return np.asarray(exponents / exponents.sum() + 1e-5, dtype=np.float32)
    return tabulated_sigmoid(scores) + np.float32(1e-5)


class TwinTrainer:
    """The NumPy twin of `native_trainer`: one text after the other."""

    def __init__(self, task: Task) -> None:
        self.task, self.noise, self.paths = task, task.noise, task.paths

    def train(
        self, order: Offsets, first: int, last: int, rate_first: float, rate_last: float, seed: int, threads: int
    ) -> tuple[float, int]:
        """Train on the texts order[first:last]; return the summed loss and the number of texts trained on."""
        loss, trained = 0.0, 0
        texts = self.task.texts
        for i in range(first, last):
            text = int(order[i])
            labels = texts.labels[texts.label_starts[text] : texts.label_starts[text + 1]]
            rows = input_rows(texts.ids[texts.starts[text] : texts.starts[text + 1]].tolist(), self.task.inputs)
            if len(labels) and rows:
                rate = rate_first + (rate_last - rate_first) * i / len(order)
                loss += self.step(rows, labels, np.float32(rate), mix((seed + text * GOLDEN) & MASK))
                trained += 1
        return loss, trained

    def step(self, rows: list[int], labels: Ids, rate: np.float32, key: int) -> float:
        """Take one gradient step for a text and return its loss."""
        inputs, outputs = self.task.input_table, self.task.output_table
        hidden = inputs[rows].mean(axis=0)
        change = np.zeros_like(hidden)
        loss = 0.0
        for output_rows, positive in self.targets(labels, key):
            scores = outputs[output_rows] @ hidden
            if self.task.loss == "softmax":
                probabilities = np.exp(scores - scores.max())
                probabilities /= probabilities.sum()
                loss -= float(np.log(probabilities[positive]).sum())
            else:
                probabilities = sigmoid(scores)
                loss -= float(np.log(np.where(positive, probabilities, 1 - probabilities)).sum())
            steps = rate * (positive - probabilities)  # (output rows,)
            change += steps @ outputs[output_rows]
            outputs[output_rows] += steps[:, None] * hidden
        np.add.at(inputs, rows, change / len(rows))  # a row that occurs twice moves twice
        return loss

    def targets(self, labels: Ids, key: int) -> list[tuple[NDArray[np.int64], NDArray[np.bool_]]]:
        """Return groups of output rows with whether each is positive; groups are trained one after the other."""
        count = len(self.task.label_counts)
        all_labels = np.arange(count)
        if self.task.loss == "one_vs_all":
            return [(all_labels, np.isin(all_labels, labels))]
        label = int(labels[((key >> 32) * len(labels)) >> 32])
        if self.task.loss == "softmax":
            return [(all_labels, all_labels == label)]
        if self.task.loss == "hierarchical":
            path = slice(self.paths.starts[label], self.paths.starts[label + 1])
            return [(self.paths.nodes[path].astype(np.int64), self.paths.turns[path] == 1)]
        rows = [label]
        while len(rows) <= self.task.negatives:
            key = (key + GOLDEN) & MASK
            bits = mix(key)
            slot = ((bits >> 32) * count) >> 32
            negative = slot if (bits & 0xFFFFFFFF) < self.noise[slot, 0] else int(self.noise[slot, 1])
            rows += [negative] if negative != label else []
        return [(np.array([row]), np.array([row == label])) for row in rows]
