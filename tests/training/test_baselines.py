"""Baselines: the same numbers as scikit-learn's, bounded work, and what is said of a score."""

from __future__ import annotations

import numpy as np
import pytest
from breaking import Notes

from firth.data.questions import Question
from firth.data.world import World
from firth.training import baselines as baselines
from firth.training.baselines import BaselineComparison, Raw, answer_guesses, clearly_better, compare_texts, tag_guesses

ROWS = list(World(seed=41).topics(240))
TEXTS, LABELS = [row.text for row in ROWS], [row.label for row in ROWS]
IDS = np.unique(LABELS, return_inverse=True)[1]
NONE = np.zeros((240, 0))


def matrices():
    known: dict[str, int] = {}
    counts = baselines.bags_of(TEXTS, known).counts(np.arange(240), len(known))
    return counts, known


def test_tf_idf_is_scikit_learns():
    from sklearn.feature_extraction.text import TfidfVectorizer

    counts, known = matrices()
    theirs = TfidfVectorizer(sublinear_tf=True, vocabulary=known, token_pattern=r"\S+").fit(TEXTS)
    ours = baselines.TfIdf(counts, len(known))(counts)
    np.testing.assert_allclose(ours.toarray(), theirs.transform(TEXTS).toarray(), atol=1e-12)


def test_the_logistic_regression_is_scikit_learns(monkeypatch):
    from sklearn.linear_model import LogisticRegression

    monkeypatch.setattr(baselines, "MAX_STEPS", 2000)
    counts, known = matrices()
    x = baselines.TfIdf(counts, len(known))(counts)
    weights, bias = baselines.logistic(x, baselines.shares(IDS, 8))
    theirs = LogisticRegression(C=baselines.LOGISTIC_C, tol=1e-8, max_iter=5000).fit(x, IDS)
    ours = x @ weights + bias
    wanted = theirs.decision_function(x)
    apart = [found - found.mean(axis=1, keepdims=True) for found in (ours, wanted)]  # of a softmax a constant is free
    np.testing.assert_allclose(*apart, atol=0.05)
    assert (ours.argmax(axis=1) == wanted.argmax(axis=1)).all()


def test_the_ridge_regression_is_scikit_learns():
    from sklearn.linear_model import Ridge

    counts, known = matrices()
    x = baselines.TfIdf(counts, len(known))(counts)
    y = np.array([float(len(text)) for text in TEXTS])
    weights, bias = baselines.ridge(x, y)
    theirs = Ridge(alpha=baselines.RIDGE_PENALTY, fit_intercept=False, solver="lsqr", tol=1e-10).fit(x, y - y.mean())
    np.testing.assert_allclose(x @ weights + bias, theirs.predict(x) + y.mean(), rtol=1e-3)


def test_more_rows_than_the_bound_are_drawn_from_and_said(monkeypatch):
    train, held = Raw(TEXTS[:200], IDS[:200], NONE[:200]), Raw(TEXTS[200:], IDS[200:], NONE[200:])
    whole = compare_texts(train, held, IDS[200:], 8, "accuracy", 1)
    assert whole.baseline_rows is None and whole.score == 1
    monkeypatch.setattr(baselines, "MAX_ROWS", 50)
    few = compare_texts(train, held, IDS[200:], 8, "accuracy", 1)
    assert few.baseline_rows == 50 and few.metrics()["held_out_score"]["baseline_rows"] == 50
    monkeypatch.setattr(baselines, "MAX_ROWS", 10_000)
    monkeypatch.setattr(baselines, "MAX_WORK", 1)
    assert compare_texts(train, held, IDS[200:], 8, "accuracy", 1).baseline_rows == 100


def test_pairs_are_compared_by_what_they_share():
    rng = np.random.default_rng(1)
    sides = [[" ".join(f"w{n}" for n in rng.integers(0, 40, 5)) for _ in range(300)] for _ in range(2)]
    same = np.arange(300) % 2
    pairs = [(a, a if equal else b) for a, b, equal in zip(*sides, same, strict=True)]
    parts = [Raw(pairs[part], same[part], np.zeros((300, 0))[part]) for part in (slice(0, 200), slice(200, 300))]
    found = compare_texts(*parts, np.zeros(100, np.int64), 2, "accuracy", 1)
    assert found.baselines["tf-idf + logistic regression"] > 0.95 and (found.learned, found.weaker) == (False, True)


def test_numbers_beside_the_mean_and_a_ridge():
    y = np.array([float(text.count("the")) for text in TEXTS])
    parts = [Raw(TEXTS[part], y[part], NONE[part]) for part in (slice(0, 200), slice(200, 240))]
    found = compare_texts(*parts, y[200:], 0, "pearson", 1)
    assert found.score == pytest.approx(1) and found.learned is True
    assert found.baselines["mean"] == 0 and found.baselines["tf-idf + ridge regression"] > 0.3
    assert compare_texts(*parts, np.zeros(40), 0, "spearman", 1).learned is False


def test_a_verdict_needs_enough_rows_and_a_clear_difference():
    right = np.ones(19)
    assert clearly_better(right, 0 * right) is None
    assert clearly_better(np.ones(20), np.zeros(20)) is True
    assert clearly_better(np.ones(20), np.ones(20)) is False
    coin = np.arange(100) % 2
    assert clearly_better(coin, 1 - coin) is False


def test_unbalanced_labels_are_judged_by_the_metric_that_was_chosen():
    """90% of one label: a model that finds half of the others at the cost of some of the first learned something."""
    right = np.array([0] * 180 + [1] * 20)
    found = np.array([1] * 12 + [0] * 168 + [1] * 10 + [0] * 10)
    texts = Raw([f"w{n}" for n in range(200)], right, np.zeros((200, 0)))
    assert compare_texts(texts, texts, found, 2, "accuracy", 1).learned is False
    assert compare_texts(texts, texts, found, 2, "matthews", 1).learned is True


def test_what_is_said():
    told = Notes()
    BaselineComparison("accuracy", 50, 0.5, {"majority label": 0.49, "tf-idf": 0.9}, False, True).add_notes(
        told, "Try more."
    )
    assert told.codes == ["nothing_learned", "weaker_than_baseline"]
    told = Notes()
    BaselineComparison("accuracy", 50, 0.95, {"majority label": 0.49, "tf-idf": 0.9}, True, False).add_notes(told, "")
    BaselineComparison("accuracy", 5, 0.2, {"majority label": 0.4, "tf-idf": 0.9}, None, None).add_notes(
        told, ""
    )  # too few rows
    assert told.codes == []


def test_tags_by_majority_and_by_word():
    train = [(["The", "king", "sleeps"], [0, 1, 2]), (["the", "king", "king"], [0, 1, 1])]
    found = {name: [tags.tolist() for tags in each] for name, each in tag_guesses(train, [["THE", "new"]]).items()}
    assert found == {"majority tag": [[1, 1]], "most frequent tag of each word": [[0, 1]]}


def test_answers_by_the_first_words_and_the_nearest_sentence():
    passage = "Paris is in France. The tower was built in 1889. It is tall."
    train = [Question("1", "", "", ("in 1889",), (None,))]
    found = answer_guesses(train, [Question("2", "When was the tower built?", passage, ("1889",), (None,))])
    assert found["first words of the passage"] == ["Paris is"]
    assert found["sentence nearest to the question"] == ["The tower was built in 1889."]
