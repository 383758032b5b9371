"""BPE training: a worked example, the plain Python twin, and the package `tokenizers`."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tokenizers import Tokenizer, models, trainers

from firth.kernels import _native, bpe

AFFIXES = {"plain": {}, "prefix": {"prefix": "##"}, "suffix": {"suffix": "</w>"}}
ENGINE: dict[str, Any] = {
    "plain": {},
    "prefix": {"continuing_subword_prefix": "##"},
    "suffix": {"end_of_word_suffix": "</w>"},
}
# Few letters give many ties, overlaps (aaa) and tokens that two different pairs spell.
words_with_counts = st.dictionaries(
    st.one_of(st.text("ab", min_size=1, max_size=9), st.text("abcdéß中", min_size=1, max_size=8)),
    st.integers(1, 5),
    min_size=1,
    max_size=30,
)


def tokenizers_model(counts: dict[str, int], affix: str, size: int, min_count: int) -> tuple[dict[str, int], list[Any]]:
    """Return the vocabulary and merges that the package `tokenizers` trains."""
    engine = Tokenizer(models.BPE(**ENGINE[affix]))
    trainer = trainers.BpeTrainer(
        vocab_size=size, min_frequency=min_count, special_tokens=["<s>"], show_progress=False, **ENGINE[affix]
    )
    engine.train_from_iterator((word for word, count in counts.items() for _ in range(count)), trainer)
    model = json.loads(engine.to_str())["model"]
    return model["vocab"], [tuple(pair) for pair in model["merges"]]


def renumbered(initial: bpe.InitialTokens, first: list[str]) -> bpe.InitialTokens:
    """Return the initial tokens in the order of `first`: `tokenizers` numbers affixed characters by its hash table."""
    assert sorted(first) == sorted(initial.tokens)
    to = np.array([first.index(token) for token in initial.tokens] + [-1], dtype=np.int32)
    return initial._replace(tokens=first, plain_ids=to[initial.plain_ids], affixed_ids=to[initial.affixed_ids])


@given(words_with_counts, st.sampled_from(sorted(AFFIXES)), st.integers(0, 80), st.integers(1, 4))
@settings(max_examples=200, deadline=None)
def test_merges_equal_tokenizers(counts: dict[str, int], affix: str, more: int, min_count: int) -> None:
    words = bpe.Words.of(counts)
    initial = bpe.initial_tokens(["<s>"], bpe.alphabet(words), **AFFIXES[affix])
    size = len(initial.tokens) + more
    vocab, merges = tokenizers_model(counts, affix, size, min_count)
    same = renumbered(initial, sorted(vocab, key=vocab.__getitem__)[: len(initial.tokens)])
    trained = bpe.train(words, same, size, min_count)
    assert trained == bpe.train_twin(words, same, size, min_count)
    assert {token: id for id, token in enumerate(trained.tokens)} == vocab
    assert [(trained.tokens[merge.left], trained.tokens[merge.right]) for merge in trained.merges] == merges
    if affix == "plain":
        assert same.tokens == initial.tokens  # without affixes the ids agree without renumbering


def test_example_of_sennrich_haddow_and_birch() -> None:
    """Figure 1 of the paper, with the end-of-word mark in the last letter: e s, es t, l o, lo w, …"""
    words = bpe.Words.of({"low": 5, "lower": 2, "newest": 6, "widest": 3})
    initial = bpe.initial_tokens([], bpe.alphabet(words), suffix="</w>")
    trained = bpe.train(words, initial, len(initial.tokens) + 4, 2)
    spelled = [(trained.tokens[merge.left], trained.tokens[merge.right], merge.times) for merge in trained.merges]
    assert spelled == [("e", "s", 9), ("es", "t</w>", 9), ("l", "o", 7), ("e", "w", 6)]


def test_token_spelled_by_two_merges() -> None:
    """ab + c and a + bc are one token; the counts of `tokenizers`, stale ones included, decide what follows."""
    counts = {"abc": 5, "bc": 9, "ab": 3, "xabc": 4, "abcx": 4, "xbc": 2}
    vocab, merges = tokenizers_model(counts, "plain", 30, 1)
    words = bpe.Words.of(counts)
    initial = bpe.initial_tokens(["<s>"], bpe.alphabet(words))
    trained = bpe.train(words, initial, 30, 1)
    assert {token: id for id, token in enumerate(trained.tokens)} == vocab
    assert [(trained.tokens[merge.left], trained.tokens[merge.right]) for merge in trained.merges] == merges


def test_alphabet_and_positions() -> None:
    characters = bpe.alphabet(bpe.Words.of({"aba": 2, "c": 3, "中é": 1}))
    assert [chr(code) for code in characters.codes] == ["a", "b", "c", "é", "中"]
    assert characters.counts.tolist() == [4, 2, 3, 1, 1]
    assert characters.positions.tolist() == [7, 2, 5, 6, 1]  # first = 1, later = 2, last = 4
    assert [chr(code) for code in bpe.most_frequent(characters, 4).codes] == ["a", "b", "c", "é"]
    initial = bpe.initial_tokens(["a", "<s>"], bpe.most_frequent(characters, 3), prefix="##")
    assert initial.tokens == ["a", "<s>", "b", "c", "##a", "##b"]
    assert (initial.plain_ids.tolist(), initial.affixed_ids.tolist()) == ([0, 2, 3], [4, 5, -1])


def test_neighbors_of_dropped_characters_are_adjacent() -> None:
    words = bpe.Words.of({"a中b": 4})
    initial = bpe.initial_tokens([], bpe.most_frequent(bpe.alphabet(words), 2))
    assert initial.tokens == ["a", "b"]
    trained = bpe.train(words, initial, 10, 1)
    assert trained.tokens == ["a", "b", "ab"] and trained == bpe.train_twin(words, initial, 10, 1)


def test_progress_is_reported() -> None:
    words = bpe.Words.of({"".join(map(chr, range(97 + i, 101 + i))): i + 1 for i in range(22)})
    reported: list[int] = []
    initial = bpe.initial_tokens([], bpe.alphabet(words))
    trained = bpe.train(words, initial, 60, 1, reported.append)
    assert reported == [len(trained.merges)]


def test_invalid_arrays_raise() -> None:
    counts = np.ones(1, dtype=np.int64)
    codes, ids = np.array([97], dtype=np.uint32), np.zeros(1, dtype=np.int32)
    for text, word_counts, tokens, characters, first in [
        (b"a\0b\0", counts, b"a\0", codes, ids),
        (b"a", counts, b"a\0", codes, ids),
        (b"a\0", counts, b"a\0", codes, ids + 1),
        (b"a\0", counts, b"a\0", codes * 0 + 0x110000, ids),
        (b"a\0", counts, b"a\0a\0", codes, ids),
    ]:
        with pytest.raises(ValueError, match="must"):
            _native.BpeTrainer(text, word_counts, tokens, characters, first, first, False, "")
