"""Product quantization: native k-means and codes against NumPy, and invariants."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from firth import kernels
from firth.kernels import _native
from firth.kernels.product import CENTROIDS, assign_twin, centroids_twin, parts_of, quantize


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_matrix(rows: int, dim: int, seed: int = 1) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=(rows, dim)).astype(np.float32)


@pytest.mark.parametrize(("dim", "width"), [(4, 2), (5, 2), (7, 3), (3, 1)])
def test_native_equals_twin(isa, dim, width):
    matrix = make_matrix(700, dim)
    centroids = np.zeros(dim * CENTROIDS, dtype=np.float32)
    _native.find_centroids(matrix, width, 4, centroids, 2)
    np.testing.assert_allclose(centroids, centroids_twin(matrix, width, 4), atol=1e-6)
    codes = np.zeros((len(matrix), parts_of(dim, width)), dtype=np.uint8)
    _native.assign_codes(matrix, width, centroids, codes, 2)
    assert (codes == assign_twin(matrix, centroids, width)).mean() > 0.999  # rounding may decide ties


def test_codes_are_independent_of_threads(isa):
    matrix = make_matrix(3000, 10)
    one, three = (quantize(matrix, norms=True, threads=threads) for threads in (1, 3))
    assert one.codes.tobytes() == three.codes.tobytes() and one.centroids.tobytes() == three.centroids.tobytes()
    assert one.norm_codes is not None and three.norm_codes is not None
    assert one.norm_codes.tobytes() == three.norm_codes.tobytes()


def test_error_is_below_that_of_random_centroids():
    """k-means improves on its random initial rows; narrower parts and norms improve on wider parts."""
    matrix = make_matrix(4000, 12) * np.linspace(0.1, 3, 4000, dtype=np.float32)[:, None]

    def error(**settings) -> float:
        return float(np.square(quantize(matrix, **settings).dense() - matrix).sum() / np.square(matrix).sum())

    centroids = np.concatenate([matrix[:CENTROIDS, first : first + 2].ravel() for first in range(0, 12, 2)])
    codes = assign_twin(matrix, centroids, 2)
    decoded = np.concatenate([matrix[codes[:, part], 2 * part : 2 * part + 2] for part in range(6)], axis=1)
    initial_error = float(np.square(decoded - matrix).sum() / np.square(matrix).sum())
    assert error() < 0.8 * initial_error
    assert error(width=1) < error() < error(width=4)
    assert error(norms=True) < error()


@settings(max_examples=30, deadline=None)
@given(st.integers(0, 300), st.integers(1, 9), st.integers(1, 9), st.booleans(), st.integers(0, 99))
def test_few_rows_are_reconstructed_exactly(rows, dim, width, norms, seed):
    """With as many centroids as rows, only rounding is lost."""
    matrix = make_matrix(rows, dim, seed)
    matrix[::7] = 0
    codes = quantize(matrix, min(width, dim), norms)
    assert codes.shape == matrix.shape
    if rows <= CENTROIDS:
        np.testing.assert_allclose(codes.dense(), matrix, atol=1e-5)
    selected = np.arange(rows)[::-2]
    assert np.array_equal(codes.take(selected), codes.dense()[selected])
    assert np.array_equal(codes.rows(selected).dense(), codes.dense()[selected])
