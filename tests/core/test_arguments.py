"""What is no array of real numbers, no key or no count is refused with a code, wherever it is passed."""

from __future__ import annotations

import decimal
import fractions
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import firth
from firth import FirthError, Vectors
from firth.core.arguments import as_floats
from firth.index import Index


class Stubborn:
    def __array__(self, *_: Any, **more: Any) -> Any:
        raise RuntimeError("on a GPU")

    def __iter__(self) -> Any:
        raise TypeError("0-d")


REFUSED = {
    "texts": ([["1", "2"], ["3", "4"]], "invalid_type"),
    "bytes": ([[b"1", b"2"], [b"3", b"4"]], "invalid_type"),
    "one text": ("ab", "invalid_type"),
    "none": (None, "invalid_type"),
    "missing": ([[None, 1], [2, 3]], "invalid_type"),
    "masked": (np.ma.masked_array(np.ones((2, 2)), [[False, True], [False, False]]), "missing_value"),
    "two lengths": ([[1, 2], [3]], "invalid_type"),
    "complex": ([[1j, 2], [3, 4]], "invalid_type"),
    "dictionaries": ([{"a": 1}, {"b": 2}], "invalid_type"),
    "dates": (np.zeros((2, 2), "M8[s]"), "invalid_type"),
    "records": (np.zeros(2, "f4,f4"), "invalid_type"),
    "a generator": ((row for row in [[1, 2], [3, 4]]), "invalid_type"),
    "an object": (Stubborn(), "invalid_type"),
    "endless": ([[10**400, 1], [1, 1]], "out_of_range"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_what_is_no_array_of_numbers(name):
    values, code = REFUSED[name]
    vectors = Vectors(["a", "b"], [[1, 2], [3, 4]])
    index = Index.create(dim=2)
    index.add(["a", "b"], [[1, 2], [3, 4]])
    calls: list[Callable[[Any], Any]] = [
        lambda values: Vectors(["a", "b"], values),
        lambda values: index.add(["c", "d"], values),
        lambda values: index.update(["c", "d"], values),
        lambda values: firth.similarity(values, values),
    ]
    if not isinstance(values, str):  # which is a key here, or a query
        calls += [vectors.neighbors, index.search, index.find]
    for call in calls:
        with pytest.raises(FirthError) as refused:
            call(values)
        assert refused.value.code == code
    assert len(index) == 2


@pytest.mark.parametrize(
    ("values", "floats"),
    [
        (np.array([True, False]), [1, 0]),
        (np.array([2**64 - 1], np.uint64), [2.0**64]),
        (np.array([1.5], np.longdouble), [1.5]),
        ([10**30, decimal.Decimal("1.5"), fractions.Fraction(1, 2), True], [1e30, 1.5, 0.5, 1]),
        (range(3), [0, 1, 2]),
        ([1e300, -1e300], [np.inf, -np.inf]),
        ([], []),
    ],
)
def test_numbers_of_any_kind_become_floats(values, floats):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        found = as_floats("Numbers", values)
    assert found.dtype == np.float32 and found.tolist() == np.array(floats, dtype=np.float32).tolist()


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@pytest.mark.parametrize("numbers", ["float32", "int8"])
@pytest.mark.parametrize("size", [1e19, 3e38])
def test_rows_whose_squares_float32_cannot_hold_are_refused(metric, numbers, size):
    """|q − x|² of two such is beyond float32: neighbours would be any."""
    index = Index.create(dim=2, metric=metric, dtype=numbers)
    index.add(["a", "b"], [[1e17, 1e18 / 2], [-1e17, 1e17]])
    with pytest.raises(FirthError) as refused:
        index.add(["c"], [[size, 1]])
    assert refused.value.code == "out_of_range" and refused.value.values["longest"] == 1e18
    if metric != "cosine":
        with pytest.raises(FirthError) as refused:
            index.search([size, 1])
        assert refused.value.code == "out_of_range"
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        hit = index.search([1e17, 1e18 / 2], 1)[0]
    product, other = 1e34 + 1e36 / 4, np.hypot(1e17, 1e18 / 2)
    expected = {"cosine": 1, "dot": product, "euclidean": 0}[metric]
    assert hit.key == "a" and hit.score == pytest.approx(expected, rel=1e-6) and other < 1e18


def test_rows_too_short_for_a_cosine_are_refused():
    """1/|x| is infinite in float32, and the cosine NaN."""
    index = Index.create(dim=2)
    with pytest.raises(FirthError) as refused:
        index.add(["a"], [[1e-39, 1e-40]])
    assert refused.value.code == "out_of_range" and refused.value.values["shortest"] == 1e-30
    index.add(["a"], [[1e-29, 1e-29]])
    assert index.search([1e-39, 1e-39])[0].score == pytest.approx(1)
    plain = Index.create(dim=2, metric="euclidean")
    plain.add(["a"], [[1e-39, 0]])


def test_numbers_too_large_to_compare_are_refused_without_warnings():
    vectors = Vectors(["a", "b"], [[1e25, 1.0], [1.0, 1.0]])
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert vectors.neighbors("a")[0].key == "b"
        for metric in ("dot", "euclidean"):
            with pytest.raises(FirthError) as refused:
                vectors.neighbors([3e38, 1], metric=metric)
            assert refused.value.code == "non_finite"
        for metric in ("cosine", "dot", "euclidean"):
            with pytest.raises(FirthError) as refused:
                firth.similarity([1e300, 1], [-1e300, 1], metric)
            assert refused.value.code == "out_of_range"


ODD = [None, 2.5, "3", [1], True, np.ones(2), b"x", {}, object()]


@pytest.mark.parametrize("odd", ODD, ids=lambda odd: type(odd).__name__)
def test_arguments_of_other_kinds(odd):
    vectors = Vectors(["a", "b"], [[1, 2], [3, 4]])
    index = Index.create(dim=2)
    index.add(["a", "b"], [[1, 2], [3, 4]])
    calls: list[Callable[[Any], Any]] = [
        lambda odd: vectors.neighbors("a", odd),
        lambda odd: vectors.neighbors("a", metric=odd),
        lambda odd: vectors.analogy("a", odd, "b"),
        lambda odd: vectors[odd],
        lambda odd: vectors.similarity("a", odd),
        lambda odd: firth.odd_one_out(vectors, odd),
        lambda odd: Vectors(odd, [[1, 2], [3, 4]]),
        lambda odd: index.search([1, 2], odd),
        lambda odd: index.search([1, 2], mode=odd),
        lambda odd: index.find([[1, 2]], odd),
        lambda odd: index[odd],
        lambda odd: index.attributes(odd),
        lambda odd: index.add(odd, [[1, 2]]),
        lambda odd: index.add([odd], [[1, 2]]),
        lambda odd: index.delete(odd),
        lambda odd: Index.create(dim=odd),
        lambda odd: Index.create(dim=2, metric=odd),
        lambda odd: Index.create(dim=2, dtype=odd),
        lambda odd: Index.of(odd),
        lambda odd: index.optimize(threads=odd),
        lambda odd: index.add_metadata(x={1, 2}),
    ]
    if odd is not None:
        calls += [
            lambda odd: index.search([1, 2], where=odd),
            lambda odd: vectors.neighbors("a", restrict=odd),
        ]
    for number, call in enumerate(calls):
        if isinstance(odd, str) and number in (12, 13, 14):
            continue  # a key
        if isinstance(odd, dict) and number in (12, 14):
            continue  # no keys
        with pytest.raises(FirthError) as refused:
            call(odd)
        assert refused.value.code
    assert odd not in vectors if isinstance(odd, str) else True
    assert not index.__contains__(odd) and not vectors.__contains__(odd)


def test_keys_that_are_not_unicode():
    index = Index.create(dim=2)
    for call in (lambda: index.add(["a", "\ud800"], np.ones((2, 2))), lambda: index.delete(["\ud800"])):
        with pytest.raises(FirthError) as refused:
            call()
        assert refused.value.code == "invalid_encoding" and refused.value.values["key"] == "\ud800"
    assert "\ud800" not in index
