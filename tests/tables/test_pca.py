"""PCA of tables and vectors: a worked example, equality with scikit-learn, and invalid input."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from sklearn.decomposition import PCA as Theirs  # noqa: N811

import firth
from firth import PCA, Run, Table, Vectors


def test_by_hand():
    """(0, 0), (2, 2), (4, 4): all variance lies along (1, 1)/√2; squared lengths 8 + 0 + 8, divided by 3 − 1."""
    model = PCA(dim=1).fit({"a": [0, 2, 4], "b": [0, 2, 4]})
    np.testing.assert_allclose(model.components, [[0.5**0.5, 0.5**0.5]])
    np.testing.assert_allclose(model.transform([[0, 0], [4, 4]]), [[-(8**0.5)], [8**0.5]])
    np.testing.assert_allclose(model.variances, [8])
    np.testing.assert_allclose(model.explained_variance, [1])
    np.testing.assert_allclose(model.inverse([[8**0.5]]).numbers("b"), [4])
    assert model.feature_names == ["pca0"] and list(model.tables) == ["columns"]


@given(st.integers(0, 10**6), st.integers(2, 30), st.integers(1, 12))
def test_equals_scikit_learn_including_signs(seed, rows, columns):
    matrix = np.random.default_rng(seed).normal(3, 2, (rows, columns)) * np.geomspace(1, 0.05, columns)
    dim = min(max(1, min(rows, columns) - 1), columns)  # the last of few rows has variance 0 and any direction
    ours, theirs = PCA(dim=dim).fit(matrix), Theirs(dim, svd_solver="full").fit(matrix)
    np.testing.assert_allclose(ours.components, theirs.components_, atol=1e-8)
    np.testing.assert_allclose(ours.variances, theirs.explained_variance_, atol=1e-8)
    np.testing.assert_allclose(ours.explained_variance, theirs.explained_variance_ratio_, atol=1e-8)
    np.testing.assert_allclose(ours.mean, theirs.mean_, atol=1e-12)
    fresh = np.random.default_rng(seed + 1).normal(size=(4, columns))
    np.testing.assert_allclose(ours.transform(fresh), theirs.transform(fresh), atol=1e-8)
    back = ours.inverse(ours.transform(fresh))
    np.testing.assert_allclose(
        np.column_stack([back.numbers(name) for name in back.names]),
        theirs.inverse_transform(theirs.transform(fresh)),
        atol=1e-8,
    )


def test_all_components_reconstruct_exactly():
    matrix = np.random.default_rng(3).normal(size=(9, 4))
    model = PCA().fit(matrix)
    assert model.explained_variance.sum() == pytest.approx(1) and model.components.shape == (4, 4)
    back = model.inverse(model.transform(matrix)).to_dict()
    np.testing.assert_allclose(np.array(list(back.values())).T, matrix, atol=1e-12)


def test_vectors_keep_their_keys(tmp_path):
    vectors = Vectors(["a", "b", "c"], np.random.default_rng(4).normal(size=(3, 5)))
    model = PCA(dim=2).fit(vectors)
    np.testing.assert_allclose(model.vectors.matrix, model.transform(vectors), atol=1e-6)
    assert list(model.tables) == ["points", "columns"] and model.vectors.keys == ["a", "b", "c"]
    model.save(tmp_path / "m")
    loaded = firth.load(tmp_path / "m", firth.PCA)
    np.testing.assert_array_equal(loaded.embed(vectors), model.embed(vectors))
    np.testing.assert_array_equal(loaded.vectors["b"], model.vectors["b"])
    assert loaded.vectors.keys == ["a", "b", "c"] and loaded.training == model.training


def test_constant_data_has_zero_variance():
    model = PCA().fit(np.ones((3, 2)))
    assert (
        not model.variances.any() and not model.explained_variance.any() and not model.transform(np.ones((3, 2))).any()
    )
    assert PCA().fit([[1.0, 5.0], [2.0, 5.0]]).components[0].tolist() == [1, 0]


def test_transform_of_no_rows_and_of_extra_columns():
    model = PCA(dim=1).fit({"a": [1, 2, 4], "b": [1, 0, 4]})
    assert model.transform([]).shape == (0, 1)
    assert model.transform({"b": [0], "a": [2], "c": ["?"]}).shape == (1, 1)


def test_numbers_whose_squares_overflow_are_refused():
    rows = np.array([[1e300, 2.0], [3, 4], [5, 6]])
    with refuses("out_of_range", got=1e300):
        PCA(dim=1).fit(rows)
    assert 0 < PCA(dim=1).fit(firth.Standardize().fit(rows).embed(rows)).training["explained"] <= 1


def test_invalid_input_is_refused():
    table = {"a": [1, 2, 4], "b": [1, 0, 4]}
    with refuses("invalid_value", option="PCA.dim", limit=2, n_rows=3, n_columns=2, got=3):
        PCA(dim=3).fit(table)
    with refuses("too_few", got=(1, 2)):
        PCA(dim=1).fit([[1, 2]])
    tables: list[Any] = [[], {"a": []}, np.zeros((3, 0))]
    for empty in tables:
        with refuses("too_few"):
            PCA().fit(empty)
    for value, got in ((None, np.nan), (np.inf, np.inf), (np.nan, np.nan)):
        with refuses("non_finite", name="b", row=2, got=got):
            PCA().fit({**table, "b": [1, value, 2]})
    with refuses("invalid_type", name="c"):
        PCA().fit({**table, "c": ["x", "y", "z"]})
    model = PCA().fit(table)
    with refuses("unknown_column", missing="b"):
        model.transform({"a": [1]})
    with refuses("shape_mismatch", expected=2, got=3):
        model.transform(np.zeros((1, 3)))
    with refuses("shape_mismatch", n_components=2, got=(1, 1)):
        model.inverse([[1]])
    with refuses("unsupported_start", method="PCA"):
        PCA().fit(table, Run(), model)
    with refuses("damaged_model", count=2, got=1):
        type(model).from_parts(model.method, firth.core.model.Parts(model.parts().arrays, {"columns": ["a"]}), {})
    assert Table(table).names == model.names
