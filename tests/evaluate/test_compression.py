"""How squeezing is measured: by hand, and against rows of which the truth is known."""

from __future__ import annotations

import math

import numpy as np
import pytest

import firth
from firth.evaluate import Squeezed, compression, independent_rows, lost_variance, neighbors_kept, probe, two_sample


def test_lost_variance_by_hand():
    rows = [[0.0, 0.0], [2.0, 2.0]]
    assert lost_variance(rows, rows) == 0
    assert lost_variance(rows, [[1.0, 1.0]] * 2) == 1
    assert lost_variance(rows, [[0.0, 0.0], [2.0, 0.0]]) == 1  # 4 of 4 · 1²
    with pytest.raises(firth.FirthError, match="As many must be rebuilt"):
        lost_variance(rows, rows[:1])


def test_neighbors_by_hand():
    line = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
    assert neighbors_kept(line, -2 * line, k=2) == 1
    swapped = line[[0, 4, 2, 3, 1]]  # rows 1 and 4 have changed places
    near = [{1}, {0}, {1}, {2}, {3}], [{4}, {3}, {4}, {2}, {0}]
    assert neighbors_kept(line, swapped, k=1) == sum(a == b for a, b in zip(*near, strict=True)) / 5
    with pytest.raises(firth.FirthError, match="k must be from 1 to 4"):
        neighbors_kept(line, line, k=5)


def test_a_two_sample_test_tells_what_differs():
    """Equal distributions can't be told apart; one that lacks the dependence of its columns can."""
    random = np.random.default_rng(3)
    x = random.normal(size=(450, 1))
    real, again = np.hstack([x, x + 0.1 * random.normal(size=x.shape)])[:300], np.hstack([x, x])[300:]
    again[:, 1] += 0.1 * random.normal(size=150)
    assert abs(two_sample(real, again) - 0.5) < 0.1
    alone = independent_rows({"a": real[:, 0], "b": real[:, 1]}, 300)
    assert two_sample(real, np.column_stack([alone["a"], alone["b"]])) > 0.8
    assert set(alone["a"]) <= set(real[:, 0])
    with pytest.raises(firth.FirthError, match="Both sides need the same columns"):
        two_sample(real, real[:, :1])


def test_methods_stand_side_by_side():
    random = np.random.default_rng(4)
    labels = random.integers(2, size=200)
    rows = random.normal(size=(200, 6)) + 4 * labels[:, None]
    good = Squeezed(rows[:, :2], rows, seconds=0.5, size=12)
    bad = Squeezed(random.normal(size=(200, 2)))
    found = compression(rows, {"good": good, "bad": bad}, [str(label) for label in labels])
    assert found["good"].probe > 0.95 and found["bad"].probe < 0.65
    assert found["good"].lost == 0 and math.isnan(found["bad"].lost)
    assert found["good"].neighbors > 2 * found["bad"].neighbors
    assert found.to_json()["bad"]["lost"] is None and "neighbours kept (10)" in str(found)
    assert probe(rows, [str(label) for label in labels]) > 0.95
    with pytest.raises(firth.FirthError, match="finite numbers"):
        compression([[1.0, np.nan]], {"x": good})


def test_seconds_are_told_without_exponents():
    rows = np.eye(4)
    squeezed = {name: Squeezed(rows, seconds=seconds) for name, seconds in (("a", 6.8e-05), ("b", 0.0123), ("c", 12.3))}
    told = {line.split()[0]: line.split()[-2] for line in str(compression(rows, squeezed, k=1)).splitlines()[1:]}
    assert told == {"a": "<0.001", "b": "0.012", "c": "12.3"}
