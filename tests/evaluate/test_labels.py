"""Accuracy, precision, recall and F1 of labels, against scikit-learn and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses
from sklearn.metrics import f1_score, precision_recall_fscore_support

from firth.evaluate import classification


class Fixed:
    """Predicts fixed labels, most probable first."""

    def __init__(self, answers):
        self.answers = dict(answers)

    def predict(self, texts, k=1, threshold=0.0):
        return [[(label, p) for label, p in self.answers[text][:k] if p >= threshold] for text in texts]


def test_by_hand():
    model = Fixed(
        {"1": [("a", 0.6), ("b", 0.4)], "2": [("b", 0.9), ("a", 0.1)], "3": [], "4": [("c", 0.5), ("b", 0.5)]}
    )
    truth = [("1", ["a", "b"]), ("2", "a"), ("3", "b"), ("4", ["never met"]), ("1", [])]
    one = classification(model, truth)
    assert (one.texts, one.unlabeled, one.best_right) == (4, 1, 1)
    assert one.accuracy == 1 / 4 and one.precision == 1 / 3 and one.recall == 1 / 5
    both = classification(model, truth, k=2)
    assert both.precision == 3 / 6 and both.recall == 3 / 5 and both.accuracy == 1 / 4
    scores = {score.label: score for score in both.scores}
    assert scores["a"].f1 == 1 and scores["b"].f1 == pytest.approx(2 / 5) and scores["never met"].recall == 0
    assert classification(model, truth, k=2, threshold=0.5).precision == 1 / 4


def test_against_scikit_learn():
    rng = np.random.default_rng(4)
    truth, given = (rng.choice(["a", "b", "c"], 3000, p=p).tolist() for p in ([0.7, 0.2, 0.1], [0.5, 0.3, 0.2]))
    model = Fixed({str(i): [(label, 1.0)] for i, label in enumerate(given)})
    result = classification(model, [(str(i), label) for i, label in enumerate(truth)])
    expected = precision_recall_fscore_support(truth, given, labels=["a", "b", "c"])
    for score, *metrics in zip(result.scores, *expected, strict=True):
        assert (score.precision, score.recall, score.f1, score.texts) == pytest.approx(tuple(metrics))
    assert result.macro_f1 == pytest.approx(f1_score(truth, given, average="macro"))
    assert result.accuracy == result.precision == result.recall == np.mean(np.array(truth) == np.array(given))
    assert "accuracy 0." in str(result) and result.to_json()["labels"]["a"]["texts"] == result.scores[0].texts


def test_texts_without_labels_are_refused():
    with refuses("empty_data", n_texts=1):
        classification(Fixed({}), [("a", [])])


def test_numbers_are_accepted_as_labels():
    model = Fixed({"1": [("5", 0.6)], "2": [("4", 0.9)], "3": [("5", 0.9)]})
    result = classification(model, [("1", 5), ("2", np.float64(4.0)), ("3", float("nan"))])
    assert (result.texts, result.unlabeled, result.accuracy) == (2, 1, 1.0)
