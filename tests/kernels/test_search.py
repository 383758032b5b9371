"""Exact search: the native kernel against NumPy on every instruction set, for float32 and float16."""

from __future__ import annotations

from functools import cache
from typing import Any

import numpy as np
import pytest

from firth import kernels
from firth.kernels.search import QuantizedRows, SearchResult, quantize_rows, quantize_twin, search_rows, search_twin

SHAPES = [  # rows, dim, queries, k
    (1, 1, 1, 1),
    (5, 3, 2, 9),
    (13, 7, 3, 4),
    (100, 16, 4, 10),
    (97, 33, 5, 10),
    (2500, 48, 17, 20),
    (700, 130, 131, 3),
    (0, 8, 2, 3),
]


@pytest.fixture(params=kernels.instruction_sets())
def isa(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    monkeypatch.setenv("FIRTH_ISA", request.param)
    return str(request.param)


def make_data(rows: int, dim: int, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Return a matrix, queries, positive scales and a subset of the rows."""
    rng = np.random.default_rng(rows + dim)
    matrix = rng.normal(size=(rows, dim)).astype(np.float32)
    asked = rng.normal(size=(queries, dim)).astype(np.float32)
    listed = np.flatnonzero(rng.random(rows) < 0.6).astype(np.int64)
    return matrix, asked, rng.uniform(0.5, 2, rows).astype(np.float32), listed


def assert_same(actual: SearchResult, expected: SearchResult, tolerance: float = 1e-4) -> None:
    """Assert equal scores; rows may differ only where scores are nearly equal."""
    np.testing.assert_allclose(actual.scores, expected.scores, rtol=tolerance, atol=tolerance)
    assert (actual.rows == expected.rows).mean() > 0.98
    assert ((actual.rows < 0) == (expected.rows < 0)).all()


@pytest.mark.parametrize(("rows", "dim", "queries", "k"), SHAPES)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("dtype", [np.float32, np.float16])
def test_floats_equal_twin(isa, rows, dim, queries, k, squared, dtype):
    matrix, queries, scales, listed = make_data(rows, dim, queries)
    matrix = matrix.astype(dtype)
    subsets: list[dict[str, Any]] = [{}, {"listed": listed}, {"scales": scales}, {"scales": scales, "listed": listed}]
    for options in subsets:
        assert_same(
            search_rows(matrix, queries, k, squared=squared, threads=2, **options),
            search_twin(matrix, queries, k, squared=squared, **options),
        )


def test_float16_is_widened_exactly(isa):
    """Every finite float16 value, including subnormals, times one."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    values = bits.view(np.float16)
    half = values[np.isfinite(values)].reshape(-1, 31)
    actual = search_rows(half.reshape(-1, 1).copy(), np.ones((1, 1), np.float32), half.size)
    assert np.array_equal(actual.scores[0], half.ravel()[actual.rows[0]].astype(np.float32))
    assert sorted(actual.rows[0].tolist()) == list(range(half.size))


def test_ties_are_ordered_by_row(isa):
    matrix = np.ones((5000, 4), dtype=np.float32)
    queries = np.ones((6, 4), dtype=np.float32)
    for threads in (1, 3):
        assert (search_rows(matrix, queries, 7, threads=threads).rows == np.arange(7)).all()


def test_result_is_independent_of_threads(isa):
    matrix, queries, *_ = make_data(20_000, 20, 9)
    one, three = (search_rows(matrix, queries, 50, threads=threads) for threads in (1, 3))
    assert one.scores.tobytes() == three.scores.tobytes() and one.rows.tobytes() == three.rows.tobytes()


# ---- with quantized rows ----


@pytest.mark.parametrize(("rows", "dim"), [(0, 5), (1, 1), (70, 7), (40, 64), (300, 50)])
def test_sketch_equals_twin(rows, dim):
    matrix, *_ = make_data(rows, dim, 1)
    matrix[1::5] *= 1e30
    matrix[2::5] *= 1e-30
    matrix[3::5] = 0
    actual, expected = quantize_rows(matrix), quantize_twin(matrix)
    assert np.array_equal(actual.steps, expected.steps) and np.array_equal(actual.sums, actual.codes.sum(axis=1))
    assert np.abs(actual.codes.astype(int) - expected.codes).max(initial=0) <= 1  # ties may round either way
    np.testing.assert_allclose(actual.errors, expected.errors, rtol=1e-5, atol=2e-37)
    np.testing.assert_allclose(actual.norms, expected.norms, rtol=1e-5)
    assert actual.codes.shape[1] % 4 == 0 and (actual.codes[:, dim:] == 0).all()


def test_errors_and_norms_are_upper_bounds():
    matrix, *_ = make_data(3000, 33, 1)
    matrix[::7] *= 1e-20
    quantized, exact = quantize_rows(matrix), matrix.astype(np.float64)
    actual = np.linalg.norm(exact - quantized.steps[:, None].astype(np.float64) * quantized.codes[:, :33], axis=1)
    assert (quantized.errors >= actual).all() and (quantized.norms >= np.linalg.norm(exact, axis=1)).all()
    assert (actual <= quantized.steps.astype(np.float64) / 2 * np.sqrt(33) * 1.001).all()  # half a step per element


@cache
def datasets() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Return rows and queries by name, some with scores that the bounds can hardly separate.

    Each matrix has a million values, enough for a search to use quantized rows.
    """
    rng = np.random.default_rng(5)
    rows, dim = 16_500, 64
    normal = rng.normal(size=(rows, dim))
    centres = rng.normal(size=(30, dim))[rng.integers(30, size=rows)]
    spiky = normal * rng.pareto(0.5, size=(rows, dim))  # one value per row decides the step
    lengths = normal * 10.0 ** rng.uniform(-6, 6, size=(rows, 1))
    rising = normal + np.linspace(0, 20, rows)[:, None]  # each row is nearer than the ones before
    twice = np.repeat(normal[: rows // 2], 2, axis=0)  # ties
    close = 3 + 1e-6 * normal  # all within the error bounds
    tiny = normal * 1e-38
    sparse = np.where(rng.random((rows, dim)) < 0.05, normal, 0)
    sparse[::11] = 0
    named = {
        "normal": normal, "clustered": centres + normal / 5, "spiky": spiky, "lengths": lengths, "rising": rising,
        "twice": twice, "close": close, "tiny": tiny, "sparse": sparse, "same": np.ones((rows, dim)),
    }  # fmt: skip
    queries = {name: np.concatenate([matrix[[5, 800]], rng.normal(size=(5, dim))]) for name, matrix in named.items()}
    return {name: (named[name].astype(np.float32), queries[name].astype(np.float32)) for name in named}


@pytest.mark.parametrize("name", list(datasets()))
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_sketch_does_not_change_the_result(isa, name, metric):
    """Rows and scores are bitwise equal to those without quantized rows, including ties."""
    matrix, queries = datasets()[name]
    quantized, squared, scales = quantize_rows(matrix), metric == "euclidean", None
    if metric == "cosine":
        with np.errstate(divide="ignore"):
            lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
            scales = np.where(lengths > 0, 1 / lengths, np.nan).astype(np.float32)
        queries = (queries / np.linalg.norm(queries.astype(np.float64), axis=1)[:, None]).astype(np.float32)
    listed = np.setdiff1d(np.arange(len(matrix)), [3, 7, 5000])
    for some, k, rows in ((queries[:1], 10, None), (queries[:3], 1, listed), (queries, 50, None), (queries, 3, listed)):
        options: dict[str, Any] = {"scales": scales, "listed": rows, "squared": squared, "threads": 2}
        expected = search_rows(matrix, some, k, **options)
        actual = search_rows(matrix, some, k, quantized=quantized, **options)
        assert np.array_equal(actual.rows, expected.rows) and actual.scores.tobytes() == expected.scores.tobytes()


def test_sketch_rules_rows_out(isa):
    """A wrong quantized, in which the best row is zero, hides that row."""
    matrix, _ = datasets()["normal"]
    quantized = quantize_rows(matrix)
    query = matrix[5:6]
    assert search_rows(matrix, query, 1, quantized=quantized).rows[0, 0] == 5
    for array in quantized:
        array[5] = 0
    assert search_rows(matrix, query, 1, quantized=quantized).rows[0, 0] != 5


def test_invalid_arrays_raise():
    matrix, queries, scales, _ = make_data(10, 8, 2)
    with pytest.raises(ValueError, match="as wide as the matrix"):
        search_rows(matrix, queries[:, :3], 1)
    with pytest.raises(ValueError, match="one scale per row"):
        search_rows(matrix, queries, 1, scales=scales[:3])
    for listed in ([3, 3], [0, 10], [-1]):
        with pytest.raises(ValueError, match="listed rows must be ascending"):
            search_rows(matrix, queries, 1, listed=np.array(listed, dtype=np.int64))
    with pytest.raises(ValueError, match="k and threads"):
        search_rows(matrix, queries, 0)
    quantized = quantize_rows(matrix)
    with pytest.raises(ValueError, match="one step, sum, error and norm per row"):
        others = {name: array[:2] for name, array in quantized._asdict().items() if name != "codes"}
        short = quantized._replace(**others)
        search_rows(matrix, queries, 1, quantized=short)
    with pytest.raises(ValueError, match="the matrix's rows"):
        search_rows(matrix, queries, 1, quantized=QuantizedRows(quantized.codes[:, :4].copy(), *quantized[1:]))
