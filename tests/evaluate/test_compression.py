"""Metrics of compression, by hand and on data with a known answer."""

from __future__ import annotations

import math

import numpy as np
from refusing import refuses

from firth.evaluate import Compressed, compression, independent_rows, lost_variance, neighbor_overlap, probe, two_sample


def test_lost_variance_by_hand():
    rows = [[0.0, 0.0], [2.0, 2.0]]
    assert lost_variance(rows, rows) == 0
    assert lost_variance(rows, [[1.0, 1.0]] * 2) == 1
    assert lost_variance(rows, [[0.0, 0.0], [2.0, 0.0]]) == 1  # 4 of 4 · 1²
    with refuses("shape_mismatch", expected=(2, 2), got=(1, 2)):
        lost_variance(rows, rows[:1])


def test_neighbors_by_hand():
    line = np.array([[0.0], [1.0], [3.0], [7.0], [15.0]])
    assert neighbor_overlap(line, -2 * line, k=2) == 1
    swapped = line[[0, 4, 2, 3, 1]]  # rows 1 and 4 are exchanged
    near = [{1}, {0}, {1}, {2}, {3}], [{4}, {3}, {4}, {2}, {0}]
    assert neighbor_overlap(line, swapped, k=1) == sum(a == b for a, b in zip(*near, strict=True)) / 5
    with refuses("invalid_value", option="k", limit=4, got=5):
        neighbor_overlap(line, line, k=5)


def test_the_two_sample_test_detects_missing_dependence():
    """Samples of one distribution are not distinguished; one with independent columns is."""
    random = np.random.default_rng(3)
    x = random.normal(size=(450, 1))
    real, again = np.hstack([x, x + 0.1 * random.normal(size=x.shape)])[:300], np.hstack([x, x])[300:]
    again[:, 1] += 0.1 * random.normal(size=150)
    assert abs(two_sample(real, again) - 0.5) < 0.1
    alone = independent_rows({"a": real[:, 0], "b": real[:, 1]}, 300)
    assert two_sample(real, np.column_stack([alone["a"], alone["b"]])) > 0.8
    assert set(alone["a"]) <= set(real[:, 0])
    with refuses("shape_mismatch", folds=3, real=(300, 2), generated=(300, 1)):
        two_sample(real, real[:, :1])


def test_methods_are_compared_on_the_same_rows():
    random = np.random.default_rng(4)
    labels = random.integers(2, size=200)
    rows = random.normal(size=(200, 6)) + 4 * labels[:, None]
    good = Compressed(rows[:, :2], rows, seconds=0.5, size=12)
    bad = Compressed(random.normal(size=(200, 2)))
    result = compression(rows, {"good": good, "bad": bad}, [str(label) for label in labels])
    assert result["good"].probe > 0.95 and result["bad"].probe < 0.65
    assert result["good"].lost == 0 and math.isnan(result["bad"].lost)
    assert result["good"].neighbors > 2 * result["bad"].neighbors
    assert result.to_json()["bad"]["lost"] is None and "neighbor overlap (10)" in str(result)
    assert probe(rows, [str(label) for label in labels]) > 0.95
    with refuses("non_finite", what="rows", got=(1, 2)):
        compression([[1.0, np.nan]], {"x": good})
    with refuses("shape_mismatch", got=1, n_rows=200):
        probe(rows, ["a"])


def test_seconds_are_printed_without_exponents():
    rows, seconds = np.eye(4), {"a": 6.8e-05, "b": 0.0123, "c": 12.3}
    compressed = {name: Compressed(rows, seconds=value) for name, value in seconds.items()}
    printed = {line.split()[0]: line.split()[-2] for line in str(compression(rows, compressed, k=1)).splitlines()[1:]}
    assert printed == {"a": "<0.001", "b": "0.012", "c": "12.3"}
