"""PCA, held against scikit-learn."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from sklearn.decomposition import PCA

from firth import FirthError
from firth.maps import pca


@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(2, 20))
def test_equals_scikit_learn(seed, rows, columns):
    matrix = np.random.default_rng(seed).normal(size=(rows, columns)) * np.geomspace(1, 0.1, columns)
    theirs = PCA(2, svd_solver="full").fit(matrix)
    expected = theirs.transform(matrix)
    found = pca(matrix)
    signs = np.sign((found.points * expected).sum(axis=0))  # which way an axis points is free
    np.testing.assert_allclose(found.points, expected * signs, atol=1e-9)
    np.testing.assert_allclose(found.explained, theirs.explained_variance_ratio_, atol=1e-9)


def test_signs_do_not_depend_on_the_order_of_rows():
    matrix = np.random.default_rng(3).normal(size=(20, 6))
    order = np.random.default_rng(4).permutation(20)
    np.testing.assert_allclose(pca(matrix[order]).points, pca(matrix).points[order], atol=1e-12)


def test_fewer_directions_than_asked_are_zero():
    found = pca([[1.0], [3.0]])
    np.testing.assert_allclose(found.points, [[-1, 0], [1, 0]])
    np.testing.assert_allclose(found.explained, [1, 0])
    assert not pca(np.ones((3, 4))).explained.any()


def test_bad_requests():
    with pytest.raises(FirthError, match=r"at least 2 rows; got shape \(1, 2\)"):
        pca([[1.0, 2.0]])
    with pytest.raises(FirthError, match="row 1 contains NaN"):
        pca([[1.0, 2.0], [np.nan, 0.0]])
    with pytest.raises(FirthError, match="dims must be at least 1; got 0"):
        pca(np.eye(3), 0)
