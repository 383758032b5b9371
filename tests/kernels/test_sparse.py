"""Counting words by document and sparse × dense: the native functions against their NumPy twins and scipy."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy import sparse

from firth import kernels
from firth.kernels import _native
from firth.kernels.sparse import CSRMatrix, count_words, count_words_twin, multiply, multiply_twin


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def random_rows(seed: int, rows: int, columns: int, density: float = 0.1) -> tuple[CSRMatrix, sparse.csr_matrix]:
    matrix = sparse.random(rows, columns, density, format="csr", dtype=np.float32, random_state=seed)
    matrix.sort_indices()
    return CSRMatrix(matrix.indptr.astype(np.int64), matrix.indices, matrix.data), matrix


@pytest.mark.parametrize("width", [1, 3, 4, 7, 8, 15, 16, 17, 31, 64, 100, 130, 256, 300, 517])
def test_multiply_equals_twin_and_scipy(isa, width):
    rows, matrix = random_rows(width, 60, 90)
    dense = np.random.default_rng(width).normal(size=(90, width)).astype(np.float32)
    actual = multiply(rows, dense, threads=2)
    np.testing.assert_allclose(actual, multiply_twin(rows, dense), atol=1e-5)
    np.testing.assert_allclose(actual, matrix @ dense, atol=1e-5)


def test_multiply_is_independent_of_threads(isa):
    rows, _ = random_rows(1, 3000, 500, 0.2)  # enough entries for several blocks
    dense = np.random.default_rng(1).normal(size=(500, 40)).astype(np.float32)
    assert len({multiply(rows, dense, threads=threads).tobytes() for threads in (1, 2, 3, 8)}) == 1


def test_multiply_of_empty_rows(isa):
    rows = CSRMatrix(np.array([0, 0, 0]), np.zeros(0, np.int32), np.zeros(0, np.float32))
    np.testing.assert_array_equal(multiply(rows, np.ones((5, 20), np.float32)), np.zeros((2, 20)))
    no_rows = CSRMatrix(np.array([0]), np.zeros(0, np.int32), np.zeros(0, np.float32))
    assert multiply(no_rows, np.ones((5, 20), np.float32)).shape == (0, 20)


@given(st.lists(st.lists(st.integers(0, 30), max_size=40), max_size=30), st.integers(1, 4))
@settings(deadline=None)
def test_count_words_equals_twin(documents, threads):
    ids = np.array([word for document in documents for word in document], dtype=np.int32)
    starts = np.concatenate([[0], np.cumsum([len(document) for document in documents])]).astype(np.int64)
    actual, expected = count_words(ids, starts, 31, threads), count_words_twin(ids, starts)
    for array, expected_array in zip(actual, expected, strict=True):
        assert isinstance(array, np.ndarray) and isinstance(expected_array, np.ndarray)
        np.testing.assert_array_equal(array, expected_array)
        assert array.dtype == expected_array.dtype


def test_count_words_on_many_threads():
    rng = np.random.default_rng(0)
    ids = (rng.zipf(1.3, 200_000) % 5000).astype(np.int32)
    starts = np.concatenate([[0], np.sort(rng.integers(0, len(ids), 999)), [len(ids)]])
    actual, expected = count_words(ids, starts, 5000, 4), count_words_twin(ids, starts)
    for array, expected_array in zip(actual, expected, strict=True):
        np.testing.assert_array_equal(array, expected_array)
    assert actual.values.sum() == len(ids)


def test_count_words_uses_the_allocator(tmp_path):
    def allocate(size, dtype):
        return np.memmap(tmp_path / np.dtype(dtype).name, dtype=dtype, mode="w+", shape=(size,))

    actual = count_words(np.array([2, 1, 2], np.int32), np.array([0, 3]), 3, allocate=allocate)
    assert isinstance(actual.columns, np.memmap)
    assert (tmp_path / "int32").read_bytes() == np.array([1, 2], np.int32).tobytes()
    assert (tmp_path / "float32").read_bytes() == np.array([1, 2], np.float32).tobytes()


def test_invalid_arrays_raise():
    ids, starts = np.array([0, 1, 1], np.int32), np.array([0, 3])
    with pytest.raises(ValueError, match="columns must be inside"):
        count_words(ids, starts, 1)
    with pytest.raises(ValueError, match="columns must be inside"):
        count_words(np.array([-1], np.int32), np.array([0, 1]), 1)
    with pytest.raises(ValueError, match="last start"):
        count_words(ids, np.array([0, 2]), 2)
    with pytest.raises(ValueError, match="must not decrease"):
        count_words(ids, np.array([0, 3, 2, 3]), 2)
    for wrong in ([0, 1], [0, 3]):  # too few, too many
        columns, counts = np.zeros(wrong[-1], np.int32), np.zeros(wrong[-1], np.float32)
        with pytest.raises(ValueError, match="must be those of count_distinct"):
            _native.count_words(ids, starts, 2, np.array(wrong), columns, counts, 1)
    rows, _ = random_rows(0, 5, 8, 0.5)
    with pytest.raises(ValueError, match="columns must be inside"):
        multiply(rows, np.ones((3, 4), np.float32))
    with pytest.raises(ValueError, match="out must have"):
        _native.multiply(*rows, np.ones((8, 4), np.float32), np.ones((5, 3), np.float32), 1)
