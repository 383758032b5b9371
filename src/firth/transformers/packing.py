"""Packed batches: pairs of texts concatenated without padding.

On a GPU every batch has the same shape, so that the network is compiled once. Unused tokens are filled with padding
sequences, and unused slots of masked tokens and pairs get weight 0.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.special_tokens import Template
from firth.transformers.masking import Masking
from firth.transformers.next_sentence_pairs import ALONE, Numbers, Pairs


class Shape(NamedTuple):
    """Array sizes of a fixed-shape batch."""

    tokens: int
    sequences: int
    masked: int


class PackedBatch(NamedTuple):
    """A packed batch.

    Σ weight · loss is the mean over masked tokens plus the mean over pairs, times the number of tokens.
    """

    ids: NDArray[np.int32]  # one row per token
    positions: NDArray[np.int32]
    segments: NDArray[np.int32]  # 0 for A, 1 for B
    starts: NDArray[np.int32]  # of the sequences, with the end of the last
    slots: NDArray[np.int64]  # masked rows
    targets: NDArray[np.int64]  # their original ids
    slot_weights: NDArray[np.float32]
    firsts: NDArray[np.int64]  # first row of each pair
    labels: NDArray[np.int64]
    pair_weights: NDArray[np.float32]


def pack(
    text: NDArray[np.int32],
    pairs: Pairs,
    template: Template,
    pad: int,
    masking: Masking,
    seed: int,
    shape: Shape | None = None,
    longest: int = 0,
) -> PackedBatch:
    """Return a masked batch of pairs; with `shape`, padded to it by fillers of at most `longest` tokens."""
    pairs = pairs.take(np.argsort(pairs.tokens(template), kind="stable"))  # a CPU batches equal lengths
    lengths = pairs.tokens(template)
    starts = np.concatenate([[0], np.cumsum(lengths)])
    total = int(starts[-1])
    ids, origin = np.zeros(total, np.int32), np.full(total, -1, np.int64)
    alone, ends = pairs.length[:, 1] == 0, starts[1:]
    first = starts[:-1] + np.where(alone, len(template.before), len(template.pair_before))
    second = first + pairs.length[:, 0] + len(template.between)
    rows, source = runs(np.stack([first, second], axis=1), pairs.length), runs(pairs.begin, pairs.length)
    ids[rows], origin[rows] = text[source], source
    for special, begin, which in (
        (template.before, starts[:-1], alone),
        (template.after, ends - len(template.after), alone),
        (template.pair_before, starts[:-1], ~alone),
        (template.between, second - len(template.between), ~alone),
        (template.pair_after, ends - len(template.pair_after), ~alone),
    ):
        for offset, id in enumerate(special):
            ids[begin[which] + offset] = id
    masked = masking(ids, origin, seed)
    second_lengths = np.where(alone, 0, ends - second) * template.segments
    segments = np.repeat(
        np.tile(np.array([0, 1], np.int32), len(pairs)), np.stack([lengths - second_lengths, second_lengths], 1).flat
    )
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
    return fixed(batch, shape, pad, longest) if shape else batch


def runs(begin: Numbers, length: Numbers) -> Numbers:
    """Return begin, begin + 1, … of each run, concatenated."""
    begin, length = begin.ravel(), length.ravel()
    ends = np.cumsum(length)
    return np.repeat(begin - ends + length, length) + np.arange(ends[-1] if len(ends) else 0)


def fixed(batch: PackedBatch, shape: Shape, pad: int, longest: int) -> PackedBatch:
    """Return the batch padded to a shape; extra sequences are empty."""
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
    """Truncate or pad values to `length`."""
    padded = np.full(length, value, values.dtype)
    padded[: len(values)] = values[:length]
    return padded


def batch_ends(tokens: Numbers, max_tokens: int, sequences: int) -> list[int]:
    """Return the ends of consecutive batches with at most `max_tokens` tokens and `sequences` sequences."""
    cumulative = np.cumsum(tokens)
    ends, at, before = list[int](), 0, 0
    while at < len(tokens):
        at = min(int(np.searchsorted(cumulative, before + max_tokens, side="right")), at + sequences)
        ends.append(at)
        before = int(cumulative[at - 1])
    return ends
