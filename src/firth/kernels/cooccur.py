"""Pairs of words within a window, summed: the weights by distance, and the count in plain NumPy.

The native count (cpp/cooccur.cpp) is `PairSums`; `count_twin` says what it computes. Weights are whole multiples of
1/scale, so that sums are exact in any order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

SIDES = ("both", "left", "right")
WEIGHTINGS = ("flat", "harmonic", "dynamic")
MOST_WINDOW = 256
FINEST = 32  # bits behind the point where 1/distance has no common denominator that fits

PairSums = _native.PairSums


class Weights(NamedTuple):
    """A neighbour at distance d counts `whole[d] / scale`; whole[0] is not used."""

    whole: NDArray[np.int64]
    scale: int


def weights(weighting: str, window: int, tokens: int) -> Weights:
    """flat: 1. harmonic: 1/d (GloVe). dynamic: (window − d + 1)/window, what word2vec's drawn windows are on average.

    1/d is exact where the sums of all tokens fit 63 bits: windows of up to 22 for five billion tokens, of 26 for ten
    million. Beyond, it is rounded to a multiple of 2⁻³², or of the finest power of two whose sums do fit.
    """
    distances = range(1, window + 1)
    if weighting == "flat":
        return Weights(np.ones(window + 1, dtype=np.int64), 1)
    if weighting == "dynamic":
        return Weights(np.array([0, *range(window, 0, -1)], dtype=np.int64), window)
    most = math.ceil(2 * sum(1 / d for d in distances) * max(tokens, 1))  # the largest sum a pair can have
    common = math.lcm(*distances)
    scale = common if common * most < 2**63 else 2 ** min(FINEST, 62 - most.bit_length())
    return Weights(np.array([0, *(round(scale / d) if scale != common else scale // d for d in distances)]), scale)


def kept(ids: NDArray[np.int32], keep: NDArray[np.uint32], seed: int) -> NDArray[np.bool_]:
    """Which tokens stay when frequent words are thinned out: a hash of the token's position decides (splitmix64)."""
    with np.errstate(over="ignore"):
        x = np.uint64(seed) + np.arange(len(ids), dtype=np.uint64) * np.uint64(0x9E3779B97F4A7C15)
        x = (x ^ (x >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
        x = (x ^ (x >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
        x = x ^ (x >> np.uint64(31))
    return np.asarray((x >> np.uint64(32)) <= keep[ids])


def count_twin(
    ids: NDArray[np.int32],
    starts: NDArray[np.int64],
    words: int,
    window: Weights,
    side: str = "both",
    keep: NDArray[np.uint32] | None = None,
    seed: int = 0,
) -> NDArray[np.float64]:
    """The whole matrix, words × contexts: Σ over pairs of places in one document of the weight of their distance."""
    documents = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if keep is not None:
        stays = kept(ids, keep, seed)
        ids, documents = ids[stays], documents[stays]
    sums = np.zeros((words, words), dtype=np.int64)
    for distance in range(1, len(window.whole)):
        before, after = ids[:-distance], ids[distance:]
        together = documents[:-distance] == documents[distance:]
        if side != "left":
            np.add.at(sums, (before[together], after[together]), window.whole[distance])
        if side != "right":
            np.add.at(sums, (after[together], before[together]), window.whole[distance])
    return sums / window.scale
