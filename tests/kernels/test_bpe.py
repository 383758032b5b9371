"""Byte-pair merging: a worked example, the plain form, and the package `tokenizers`."""

from __future__ import annotations

import json

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers

from firth.kernels import _native, bpe

MARKS = {"plain": {}, "prefix": {"prefix": "##"}, "suffix": {"suffix": "</w>"}}
ENGINE = {
    "plain": {},
    "prefix": {"continuing_subword_prefix": "##"},
    "suffix": {"end_of_word_suffix": "</w>"},
}
# Few letters: many ties, overlaps (aaa) and tokens that two pairs spell.
words = st.dictionaries(
    st.one_of(st.text("ab", min_size=1, max_size=9), st.text("abcdéß中", min_size=1, max_size=8)),
    st.integers(1, 5),
    min_size=1,
    max_size=30,
)


def tokenizers_model(counts: dict[str, int], mark: str, size: int, min_count: int) -> tuple[dict[str, int], list]:
    engine = Tokenizer(models.BPE(**ENGINE[mark]))
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, special_tokens=["<s>"], show_progress=False, **ENGINE[mark]
    )
    engine.train_from_iterator((word for word, count in counts.items() for _ in range(count)), trainer)
    model = json.loads(engine.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def renumbered(begin: bpe.Start, first: list[str]) -> bpe.Start:
    """The same start with other ids: that package numbers marked characters as its hash table has them."""
    assert sorted(first) == sorted(begin.tokens)
    to = np.array([first.index(token) for token in begin.tokens] + [-1], dtype=np.int32)
    return begin._replace(tokens=first, usual=to[begin.usual], marked=to[begin.marked])


@given(words, st.sampled_from(sorted(MARKS)), st.integers(0, 80), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_native_and_twin_give_the_merges_of_tokenizers(
    counts: dict[str, int], mark: str, more: int, min_count: int
) -> None:
    found = bpe.Words.of(counts)
    begin = bpe.start(["<s>"], bpe.alphabet(found), **MARKS[mark])
    size = len(begin.tokens) + more
    vocab, merges = tokenizers_model(counts, mark, size, min_count)
    same = renumbered(begin, sorted(vocab, key=vocab.__getitem__)[: len(begin.tokens)])
    learned = bpe.learn(found, same, size, min_count)
    assert learned == bpe.learn_twin(found, same, size, min_count)
    assert {token: id for id, token in enumerate(learned.tokens)} == vocab
    assert [(learned.tokens[merge.left], learned.tokens[merge.right]) for merge in learned.merges] == merges
    if mark == "plain":
        assert same.tokens == begin.tokens  # there the numbers are the same without help


def test_the_example_of_sennrich_haddow_and_birch() -> None:
    """Their figure 1, with the end of word in the last letter: e s, es t, l o, lo w, …"""
    found = bpe.Words.of({"low": 5, "lower": 2, "newest": 6, "widest": 3})
    begin = bpe.start([], bpe.alphabet(found), suffix="</w>")
    learned = bpe.learn(found, begin, len(begin.tokens) + 4, 2)
    spelled = [(learned.tokens[merge.left], learned.tokens[merge.right], merge.times) for merge in learned.merges]
    assert spelled == [("e", "s", 9), ("es", "t</w>", 9), ("l", "o", 7), ("e", "w", 6)]


def test_a_pair_that_two_merges_spell() -> None:
    """ab + c and a + bc are one token; the counts of that package, stale ones too, decide what follows."""
    counts = {"abc": 5, "bc": 9, "ab": 3, "xabc": 4, "abcx": 4, "xbc": 2}
    vocab, merges = tokenizers_model(counts, "plain", 30, 1)
    found = bpe.Words.of(counts)
    begin = bpe.start(["<s>"], bpe.alphabet(found))
    learned = bpe.learn(found, begin, 30, 1)
    assert {token: id for id, token in enumerate(learned.tokens)} == vocab
    assert [(learned.tokens[merge.left], learned.tokens[merge.right]) for merge in learned.merges] == merges


def test_alphabet_and_places() -> None:
    found = bpe.alphabet(bpe.Words.of({"aba": 2, "c": 3, "中é": 1}))
    assert [chr(code) for code in found.codes] == ["a", "b", "c", "é", "中"]
    assert found.counts.tolist() == [4, 2, 3, 1, 1]
    assert found.places.tolist() == [7, 2, 5, 6, 1]  # first = 1, later = 2, last = 4
    assert [chr(code) for code in bpe.kept(found, 4).codes] == ["a", "b", "c", "é"]
    begin = bpe.start(["a", "<s>"], bpe.kept(found, 3), prefix="##")
    assert begin.tokens == ["a", "<s>", "b", "c", "##a", "##b"]
    assert (begin.usual.tolist(), begin.marked.tolist()) == ([0, 2, 3], [4, 5, -1])


def test_characters_left_out_bring_their_neighbours_together() -> None:
    found = bpe.Words.of({"a中b": 4})
    begin = bpe.start([], bpe.kept(bpe.alphabet(found), 2))
    assert begin.tokens == ["a", "b"]
    learned = bpe.learn(found, begin, 10, 1)
    assert learned.tokens == ["a", "b", "ab"] and learned == bpe.learn_twin(found, begin, 10, 1)


def test_progress_is_told() -> None:
    found = bpe.Words.of({"".join(map(chr, range(97 + i, 101 + i))): i + 1 for i in range(22)})
    told: list[int] = []
    begin = bpe.start([], bpe.alphabet(found))
    learned = bpe.learn(found, begin, 60, 1, told.append)
    assert told == [len(learned.merges)]


def test_wrong_arrays_are_refused() -> None:
    counts = np.ones(1, dtype=np.int64)
    codes, ids = np.array([97], dtype=np.uint32), np.zeros(1, dtype=np.int32)
    for text, numbers, tokens, characters, first in [
        (b"a\0b\0", counts, b"a\0", codes, ids),
        (b"a", counts, b"a\0", codes, ids),
        (b"a\0", counts, b"a\0", codes, ids + 1),
        (b"a\0", counts, b"a\0", codes * 0 + 0x110000, ids),
        (b"a\0", counts, b"a\0a\0", codes, ids),
    ]:
        with pytest.raises(ValueError, match=r"must|need"):
            _native.BpeTrainer(text, numbers, tokens, characters, first, first, False, "")
