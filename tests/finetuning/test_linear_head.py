"""Linear models on the vectors of other models, against scikit-learn and what is known of the synthetic corpus."""

from __future__ import annotations

import json

import numpy as np
import pytest
from refusing import refuses
from sklearn.linear_model import LogisticRegression, RidgeCV
from sklearn.preprocessing import StandardScaler

import firth
from firth.core.linear_heads import PENALTIES, fit_linear
from firth.data.world import World

RUN = firth.Run(deterministic=True, seed=5)
WORLD = World(seed=77)
ROWS = list(WORLD.topics(400))
TEXTS, LABELS = [row.text for row in ROWS], [row.label for row in ROWS]


@pytest.fixture(scope="module")
def base():
    return firth.LSA(dim=20).fit(list(WORLD.sentences(800)) + TEXTS, RUN)


@pytest.mark.parametrize("labels", [2, 3])
def test_the_probabilities_are_those_of_scikit_learn(labels):
    random = np.random.default_rng(labels)
    matrix = random.normal(size=(120, 5)) * [100, 1, 1, 0.01, 1] + 3
    targets = np.arange(120) % labels
    linear = fit_linear(matrix, targets, "logistic", regularization=0.5)
    scaled = StandardScaler().fit_transform(matrix)
    expected = LogisticRegression(C=2, max_iter=2000).fit(scaled, targets).predict_proba(scaled)
    powers = np.exp(matrix @ linear.weights + linear.bias)
    np.testing.assert_allclose(powers / powers.sum(axis=1, keepdims=True), expected, atol=1e-6)


def test_numbers_are_those_of_scikit_learn():
    matrix = np.random.default_rng(1).normal(size=(80, 4)) * [100, 1, 1, 5]
    targets = matrix @ [0.1, 2, -1, 0] + 7
    linear = fit_linear(matrix, targets, "ridge")
    scaled = StandardScaler().fit_transform(matrix)
    expected = RidgeCV(alphas=PENALTIES).fit(scaled, targets).predict(scaled)
    np.testing.assert_allclose((matrix @ linear.weights + linear.bias)[:, 0], expected, atol=1e-6)


def test_a_few_dev_texts_are_scored_without_a_verdict(base):
    dev = {"text": TEXTS[:12], "label": LABELS[:12]}
    examples = firth.Examples({"text": TEXTS[12:], "label": LABELS[12:]}, dev=dev)
    record = firth.LinearClassifier().fit(examples, RUN, start=base).training["held_out_score"]
    assert record["rows"] == 12 and record["score"] > record["baselines"]["majority label"]
    assert "learned" not in record and "weaker" not in record


def test_numbers_that_no_estimate_can_reach_are_refused(base):
    """The estimate of a text labeled 1e300 was infinite."""
    for got, code in ((1e300, "out_of_range"), (-1e31, "out_of_range"), (float("inf"), "non_finite")):
        with refuses(code, column="label"):
            firth.LinearRegressor().fit({"text": TEXTS[:2], "label": [got, 1.0]}, RUN, start=base)


def test_topics_are_recovered_with_any_base_and_baselines_are_recorded(base, tmp_path):
    model = firth.LinearClassifier().fit({"text": TEXTS, "label": LABELS}, RUN, start=base)
    record = model.training["held_out_score"]
    assert record["score"] > record["baselines"]["majority label"] + 0.2 and record["learned"]
    model.save(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.LinearClassifier)
    assert again.predict(TEXTS[:9], k=2) == model.predict(TEXTS[:9], k=2) and repr(again) == repr(model)
    assert np.array_equal(again.embed(TEXTS[:3]), base.embed(TEXTS[:3])) and firth.verify(tmp_path / "model")
    assert json.loads((tmp_path / "model" / "base.json").read_text())["method"] == "lsa"
    probabilities = model.predict(["the king"], k=99)[0]
    assert sum(value for _, value in probabilities) == pytest.approx(1)
    assert model.predict(["the king"], k=99, threshold=0.99) == [[]] or probabilities[0][1] >= 0.99


def test_a_folder_is_trained_into_once_and_can_be_overwritten(base, tmp_path):
    """The base is a folder in that of the model."""
    data = firth.Examples({"text": TEXTS, "label": LABELS})

    def train(**settings):
        return firth.train(firth.LinearClassifier(), data, tmp_path / "m", run=RUN, start=base, **settings).status

    assert train() == "trained"
    assert train(overwrite=True) == "trained" and firth.verify(tmp_path / "m")
    (tmp_path / "m" / "base" / "mine.json").write_text("{}")
    with refuses("unsafe_output", examples="base"):
        train(overwrite=True)


def test_other_columns_and_numbers(base, tmp_path):
    numbers = [float(n % 7) for n in range(len(TEXTS))]
    table = {"text": TEXTS, "label": [2 * number for number in numbers], "price": numbers}
    model = firth.LinearRegressor().fit(firth.Examples(table, columns=["price"]), RUN, start=base)
    model.save(tmp_path / "model")
    again = firth.load(tmp_path / "model", firth.LinearRegressor)
    assert again.columns == ("price",) and again.training["held_out_score"]["score"] > 0.95
    low, high = again.estimate(TEXTS[:2], columns={"price": [0.0, 6.0]})
    assert abs(low) < 1 and abs(high - 12) < 1
    with refuses("missing_option", expected="price"):
        again.estimate(TEXTS[:2])
    with refuses("shape_mismatch", n_texts=2, n_rows=1):
        again.estimate(TEXTS[:2], columns={"price": [0.0]})


def test_what_cannot_be_used_is_refused(base):
    with refuses("wrong_input"):
        pairs = firth.Examples({"text": ["a"], "other": ["b"], "label": [1]}, other="other")
        firth.LinearClassifier().fit(pairs, RUN, start=base)
    with refuses("no_variation"):
        firth.LinearClassifier().fit({"text": TEXTS[:9], "label": ["x"] * 9}, RUN, start=base)
    with refuses("incompatible_start"):
        split = firth.SkipGram(dim=4, epochs=1, tokenizer=str.split).fit(TEXTS[:20], RUN)
        firth.LinearClassifier().fit({"text": TEXTS, "label": LABELS}, RUN, start=split)
