"""Which tokens are hidden, and behind what (Devlin et al. 2019, 3.1 and appendix A.1).

Each decision is a hash of seed, epoch and the token's place in the text: another choice in each epoch, the same
whatever the batches, the processes and where a run was resumed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.predict_twin import GOLDEN, MASK, mix

WHETHER, HOW, WHAT = range(3)  # what is decided of a token


class Masked(NamedTuple):
    """A batch with some of its tokens hidden."""

    ids: NDArray[np.int32]
    slots: NDArray[np.int64]  # which were chosen
    targets: NDArray[np.int64]  # what stood there


@dataclass(frozen=True)
class Masking:
    """`rate` of the tokens are chosen, or of the words with all their pieces; of the chosen ones `share` become [MASK],
    half of the rest another token at random, and the other half stay as they are. Special tokens are never chosen, nor
    put anywhere but for [MASK]."""

    mask: int  # id of [MASK]
    ordinary: NDArray[np.int32]  # ids of the tokens that are not special
    maskable: NDArray[np.bool_]  # by id
    continues_word: NDArray[np.bool_]  # by id: it continues a word
    rate: float = 0.15
    share: float = 0.8
    whole_words: bool = False

    @classmethod
    def of(cls, tokenizer: SubwordTokenizer, rate: float, share: float, whole_words: bool) -> Masking:
        special = set(tokenizer.special_tokens.values())
        ordinary = np.array([id for id in tokenizer.tokens if id not in special], np.int32)
        maskable, continues_word = np.zeros(len(tokenizer), bool), np.zeros(len(tokenizer), bool)
        maskable[ordinary] = True
        continues_word[[id for token, id in tokenizer.ids.items() if token.startswith("##")]] = True
        return cls(tokenizer.special_id("[MASK]"), ordinary, maskable, continues_word, rate, share, whole_words)

    def __call__(self, ids: NDArray[np.int32], positions: NDArray[np.int64], seed: int) -> Masked:
        """`places` are those of the tokens in the text; what stands at places below 0 was added to it."""
        maskable = self.maskable[ids] & (positions >= 0)
        deciding_positions = positions
        if self.whole_words:  # a word's first piece decides for all
            continuation = self.continues_word[ids] & maskable
            continuation[1:] &= maskable[:-1]
            first = np.where(continuation, 0, np.arange(len(ids)))
            deciding_positions = positions[np.maximum.accumulate(first)]
        selected = np.flatnonzero(maskable & (uniform(seed, WHETHER, deciding_positions) < self.rate))
        draw = uniform(seed, HOW, positions[selected])
        targets = ids[selected]
        masked_ids = ids.copy()
        masked_ids[selected[draw < self.share]] = self.mask
        replaced = selected[(draw >= self.share) & (draw < (1 + self.share) / 2)]
        replacement_rows = uniform(seed, WHAT, positions[replaced]) * len(self.ordinary)
        masked_ids[replaced] = self.ordinary[replacement_rows.astype(np.int64)]
        return Masked(masked_ids, selected, targets.astype(np.int64))

    def max_masked(self, tokens: int) -> int:
        """More of so many tokens are hardly ever chosen: seven deviations, twice as wide where whole words are."""
        deviation = (tokens * self.rate * (1 - self.rate)) ** 0.5 * (2 if self.whole_words else 1)
        return min(tokens, int(tokens * self.rate + 7 * deviation) + 1)


def seed_of(seed: int, epoch: int) -> int:
    return mix((seed * GOLDEN + epoch + 1) & MASK)


def uniform(seed: int, decision: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """A number from 0 to 1 for each place: `mix` of predict_twin over arrays."""
    x = positions.astype(np.uint64)
    x *= np.uint64(GOLDEN)
    x += np.uint64(mix((seed + decision) & MASK))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
