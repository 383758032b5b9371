"""Skip-gram, CBOW and their kin over an array of token ids: the native kernel (cpp/predict.cpp) behind one small class.

`predict_twin` holds the same computation in NumPy, for readers and tests.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

ARCHITECTURES = ("skipgram", "cbow", "concat", "forward")  # see cpp/predict.h
LOSSES = ("negative", "hierarchical", "softmax")
BLOCK = 4096  # raw tokens a thread takes at a time; ranges given to `racing` begin at a multiple of it
MOST_WINDOW = 256
MOST_TAGS = 64  # rows that stand for one document
MOST_GROUP = 4  # raw tokens whose windows can share noise

Table = NDArray[np.float32]


class Tally(NamedTuple):
    """What a stretch of training came to."""

    loss: float  # summed −log likelihood
    pairs: int  # predictions made: (context, centre) pairs, or windows for CBOW
    words: int  # centre words kept after subsampling

    def __add__(self, other: Any) -> Tally:
        return Tally(self.loss + other[0], self.pairs + other[1], self.words + other[2])


class Paths(NamedTuple):
    """The way from a Huffman tree's root to each word: word w's part is starts[w] to starts[w + 1]."""

    starts: NDArray[np.int64]
    nodes: NDArray[np.int32]
    turns: NDArray[np.uint8]


class Lists(NamedTuple):
    """Rows that belong together: list i is rows[starts[i] : starts[i + 1]]."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]

    def __getitem__(self, i: Any) -> Any:
        return self.rows[self.starts[i] : self.starts[i + 1]]


NO_LISTS = Lists(np.zeros(0, np.int64), np.zeros(0, np.int32))


@dataclass(frozen=True)
class Task:
    """One corpus, one pair of tables, one objective."""

    ids: NDArray[np.int32]
    starts: NDArray[np.int64]  # documents + 1
    inputs: Table  # rows padded to 16 floats, see `new_table`
    outputs: Table
    keep: NDArray[np.uint32]  # a token is kept when 32 random bits are <= keep[word]
    noise: NDArray[np.uint32]  # alias table of the noise words
    paths: Paths
    pieces: Lists = NO_LISTS  # for each word the input rows that make it up, its own first; none: its own alone
    tags: Lists = NO_LISTS  # for each document the input rows that stand for it in all its windows
    architecture: str = "skipgram"
    loss: str = "negative"
    window: int = 5
    negatives: int = 5
    mean: bool = True  # CBOW: the contexts' mean, else their sum
    exact: bool = True  # CBOW: the mean's true gradient, else word2vec's, which is `contexts` times as long
    shared: bool = True
    group: int = 1  # skip-gram and CBOW with shared noise: the windows of so many raw tokens (1, 2 or 4) share it
    drawn: int = 0  # noise words of a group, by strata, that count as much as `negatives` together; 0: these, freely
    neighbors: bool = True  # words predict; else the documents' rows do it alone
    shrink: bool = True
    last: int = -1  # tokens from here on are held out; -1 = none

    @property
    def trained_tokens(self) -> int:
        return len(self.ids) if self.last < 0 else self.last


def native_trainer(task: Task) -> _native.Trainer:
    """The native kernel set up for `task`: `racing`, `ordered`, `infer`, `stream_starts`."""
    return _native.Trainer(
        np.ascontiguousarray(task.ids),
        task.starts,
        task.inputs,
        task.outputs,
        task.keep,
        task.noise,
        *task.paths,
        *task.pieces,
        *task.tags,
        ARCHITECTURES.index(task.architecture),
        LOSSES.index(task.loss),
        task.window,
        task.negatives,
        task.mean,
        task.exact,
        task.shared,
        task.group,
        task.drawn,
        task.neighbors,
        task.shrink,
        task.trained_tokens,
    )


def new_table(rows: int, dim: int) -> Table:
    """Zeros, rows padded to 64 bytes, on huge pages where there are any."""
    return _native.new_table(rows, padded(dim))


def padded(dim: int) -> int:
    return -(-dim // 16) * 16


def keep_thresholds(counts: NDArray[np.int64], subsample: float) -> NDArray[np.uint32]:
    """P(keep w) = √(t/f) + t/f for a word's share f of the text: word2vec's formula (the paper has 1 − √(t/f))."""
    if subsample == 0:
        return np.full(len(counts), 2**32 - 1, dtype=np.uint32)
    share = np.maximum(counts, 1) / max(1, counts.sum())
    keep = np.minimum(1.0, np.sqrt(subsample / share) + subsample / share)
    return np.asarray(keep * (2**32 - 1), dtype=np.uint32)


def noise_weights(counts: NDArray[np.int64], exponent: float) -> NDArray[np.float64]:
    """Counts to a power; a word the text doesn't have (known from an earlier one) is not drawn."""
    weights = np.zeros(len(counts))
    weights[counts > 0] = counts[counts > 0].astype(np.float64) ** exponent
    return weights


def alias_table(weights: NDArray[np.float64]) -> NDArray[np.uint32]:
    """Draws word w with probability weights[w] / sum in constant time (Vose 1991): take a row (cut, other) at random
    and 32 bits; below cut it is the row's own word, else the other."""
    return _native.alias_table(np.ascontiguousarray(weights, dtype=np.float64))


def no_paths() -> Paths:
    return Paths(np.zeros(1, np.int64), np.zeros(0, np.int32), np.zeros(0, np.uint8))


def huffman_paths(counts: NDArray[np.int64]) -> Paths:
    """Huffman's tree over word counts in any order; frequent words get short ways."""
    order = np.argsort(-counts, kind="stable")
    ranked = Paths(*_native.huffman_paths(np.ascontiguousarray(counts[order])))
    if (np.diff(order) > 0).all():
        return ranked
    lengths = np.diff(ranked.starts)
    rank = np.argsort(order)
    starts = np.concatenate([[0], np.cumsum(lengths[rank])]).astype(np.int64)
    pick = np.concatenate([np.arange(ranked.starts[r], ranked.starts[r + 1]) for r in rank])
    return Paths(starts, ranked.nodes[pick], ranked.turns[pick])
