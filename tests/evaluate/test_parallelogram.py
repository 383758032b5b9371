"""king − man + woman, step by step and drawn."""

from __future__ import annotations

import numpy as np
import pytest

from firth import FirthError, Vectors
from firth.core.vectors import unit_rows
from firth.evaluate.parallelogram import parallelogram

WORDS = ["man", "woman", "king", "queen", "apple"]
ROYAL = Vectors(WORDS, [[1, 0, 0.2], [0, 1, 0.2], [1, 0, 1], [0, 1, 1], [0.2, 0.1, -1]])
RANDOM = Vectors(WORDS, np.random.default_rng(1).normal(size=(5, 40)))


@pytest.mark.parametrize("vectors", [ROYAL, RANDOM])
def test_given_words_and_target_keep_their_distances(vectors: Vectors) -> None:
    found = parallelogram(vectors, "man", "king", "woman", 2)
    man, king, woman = unit_rows(np.stack([vectors[word] for word in ("man", "king", "woman")])).astype(float)
    corners = [*found.given, found.target]
    rows = [man, king, woman, king - man + woman]
    points = np.array([(each.x, each.y) for each in corners])
    for a in range(4):
        for b in range(4):
            apart = float(np.linalg.norm(rows[a] - rows[b]))
            assert np.linalg.norm(points[a] - points[b]) == pytest.approx(apart, abs=1e-6)
    assert [each.off for each in corners] == pytest.approx([0] * 4, abs=1e-6)
    np.testing.assert_allclose(points[3], points[1] - points[0] + points[2], atol=1e-6)  # a parallelogram
    assert found.given[0].x == found.given[0].y == 0 and found.given[1].y == pytest.approx(0)


def test_answers_and_steps_are_those_of_the_vectors() -> None:
    found = parallelogram(ROYAL, "man", "king", "woman", 2)
    assert found.answers == ROYAL.analogy("man", "king", "woman", 2) and found.found[0].word == "queen"
    assert [corner.cosine for corner in found.found] == pytest.approx([hit.score for hit in found.answers], abs=1e-6)
    names = [name for name, _ in found.steps]
    assert names == ["king", "king − man", "king − man + woman"]
    assert found.steps[0][1][0].key == "king" and found.steps[2][1][0].key == "queen"
    queen = unit_rows(ROYAL["queen"][None])[0].astype(float)
    man = unit_rows(ROYAL["man"][None])[0].astype(float)
    seen = found.found[0]
    assert seen.x**2 + seen.y**2 + seen.off**2 == pytest.approx(float(np.sum((queen - man) ** 2)))


def test_words_on_a_line_and_words_given_twice() -> None:
    square = Vectors(["a", "b", "c", "d"], [[1, 0], [0, 1], [-1, 0], [0, -1]])
    found = parallelogram(square, "a", "b", "d", 1)  # the answer is the fourth corner
    corner = found.found[0]
    assert corner.word == "c" and (corner.x, corner.y) == pytest.approx((found.target.x, found.target.y))
    same = Vectors(["a", "b", "c"], [[1, 0], [0, 1], [0, 2]])
    flat = parallelogram(same, "a", "b", "c", 1)
    assert [corner.y for corner in flat.given] == [0, 0, 0] and flat.answers == [] and flat.found == []
    with pytest.raises(FirthError, match="three different words; got a, b, a"):
        parallelogram(same, "a", "b", "a")
    with pytest.raises(FirthError, match="No vector for 'x'"):
        parallelogram(same, "a", "b", "x")
