"""Text vectors as means of word vectors."""

from __future__ import annotations

import json
import math

import numpy as np
import pandas as pd
import pytest
from refusing import refuses

import firth
from firth.core.storage import fingerprint


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
def test_every_averaging_model_embeds_with_smoothing(method, tmp_path):
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
    saved = model.with_smoothing(0.01)
    saved.save(tmp_path / "smoothed")
    loaded = firth.load(tmp_path / "smoothed", type(method))
    assert loaded.smoothing == 0.01 and model.smoothing == 0
    assert np.array_equal(loaded.embed(["the king"]), model.embed(["the king"], smoothing=0.01))
    assert np.array_equal(loaded.embed(["the king"], smoothing=0), model.embed(["the king"]))


def test_what_embeds_texts_uses_the_smoothing_of_the_model(model):
    smoothed = model.with_smoothing(0.01)
    texts = ["the king and the queen", "the bread", "the river"]
    index = firth.Index.create(dim=8, model=smoothed)
    index.add(["a", "b", "c"], smoothed.embed(texts))
    assert index.search(texts[1], 1)[0].score == pytest.approx(1)
    assert firth.similarity(*smoothed.embed(texts[:2])) != firth.similarity(*model.embed(texts[:2]))
    with refuses("invalid_value", option="smoothing", got=-1):
        model.with_smoothing(-1)


@pytest.mark.parametrize("stored", ["much", -1, True, None])
def test_a_damaged_smoothing_is_refused(model, tmp_path, stored):
    model.with_smoothing(0.01).save(tmp_path / "m")
    path = tmp_path / "m" / "vocabulary.json"
    path.write_text(json.dumps(json.loads(path.read_text()) | {"smoothing": stored}))
    config = json.loads((tmp_path / "m" / "config.json").read_text())
    config["files"]["vocabulary.json"] = fingerprint(path)
    (tmp_path / "m" / "config.json").write_text(json.dumps(config))
    with refuses("damaged_model", got=stored):
        firth.load(tmp_path / "m", firth.SkipGram).embed(["the king"])


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
