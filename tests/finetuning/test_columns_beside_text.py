"""Heads that read text and other columns together, and cross-validation of heads on feature matrices."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from refusing import refuses
from tiny import tiny_bert

import firth
from firth.evaluate import features
from firth.nets.encoder import Encoder

ONE = firth.Run(threads=1)


@pytest.fixture(scope="module")
def table():
    """A table whose label depends on the word and the price together; each alone determines half of it."""
    rng = np.random.default_rng(3)
    words, prices = rng.integers(0, 2, 300), rng.normal(50, 20, 300)
    colors = rng.choice(["red", "blue"], 300)
    texts = [f"the {['king', 'queen'][word]} number {n}" for n, word in enumerate(words)]
    label = (words == 1).astype(int) + (prices > 50) * 2  # four labels
    return {"text": texts, "price": prices, "color": colors, "label": [f"l{x}" for x in label]}


def test_text_and_columns_together_predict_better_than_text_alone(table):
    base = tiny_bert()
    settings: dict[str, Any] = {"epochs": 30, "learning_rate": 8e-3, "dropout": 0.0, "held_out": 0.3}
    both = firth.TextClassifier(**settings).fit(firth.Examples(table, columns=["price", "color"]), ONE, base)
    text = firth.TextClassifier(**settings).fit(firth.Examples(table), ONE, base)
    assert both.training["accuracy"] > 0.8 > 0.65 > text.training["accuracy"]
    assert isinstance(both.net.base, Encoder) and isinstance(both.net.head, torch.nn.Linear)
    change = both.net.base.input.tokens.weight.detach().numpy() - base.net.input.tokens.weight.detach().numpy()
    assert np.abs(change).max() > 1e-4  # the base was trained too
    assert both.columns == ("price", "color") and both.net.head.in_features == 32 + 3


def test_a_saved_model_requires_its_columns(table, tmp_path):
    model = firth.TextClassifier(epochs=1, dropout=0.0, held_out=0.0).fit(
        firth.Examples(table, columns=["price", "color"]), ONE, tiny_bert()
    )
    model.save(tmp_path / "m")
    loaded = firth.load(tmp_path / "m", firth.TextClassifier)
    texts, columns = table["text"][:5], {"color": ["red", "green", "blue", None, "red"], "price": [1, 2, None, 4, 5]}
    assert loaded.predict(texts, columns=columns) == model.predict(texts, columns=columns)
    with refuses("missing_option", expected="price, color"):
        loaded.predict(texts)
    with refuses("unknown_column", missing="color", available="price"):
        loaded.predict(texts, columns={"price": [1] * 5})
    with refuses("shape_mismatch", n_texts=5, n_rows=2):
        loaded.predict(texts, columns={"price": [1, 2], "color": ["red", "red"]})
    # transformers has no such head: it opens the folder as the base model
    from transformers import AutoModel

    assert AutoModel.from_pretrained(tmp_path / "m").config.architectures == ["BertModel"]


def test_heads_on_features_are_cross_validated():
    rng = np.random.default_rng(1)
    matrix = rng.normal(size=(150, 6))
    labels = np.where(matrix[:, 0] * 100 > 0, "yes", "no")
    for head in ("logistic", "mlp"):
        result = features(matrix * [100, 1, 1, 1, 1, 1], labels, head)
        assert result.metrics["accuracy"][0] > 0.85 > 0.6 > result.baseline["accuracy"]
    result = features(matrix, matrix @ np.arange(6) + 3, "ridge", folds=3)
    assert result.metrics["R²"][0] > 0.99 and result.baseline["R²"] < 0.1
    assert result.metrics["mean absolute error"][0] < 0.1 < result.baseline["mean absolute error"]
    assert "ridge, 3 folds: R² " in str(result) and result.to_json()["rows"] == 150


@pytest.mark.parametrize(
    ("labels", "head", "folds", "code", "values"),
    [
        (["a"] * 10, "logistic", 5, "no_variation", {"n_rows": 10, "label": "a"}),
        (["a"] * 8 + ["b"] * 2, "logistic", 5, "too_few", {"label": "b", "got": 2, "folds": 5}),
        (["a"] * 9 + ["b"], "logistic", 2, "too_few", {"n_once": 1, "n_labels": 2, "label": "b"}),
        (["a", "b"] * 5, "forest", 5, "invalid_value", {"option": "head", "got": "forest"}),
        (["a", "b"] * 5, "logistic", 1, "invalid_value", {"option": "folds", "limit": 10, "got": 1}),
    ],
)
def test_labels_and_folds_that_cannot_be_cross_validated_are_refused(labels, head, folds, code, values):
    with refuses(code, **values):
        features(np.ones((10, 2)), np.array(labels), head, folds)
