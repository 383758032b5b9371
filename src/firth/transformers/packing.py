"""Pairs of texts as a net takes them: one behind the other, with no padding between them.

On a GPU every batch has the same shapes, so that one compilation serves them all: what is left of the tokens is filled
with sequences of [PAD] that no loss looks at, and there are more slots for masked tokens and for pairs than are used.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.transformers.masking import Masking
from firth.transformers.next_sentence_pairs import ALONE, Numbers, Pairs


class Shape(NamedTuple):
    """How large the arrays of every batch are."""

    tokens: int
    sequences: int
    masked: int


class Special(NamedTuple):
    """Ids of the tokens that stand around texts."""

    pad: int
    cls: int
    sep: int


class PackedBatch(NamedTuple):
    """A batch. Weights are such that Σ weight · loss is the mean over its masked tokens plus the mean over its pairs,
    times its tokens."""

    ids: NDArray[np.int32]  # a token a row
    positions: NDArray[np.int32]
    segments: NDArray[np.int32]  # 0 for A, 1 for B
    starts: NDArray[np.int32]  # of the sequences, and the end of the last
    slots: NDArray[np.int64]  # rows that were masked
    targets: NDArray[np.int64]  # what stood there
    slot_weights: NDArray[np.float32]
    firsts: NDArray[np.int64]  # rows of [CLS], one a pair
    labels: NDArray[np.int64]
    pair_weights: NDArray[np.float32]


def pack(
    text: NDArray[np.int32],
    pairs: Pairs,
    special: Special,
    masking: Masking,
    seed: int,
    shape: Shape | None = None,
    longest: int = 0,
) -> PackedBatch:
    """A batch of `pairs` of the text, masked; of a fixed shape, with fillers of at most `longest` tokens."""
    pairs = pairs.take(np.argsort(pairs.tokens(), kind="stable"))  # a CPU takes those of one length together
    lengths = pairs.tokens()
    starts = np.concatenate([[0], np.cumsum(lengths)])
    total = int(starts[-1])
    ids, origin = np.full(total, special.sep, np.int32), np.full(total, -1, np.int64)
    ids[starts[:-1]] = special.cls
    # A begins behind [CLS], B behind the [SEP] that follows A.
    target_rows = np.stack([starts[:-1] + 1, starts[:-1] + 2 + pairs.length[:, 0]], axis=1)
    rows, source = runs(target_rows, pairs.length), runs(pairs.begin, pairs.length)
    ids[rows], origin[rows] = text[source], source
    masked = masking(ids, origin, seed)
    second = lengths - 2 - pairs.length[:, 0]
    segments = np.repeat(np.tile(np.array([0, 1], np.int32), len(pairs)), np.stack([lengths - second, second], 1).flat)
    labeled = pairs.label != ALONE
    batch = PackedBatch(
        ids=masked.ids,
        positions=(np.arange(total) - np.repeat(starts[:-1], lengths)).astype(np.int32),
        segments=segments,
        starts=starts.astype(np.int32),
        slots=masked.slots,
        targets=masked.targets,
        slot_weights=np.full(len(masked.slots), total / max(1, len(masked.slots)), np.float32),
        firsts=starts[:-1],
        labels=np.where(labeled, pairs.label, 0),
        pair_weights=np.where(labeled, total / max(1, int(labeled.sum())), 0).astype(np.float32),
    )
    return fixed(batch, shape, special.pad, longest) if shape else batch


def runs(begin: Numbers, length: Numbers) -> Numbers:
    """begin, begin + 1, … of each run, one run behind the other."""
    begin, length = begin.ravel(), length.ravel()
    ends = np.cumsum(length)
    return np.repeat(begin - ends + length, length) + np.arange(ends[-1] if len(ends) else 0)


def fixed(batch: PackedBatch, shape: Shape, pad: int, longest: int) -> PackedBatch:
    """The batch in arrays of a given shape. Sequences that are too many have no tokens."""
    total = len(batch.ids)
    filler = np.arange(shape.tokens - total, dtype=np.int32) % max(1, longest)
    ends = np.minimum(batch.starts[-1] + longest * np.arange(1, shape.sequences + 2), shape.tokens).astype(np.int32)
    return PackedBatch(
        ids=filled(batch.ids, shape.tokens, pad),
        positions=np.concatenate([batch.positions, filler]),
        segments=filled(batch.segments, shape.tokens),
        starts=np.concatenate([batch.starts, ends])[: shape.sequences + 1],
        slots=filled(batch.slots, shape.masked),
        targets=filled(batch.targets, shape.masked),
        slot_weights=filled(batch.slot_weights, shape.masked),
        firsts=filled(batch.firsts, shape.sequences),
        labels=filled(batch.labels, shape.sequences),
        pair_weights=filled(batch.pair_weights, shape.sequences),
    )


def filled(values: NDArray[Any], length: int, value: int = 0) -> NDArray[Any]:
    """The first `length` of the values, or as many others behind them."""
    padded = np.full(length, value, values.dtype)
    padded[: len(values)] = values[:length]
    return padded


def batch_ends(tokens: Numbers, max_tokens: int, sequences: int) -> list[int]:
    """Where batches end that take as many sequences, in order, as have at most `most` tokens."""
    cumulative = np.cumsum(tokens)
    ends, at, before = list[int](), 0, 0
    while at < len(tokens):
        at = min(int(np.searchsorted(cumulative, before + max_tokens, side="right")), at + sequences)
        ends.append(at)
        before = int(cumulative[at - 1])
    return ends
