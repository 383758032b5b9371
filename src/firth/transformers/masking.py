"""Masking for masked-language modeling (Devlin et al. 2019, 3.1 and appendix A.1).

Each decision is a hash of seed, epoch and the token's position in the text. So it differs between epochs and does not
depend on batches, processes or resumption.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.subword_tokenizer import SubwordTokenizer
from firth.kernels.hashing import GOLDEN, MASK, mix

WHETHER, HOW, WHAT = range(3)  # decisions about a token


class Masked(NamedTuple):
    """A batch with masked tokens."""

    ids: NDArray[np.int32]
    slots: NDArray[np.int64]  # indices of the selected tokens
    targets: NDArray[np.int64]  # original ids of the selected tokens


@dataclass(frozen=True)
class Masking:
    """Selects `rate` of the tokens, or of the words with all their subwords, and masks them.

    `share` of the selected tokens become the mask token, half of the rest a random token, and the other half stay
    unchanged. Special tokens are never selected, and only the mask token is ever inserted.
    """

    mask: int  # id of the mask token
    ordinary: NDArray[np.int32]  # ids of the tokens that are not special
    maskable: NDArray[np.bool_]  # by id
    continues_word: NDArray[np.bool_]  # by id: continues a word
    rate: float = 0.15
    share: float = 0.8
    whole_words: bool = False

    @classmethod
    def of(cls, tokenizer: SubwordTokenizer, rate: float, share: float, whole_words: bool) -> Masking:
        """Return the masking for a tokenizer."""
        special = set(tokenizer.special_tokens.values())
        ordinary = np.array([id for id in tokenizer.tokens if id not in special], np.int32)
        maskable = np.zeros(len(tokenizer), bool)
        maskable[ordinary] = True
        mask = tokenizer.special.require("mask").id
        return cls(mask, ordinary, maskable, tokenizer.continues_word, rate, share, whole_words)

    def __call__(self, ids: NDArray[np.int32], positions: NDArray[np.int64], seed: int) -> Masked:
        """Mask ids at these positions of the text; a position below 0 marks an added special token."""
        maskable = self.maskable[ids] & (positions >= 0)
        deciding_positions = positions
        if self.whole_words:  # the first subword decides for the word
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
        """Return an upper bound of the number of masked tokens: the mean plus 7 standard deviations.

        Whole-word masking doubles the deviation.
        """
        deviation = (tokens * self.rate * (1 - self.rate)) ** 0.5 * (2 if self.whole_words else 1)
        return min(tokens, int(tokens * self.rate + 7 * deviation) + 1)


def seed_of(seed: int, epoch: int) -> int:
    """Return the hash seed of an epoch."""
    return mix((seed * GOLDEN + epoch + 1) & MASK)


def uniform(seed: int, decision: int, positions: NDArray[np.int64]) -> NDArray[np.float64]:
    """Return a number in [0, 1) for each position, by `kernels.hashing.mix` on arrays."""
    x = positions.astype(np.uint64)
    x *= np.uint64(GOLDEN)
    x += np.uint64(mix((seed + decision) & MASK))
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        x ^= x >> np.uint64(shift)
        x *= np.uint64(factor)
    x ^= x >> np.uint64(31)
    return (x >> np.uint64(11)).astype(np.float64) * 2.0**-53
