"""WordPiece bags: the native kernel against plain Python and the package `tokenizers`."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.tokenizer_engines import WordPieceText, wordpiece_engine
from firth.kernels import pieces
from firth.kernels.bags import WordPieces, means_twin, wordpiece_twin

TRICKY = "abcZ##[UNK]. 'é\u0301İßΣ中文한\n\t\0\ufffd\u200d🙂1"
TOKENS = ["[PAD]", "[UNK]", "#", "##", "###", "[", "]", "un", "##k", ".", "'", "a", "b", "##b", "##bc", "ab", "##c"]
TOKENS += ["z", "##z", "é", "##é", "e", "##e", "中", "##中", "i", "##ss", "ß", "σ", "ᄒ", "##ᅡ"]
TABLE = np.random.default_rng(1).normal(size=(len(TOKENS), 7)).astype(np.float32)
texts = st.lists(st.one_of(st.text(alphabet=TRICKY, max_size=40), st.text(max_size=20)), max_size=5)


def expected_ids(given: list[str], fold: bool) -> list[list[int]]:
    """Return the token ids of the package `tokenizers`, without unknown tokens."""
    engine = wordpiece_engine({token: id for id, token in enumerate(TOKENS)}, WordPieceText(fold), ())
    return [[id for id in ids if id != 1] for ids in SubwordTokenizer(engine).ids_batch(given, special=False)]


@given(texts, st.booleans())
@settings(max_examples=200, deadline=None)
def test_ids_equal_tokenizers(given: list[str], fold: bool) -> None:
    ids, ends = WordPieces(TOKENS, fold, 1).ids(given)
    assert [part.tolist() for part in np.split(ids, ends)][: len(given)] == expected_ids(given, fold)


@given(texts, st.booleans(), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_means_equal_twin(given: list[str], fold: bool, threads: int) -> None:
    vocabulary = {token: id for id, token in enumerate(TOKENS) if id != 1}
    tokenized = [[wordpiece_twin(word, vocabulary) for word in pieces.bert_twin(text, fold)] for text in given]
    ids = [[id for word in words for id in word or ()] for words in tokenized]
    if ids != expected_ids(
        given, fold
    ):  # rare code points that differ in Python's Unicode version: see kernels/pieces.py
        return
    bags = WordPieces(TOKENS, fold, 1).means(given, TABLE, threads)
    np.testing.assert_allclose(bags.rows, means_twin(ids, TABLE), rtol=1e-6, atol=1e-7)
    assert bags.known.tolist() == list(map(len, ids))
    assert bags.unknown.tolist() == [sum(word is None for word in words) for words in tokenized]


@pytest.mark.parametrize("letter", ["b", "é"])  # the limit is in characters, not bytes
def test_words_over_100_characters_are_unknown(letter: str) -> None:
    bags = WordPieces(TOKENS, False, 1).means([letter * 100, letter * 101], TABLE, 1)
    assert bags.known.tolist() == [100, 0] and bags.unknown.tolist() == [0, 1]


def test_result_is_independent_of_threads() -> None:
    given = ["ab bc . un" * (i % 7) for i in range(1000)]
    one, four = (WordPieces(TOKENS, True, 1).means(given, TABLE, threads) for threads in (1, 4))
    assert [a.tobytes() for a in (one.rows, one.known, one.unknown)] == [
        b.tobytes() for b in (four.rows, four.known, four.unknown)
    ]
    assert one.rows[0].tolist() == [0.0] * 7


def test_invalid_shapes_raise() -> None:
    with pytest.raises(ValueError, match="one row per token"):
        WordPieces(TOKENS, True, 1).means(["a"], TABLE[:-1], 1)
    assert WordPieces([], True, 0).ids(["a"])[0].tolist() == []
