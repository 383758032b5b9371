"""The scan for nearest rows: native against NumPy on every instruction set, for every kind of numbers."""

from __future__ import annotations

import numpy as np
import pytest

from firth import kernels
from firth.kernels.search import Codes, Found, encode_rows, search_codes, search_rows, search_twin

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


def same(found: Found, expected: Found, places: float = 1e-4) -> None:
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


@pytest.mark.parametrize(("rows", "dim", "queries", "k"), SHAPES)
def test_codes_equal_twin(isa, rows, dim, queries, k):
    """The twin sees rows and queries after they were coded: integers, so that only rounding at the end differs."""
    matrix, asked, scales, listed = made(rows, dim, queries)
    coded, queries_coded = encode_rows(matrix), encode_rows(asked)
    back = queries_coded.codes * queries_coded.scales[:, None]
    for options in ({}, {"listed": listed, "offsets": scales - 1}):
        expected = search_twin(coded.codes, back, k, scales=coded.scales, **options)
        same(search_codes(coded, asked, k, threads=2, **options), expected)


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


def test_codes_lose_little():
    matrix, *_ = made(300, 50, 1)
    coded = encode_rows(matrix)
    back = coded.codes[:, :50] * coded.scales[:, None]
    assert np.abs(back - matrix).max() <= np.abs(matrix).max() / 254 * 1.001  # half a step
    assert (coded.codes[:, 50:] == 0).all() and coded.codes.shape[1] == 52
    assert encode_rows(np.zeros((2, 3), np.float32)).codes.sum() == 0


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
    coded = encode_rows(matrix)
    with pytest.raises(ValueError, match="a sum a row"):
        search_codes(Codes(coded.codes, coded.scales, coded.sums[:2]), asked, 1)
