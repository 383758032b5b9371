"""Baselines: equality with scikit-learn, bounded work, and the notes about a score."""

from __future__ import annotations

import numpy as np
import pytest
from breaking import Notes

from firth.data.questions import Question
from firth.data.world import World
from firth.training import baselines
from firth.training.baselines import BaselineComparison, Raw, answer_guesses, clearly_better, compare_texts, tag_guesses

ROWS = list(World(seed=41).topics(240))
TEXTS, LABELS = [row.text for row in ROWS], [row.label for row in ROWS]
IDS = np.unique(LABELS, return_inverse=True)[1]
NONE = np.zeros((240, 0))


def counts_and_vocabulary():
    vocabulary: dict[str, int] = {}
    counts = baselines.bags_of(TEXTS, vocabulary).counts(np.arange(240), len(vocabulary))
    return counts, vocabulary


def test_tf_idf_equals_scikit_learn():
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts, vocabulary = counts_and_vocabulary()
    theirs = TfidfVectorizer(sublinear_tf=True, vocabulary=vocabulary, token_pattern=r"\S+").fit(TEXTS)
    ours = baselines.TfIdf(counts, len(vocabulary))(counts)
    np.testing.assert_allclose(ours.toarray(), theirs.transform(TEXTS).toarray(), atol=1e-12)


def test_logistic_regression_equals_scikit_learn(monkeypatch):
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(baselines, "MAX_STEPS", 2000)
    counts, vocabulary = counts_and_vocabulary()
    x = baselines.TfIdf(counts, len(vocabulary))(counts)
    weights, bias = baselines.logistic(x, baselines.shares(IDS, 8))
    theirs = LogisticRegression(C=baselines.LOGISTIC_C, tol=1e-8, max_iter=5000).fit(x, IDS)
    ours = x @ weights + bias
    expected = theirs.decision_function(x)
    first, second = (
        scores - scores.mean(axis=1, keepdims=True) for scores in (ours, expected)
    )  # softmax ignores offsets
    np.testing.assert_allclose(first, second, atol=0.05)
    assert (ours.argmax(axis=1) == expected.argmax(axis=1)).all()


def test_ridge_regression_equals_scikit_learn():
    from sklearn.linear_model import Ridge

    counts, vocabulary = counts_and_vocabulary()
    x = baselines.TfIdf(counts, len(vocabulary))(counts)
    y = np.array([float(len(text)) for text in TEXTS])
    weights, bias = baselines.ridge(x, y)
    theirs = Ridge(alpha=baselines.RIDGE_PENALTY, fit_intercept=False, solver="lsqr", tol=1e-10).fit(x, y - y.mean())
    np.testing.assert_allclose(x @ weights + bias, theirs.predict(x) + y.mean(), rtol=1e-3)


def test_baselines_use_a_sample_of_large_training_data(monkeypatch):
    train, held_out = Raw(TEXTS[:200], IDS[:200], NONE[:200]), Raw(TEXTS[200:], IDS[200:], NONE[200:])
    full = compare_texts(train, held_out, IDS[200:], 8, "accuracy", 1)
    assert full.baseline_rows is None and full.score == 1
    monkeypatch.setattr(baselines, "MAX_ROWS", 50)
    sampled = compare_texts(train, held_out, IDS[200:], 8, "accuracy", 1)
    assert sampled.baseline_rows == 50 and sampled.metrics()["held_out_score"]["baseline_rows"] == 50
    monkeypatch.setattr(baselines, "MAX_ROWS", 10_000)
    monkeypatch.setattr(baselines, "MAX_WORK", 1)
    assert compare_texts(train, held_out, IDS[200:], 8, "accuracy", 1).baseline_rows == 100


def test_pairs_are_compared_by_shared_words():
    rng = np.random.default_rng(1)
    sides = [[" ".join(f"w{n}" for n in rng.integers(0, 40, 5)) for _ in range(300)] for _ in range(2)]
    same = np.arange(300) % 2
    pairs = [(a, a if equal else b) for a, b, equal in zip(*sides, same, strict=True)]
    train, held_out = (
        Raw(pairs[part], same[part], np.zeros((300, 0))[part]) for part in (slice(0, 200), slice(200, 300))
    )
    comparison = compare_texts(train, held_out, np.zeros(100, np.int64), 2, "accuracy", 1)
    assert comparison.baselines["tf-idf + logistic regression"] > 0.95 and (comparison.learned, comparison.weaker) == (
        False,
        True,
    )


def test_numbers_are_compared_with_the_mean_and_ridge_regression():
    y = np.array([float(text.count("the")) for text in TEXTS])
    train, held_out = (Raw(TEXTS[part], y[part], NONE[part]) for part in (slice(0, 200), slice(200, 240)))
    comparison = compare_texts(train, held_out, y[200:], 0, "pearson", 1)
    assert comparison.score == pytest.approx(1) and comparison.learned is True
    assert comparison.baselines["mean"] == 0 and comparison.baselines["tf-idf + ridge regression"] > 0.3
    assert compare_texts(train, held_out, np.zeros(40), 0, "spearman", 1).learned is False


def test_a_comparison_needs_enough_rows_and_a_clear_difference():
    assert clearly_better(np.ones(19), np.zeros(19)) is None
    assert clearly_better(np.ones(20), np.zeros(20)) is True
    assert clearly_better(np.ones(20), np.ones(20)) is False
    coin = np.arange(100) % 2
    assert clearly_better(coin, 1 - coin) is False


def test_unbalanced_labels_are_compared_by_the_selected_metric():
    """With 90% of one label, a model may recall half of the other label at the cost of some accuracy."""
    truth = np.array([0] * 180 + [1] * 20)
    predicted = np.array([1] * 12 + [0] * 168 + [1] * 10 + [0] * 10)
    texts = Raw([f"w{n}" for n in range(200)], truth, np.zeros((200, 0)))
    assert compare_texts(texts, texts, predicted, 2, "accuracy", 1).learned is False
    assert compare_texts(texts, texts, predicted, 2, "matthews", 1).learned is True


def test_weak_models_are_noted():
    notes = Notes()
    BaselineComparison("accuracy", 50, 0.5, {"majority label": 0.49, "tf-idf": 0.9}, False, True).add_notes(
        notes, "Try more."
    )
    assert notes.codes == ["nothing_learned", "weaker_than_baseline"]
    notes = Notes()
    BaselineComparison("accuracy", 50, 0.95, {"majority label": 0.49, "tf-idf": 0.9}, True, False).add_notes(notes, "")
    BaselineComparison("accuracy", 5, 0.2, {"majority label": 0.4, "tf-idf": 0.9}, None, None).add_notes(
        notes, ""
    )  # too few rows
    assert notes.codes == []


def test_tag_baselines():
    train = [(["The", "king", "sleeps"], [0, 1, 2]), (["the", "king", "king"], [0, 1, 1])]
    tags_by_baseline = {
        name: [tags.tolist() for tags in each] for name, each in tag_guesses(train, [["THE", "new"]]).items()
    }
    assert tags_by_baseline == {"majority tag": [[1, 1]], "most frequent tag of each word": [[0, 1]]}


def test_answer_baselines():
    passage = "Paris is in France. The tower was built in 1889. It is tall."
    train = [Question("1", "", "", ("in 1889",), (None,))]
    answers = answer_guesses(train, [Question("2", "When was the tower built?", passage, ("1889",), (None,))])
    assert answers["first words of the passage"] == ["Paris is"]
    assert answers["sentence nearest to the question"] == ["The tower was built in 1889."]
