"""Accuracy, F1 and Matthews' correlation against scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.metrics import accuracy_score, f1_score, matthews_corrcoef

from firth.core.scores import accuracy, f1, matthews


@pytest.mark.parametrize("classes", [2, 3, 5])
def test_against_scikit_learn(classes):
    rng = np.random.default_rng(classes)
    for _ in range(20):
        right, found = rng.integers(0, classes, (2, 40))
        found = np.where(rng.random(40) < 0.5, right, found)
        assert accuracy(right, found) == pytest.approx(accuracy_score(right, found))
        assert matthews(right, found) == pytest.approx(matthews_corrcoef(right, found))
        average = "binary" if classes == 2 else "macro"
        assert f1(right, found, classes) == pytest.approx(f1_score(right, found, average=average))


def test_where_nothing_can_be_told_they_are_0():
    assert accuracy([], []) == f1([], [], 2) == matthews([], []) == 0
    assert f1([0, 0], [0, 0], 2) == 0 and matthews([1, 1], [1, 1]) == 0
