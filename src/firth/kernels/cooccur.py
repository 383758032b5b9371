"""Co-occurrence counts within a window: the weights by distance, the native kernel and its NumPy twin.

The native kernel (cpp/cooccur.cpp) is `PairSums`; `count_twin` computes the same. Weights are integer multiples of
1/scale, so sums are exact in any order.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

SIDES = ("both", "left", "right")
WEIGHTINGS = ("flat", "harmonic", "dynamic")
MAX_WINDOW = 256
MAX_FRACTION_BITS = 32  # for 1/distance when its common denominator is too large

PairSums = _native.PairSums


class Weights(NamedTuple):
    """A context at distance d counts `integers[d] / scale`; integers[0] is unused."""

    integers: NDArray[np.int64]
    scale: int


def weights(weighting: str, window: int, tokens: int) -> Weights:
    """Return the weights by distance.

    flat: 1. harmonic: 1/d (GloVe). dynamic: (window − d + 1)/window, the mean weight of word2vec's dynamic window.

    1/d is exact as long as the sum over all tokens fits 63 bits: windows of up to 22 for five billion tokens, of 26 for
    ten million. Beyond that it is rounded to a multiple of 2⁻³², or of the smallest power of two whose sums fit.
    """
    distances = range(1, window + 1)
    if weighting == "flat":
        return Weights(np.ones(window + 1, dtype=np.int64), 1)
    if weighting == "dynamic":
        return Weights(np.array([0, *range(window, 0, -1)], dtype=np.int64), window)
    max_sum = math.ceil(2 * sum(1 / d for d in distances) * max(tokens, 1))  # the largest sum a pair can have
    common = math.lcm(*distances)
    scale = common if common * max_sum < 2**63 else 2 ** min(MAX_FRACTION_BITS, 62 - max_sum.bit_length())
    return Weights(np.array([0, *(round(scale / d) if scale != common else scale // d for d in distances)]), scale)


def subsample_mask(ids: NDArray[np.int32], keep: NDArray[np.uint32], seed: int) -> NDArray[np.bool_]:
    """Return which tokens subsampling keeps, decided by a hash of the token's position (splitmix64)."""
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
    """Return the dense matrix, words × contexts: the summed weights of all position pairs within one document."""
    documents = np.repeat(np.arange(len(starts) - 1), np.diff(starts))
    if keep is not None:
        mask = subsample_mask(ids, keep, seed)
        ids, documents = ids[mask], documents[mask]
    sums = np.zeros((words, words), dtype=np.int64)
    for distance in range(1, len(window.integers)):
        before, after = ids[:-distance], ids[distance:]
        same_document = documents[:-distance] == documents[distance:]
        if side != "left":
            np.add.at(sums, (before[same_document], after[same_document]), window.integers[distance])
        if side != "right":
            np.add.at(sums, (after[same_document], before[same_document]), window.integers[distance])
    return sums / window.scale
