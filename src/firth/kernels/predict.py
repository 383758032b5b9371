"""Skip-gram, CBOW and related models over an array of token ids: the native kernel (cpp/predict.cpp).

`predict_twin` is the same computation in NumPy, for readers and tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

ARCHITECTURES = ("skipgram", "cbow", "concat", "forward")  # see cpp/predict.h
LOSSES = ("negative", "hierarchical", "softmax")
BLOCK = 4096  # raw tokens a thread takes at a time; ranges passed to `racing` begin at a multiple of it
MAX_WINDOW = 256
MAX_TAGS = 64  # input rows of one document
MAX_GROUP = 4  # raw tokens whose windows can share negative samples

Table = NDArray[np.float32]


class Tally(NamedTuple):
    """Totals of a training call."""

    loss: float  # summed −log likelihood
    pairs: int  # predictions: (context, center) pairs, or windows for CBOW
    words: int  # center words after subsampling

    def __add__(self, other: Any) -> Tally:
        return Tally(self.loss + other[0], self.pairs + other[1], self.words + other[2])


class Paths(NamedTuple):
    """The paths from the root of a Huffman tree to each word; word w has the entries starts[w] to starts[w + 1]."""

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    turns: NDArray[np.uint8]


class Lists(NamedTuple):
    """Lists of rows: list i is rows[starts[i] : starts[i + 1]]."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def __getitem__(self, i: Any) -> Any:
        return self.rows[self.starts[i] : self.starts[i + 1]]


NO_LISTS = Lists(np.zeros(0, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class Task:
    """A corpus, the tables to train, and the objective."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # documents + 1
    inputs: Table  # rows padded to 16 floats, see `new_table`
    outputs: Table
    keep: NDArray[np.uint32]  # a token is kept when 32 random bits are <= keep[word]
    noise: NDArray[np.uint32]  # alias table of the negative-sampling distribution
    paths: Paths
    subwords: Lists = NO_LISTS  # input rows of each word, its own first; empty: its own only
    tags: Lists = NO_LISTS  # input rows of each document, which take part in all its windows
    architecture: str = "skipgram"
    loss: str = "negative"
    window: int = 5
    negatives: int = 5
    mean: bool = True  # CBOW: the contexts' mean, else their sum
    exact: bool = True  # CBOW: the exact gradient of the mean, else word2vec's, which is `contexts` times as long
    shared: bool = True  # all pairs of a window share their negative samples
    group: int = 1  # skip-gram and CBOW with `shared`: the windows of 1, 2 or 4 raw tokens share negative samples
    group_negatives: int = 0  # stratified negative samples of a group, weighted to count as `negatives`; 0: `negatives`
    neighbors: bool = True  # context words are inputs; else the document's rows alone
    shrink: bool = True  # the reach of each window is sampled from 1..window
    last: int = -1  # tokens from here on are held out; -1 = none

    @property
    def trained_tokens(self) -> int:
        """The number of tokens that are not held out."""
        return len(self.ids) if self.last < 0 else self.last


def native_trainer(task: Task) -> _native.Trainer:
    """Return the native trainer for a task."""
    return _native.Trainer(
        ids=np.ascontiguousarray(task.ids),
        starts=task.starts,
        inputs=task.inputs,
        outputs=task.outputs,
        subword_starts=task.subwords.starts,
        subword_rows=task.subwords.rows,
        tag_starts=task.tags.starts,
        tag_rows=task.tags.rows,
        keep=task.keep,
        noise=task.noise,
        path_starts=task.paths.starts,
        path_nodes=task.paths.nodes,
        path_turns=task.paths.turns,
        architecture=ARCHITECTURES.index(task.architecture),
        loss=LOSSES.index(task.loss),
        mean=task.mean,
        exact=task.exact,
        neighbors=task.neighbors,
        window=task.window,
        shrink=task.shrink,
        negatives=task.negatives,
        shared=task.shared,
        group=task.group,
        group_negatives=task.group_negatives,
        last=task.trained_tokens,
    )


def new_table(rows: int, dim: int) -> Table:
    """Return a zero table whose rows are padded to 64 bytes, on huge pages where available."""
    return _native.new_table(rows, padded(dim))


def padded(dim: int) -> int:
    """Return `dim` rounded up to a multiple of 16."""
    return -(-dim // 16) * 16


def keep_thresholds(counts: NDArray[np.int64], subsample: float) -> NDArray[np.uint32]:
    """Return thresholds for P(keep w) = √(t/f) + t/f, word2vec's formula; f is the word's share of all tokens."""
    if subsample == 0:
        return np.full(len(counts), 2**32 - 1, dtype=np.uint32)
    share = np.maximum(counts, 1) / max(1, counts.sum())
    keep = np.minimum(1.0, np.sqrt(subsample / share) + subsample / share)
    return np.asarray(keep * (2**32 - 1), dtype=np.uint32)


def noise_weights(counts: NDArray[np.int64], exponent: float) -> NDArray[np.float64]:
    """Return counts^exponent; words with count 0 (known from an earlier corpus only) are never sampled."""
    weights = np.zeros(len(counts))
    weights[counts > 0] = counts[counts > 0].astype(np.float64) ** exponent
    return weights


def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Return the table that samples word w with probability weights[w] / sum in constant time (Vose 1991).

    To sample, pick a row (cut, other) uniformly and 32 random bits: below `cut` it is the row's own index, else
    `other`.
    """
    return _native.alias_table(np.ascontiguousarray(weights, dtype=np.float64))


def no_paths() -> Paths:
    """Return the empty paths of losses other than hierarchical softmax."""
    return Paths(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


def huffman_paths(counts: NDArray[np.int64]) -> Paths:
    """Return the paths of a Huffman tree over word counts, which may be in any order."""
    order = np.argsort(-counts, kind="stable")
    ranked = Paths(*_native.huffman_paths(np.ascontiguousarray(counts[order])))
    if (np.diff(order) > 0).all():
        return ranked
    lengths = np.diff(ranked.starts)
    rank = np.argsort(order)
    starts = np.concatenate([[0], np.cumsum(lengths[rank])]).astype(np.int64)
    pick = np.concatenate([np.arange(ranked.starts[r], ranked.starts[r + 1]) for r in rank])
    return Paths(starts, ranked.nodes[pick], ranked.turns[pick])
