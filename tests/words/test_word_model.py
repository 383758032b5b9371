"""Texts as means of their words' vectors."""

from __future__ import annotations

import math

import numpy as np
import pytest

import firth


@pytest.fixture(scope="module")
def model() -> firth.Model:
    texts = ["the king and the queen", "the bread and the cheese", "the the the river"] * 10
    return firth.SkipGram(dim=8, epochs=1).fit(firth.Corpus(texts))


def test_smoothed_means_weigh_words_by_their_rarity(model):
    counts, rows = model.vocabulary.counts, [model.vectors.row(word) for word in ("the", "king", "king")]
    weights = 0.1 / (0.1 + counts[rows] / counts.sum())
    expected = (weights[:, None] * model.vectors.matrix[rows]).sum(axis=0) / weights.sum()
    pooled = model.pool(["the king unheard king"], smoothing=0.1)
    np.testing.assert_allclose(pooled.matrix[0], expected, rtol=1e-6)
    assert (pooled.known.tolist(), pooled.unknown.tolist()) == ([3], [1])
    assert weights[0] < weights[1]


def test_without_smoothing_it_is_the_mean(model):
    rows = [model.vectors.row(word) for word in ("the", "king")]
    assert np.array_equal(model.embed(["the king"])[0], model.vectors.matrix[rows].mean(axis=0))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_smoothing_is_a_number_from_0_on(model, wrong):
    with pytest.raises(firth.FirthError, match=r"smoothing must be at least 0"):
        model.pool(["the king"], wrong)


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters"])
def test_many_texts_are_read_natively_with_the_same_words(monkeypatch, tokenizer):
    texts = [
        "The king and the queen",
        "",
        "nobody knows THEM: the sea,the king's sea",
        "a\x00b \ud800 the\n\nsea",
        "…",
    ] * 40
    model = firth.SkipGram(dim=8, epochs=1, min_count=50, tokenizer=tokenizer).fit(firth.Corpus(["the sea"] * 50))
    plain = model.word_ids(texts, 2)
    assert plain.known.sum() and plain.unknown.sum()
    monkeypatch.setattr("firth.words.word_model.NATIVE_MIN_CHARACTERS", 0)
    for array, expected in zip(model.word_ids(texts, 2), plain, strict=True):
        assert array.dtype == expected.dtype and np.array_equal(array, expected)
