"""Neighbours against brute force, analogies and similarities worked by hand."""

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from near import near
from refusing import refuses

import firth
from firth import FirthError, Vectors
from firth.core.vectors import Hit, Hits, top_rows, unit_rows

FINITE = st.floats(-100, 100, width=32)
PLANE = Vectors(
    ["east", "north", "northeast", "west", "origin"],
    [[2, 0], [0, 3], [1, 1], [-1, 0], [0, 0]],
)


def brute_force(vectors: Vectors, query: np.ndarray, metric: str, asked: list[int]) -> list[tuple[str, float]]:
    """One row at a time, in doubles, by the textbook formula."""
    scored = []
    for row, vector in enumerate(vectors.matrix.astype(float)):
        if row in asked:
            continue
        if metric == "cosine":
            lengths = math.sqrt(sum(vector**2)) * math.sqrt(sum(query.astype(float) ** 2))
            scored.append((vectors.keys[row], sum(vector * query) / lengths if lengths else 0.0))
        elif metric == "dot":
            scored.append((vectors.keys[row], sum(vector * query)))
        else:
            scored.append((vectors.keys[row], math.sqrt(sum((vector - query) ** 2))))
    return sorted(scored, key=lambda pair: pair[1] if metric == "euclidean" else -pair[1])


@pytest.mark.parametrize("metric", ["cosine", "dot", "euclidean"])
@settings(max_examples=60, deadline=None)
@given(matrix=arrays(np.float32, (12, 3), elements=FINITE), row=st.integers(0, 11), k=st.integers(1, 14))
def test_neighbors_are_those_of_brute_force(metric: str, matrix: np.ndarray, row: int, k: int) -> None:
    vectors = Vectors([f"k{row}" for row in range(12)], matrix)
    expected = dict(brute_force(vectors, matrix[row], metric, [row]))
    hits = vectors.neighbors(f"k{row}", k, metric=metric)
    assert len(hits) == len({hit.key for hit in hits}) == min(k, 11)
    scale = 3e4 if metric == "dot" else 200 if metric == "euclidean" else 1
    assert [hit.score for hit in hits] == pytest.approx([expected[hit.key] for hit in hits], abs=1e-6 * scale)
    best = sorted(expected.values(), reverse=metric != "euclidean")[: len(hits)]
    assert [hit.score for hit in hits] == pytest.approx(best, abs=1e-6 * scale)


def test_neighbors_by_hand() -> None:
    assert PLANE.neighbors("east", 2) == [("northeast", pytest.approx(math.sqrt(0.5))), ("north", 0)]
    assert PLANE.neighbors("east", 2, metric="dot") == [("northeast", 2), ("north", 0)]
    assert PLANE.neighbors("east", 2, metric="euclidean") == [
        ("northeast", pytest.approx(math.sqrt(2))),
        ("origin", 2),
    ]
    assert [hit.key for hit in PLANE.neighbors("east", 10)] == ["northeast", "north", "origin", "west"]


def test_several_keys_are_averaged_as_unit_vectors_for_the_cosine() -> None:
    # (1, 0) and (0, 1), whatever their lengths: the mean points north-east.
    hits = PLANE.neighbors(["east", "north"], 1)
    assert hits == [("northeast", near(1))]
    # east − north = (1, −1): at a right angle to north-east, nearer to the origin's 0 than to west's −1/√2.
    assert PLANE.neighbors("east", 5, negative="north") == [
        ("northeast", pytest.approx(0, abs=1e-7)),
        ("origin", 0),
        ("west", pytest.approx(-math.sqrt(0.5))),
    ]
    # Dot and Euclidean see the vectors as they are: the mean of (2, 0) and (0, 3) is (1, 1.5).
    assert PLANE.neighbors(["east", "north"], 1, metric="euclidean") == [("northeast", near(0.5))]
    assert PLANE.neighbors(["east", "north"], 1, metric="dot") == [("northeast", near(2.5))]


def test_a_vector_as_the_question_leaves_no_key_out() -> None:
    assert PLANE.neighbors(np.array([4, 0.0]), 1) == [("east", near(1))]
    assert PLANE.neighbors([4, 0], 1, negative="east") == [("northeast", near(math.sqrt(0.5)))]


def test_restrict_looks_at_the_first_keys_only() -> None:
    assert [hit.key for hit in PLANE.neighbors("west", restrict=2)] == ["north", "east"]
    assert [hit.key for hit in PLANE.analogy("west", "origin", "east", 5, restrict=2)] == ["north"]


@pytest.mark.parametrize(
    ("ask", "rule"),
    [
        (lambda: PLANE.neighbors("south"), ("unknown_key", {"key": "south"})),
        (lambda: PLANE.neighbors("East"), ("unknown_key", {"key": "East"})),
        (lambda: PLANE.neighbors([]), ("too_few", {})),
        (lambda: PLANE.neighbors("east", 0), ("invalid_value", {"option": "k", "got": 0})),
        (
            lambda: PLANE.neighbors("east", metric="manhattan"),
            ("invalid_value", {"option": "metric", "got": "manhattan"}),
        ),
        (lambda: PLANE.neighbors("east", restrict=0), ("invalid_value", {"option": "restrict", "got": 0})),
        (lambda: PLANE.neighbors("east", restrict=-2), ("invalid_value", {"option": "restrict", "got": -2})),
        (lambda: PLANE.neighbors([1, 2, 3]), ("shape_mismatch", {"dim": 2, "got": (3,)})),
        (lambda: PLANE.neighbors([1, math.nan]), ("non_finite", {"name": "The query", "dimension": 1})),
        (
            lambda: PLANE.neighbors("east", negative=np.ones(2)),  # type: ignore[arg-type]
            ("invalid_type", {"got": "ndarray"}),
        ),
        (lambda: PLANE.analogy("east", "north", "south"), ("unknown_key", {"key": "south"})),
        (lambda: PLANE.analogy("east", "north", "west", 0), ("invalid_value", {"option": "k", "got": 0})),
        (lambda: PLANE.analogy("east", "north", "west", method="sub"), ("invalid_value", {"got": "sub"})),
        (lambda: PLANE.similarity("east", "north", "l1"), ("invalid_value", {"option": "metric", "got": "l1"})),
        (lambda: firth.similarity([1, 2], [1, 2, 3]), ("shape_mismatch", {"got": (2,), "other": (3,)})),
        (
            lambda: firth.similarity([1, math.inf], [1, 2]),
            ("non_finite", {"name": "a", "got": math.inf, "dimension": 1}),
        ),
        (lambda: firth.odd_one_out(PLANE, ["east", "west"]), ("too_few", {"got": 2})),
        (lambda: Vectors(["a"], [1, 2]), ("shape_mismatch", {"got": 1})),
        (lambda: Vectors(["a"], [[1], [2]]), ("shape_mismatch", {"got": 1, "rows": 2})),
        (lambda: Vectors(lambda: ["a"], [[1], [2]]).keys, ("shape_mismatch", {"got": 1, "rows": 2})),
    ],
)
def test_what_cannot_be_asked_is_refused_with_the_rule(ask: object, rule: tuple[str, dict[str, Any]]) -> None:
    with refuses(rule[0], **rule[1]):
        ask()  # type: ignore[operator]


def test_why_a_key_is_missing_can_be_said() -> None:
    vectors = Vectors(["a"], [[1]], missing="min_count=5 dropped 3 words")
    with refuses("unknown_key", key="b"):
        vectors["b"]


def test_distances_are_the_same_in_parts(monkeypatch: pytest.MonkeyPatch) -> None:
    random = np.random.default_rng(1)
    vectors = Vectors([str(row) for row in range(10)], random.normal(size=(10, 3)))
    whole = vectors.neighbors("4", 9, metric="euclidean")
    monkeypatch.setattr("firth.core.vectors.ROWS", 3)
    assert vectors.neighbors("4", 9, metric="euclidean") == whole
    true = {str(row): vectors.similarity("4", str(row), "euclidean") for row in range(10) if row != 4}
    assert [hit.key for hit in whole] == sorted(true, key=true.__getitem__)
    assert [hit.score for hit in whole] == pytest.approx(sorted(true.values()), rel=1e-6)


def test_keys_that_may_have_been_meant_are_named() -> None:
    vectors = Vectors(["king", "kind", "ring", "New_York", "a"], np.eye(5), missing="min_count=5 dropped 3 words")
    for asked, meant in (("kinf", ["king", "kind"]), ("kking", ["king"]), ("kign", ["king"]), ("kng", ["king"])):
        assert vectors.close_keys(asked) == meant
    assert vectors.close_keys("King") == ["king", "ring"] and vectors.close_keys("New York") == ["New_York"]
    assert vectors.close_keys("wing", 2) == ["king", "ring"] and vectors.close_keys("zebra") == []
    with refuses("unknown_key", key="kinf"):
        vectors["kinf"]


ROYAL = Vectors(
    ["man", "woman", "king", "queen", "apple"],
    [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.2, 0.1, -1.0]],
)


def test_analogy_by_hand() -> None:
    # 3CosAdd on unit vectors: man is to woman as king is to the nearest of woman − man + king.
    target = np.array([0, 1, 0]) - np.array([1, 0, 0]) + np.array([1, 0, 1]) / math.sqrt(2)
    queen, apple = np.array([0, 1, 1]) / math.sqrt(2), np.array([0.2, 0.1, -1]) / math.sqrt(1.05)
    length = math.sqrt(sum(target**2))
    assert ROYAL.analogy("man", "woman", "king", 5) == [
        ("queen", near(sum(queen * target) / length, abs=1e-6)),
        ("apple", near(sum(apple * target) / length, abs=1e-6)),
    ]
    # 3CosMul, Levy & Goldberg 2014, eq. 4: cosines moved to 0 … 1, ε = 0.001.
    cosines = [(cosine + 1) / 2 for cosine in (queen[0], queen[1], sum(queen * np.array([1, 0, 1])) / math.sqrt(2))]
    assert ROYAL.analogy("man", "woman", "king", method="mul") == [
        ("queen", near(cosines[1] * cosines[2] / (cosines[0] + 0.001), abs=1e-5))
    ]


def test_analogy_add_is_neighbors_of_plus_and_minus() -> None:
    matrix = np.random.default_rng(5).normal(size=(200, 10))
    vectors = Vectors([f"w{row}" for row in range(200)], matrix)
    added = vectors.analogy("w1", "w2", "w3", 8)
    asked = vectors.neighbors(["w2", "w3"], 8, negative="w1")
    assert [hit.key for hit in added] == [hit.key for hit in asked]
    assert [hit.score for hit in added] == pytest.approx([hit.score for hit in asked], abs=1e-6)


def test_similarity_by_hand() -> None:
    vectors = Vectors(["a", "b", "zero"], [[1, 2, 2], [4, 0, 3], [0, 0, 0]])
    assert vectors.similarity("a", "b") == pytest.approx(10 / 15)  # (4 + 0 + 6) / (3 · 5)
    assert vectors.similarity("a", "b", "dot") == 10
    assert vectors.similarity("a", "b", "euclidean") == pytest.approx(math.sqrt(9 + 4 + 1))
    assert vectors.similarity("a", "zero") == 0


def test_odd_one_out() -> None:
    vectors = Vectors(["a", "b", "c", "odd"], [[1.0, 0.1], [5.0, 0.0], [1.0, -0.1], [0.0, 9.0]])
    assert firth.odd_one_out(vectors, ["a", "odd", "b", "c"]) == "odd"


def test_units_of_extreme_rows() -> None:
    rows = unit_rows(np.array([[3e30, 4e30], [3e-30, 4e-30], [0, 0], [3, 4]], dtype=np.float32))
    assert rows == pytest.approx(np.array([[0.6, 0.8], [0.6, 0.8], [0, 0], [0.6, 0.8]]))
    assert rows.dtype == np.float32


@given(arrays(np.float32, st.integers(1, 30), elements=st.integers(-3, 3).map(float)), st.integers(1, 40))
def test_top_rows_are_a_stable_sort(scores: np.ndarray, k: int) -> None:
    assert top_rows(scores, k).tolist() == sorted(range(len(scores)), key=lambda row: (-scores[row], row))[:k]


def test_a_key_that_stands_twice_has_its_first_row() -> None:
    vectors = Vectors(["a", "b", "a"], [[1], [2], [3]])
    assert vectors["a"].tolist() == [1] and vectors.row("b") == 1


def test_vectors_cannot_be_changed() -> None:
    for array in (PLANE.matrix, PLANE.unit, PLANE["east"]):
        with pytest.raises(ValueError, match="read-only"):
            array[0] = 9


def test_keys_are_asked_for_once_and_late() -> None:
    calls = []

    def keys() -> list[str]:
        calls.append(1)
        return ["a", "b"]

    vectors = Vectors(keys, [[1], [2]])
    assert len(vectors) == 2 and vectors.dim == 1 and not calls
    assert "b" in vectors and "c" not in vectors and vectors["b"].tolist() == [2]
    assert len(calls) == 1


def test_how_they_are_shown() -> None:
    assert repr(PLANE) == "Vectors(5 × 2: 'east', 'north', 'northeast', …)"
    assert "5 vectors × 2 dimensions" in PLANE._repr_html_()
    hits = Hits([Hit("<b>", 0.5), Hit("river", 0.25)])
    assert repr(hits) == "<b>    0.5000\nriver  0.2500"
    assert "&lt;b&gt;" in hits._repr_html_() and "<b>" not in hits._repr_html_()
    assert repr(Hits()) == ""


def test_a_number_is_not_taken_for_its_text():
    vectors = Vectors(["7", "8"], np.eye(2, dtype=np.float32), missing="it was not in the ratings")
    with refuses("unknown_key", key=7):
        vectors[7]  # type: ignore[index]
    with refuses("unknown_key", key=9):
        vectors[9]  # type: ignore[index]


def test_a_whole_text_is_no_misspelt_key():
    """Its forms one letter away are as many as it has letters times the alphabet, each as long as it is."""
    vectors = Vectors(["river"], np.ones((1, 2), np.float32))
    assert vectors.close_keys("rivr") == vectors.close_keys("River") == ["river"]
    with pytest.raises(FirthError) as refused:
        vectors["x" * 2000]
    assert len(str(refused.value)) < 200
