"""The truncated SVD against LAPACK, the Eckart–Young bound and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses, warns_code
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

import firth
from firth.training import truncated_svd as module
from firth.training.truncated_svd import truncated_svd


@pytest.fixture
def always_random(monkeypatch):
    """Use the randomized solver also for small matrices."""
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0)


def zipfian(rows=400, columns=900, seed=0):
    """A matrix like word counts: frequent columns in most rows, rare ones in few, and some topics."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, columns + 1)
    topics = rng.dirichlet(shares * 20, 12)
    counts = np.stack(
        [rng.multinomial(120, topics[rng.integers(12)] * 0.7 + shares / shares.sum() * 0.3) for _ in range(rows)]
    )
    return sparse.csr_matrix(np.sqrt(counts), dtype=np.float32)


def check_decomposition(svd, matrix, k):
    dense = matrix.toarray().astype(np.float64)
    np.testing.assert_allclose(svd.left.T @ svd.left, np.eye(k), atol=2e-5)
    np.testing.assert_allclose(svd.right.T @ svd.right, np.eye(k), atol=2e-5)
    assert (np.diff(svd.values) <= 0).all()
    # U, Σ and V are consistent: AᵀU = VΣ
    np.testing.assert_allclose(dense.T @ svd.left, svd.right * svd.values, atol=2e-5 * svd.values[0])
    largest = np.abs(svd.left).argmax(axis=0)
    assert (svd.left[largest, np.arange(k)] > 0).all()


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [2, 20, 100])
def test_exact_is_the_best_approximation(k, transposed):
    matrix = zipfian(60, 150).T.tocsr() if transposed else zipfian(60, 150)
    k = min(k, 50)
    svd = truncated_svd(matrix, k)
    check_decomposition(svd, matrix, k)
    singular_values = np.linalg.svd(matrix.toarray(), compute_uv=False)
    np.testing.assert_allclose(svd.values, singular_values[:k], rtol=1e-5)
    residual = matrix - (svd.left * svd.values) @ svd.right.T
    assert np.linalg.norm(residual) == pytest.approx(
        np.sqrt((singular_values[k:] ** 2).sum()), rel=1e-4
    )  # Eckart & Young
    assert svd.error == pytest.approx(np.linalg.norm(residual), rel=1e-4)
    assert svd.bound == pytest.approx(np.linalg.norm(residual, 2), rel=1e-4)


@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("k", [2, 30, 150])
def test_randomized_is_close_to_the_best_approximation(k, transposed, always_random):
    matrix = zipfian().T.tocsr() if transposed else zipfian()
    svd = truncated_svd(matrix, k)
    check_decomposition(svd, matrix, k)
    singular_values = np.linalg.svd(matrix.toarray().astype(np.float64), compute_uv=False)
    best = np.sqrt((singular_values[k:] ** 2).sum())
    residual = matrix - (svd.left * svd.values) @ svd.right.T
    assert best * 0.99999 <= np.linalg.norm(residual) <= best * 1.002
    assert svd.error == pytest.approx(np.linalg.norm(residual), rel=1e-4)
    assert np.linalg.norm(residual, 2) <= svd.bound < 1.6 * np.linalg.norm(residual, 2)
    assert (svd.values <= singular_values[:k] * 1.00001).all()
    np.testing.assert_allclose(svd.values[: k // 2], singular_values[: k // 2], rtol=1e-4)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_a_slowly_decaying_spectrum_needs_oversampling(share, always_random):
    """Unstructured noise is the worst case: at most 1.6% above the best error, where text is within 0.5%. Oversampling
    must grow with k; a fixed margin is not enough for large k."""
    matrix = sparse.random(500, 1000, 0.02, format="csr", dtype=np.float32, random_state=4)
    k = int(500 * share)
    width = module.default_oversample(5000) / 5000  # the oversampling of a large k, relative to k
    svd = truncated_svd(matrix, k, oversample=int(k * width))
    singular_values = np.linalg.svd(matrix.toarray(), compute_uv=False)
    best = np.sqrt((singular_values[k:] ** 2).sum())
    assert svd.error <= 1.02 * best
    small_margin = truncated_svd(matrix, k, oversample=k // 8)
    assert small_margin.error > 1.03 * best  # the baseline: a space little larger than k


def test_no_worse_than_scikit_learn(always_random):
    matrix, k = zipfian(600, 2000, seed=3), 60
    peer = TruncatedSVD(k, algorithm="randomized", n_iter=5, random_state=0).fit(matrix)
    left = (matrix @ peer.components_.T) / peer.singular_values_
    theirs = np.linalg.norm(matrix - left * peer.singular_values_ @ peer.components_)
    assert truncated_svd(matrix, k).error <= theirs


def test_a_random_subspace_without_powers_is_worse(always_random):
    """The baseline: projecting on random directions keeps far less of the matrix."""
    matrix, k = zipfian(), 30
    random = np.linalg.qr(np.random.default_rng(0).normal(size=(400, k)))[0]
    share = np.linalg.norm(random.T @ matrix.toarray()) ** 2 / sparse.linalg.norm(matrix) ** 2
    assert share < 0.15 < 0.6 < truncated_svd(matrix, k).explained.sum()


def test_small_singular_values_are_accurate(always_random):
    """The spectrum spans four decades: without the second rotation float32 would lose the small values."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, 60)))[0] for size in (300, 500))
    singular_values = np.logspace(0, -4, 60)
    svd = truncated_svd(sparse.csr_matrix((left * singular_values) @ right.T), 40)
    np.testing.assert_allclose(svd.values, singular_values[:40], rtol=2e-3)
    np.testing.assert_allclose(svd.right.T @ svd.right, np.eye(40), atol=5e-3)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("transposed", [False, True])
@pytest.mark.parametrize("solver", ["exact", "random"])
def test_more_dimensions_than_the_rank(solver, transposed, holes, monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0 if solver == "random" else 1 << 22)
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(80, 7)), rng.normal(size=(7, 120))
    if holes:  # rows and columns of zeros: singular values that are zero exactly
        left[::2], right[:, ::3] = 0, 0
    matrix = sparse.csr_matrix(left @ right)
    matrix = matrix.T.tocsr() if transposed else matrix
    with warns_code("low_rank") as issued:
        svd = truncated_svd(matrix, 50)
    assert "rank 7" in str(issued[0]) and "50" in str(issued[0])
    check_decomposition(svd, matrix, 7)
    assert svd.error < 1e-2 * svd.values[-1]


@pytest.mark.parametrize("solver", ["exact", "random"])
def test_equal_singular_values(solver, monkeypatch):
    """All singular values of the identity are equal, so powers of AAᵀ add no directions to the first random block."""
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0 if solver == "random" else 1 << 22)
    svd = truncated_svd(sparse.identity(200, format="csr"), 90)
    np.testing.assert_allclose(svd.values, np.ones(90), rtol=1e-5)
    assert svd.explained.sum() == pytest.approx(0.45, rel=1e-5)


def test_one_row_one_column(always_random):
    row = sparse.csr_matrix([[3.0, 0.0, -4.0]])
    for matrix in (row, row.T):
        svd = truncated_svd(matrix, 1)
        assert svd.values.tolist() == pytest.approx([5.0])
        assert svd.error == pytest.approx(0.0, abs=1e-3)


def test_the_result_does_not_depend_on_the_number_of_threads(always_random):
    matrix = zipfian()
    results = {truncated_svd(matrix, 30, firth.Run(threads=threads)).left.tobytes() for threads in (1, 2, 5)}
    assert len(results) == 1


def test_the_result_does_not_depend_on_the_seed(always_random):
    one, two = (truncated_svd(zipfian(), 10, firth.Run(seed=seed)) for seed in (1, 2))
    np.testing.assert_allclose(one.values, two.values, rtol=1e-4)
    np.testing.assert_allclose(one.left[:, :3], two.left[:, :3], atol=1e-2)  # signs too


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
@settings(deadline=None, max_examples=50)
def test_any_small_matrix(rows, columns, seed):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.7)
    dense[0, 0] = 1.0
    singular_values = np.linalg.svd(dense.astype(np.float32), compute_uv=False)
    k = int((singular_values > 1e-4).sum())
    np.testing.assert_allclose(
        truncated_svd(sparse.csr_matrix(dense), k).values, singular_values[:k], rtol=1e-4, atol=1e-5
    )


def test_invalid_input_is_refused():
    with refuses("too_few", got=0):
        truncated_svd(sparse.identity(3), 0)
    with refuses("empty_data", shape="2 × 3"):
        truncated_svd(sparse.csr_matrix((2, 3)), 1)
    for value in (np.nan, np.inf):
        with refuses("non_finite"):
            truncated_svd(sparse.csr_matrix([[1.0, value]]), 1)
