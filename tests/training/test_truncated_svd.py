"""The truncated decomposition against LAPACK's exact one, Eckart–Young and scikit-learn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse
from sklearn.decomposition import TruncatedSVD

import firth
from firth.training import truncated_svd as module
from firth.training.truncated_svd import truncated_svd


@pytest.fixture
def always_random(monkeypatch):
    """The random solver also for matrices that are small enough for LAPACK."""
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0)


def zipfian(rows=400, columns=900, seed=0):
    """Counts as text gives them: frequent columns in most rows, rare ones in few, some topics."""
    rng = np.random.default_rng(seed)
    shares = 1 / np.arange(1, columns + 1)
    topics = rng.dirichlet(shares * 20, 12)
    counts = np.stack(
        [rng.multinomial(120, topics[rng.integers(12)] * 0.7 + shares / shares.sum() * 0.3) for _ in range(rows)]
    )
    return sparse.csr_matrix(np.sqrt(counts), dtype=np.float32)


def check_decomposition(found, matrix, k):
    dense = matrix.toarray().astype(np.float64)
    np.testing.assert_allclose(found.left.T @ found.left, np.eye(k), atol=2e-5)
    np.testing.assert_allclose(found.right.T @ found.right, np.eye(k), atol=2e-5)
    assert (np.diff(found.values) <= 0).all()
    # U, Σ and V belong together: AᵀU = VΣ
    np.testing.assert_allclose(dense.T @ found.left, found.right * found.values, atol=2e-5 * found.values[0])
    largest = np.abs(found.left).argmax(axis=0)
    assert (found.left[largest, np.arange(k)] > 0).all()


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("k", [2, 20, 100])
def test_exact_is_the_best_approximation(k, turned):
    matrix = zipfian(60, 150).T.tocsr() if turned else zipfian(60, 150)
    k = min(k, 50)
    found = truncated_svd(matrix, k)
    check_decomposition(found, matrix, k)
    truth = np.linalg.svd(matrix.toarray(), compute_uv=False)
    np.testing.assert_allclose(found.values, truth[:k], rtol=1e-5)
    gap = matrix - (found.left * found.values) @ found.right.T
    assert np.linalg.norm(gap) == pytest.approx(np.sqrt((truth[k:] ** 2).sum()), rel=1e-4)  # Eckart & Young
    assert found.error == pytest.approx(np.linalg.norm(gap), rel=1e-4)
    assert found.bound == pytest.approx(np.linalg.norm(gap, 2), rel=1e-4)


@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("k", [2, 30, 150])
def test_random_comes_near_the_best(k, turned, always_random):
    matrix = zipfian().T.tocsr() if turned else zipfian()
    found = truncated_svd(matrix, k)
    check_decomposition(found, matrix, k)
    truth = np.linalg.svd(matrix.toarray().astype(np.float64), compute_uv=False)
    best = np.sqrt((truth[k:] ** 2).sum())
    gap = matrix - (found.left * found.values) @ found.right.T
    assert best * 0.99999 <= np.linalg.norm(gap) <= best * 1.002
    assert found.error == pytest.approx(np.linalg.norm(gap), rel=1e-4)
    assert np.linalg.norm(gap, 2) <= found.bound < 1.6 * np.linalg.norm(gap, 2)
    assert (found.values <= truth[:k] * 1.00001).all()
    np.testing.assert_allclose(found.values[: k // 2], truth[: k // 2], rtol=1e-4)


@pytest.mark.parametrize("share", [0.05, 0.2, 0.4])
def test_a_slowly_falling_spectrum_needs_room(share, always_random):
    """Noise without structure is the worst case: 1.6% above the best at most, where text comes within 0.5%. The
    default must give the largest k as much room in proportion; a margin of fixed size did not."""
    matrix = sparse.random(500, 1000, 0.02, format="csr", dtype=np.float32, random_state=4)
    k = int(500 * share)
    width = module.default_oversample(5000) / 5000  # what the largest k gets, in proportion
    found = truncated_svd(matrix, k, oversample=int(k * width))
    truth = np.linalg.svd(matrix.toarray(), compute_uv=False)
    best = np.sqrt((truth[k:] ** 2).sum())
    assert found.error <= 1.02 * best
    narrow = truncated_svd(matrix, k, oversample=k // 8)
    assert narrow.error > 1.03 * best  # the baseline: a space little larger than k


def test_no_worse_than_scikit_learn(always_random):
    matrix, k = zipfian(600, 2000, seed=3), 60
    peer = TruncatedSVD(k, algorithm="randomized", n_iter=5, random_state=0).fit(matrix)
    left = (matrix @ peer.components_.T) / peer.singular_values_
    theirs = np.linalg.norm(matrix - left * peer.singular_values_ @ peer.components_)
    assert truncated_svd(matrix, k).error <= theirs


def test_a_random_subspace_without_powers_is_worse(always_random):
    """The baseline: the same matrix projected on random directions keeps far less of it."""
    matrix, k = zipfian(), 30
    random = np.linalg.qr(np.random.default_rng(0).normal(size=(400, k)))[0]
    kept = np.linalg.norm(random.T @ matrix.toarray()) ** 2 / sparse.linalg.norm(matrix) ** 2
    assert kept < 0.15 < 0.6 < truncated_svd(matrix, k).explained.sum()


def test_small_values_are_not_blurred_by_large_ones(always_random):
    """A spectrum over four decades: single precision would lose the small end without the second rotation."""
    rng = np.random.default_rng(0)
    left, right = (np.linalg.qr(rng.normal(size=(size, 60)))[0] for size in (300, 500))
    truth = np.logspace(0, -4, 60)
    found = truncated_svd(sparse.csr_matrix((left * truth) @ right.T), 40)
    np.testing.assert_allclose(found.values, truth[:40], rtol=2e-3)
    np.testing.assert_allclose(found.right.T @ found.right, np.eye(40), atol=5e-3)


@pytest.mark.filterwarnings("error::RuntimeWarning")
@pytest.mark.parametrize("holes", [False, True])
@pytest.mark.parametrize("turned", [False, True])
@pytest.mark.parametrize("solver", ["exact", "random"])
def test_more_dimensions_than_the_rank(solver, turned, holes, monkeypatch):
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0 if solver == "random" else 1 << 22)
    rng = np.random.default_rng(1)
    left, right = rng.normal(size=(80, 7)), rng.normal(size=(7, 120))
    if holes:  # rows and columns of zeros: singular values that are zero exactly
        left[::2], right[:, ::3] = 0, 0
    matrix = sparse.csr_matrix(left @ right)
    matrix = matrix.T.tocsr() if turned else matrix
    with pytest.warns(firth.FirthWarning, match="rank 7: it gives 7 dimensions, not the 50"):
        found = truncated_svd(matrix, 50)
    check_decomposition(found, matrix, 7)
    assert found.error < 1e-2 * found.values[-1]


@pytest.mark.parametrize("solver", ["exact", "random"])
def test_equal_singular_values(solver, monkeypatch):
    """The identity has one value 200 times: powers of AAᵀ alone never leave the first random block."""
    monkeypatch.setattr(module, "MAX_EXACT_CELLS", 0 if solver == "random" else 1 << 22)
    found = truncated_svd(sparse.identity(200, format="csr"), 90)
    np.testing.assert_allclose(found.values, np.ones(90), rtol=1e-5)
    assert found.explained.sum() == pytest.approx(0.45, rel=1e-5)


def test_one_row_one_column(always_random):
    row = sparse.csr_matrix([[3.0, 0.0, -4.0]])
    for matrix in (row, row.T):
        found = truncated_svd(matrix, 1)
        assert found.values.tolist() == pytest.approx([5.0])
        assert found.error == pytest.approx(0.0, abs=1e-3)


def test_the_same_bytes_for_any_number_of_threads(always_random):
    matrix = zipfian()
    found = {truncated_svd(matrix, 30, firth.Run(threads=threads)).left.tobytes() for threads in (1, 2, 5)}
    assert len(found) == 1


def test_another_seed_finds_the_same_space(always_random):
    one, two = (truncated_svd(zipfian(), 10, firth.Run(seed=seed)) for seed in (1, 2))
    np.testing.assert_allclose(one.values, two.values, rtol=1e-4)
    np.testing.assert_allclose(one.left[:, :3], two.left[:, :3], atol=1e-2)  # signs too


@given(st.integers(1, 12), st.integers(1, 12), st.integers(0, 1000))
@settings(deadline=None, max_examples=50)
def test_any_small_matrix(rows, columns, seed):
    rng = np.random.default_rng(seed)
    dense = rng.normal(size=(rows, columns)) * (rng.random((rows, columns)) < 0.7)
    dense[0, 0] = 1.0
    truth = np.linalg.svd(dense.astype(np.float32), compute_uv=False)
    k = int((truth > 1e-4).sum())
    np.testing.assert_allclose(truncated_svd(sparse.csr_matrix(dense), k).values, truth[:k], rtol=1e-4, atol=1e-5)


def test_bad_input():
    with pytest.raises(firth.FirthError, match="at least one dimension; got 0"):
        truncated_svd(sparse.identity(3), 0)
    with pytest.raises(firth.FirthError, match="All 2 × 3 numbers of the matrix are zero"):
        truncated_svd(sparse.csr_matrix((2, 3)), 1)
    for odd in (np.nan, np.inf):
        with pytest.raises(firth.FirthError, match="NaN or infinity"):
            truncated_svd(sparse.csr_matrix([[1.0, odd]]), 1)
