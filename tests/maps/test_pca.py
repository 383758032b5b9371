"""PCA, compared with scikit-learn."""

import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from sklearn.decomposition import PCA

from firth.maps import pca


@given(st.integers(0, 10**6), st.integers(3, 40), st.integers(2, 20))
def test_equals_scikit_learn(seed, rows, columns):
    matrix = np.random.default_rng(seed).normal(size=(rows, columns)) * np.geomspace(1, 0.1, columns)
    theirs = PCA(2, svd_solver="full").fit(matrix)
    expected = theirs.transform(matrix)
    projection = pca(matrix)
    signs = np.sign((projection.points * expected).sum(axis=0))  # the sign of an axis is arbitrary
    np.testing.assert_allclose(projection.points, expected * signs, atol=1e-9)
    np.testing.assert_allclose(projection.explained, theirs.explained_variance_ratio_, atol=1e-9)


def test_signs_do_not_depend_on_the_order_of_rows():
    matrix = np.random.default_rng(3).normal(size=(20, 6))
    order = np.random.default_rng(4).permutation(20)
    np.testing.assert_allclose(pca(matrix[order]).points, pca(matrix).points[order], atol=1e-12)


def test_missing_components_are_zero():
    projection = pca([[1.0], [3.0]])
    np.testing.assert_allclose(projection.points, [[-1, 0], [1, 0]])
    np.testing.assert_allclose(projection.explained, [1, 0])
    assert not pca(np.ones((3, 4))).explained.any()


def test_invalid_arguments_are_refused():
    with refuses("too_few", got=(1, 2)):
        pca([[1.0, 2.0]])
    with refuses("non_finite") as caught:
        pca([[1.0, 2.0], [np.nan, 0.0]])
    assert 1 in caught.value.values.values()  # the row
    with refuses("invalid_value", option="dims", got=0):
        pca(np.eye(3), 0)
