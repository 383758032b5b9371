"""Orthogonal Procrustes: a known rotation, SciPy's result, moved words, invalid input."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses, warns_code
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

import firth
from firth.core.vectors import unit_rows
from firth.studies import align, read_word_pairs

WORDS = [f"w{number}" for number in range(300)]


@pytest.fixture
def space():
    return firth.Vectors(WORDS, np.random.default_rng(0).standard_normal((300, 12)))


def rotated(space, rotation, **changed):
    matrix = space.matrix @ rotation
    for word, row in changed.items():
        matrix[space.rows[word]] = row
    return firth.Vectors(space.keys, matrix)


@pytest.fixture
def rotation():
    return ortho_group.rvs(12, random_state=1).astype(np.float32)


def test_a_known_rotation_is_found(space, rotation):
    result = firth.align(space, rotated(space, rotation))
    assert result.rotation == pytest.approx(rotation, abs=1e-5)
    assert result.vectors.matrix == pytest.approx(space.matrix @ rotation, abs=1e-4)
    assert result.after.min() > 0.99999 and abs(result.before.mean()) < 0.2


def test_the_rotation_equals_that_of_scipy(space):
    other = firth.Vectors(WORDS, np.random.default_rng(5).standard_normal((300, 12)))
    expected, _ = orthogonal_procrustes(*(unit_rows(each.matrix).astype(np.float64) for each in (space, other)))
    result = align(space, other).rotation
    assert result == pytest.approx(expected, abs=1e-6)
    assert result.T @ result == pytest.approx(np.eye(12), abs=1e-9)


def test_moved_words_are_listed_first(space, rotation):
    other = rotated(space, rotation, w7=-(space["w7"] @ rotation), w100=space["w3"] @ rotation)
    result = align(space, other)
    assert [hit.key for hit in result.moved(2)] == ["w7", "w100"]
    assert result.moved(1)[0].score < -0.98
    assert "w7" not in [hit.key for hit in result.stayed(50)]


def test_only_common_words_determine_the_rotation(space, rotation):
    other = rotated(space, rotation)
    fewer = firth.Vectors([*WORDS[:200], *(f"new{row}" for row in range(100))], other.matrix)
    result = align(space, fewer)
    assert len(result.pairs) == 200 and result.rotation == pytest.approx(rotation, abs=1e-5)
    assert len(result.vectors) == 300 and result.vectors.keys == WORDS


def test_pairs_align_two_languages(space, rotation):
    other = firth.Vectors([f"mot{row}" for row in range(300)], rotated(space, rotation).matrix)
    with refuses("empty_data"):
        align(space, other)
    result = align(space, other, pairs=[(f"w{row}", f"mot{row}") for row in range(100)] + [("nobody", "mot1")])
    assert len(result.pairs) == 100 and result.moved(1)[0].key.startswith("w")
    assert " → mot" in result.moved(1)[0].key
    nearest = other.neighbors(result.vectors["w250"], 1)  # a word outside the pairs is translated too
    assert nearest[0].key == "mot250"


def test_restrict_takes_the_most_frequent_words(space, rotation):
    assert len(align(space, rotated(space, rotation), restrict=50).pairs) == 50


def test_zero_vectors_are_ignored(space, rotation):
    other = rotated(space, rotation, w0=np.zeros(12))
    result = align(space, other)
    assert len(result.pairs) == 299 and np.isfinite(result.after).all()


def test_too_few_common_words_are_reported(space, rotation):
    with warns_code("underdetermined_rotation") as issued:
        align(space, rotated(space, rotation), restrict=5)
    assert "5 common words" in str(issued[0]) and "12 dimensions" in str(issued[0])


def test_invalid_arguments_are_refused(space, tmp_path):
    with refuses("shape_mismatch", source_dim=12, target_dim=3):
        align(space, firth.Vectors(["a"], [[1, 2, 3]]))
    odd = firth.Vectors(WORDS, np.where(np.arange(3600).reshape(300, 12) == 13, np.nan, space.matrix))
    with refuses("non_finite", key="w1"):
        align(space, odd)
    with refuses("invalid_type", got="list"):
        align(space, [1, 2])
    with refuses("invalid_value", option="restrict", got=0):
        align(space, space, restrict=0)
    (tmp_path / "pairs.txt").write_text("a b\nc\n")
    with refuses("malformed_data", number=2, got="c"):
        read_word_pairs(tmp_path / "pairs.txt")
    (tmp_path / "pairs.txt").write_text("\n")
    with refuses("empty_data", path=tmp_path / "pairs.txt"):
        read_word_pairs(tmp_path / "pairs.txt")
