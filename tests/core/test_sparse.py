"""SparseVectors give the answers that Vectors give."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses
from scipy import sparse

import firth
from firth.core import sparse as module
from firth.core.sparse import SparseVectors, row_sums

KEYS = [f"k{row}" for row in range(12)]


def both(seed: int) -> tuple[SparseVectors, firth.Vectors]:
    matrix = sparse.random(12, 20, 0.3, format="csr", dtype=np.float32, random_state=seed)
    return SparseVectors(KEYS, matrix), firth.Vectors(KEYS, matrix.toarray())


def check_hits(found, expected):
    """Equal scores at each place; keys may change places only where scores are equal."""
    np.testing.assert_allclose([hit.score for hit in found], [hit.score for hit in expected], atol=1e-5)
    assert dict(found).keys() >= {hit.key for hit in expected if hit.score > expected[-1].score + 1e-5}


@given(st.integers(0, 1000), st.sampled_from(["cosine", "dot", "euclidean"]), st.integers(1, 12))
@settings(deadline=None, max_examples=60)
def test_the_same_answers_as_dense_vectors(seed, metric, k):
    thin, full = both(seed)
    check_hits(thin.neighbors("k3", k, metric=metric), full.neighbors("k3", k, metric=metric))
    several = {"k": k, "negative": ["k2"], "metric": metric, "restrict": 8}
    check_hits(thin.neighbors(["k1", "k5"], **several), full.neighbors(["k1", "k5"], **several))
    query = np.random.default_rng(seed).normal(size=20).astype(np.float32)
    check_hits(thin.neighbors(query, k, metric=metric), full.neighbors(query, k, metric=metric))
    check_hits(thin.neighbors(thin.sparse[4], k, metric=metric), full.neighbors(full["k4"], k, metric=metric))
    assert thin.similarity("k1", "k2", metric) == pytest.approx(full.similarity("k1", "k2", metric), abs=1e-6)
    for method in ("add", "mul"):
        check_hits(thin.analogy("k1", "k2", "k3", k, method=method), full.analogy("k1", "k2", "k3", k, method=method))
    np.testing.assert_allclose(thin.unit, full.unit, atol=1e-6)
    np.testing.assert_array_equal(thin.matrix, full.matrix)
    assert firth.odd_one_out(thin, KEYS[:4]) == firth.odd_one_out(full, KEYS[:4])


def test_shape_and_keys():
    thin, _ = both(0)
    assert (len(thin), thin.dim, thin.keys) == (12, 20, KEYS)
    assert "k3" in thin and "no" not in thin
    assert "12 × 20, 30.00% nonzero" in repr(thin)
    with refuses("shape_mismatch", got=2, rows=12):
        SparseVectors(["a", "b"], thin.sparse)
    with refuses("unknown_key", key="no"):
        thin.neighbors("no")
    with refuses("invalid_value", option="metric", got="far"):
        thin.neighbors("k1", metric="far")
    with refuses("shape_mismatch", dim=20, got=(3,)):
        thin.neighbors(np.ones(3))


def test_nan_is_named():
    thin, _ = both(0)
    thin.sparse.data[0] = np.nan
    with refuses("non_finite", key="k0"):
        thin.neighbors("k5")


def test_zeros_are_written_out_only_where_they_fit(monkeypatch):
    thin, _ = both(0)
    monkeypatch.setattr(module, "MOST_DENSE", 239)
    with refuses("out_of_memory", rows=12, columns=20, most_dense=239):
        _ = thin.matrix
    assert len(thin.neighbors("k1", 3)) == 3  # queries need no zeros


@given(st.lists(st.lists(st.floats(-9, 9), max_size=4), min_size=1, max_size=9))
def test_row_sums(rows):
    starts = np.concatenate([[0], np.cumsum([len(row) for row in rows])]).astype(np.int64)
    values = np.array([value for row in rows for value in row], dtype=np.float64)
    np.testing.assert_allclose(row_sums(values, starts), [sum(row) for row in rows], atol=1e-9)
