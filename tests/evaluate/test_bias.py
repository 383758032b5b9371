"""Association tests (WEAT): a worked example, symmetries, and p-values that are uniform where nothing is associated."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.evaluate import AssociationTest, WordSet, associations, read_association_tests
from firth.evaluate.bias import permutation_p

TEXT = """: science and gender
science: physics algebra
arts: dance, poem
male: he man
female: she woman
"""
# Cosines with the attributes are the coordinates: s(physics) = 1, s(algebra) = 0.6, s(dance) = −0.8, s(poem) = 0.
VECTORS = firth.Vectors(
    ["physics", "algebra", "dance", "poem", "he", "man", "she", "woman"],
    [[1, 0, 0], [0.6, 0, 0.8], [0, 0.8, 0.6], [0, 0, 1], [1, 0, 0], [2, 0, 0], [0, 1, 0], [0, 3, 0]],
)


def test_worked_example(tmp_path: Path) -> None:
    (tmp_path / "tests.txt").write_text(TEXT)
    (result,) = associations(VECTORS, tmp_path / "tests.txt").tests
    scores = np.array([1, 0.6, -0.8, 0])
    assert result.effect == pytest.approx((0.8 - -0.4) / scores.std(ddof=1))
    assert result.p == pytest.approx(1 / 6) and result.exact  # no other two of the four have a larger sum
    assert result.words == (2, 2, 2, 2) and not result.missing


def test_symmetries() -> None:
    random = np.random.default_rng(1)
    names = [f"w{i}" for i in range(24)]
    vectors = firth.Vectors(names, random.normal(size=(24, 6)))
    sets = [WordSet(name, tuple(names[i : i + 6])) for name, i in (("X", 0), ("Y", 6), ("A", 12), ("B", 18))]
    x, y, a, b = sets
    given = associations(vectors, [AssociationTest("", (x, y), (a, b))]).tests[0]
    assert given.exact
    for targets, attributes in (((y, x), (a, b)), ((x, y), (b, a))):
        swapped = associations(vectors, [AssociationTest("", targets, attributes)]).tests[0]
        assert swapped.effect == pytest.approx(-given.effect)
        assert swapped.p == pytest.approx(1 - given.p, abs=2 / 924)
    both = associations(vectors, [AssociationTest("", (y, x), (b, a))]).tests[0]
    assert both.effect == pytest.approx(given.effect) and both.p == pytest.approx(given.p, abs=2 / 924)


def test_sampled_p_values_are_close_to_exact_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    for first in (3, 9):  # the smaller set is sampled
        scores = np.random.default_rng(first).normal(size=12) + np.array([0.8] * first + [0.0] * (12 - first))
        exact, is_exact = permutation_p(scores, first, 1)
        with monkeypatch.context() as patch:
            patch.setattr("firth.evaluate.bias.comb", lambda n, k: 10**9)
            sampled, is_sampled = permutation_p(scores, first, 1)
        assert is_exact and not is_sampled
        assert sampled == pytest.approx(exact, abs=5 * (exact / 100_000) ** 0.5 + 2e-5)


def test_p_values_are_uniform_without_an_association() -> None:
    random = np.random.default_rng(3)
    values = [permutation_p(random.normal(size=8), 4, 1)[0] for _ in range(400)]
    assert np.mean(np.array(values) <= 0.1) == pytest.approx(0.1, abs=0.05)
    assert permutation_p(np.zeros(6), 3, 1) == (1.0, True)


def test_missing_words_and_wrong_files(tmp_path: Path) -> None:
    path = tmp_path / "tests.txt"
    path.write_text(TEXT.replace("physics", "Physics unheard"))
    result = associations(VECTORS, path)
    assert result.tests[0].missing == ("unheard",) and "no vector: unheard" in str(result)
    for text, code, values in (
        ("science: physics\n", "malformed_data", {"number": 1}),
        (": a\nscience: physics algebra\n", "malformed_data", {"name": "a", "got": 1}),
        ("# nothing\n", "empty_data", {}),
        (TEXT.replace("poem", ""), "too_few", {"name": "arts", "got": 1}),
        (TEXT.replace("poem", "algebra"), "duplicate_name", {"word": "algebra"}),
    ):
        path.write_text(text)
        with refuses(code, **values):
            associations(VECTORS, path)


def test_the_command_line(tmp_path: Path) -> None:
    from click.testing import CliRunner

    from firth.cli.main import cli

    (tmp_path / "tests.txt").write_text(TEXT)
    firth.write_vectors(VECTORS, tmp_path / "words.txt")
    arguments = ["evaluate", "bias", str(tmp_path / "words.txt"), str(tmp_path / "tests.txt")]
    shown = CliRunner().invoke(cli, arguments)
    assert shown.exit_code == 0 and "science and gender" in shown.stdout
    (found,) = json.loads(CliRunner().invoke(cli, [*arguments, "--json"]).stdout).values()
    (expected,) = associations(VECTORS, read_association_tests(tmp_path / "tests.txt")).tests
    assert found["tests"][0]["p"] == pytest.approx(expected.p) and found["tests"][0]["effect"] == expected.effect
