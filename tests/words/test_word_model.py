"""Text vectors as means of word vectors."""

from __future__ import annotations

import math

import numpy as np
import pandas as pd
import pytest
from refusing import refuses

import firth


@pytest.fixture(scope="module")
def model() -> firth.Model:
    texts = ["the king and the queen", "the bread and the cheese", "the the the river"] * 10
    return firth.SkipGram(dim=8, epochs=1).fit(firth.Corpus(texts))


def test_smoothing_weights_words_by_a_over_a_plus_p(model):
    counts, rows = model.vocabulary.counts, [model.vectors.row(word) for word in ("the", "king", "king")]
    weights = 0.1 / (0.1 + counts[rows] / counts.sum())
    expected = (weights[:, None] * model.vectors.matrix[rows]).sum(axis=0) / weights.sum()
    pooled = model.embed_with_counts(["the king unheard king"], smoothing=0.1)
    np.testing.assert_allclose(pooled.matrix[0], expected, rtol=1e-6)
    assert (pooled.known.tolist(), pooled.unknown.tolist()) == ([3], [1])
    assert weights[0] < weights[1]
    assert np.array_equal(model.embed(["the king unheard king"], smoothing=0.1), pooled.matrix)


@pytest.mark.parametrize(
    "method",
    [
        firth.SkipGram(dim=4, epochs=1),
        firth.CBOW(dim=4, epochs=1),
        firth.GloVe(dim=4, epochs=1, unknown=True),
        firth.PMI(dim=2),
        firth.FastText(dim=4, epochs=1, buckets=50),
    ],
    ids=lambda method: type(method).__name__,
)
def test_every_averaging_model_embeds_with_smoothing(method):
    model = method.fit(firth.Corpus(["the king and the queen", "the the the river"] * 10))
    counts, words = model.vocabulary.counts, ["the", "king"]
    frequencies = np.array([counts[model.vocabulary.id(word)] for word in words]) / counts.sum()
    weights = 0.01 / (0.01 + frequencies)
    expected = weights @ np.stack([model.vectors[word] for word in words]) / weights.sum()
    np.testing.assert_allclose(model.embed(["the king"], smoothing=0.01)[0], expected, rtol=1e-4, atol=1e-6)
    assert not np.array_equal(model.embed(["the king"], smoothing=0.01), model.embed(["the king"]))
    assert not model.embed(["", "???"], smoothing=0.01).any()
    with refuses("invalid_value", option="smoothing", got=-1):
        model.embed(["the king"], smoothing=-1)


def test_without_smoothing_texts_are_plain_means(model):
    rows = [model.vectors.row(word) for word in ("the", "king")]
    assert np.array_equal(model.embed(["the king"])[0], model.vectors.matrix[rows].mean(axis=0))


@pytest.mark.parametrize("wrong", [-1.0, math.nan, math.inf])
def test_smoothing_must_be_finite_and_not_negative(model, wrong):
    with refuses("invalid_value", option="smoothing") as refused:
        model.embed_with_counts(["the king"], wrong)
    assert str(refused.value.values["got"]) == str(wrong)


def test_inputs_that_are_no_list_of_texts_are_refused(model):
    with refuses("invalid_type", got="bytes"):
        model.embed(b"the king")
    with refuses("invalid_type", got="DataFrame"):
        model.embed(pd.DataFrame({"text": ["the king"]}))
    with refuses("invalid_type", got="dict"):
        model.embed({"the king": 1})
    with refuses("invalid_type", path=1, expected="str or lists of str", text=None):
        model.embed(["the king", None])


@pytest.mark.parametrize("tokenizer", ["words", "whitespace", "characters"])
def test_native_encoding_of_many_texts_gives_the_same_ids(monkeypatch, tokenizer):
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
        assert isinstance(array, np.ndarray) and isinstance(expected, np.ndarray)
        assert array.dtype == expected.dtype and np.array_equal(array, expected)
