"""The steps and the projection of king − man + woman."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses

from firth import Vectors
from firth.core.vectors import unit_rows
from firth.evaluate.parallelogram import parallelogram

WORDS = ["man", "woman", "king", "queen", "apple"]
ROYAL = Vectors(WORDS, [[1.0, 0.0, 0.2], [0.0, 1.0, 0.2], [1.0, 0.0, 1.0], [0.0, 1.0, 1.0], [0.2, 0.1, -1.0]])
RANDOM = Vectors(WORDS, np.random.default_rng(1).normal(size=(5, 40)))


@pytest.mark.parametrize("vectors", [ROYAL, RANDOM])
def test_the_plane_preserves_distances_of_inputs_and_target(vectors: Vectors) -> None:
    result = parallelogram(vectors, "man", "king", "woman", 2)
    man, king, woman = unit_rows(np.stack([vectors[word] for word in ("man", "king", "woman")])).astype(float)
    corners = [*result.inputs, result.target]
    rows = [man, king, woman, king - man + woman]
    points = np.array([(each.x, each.y) for each in corners])
    for a in range(4):
        for b in range(4):
            distance = float(np.linalg.norm(rows[a] - rows[b]))
            assert np.linalg.norm(points[a] - points[b]) == pytest.approx(distance, abs=1e-6)
    assert [each.off for each in corners] == pytest.approx([0] * 4, abs=1e-6)
    np.testing.assert_allclose(points[3], points[1] - points[0] + points[2], atol=1e-6)  # a parallelogram
    assert result.inputs[0].x == result.inputs[0].y == 0 and result.inputs[1].y == pytest.approx(0)


def test_answers_and_steps_are_those_of_the_vectors() -> None:
    result = parallelogram(ROYAL, "man", "king", "woman", 2)
    corners = result.answer_corners
    assert result.answers == ROYAL.analogy("man", "king", "woman", 2) and corners[0].word == "queen"
    assert [corner.cosine for corner in corners] == pytest.approx([hit.score for hit in result.answers], abs=1e-6)
    names = [name for name, _ in result.steps]
    assert names == ["king", "king − man", "king − man + woman"]
    assert result.steps[0][1][0].key == "king" and result.steps[2][1][0].key == "queen"
    queen = unit_rows(ROYAL["queen"][None])[0].astype(float)
    man = unit_rows(ROYAL["man"][None])[0].astype(float)
    assert corners[0].x ** 2 + corners[0].y ** 2 + corners[0].off ** 2 == pytest.approx(
        float(np.sum((queen - man) ** 2))
    )


def test_words_on_a_line_and_repeated_words() -> None:
    square = Vectors(["a", "b", "c", "d"], [[1, 0], [0, 1], [-1, 0], [0, -1]])
    result = parallelogram(square, "a", "b", "d", 1)  # the answer is the fourth corner
    corner = result.answer_corners[0]
    assert corner.word == "c" and (corner.x, corner.y) == pytest.approx((result.target.x, result.target.y))
    same = Vectors(["a", "b", "c"], [[1, 0], [0, 1], [0, 2]])
    flat = parallelogram(same, "a", "b", "c", 1)
    assert [corner.y for corner in flat.inputs] == [0, 0, 0] and flat.answers == [] and flat.answer_corners == []
    with refuses("duplicate_name", a="a", b="b", c="a"):
        parallelogram(same, "a", "b", "a")
    with refuses("unknown_key", key="x"):
        parallelogram(same, "a", "b", "x")
