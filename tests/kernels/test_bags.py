"""Texts as means of their WordPieces' rows: native, in plain Python, and as the package `tokenizers` cuts them."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firth.data.subword_tokenizer import SubwordTokenizer, wordpiece_engine
from firth.kernels import pieces
from firth.kernels.bags import WordPieces, cut_twin, means_twin

TRICKY = "abcZ##[UNK]. 'é\u0301İßΣ中文한\n\t\0\ufffd\u200d🙂1"
TOKENS = ["[PAD]", "[UNK]", "#", "##", "###", "[", "]", "un", "##k", ".", "'", "a", "b", "##b", "##bc", "ab", "##c"]
TOKENS += ["z", "##z", "é", "##é", "e", "##e", "中", "##中", "i", "##ss", "ß", "σ", "ᄒ", "##ᅡ"]
TABLE = np.random.default_rng(1).normal(size=(len(TOKENS), 7)).astype(np.float32)
texts = st.lists(st.one_of(st.text(alphabet=TRICKY, max_size=40), st.text(max_size=20)), max_size=5)


def truth(given: list[str], fold: bool) -> list[list[int]]:
    engine = wordpiece_engine({token: id for id, token in enumerate(TOKENS)}, fold, ())
    return [[id for id in ids if id != 1] for ids in SubwordTokenizer(engine).ids_batch(given, special=False)]


@given(texts, st.booleans())
@settings(max_examples=200, deadline=None)
def test_pieces_are_those_of_tokenizers(given: list[str], fold: bool) -> None:
    ids, ends = WordPieces(TOKENS, fold, 1).ids(given)
    assert [part.tolist() for part in np.split(ids, ends)][: len(given)] == truth(given, fold)


@given(texts, st.booleans(), st.integers(1, 3))
@settings(max_examples=100, deadline=None)
def test_means_are_the_twins(given: list[str], fold: bool, threads: int) -> None:
    vocabulary = {token: id for id, token in enumerate(TOKENS) if id != 1}
    cut = [[cut_twin(word, vocabulary) for word in pieces.bert_twin(text, fold)] for text in given]
    ids = [[id for word in words for id in word or ()] for words in cut]
    if ids != truth(given, fold):  # rare code points that Python's Unicode knows otherwise: see kernels/pieces.py
        return
    found = WordPieces(TOKENS, fold, 1).means(given, TABLE, threads)
    np.testing.assert_allclose(found.rows, means_twin(ids, TABLE), rtol=1e-6, atol=1e-7)
    assert found.known.tolist() == list(map(len, ids))
    assert found.unknown.tolist() == [sum(word is None for word in words) for words in cut]


@pytest.mark.parametrize("letter", ["b", "é"])  # bytes are not what counts
def test_words_of_100_characters_and_no_more(letter: str) -> None:
    found = WordPieces(TOKENS, False, 1).means([letter * 100, letter * 101], TABLE, 1)
    assert found.known.tolist() == [100, 0] and found.unknown.tolist() == [0, 1]


def test_many_texts_on_several_threads() -> None:
    given = ["ab bc . un" * (i % 7) for i in range(1000)]
    one, four = (WordPieces(TOKENS, True, 1).means(given, TABLE, threads) for threads in (1, 4))
    assert all(np.array_equal(a, b) for a, b in zip(one, four, strict=True))
    assert one.rows[0].tolist() == [0.0] * 7


def test_wrong_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="a row for each token"):
        WordPieces(TOKENS, True, 1).means(["a"], TABLE[:-1], 1)
    assert WordPieces([], True, 0).ids(["a"])[0].tolist() == []
