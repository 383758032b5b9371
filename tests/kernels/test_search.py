"""The scan for nearest rows: native against NumPy on every instruction set, for every kind of numbers."""

from __future__ import annotations

from functools import cache

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
    return request.param


def made(rows: int, dim: int, queries: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """A matrix, queries, positive scales, and some of the rows."""
    rng = np.random.default_rng(rows + dim)
    matrix = rng.normal(size=(rows, dim)).astype(np.float32)
    asked = rng.normal(size=(queries, dim)).astype(np.float32)
    listed = np.flatnonzero(rng.random(rows) < 0.6).astype(np.int64)
    return matrix, asked, rng.uniform(0.5, 2, rows).astype(np.float32), listed


def same(found: SearchResult, expected: SearchResult, places: float = 1e-4) -> None:
    """Scores agree; where rows differ their scores are as good as equal."""
    np.testing.assert_allclose(found.scores, expected.scores, rtol=places, atol=places)
    assert (found.rows == expected.rows).mean() > 0.98
    assert ((found.rows < 0) == (expected.rows < 0)).all()


@pytest.mark.parametrize(("rows", "dim", "queries", "k"), SHAPES)
@pytest.mark.parametrize("squared", [False, True])
@pytest.mark.parametrize("kind", [np.float32, np.float16])
def test_floats_equal_twin(isa, rows, dim, queries, k, squared, kind):
    matrix, asked, scales, listed = made(rows, dim, queries)
    matrix = matrix.astype(kind)
    for options in ({}, {"listed": listed}, {"scales": scales}, {"scales": scales, "listed": listed}):
        same(
            search_rows(matrix, asked, k, squared=squared, threads=2, **options),
            search_twin(matrix, asked, k, squared=squared, **options),
        )


def test_half_numbers_are_widened_exactly(isa):
    """Every finite half-precision number, subnormal ones too, times one."""
    bits = np.arange(1 << 16, dtype=np.uint16)
    half = bits.view(np.float16)
    half = half[np.isfinite(half)].reshape(-1, 31)
    found = search_rows(half.reshape(-1, 1).copy(), np.ones((1, 1), np.float32), half.size)
    assert np.array_equal(found.scores[0], half.ravel()[found.rows[0]].astype(np.float32))
    assert sorted(found.rows[0].tolist()) == list(range(half.size))


def test_equal_scores_come_in_the_order_of_rows(isa):
    matrix = np.ones((5000, 4), dtype=np.float32)
    asked = np.ones((6, 4), dtype=np.float32)
    for threads in (1, 3):
        assert (search_rows(matrix, asked, 7, threads=threads).rows == np.arange(7)).all()


def test_same_bytes_for_any_threads(isa):
    matrix, asked, *_ = made(20_000, 20, 9)
    one, three = (search_rows(matrix, asked, 50, threads=threads) for threads in (1, 3))
    assert one.scores.tobytes() == three.scores.tobytes() and one.rows.tobytes() == three.rows.tobytes()


# ---- with a sketch ----


@pytest.mark.parametrize(("rows", "dim"), [(0, 5), (1, 1), (70, 7), (40, 64), (300, 50)])
def test_sketch_equals_twin(rows, dim):
    matrix, *_ = made(rows, dim, 1)
    matrix[1::5] *= 1e30
    matrix[2::5] *= 1e-30
    matrix[3::5] = 0
    found, expected = quantize_rows(matrix), quantize_twin(matrix)
    assert np.array_equal(found.steps, expected.steps) and np.array_equal(found.sums, found.codes.sum(axis=1))
    assert np.abs(found.codes.astype(int) - expected.codes).max(initial=0) <= 1  # halves fall to either side
    np.testing.assert_allclose(found.errors, expected.errors, rtol=1e-5, atol=2e-37)
    np.testing.assert_allclose(found.norms, expected.norms, rtol=1e-5)
    assert found.codes.shape[1] % 4 == 0 and (found.codes[:, dim:] == 0).all()


def test_errors_and_norms_are_bounds():
    matrix, *_ = made(3000, 33, 1)
    matrix[::7] *= 1e-20
    quantized, exact = quantize_rows(matrix), matrix.astype(np.float64)
    off = np.linalg.norm(exact - quantized.steps[:, None].astype(np.float64) * quantized.codes[:, :33], axis=1)
    assert (quantized.errors >= off).all() and (quantized.norms >= np.linalg.norm(exact, axis=1)).all()
    assert (off <= quantized.steps.astype(np.float64) / 2 * np.sqrt(33) * 1.001).all()  # half a step each


@cache
def kinds_of_data() -> dict[str, tuple[np.ndarray, np.ndarray]]:
    """Rows and queries: easy ones, and such that bounds hardly tell them apart. A million numbers, so that bytes are
    looked at."""
    rng = np.random.default_rng(5)
    rows, dim = 16_500, 64
    normal = rng.normal(size=(rows, dim))
    centres = rng.normal(size=(30, dim))[rng.integers(30, size=rows)]
    spiky = normal * rng.pareto(0.5, size=(rows, dim))  # one number a row decides the step
    lengths = normal * 10.0 ** rng.uniform(-6, 6, size=(rows, 1))
    rising = normal + np.linspace(0, 20, rows)[:, None]  # each row nearer than those before
    twice = np.repeat(normal[: rows // 2], 2, axis=0)  # ties
    close = 3 + 1e-6 * normal  # all within the bounds' reach
    tiny = normal * 1e-38
    sparse = np.where(rng.random((rows, dim)) < 0.05, normal, 0)
    sparse[::11] = 0
    named = {
        "normal": normal, "clustered": centres + normal / 5, "spiky": spiky, "lengths": lengths, "rising": rising,
        "twice": twice, "close": close, "tiny": tiny, "sparse": sparse, "same": np.ones((rows, dim)),
    }  # fmt: skip
    asked = {name: np.concatenate([matrix[[5, 800]], rng.normal(size=(5, dim))]) for name, matrix in named.items()}
    return {name: (named[name].astype(np.float32), asked[name].astype(np.float32)) for name in named}


@pytest.mark.parametrize("name", list(kinds_of_data()))
@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
def test_sketch_changes_nothing(isa, name, metric):
    """The same rows and the same bytes of scores as without, ties too."""
    matrix, asked = kinds_of_data()[name]
    quantized, squared, scales = quantize_rows(matrix), metric == "euclidean", None
    if metric == "cosine":
        with np.errstate(divide="ignore"):
            lengths = np.linalg.norm(matrix.astype(np.float64), axis=1)
            scales = np.where(lengths > 0, 1 / lengths, np.nan).astype(np.float32)
        asked = (asked / np.linalg.norm(asked.astype(np.float64), axis=1)[:, None]).astype(np.float32)
    listed = np.setdiff1d(np.arange(len(matrix)), [3, 7, 5000])
    for queries, k, rows in ((asked[:1], 10, None), (asked[:3], 1, listed), (asked, 50, None), (asked, 3, listed)):
        options = {"scales": scales, "listed": rows, "squared": squared, "threads": 2}
        plain = search_rows(matrix, queries, k, **options)
        found = search_rows(matrix, queries, k, quantized=quantized, **options)
        assert np.array_equal(found.rows, plain.rows) and found.scores.tobytes() == plain.scores.tobytes()


def test_sketch_is_what_rules_rows_out(isa):
    """One that lies is believed: the best row's bytes say that it is zero."""
    matrix, _ = kinds_of_data()["normal"]
    quantized = quantize_rows(matrix)
    query = matrix[5:6]
    assert search_rows(matrix, query, 1, quantized=quantized).rows[0, 0] == 5
    for array in quantized:
        array[5] = 0
    assert search_rows(matrix, query, 1, quantized=quantized).rows[0, 0] != 5


def test_wrong_arrays_are_refused():
    matrix, asked, scales, _ = made(10, 8, 2)
    with pytest.raises(ValueError, match="as wide as the matrix"):
        search_rows(matrix, asked[:, :3], 1)
    with pytest.raises(ValueError, match="a scale a row"):
        search_rows(matrix, asked, 1, scales=scales[:3])
    for listed in ([3, 3], [0, 10], [-1]):
        with pytest.raises(ValueError, match="listed rows must rise"):
            search_rows(matrix, asked, 1, listed=np.array(listed, dtype=np.int64))
    with pytest.raises(ValueError, match="k and threads"):
        search_rows(matrix, asked, 0)
    quantized = quantize_rows(matrix)
    with pytest.raises(ValueError, match="a step, sum, error and norm a row"):
        search_rows(matrix, asked, 1, quantized=QuantizedRows(quantized.codes, *(array[:2] for array in quantized[1:])))
    with pytest.raises(ValueError, match="the matrix's rows"):
        search_rows(matrix, asked, 1, quantized=QuantizedRows(quantized.codes[:, :4].copy(), *quantized[1:]))
