"""Which tokens are masked: how many, which never, and always the same."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth.data.subword_tokenizer import BERT
from firth.data.subwords import WordPiece
from firth.data.world import World
from firth.kernels.predict_twin import GOLDEN, MASK, mix
from firth.transformers.masking import Masking, seed_of, uniform

TEXTS = list(World(seed=2).sentences(400))


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece(size=300).train(firth.Corpus(TEXTS))


def masking(tokenizer, rate: float = 0.15, share: float = 0.8, whole_words: bool = False) -> Masking:
    return Masking.of(tokenizer, rate, share, whole_words)


def stream(tokenizer, length: int) -> np.ndarray:
    """Tokens of any kind, the special ones among them; neighbours are not words."""
    return np.random.default_rng(1).integers(len(tokenizer), size=length).astype(np.int32)


def within(count: int, of: int, chance: float, deviations: float = 4.5) -> bool:
    """Whether so many are what a binomial gives (outside one time in 100,000)."""
    return abs(count - of * chance) <= deviations * (of * chance * (1 - chance)) ** 0.5 + 1


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize(("rate", "share"), [(0.15, 0.8), (0.15, 1.0), (0.4, 0.5)])
def test_shares_are_those_of_the_paper(tokenizer, rate, share, whole_words):
    ids, places = stream(tokenizer, 200_000), np.arange(200_000)
    special = np.isin(ids, [tokenizer.ids[token] for token in BERT])
    found = masking(tokenizer, rate, share, whole_words)(ids, places, seed=3)
    chosen = found.slots
    assert not special[chosen].any()
    # Words of several pieces are chosen together: pieces spread twice as widely.
    assert within(len(chosen), (~special).sum(), rate, 9 if whole_words else 4.5)
    np.testing.assert_array_equal(found.targets, ids[chosen])
    now = found.ids[chosen]
    masked, kept = now == tokenizer.ids["[MASK]"], now == ids[chosen]
    other = ~masked & ~kept
    ordinary = len(tokenizer) - len(BERT)
    assert within(masked.sum(), len(chosen), share)
    assert within(other.sum(), len(chosen), (1 - share) / 2 * (1 - 1 / ordinary))
    assert within(kept.sum(), len(chosen), (1 - share) / 2 * (1 + 1 / ordinary))
    assert not np.isin(now[other], [tokenizer.ids[token] for token in BERT]).any()
    if other.sum() > 1000:
        assert len(np.unique(now[other])) > 0.9 * ordinary
    rest = np.setdiff1d(np.arange(len(ids)), chosen)
    np.testing.assert_array_equal(found.ids[rest], ids[rest])
    assert len(chosen) <= masking(tokenizer, rate, share, whole_words).max_masked(len(ids))


def test_what_was_added_to_the_text_is_never_masked(tokenizer):
    ids = stream(tokenizer, 10_000)
    places = np.where(np.arange(10_000) % 3 == 0, -1, np.arange(10_000))
    assert (masking(tokenizer, rate=0.9)(ids, places, seed=1).slots % 3 != 0).all()


def test_a_token_is_masked_by_its_place_not_by_its_batch(tokenizer):
    ids, places = stream(tokenizer, 1000), np.arange(1000)
    whole = masking(tokenizer)(ids, places, seed=5)
    order = np.random.default_rng(0).permutation(1000)
    mixed = masking(tokenizer)(ids[order], places[order], seed=5)
    assert sorted(order[mixed.slots]) == whole.slots.tolist()
    np.testing.assert_array_equal(mixed.ids, whole.ids[order])
    assert masking(tokenizer)(ids, places, seed=6).slots.tolist() != whole.slots.tolist()
    assert seed_of(1, 0) != seed_of(1, 1) != seed_of(2, 1)


def test_the_pieces_of_a_word_are_masked_together(tokenizer):
    read = tokenizer.encode_batch(TEXTS, special=False)
    ids = np.array([id for each in read for id in each.ids], np.int32)
    goes_on = np.array([token.startswith("##") for each in read for token in each.tokens])
    assert 0.2 < goes_on.mean() < 0.8
    chosen = np.zeros(len(ids), bool)
    chosen[masking(tokenizer, whole_words=True)(ids, np.arange(len(ids)), seed=1).slots] = True
    assert (chosen[1:] == chosen[:-1])[goes_on[1:]].all()
    alone = np.zeros(len(ids), bool)
    alone[masking(tokenizer)(ids, np.arange(len(ids)), seed=1).slots] = True
    assert not (alone[1:] == alone[:-1])[goes_on[1:]].all()


def test_chance_is_the_hash_that_the_kernels_use():
    found = uniform(7, 1, np.array([0, 1, 12345]))
    start = mix((7 + 1) & MASK)
    expected = [(mix((start + place * GOLDEN) & MASK) >> 11) / 2**53 for place in (0, 1, 12345)]
    assert found.tolist() == expected
