"""Which tokens are masked: how many, which never, and always the same."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses
from tiny import texts, tiny_bert

import firth
from firth.data.special_tokens import BERT_NAMES
from firth.data.subwords import WordPiece
from firth.data.world import World
from firth.kernels.hashing import GOLDEN, MASK, mix
from firth.transformers.bert_model import BertModel
from firth.transformers.masking import Masking, seed_of, uniform

TEXTS = list(World(seed=2).sentences(400))


@pytest.fixture(scope="module")
def tokenizer():
    return WordPiece(size=300).train(firth.Corpus(TEXTS))


def masking(tokenizer, rate: float = 0.15, share: float = 0.8, whole_words: bool = False) -> Masking:
    return Masking.of(tokenizer, rate, share, whole_words)


def stream(tokenizer, length: int) -> np.ndarray:
    """Tokens of any kind, the special ones among them; neighbors are not words."""
    return np.random.default_rng(1).integers(len(tokenizer), size=length).astype(np.int32)


def within(count: int, of: int, chance: float, deviations: float = 4.5) -> bool:
    """Whether so many are what a binomial gives (outside one time in 100,000)."""
    return bool(abs(count - of * chance) <= deviations * (of * chance * (1 - chance)) ** 0.5 + 1)


@pytest.mark.parametrize("whole_words", [False, True])
@pytest.mark.parametrize(("rate", "share"), [(0.15, 0.8), (0.15, 1.0), (0.4, 0.5)])
def test_shares_are_those_of_the_paper(tokenizer, rate, share, whole_words):
    ids, positions = stream(tokenizer, 200_000), np.arange(200_000)
    special = np.isin(ids, [tokenizer.ids[token] for token in BERT_NAMES.values()])
    masked_batch = masking(tokenizer, rate, share, whole_words)(ids, positions, seed=3)
    selected = masked_batch.slots
    assert not special[selected].any()
    # Words of several pieces are chosen together: pieces spread twice as widely.
    assert within(len(selected), (~special).sum(), rate, 9 if whole_words else 4.5)
    np.testing.assert_array_equal(masked_batch.targets, ids[selected])
    new_ids = masked_batch.ids[selected]
    masked, unchanged = new_ids == tokenizer.ids["[MASK]"], new_ids == ids[selected]
    replaced = ~masked & ~unchanged
    ordinary = len(tokenizer) - len(BERT_NAMES)
    assert within(masked.sum(), len(selected), share)
    assert within(replaced.sum(), len(selected), (1 - share) / 2 * (1 - 1 / ordinary))
    assert within(unchanged.sum(), len(selected), (1 - share) / 2 * (1 + 1 / ordinary))
    assert not np.isin(new_ids[replaced], [tokenizer.ids[token] for token in BERT_NAMES.values()]).any()
    if replaced.sum() > 1000:
        assert len(np.unique(new_ids[replaced])) > 0.9 * ordinary
    rest = np.setdiff1d(np.arange(len(ids)), selected)
    np.testing.assert_array_equal(masked_batch.ids[rest], ids[rest])
    assert len(selected) <= masking(tokenizer, rate, share, whole_words).max_masked(len(ids))


def test_what_was_added_to_the_text_is_never_masked(tokenizer):
    ids = stream(tokenizer, 10_000)
    positions = np.where(np.arange(10_000) % 3 == 0, -1, np.arange(10_000))
    assert (masking(tokenizer, rate=0.9)(ids, positions, seed=1).slots % 3 != 0).all()


def test_a_token_is_masked_by_its_place_not_by_its_batch(tokenizer):
    ids, positions = stream(tokenizer, 1000), np.arange(1000)
    in_order = masking(tokenizer)(ids, positions, seed=5)
    order = np.random.default_rng(0).permutation(1000)
    mixed = masking(tokenizer)(ids[order], positions[order], seed=5)
    assert sorted(order[mixed.slots]) == in_order.slots.tolist()
    np.testing.assert_array_equal(mixed.ids, in_order.ids[order])
    assert masking(tokenizer)(ids, positions, seed=6).slots.tolist() != in_order.slots.tolist()
    assert seed_of(1, 0) != seed_of(1, 1) != seed_of(2, 1)


def test_the_pieces_of_a_word_are_masked_together(tokenizer):
    encodings = tokenizer.encode_batch(TEXTS, special=False)
    ids = np.array([id for each in encodings for id in each.ids], np.int32)
    continues = np.array([token.startswith("##") for each in encodings for token in each.tokens])
    assert 0.2 < continues.mean() < 0.8
    selected = np.zeros(len(ids), bool)
    selected[masking(tokenizer, whole_words=True)(ids, np.arange(len(ids)), seed=1).slots] = True
    assert (selected[1:] == selected[:-1])[continues[1:]].all()
    alone = np.zeros(len(ids), bool)
    alone[masking(tokenizer)(ids, np.arange(len(ids)), seed=1).slots] = True
    assert not (alone[1:] == alone[:-1])[continues[1:]].all()


def test_chance_is_the_hash_that_the_kernels_use():
    numbers = uniform(7, 1, np.array([0, 1, 12345]))
    start = mix((7 + 1) & MASK)
    expected = [(mix((start + position * GOLDEN) & MASK) >> 11) / 2**53 for position in (0, 1, 12345)]
    assert numbers.tolist() == expected


def test_mask_of_bert_stands_for_the_mask_of_any_tokenizer():
    base = tiny_bert()
    special = ("[PAD]", "[UNK]", "[CLS]", "[SEP]", "<mask>")
    tokenizer = firth.WordPiece(size=600, special_tokens=special).train(texts())
    model = BertModel(base.method, base.net, tokenizer, base.pooling, {})
    assert model.fill("the [MASK] sleeps") == model.fill("the <mask> sleeps") != model.fill("a <mask> of the king")
    with refuses("missing_mask", mask="<mask>"):
        model.fill("the king sleeps")
