"""Orthogonal Procrustes: a rotation that is known, SciPy's, words that were moved on purpose, bad input."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.linalg import orthogonal_procrustes
from scipy.stats import ortho_group

import firth
from firth.core.vectors import unit_rows
from firth.studies import align, read_word_pairs

WORDS = [f"w{number}" for number in range(300)]


@pytest.fixture
def space():
    return firth.Vectors(WORDS, np.random.default_rng(0).standard_normal((300, 12)))


def turned(space, rotation, **changed):
    matrix = space.matrix @ rotation
    for word, row in changed.items():
        matrix[space.rows[word]] = row
    return firth.Vectors(space.keys, matrix)


@pytest.fixture
def rotation():
    return ortho_group.rvs(12, random_state=1).astype(np.float32)


def test_a_known_rotation_is_found(space, rotation):
    found = firth.align(space, turned(space, rotation))
    assert found.rotation == pytest.approx(rotation, abs=1e-5)
    assert found.vectors.matrix == pytest.approx(space.matrix @ rotation, abs=1e-4)
    assert found.after.min() > 0.99999 and abs(found.before.mean()) < 0.2


def test_the_rotation_is_scipys(space):
    other = firth.Vectors(WORDS, np.random.default_rng(5).standard_normal((300, 12)))
    expected, _ = orthogonal_procrustes(*(unit_rows(each.matrix).astype(np.float64) for each in (space, other)))
    found = align(space, other).rotation
    assert found == pytest.approx(expected, abs=1e-6)
    assert found.T @ found == pytest.approx(np.eye(12), abs=1e-9)


def test_words_that_were_moved_are_told_first(space, rotation):
    other = turned(space, rotation, w7=-(space["w7"] @ rotation), w100=space["w3"] @ rotation)
    found = align(space, other)
    assert [hit.key for hit in found.moved(2)] == ["w7", "w100"]
    assert found.moved(1)[0].score < -0.98
    assert "w7" not in [hit.key for hit in found.stayed(50)]


def test_only_common_words_count_and_all_are_turned(space, rotation):
    other = turned(space, rotation)
    fewer = firth.Vectors([*WORDS[:200], *(f"new{row}" for row in range(100))], other.matrix)
    found = align(space, fewer)
    assert len(found.pairs) == 200 and found.rotation == pytest.approx(rotation, abs=1e-5)
    assert len(found.vectors) == 300 and found.vectors.keys == WORDS


def test_pairs_join_two_languages(space, rotation):
    other = firth.Vectors([f"mot{row}" for row in range(300)], turned(space, rotation).matrix)
    with pytest.raises(firth.FirthError, match="no word in common"):
        align(space, other)
    found = align(space, other, pairs=[(f"w{row}", f"mot{row}") for row in range(100)] + [("nobody", "mot1")])
    assert len(found.pairs) == 100 and found.moved(1)[0].key.startswith("w")
    assert " → mot" in found.moved(1)[0].key
    nearest = other.neighbors(found.vectors["w250"], 1)  # a word that was in no pair is translated
    assert nearest[0].key == "mot250"


def test_restrict_takes_the_most_frequent_words(space, rotation):
    assert len(align(space, turned(space, rotation), restrict=50).pairs) == 50


def test_zero_vectors_have_no_direction(space, rotation):
    other = turned(space, rotation, w0=np.zeros(12))
    found = align(space, other)
    assert len(found.pairs) == 299 and np.isfinite(found.after).all()


def test_too_few_words_are_told(space, rotation):
    with pytest.warns(firth.FirthWarning, match="5 common words do not fix a rotation in 12"):
        align(space, turned(space, rotation), restrict=5)


def test_bad_input_is_refused(space, tmp_path):
    with pytest.raises(firth.FirthError, match="same dimension; got 12 and 3"):
        align(space, firth.Vectors(["a"], [[1, 2, 3]]))
    odd = firth.Vectors(WORDS, np.where(np.arange(3600).reshape(300, 12) == 13, np.nan, space.matrix))
    with pytest.raises(firth.FirthError, match="must be finite; that of 'w1'"):
        align(space, odd)
    with pytest.raises(firth.FirthError, match="got list"):
        align(space, [1, 2])
    with pytest.raises(firth.FirthError, match="restrict must be at least 1"):
        align(space, space, restrict=0)
    (tmp_path / "pairs.txt").write_text("a b\nc\n")
    with pytest.raises(firth.FirthError, match="line 2: a pair is two words"):
        read_word_pairs(tmp_path / "pairs.txt")
    (tmp_path / "pairs.txt").write_text("\n")
    with pytest.raises(firth.FirthError, match="has no pairs"):
        read_word_pairs(tmp_path / "pairs.txt")
