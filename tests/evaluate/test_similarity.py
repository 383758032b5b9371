"""Word similarity, compared with scipy's correlations and gensim's scorer."""

import json

import numpy as np
import pytest
from gensim.models import KeyedVectors
from hypothesis import given
from hypothesis import strategies as st
from refusing import refuses
from scipy import stats

from firth import Vectors
from firth.core.scores import correlation, ranks
from firth.evaluate import Pair, read_pairs, word_similarity

small_numbers = st.lists(st.tuples(st.integers(-3, 3), st.integers(-3, 3)), min_size=3, max_size=30)


@given(small_numbers)
def test_ranks_and_correlation_equal_scipy_with_many_ties(pairs):
    x, y = np.array(pairs, dtype=float).T
    np.testing.assert_array_equal(ranks(x), stats.rankdata(x))
    if np.ptp(x) == 0 or np.ptp(y) == 0:
        assert np.isnan(correlation(x, y))
    else:
        assert correlation(x, y) == pytest.approx(stats.pearsonr(x, y).statistic, abs=1e-12)
        assert correlation(ranks(x), ranks(y)) == pytest.approx(stats.spearmanr(x, y).statistic, abs=1e-12)


def test_equals_gensim(tmp_path):
    rng = np.random.default_rng(1)
    keys = [f"w{i}" for i in range(40)] + [f"W{i}" for i in range(20, 60)]
    vectors = Vectors(keys, rng.normal(size=(80, 8)))
    theirs = KeyedVectors(8)
    theirs.add_vectors(keys, vectors.matrix)
    path = tmp_path / "pairs.tsv"
    numbers = [(a, b) for a, b in rng.integers(0, 65, size=(200, 2)) if a != b]  # gensim's rounding undoes ties at 1
    pairs = [Pair(f"w{a}", f"W{b}", float(rng.integers(0, 6))) for a, b in numbers]
    path.write_text("# a comment\n" + "".join(f"{p.a}\t{p.b}\t{p.score}\n" for p in pairs))
    pearson, spearman, missing_percent = theirs.evaluate_word_pairs(path)
    ours = word_similarity(vectors, path)
    assert read_pairs(path) == pairs
    assert ours.spearman == pytest.approx(spearman[0], abs=1e-6)
    assert ours.pearson == pytest.approx(pearson[0], abs=1e-6)
    assert 100 * ours.skipped / ours.pairs == pytest.approx(missing_percent)
    assert 0 < ours.answered < ours.pairs


def test_a_word_with_itself_ties():
    rng = np.random.default_rng(2)
    vectors = Vectors([f"w{i}" for i in range(30)], rng.normal(size=(30, 50)))
    pairs = [Pair(f"w{i}", f"w{i}", 1.0) for i in range(29)] + [Pair("w28", "w29", 0.0)]
    assert word_similarity(vectors, pairs).spearman == pytest.approx(1.0)


def test_missing_words_are_counted():
    vectors = Vectors(["cat", "Dog", "car", "bus"], [[1.0, 0.0], [0.9, 0.1], [0.0, 1.0], [0.2, 0.8]])
    pairs = [
        Pair("cat", "dog", 9),
        Pair("car", "bus", 8),
        Pair("cat", "car", 1),
        Pair("cat", "yak", 5),
        Pair("gnu", "yak", 5),
    ]
    result = word_similarity(vectors, pairs)
    assert (result.pairs, result.answered, result.skipped, result.missing) == (5, 3, 2, ("yak", "gnu"))
    assert result.spearman == 1.0
    assert word_similarity(vectors, pairs, fold_case=False).answered == 2
    assert word_similarity(vectors, pairs, restrict=3).missing == ("bus", "yak", "gnu")
    assert "no vector: yak, gnu" in str(result)
    assert json.loads(json.dumps(result.to_json(), allow_nan=False))["missing"] == ["yak", "gnu"]


def test_the_correlation_without_answered_pairs_is_nan():
    result = word_similarity(Vectors(["a"], [[1.0]]), [Pair("x", "y", 1.0)])
    assert np.isnan(result.spearman)
    assert np.isnan(result.pearson)
    assert result.to_json()["spearman"] is None
    assert "–" in str(result)


@pytest.mark.parametrize(
    "text",
    [
        "Word 1,Word 2,Human (mean)\nlove,sex,6.77\ntiger,cat,7.35\n",
        "# WS-353\nlove\tsex\t6.77\n\n# half way\ntiger\tcat\t7.35\r\n",
        "a list of pairs\nlove sex 6.77\ntiger   cat 7.35",
        "\ufefflove;x\nlove, sex, 6.77\ntiger, cat, 7.35\n",
    ],
)
def test_common_layouts_are_read(text, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(text, encoding="utf-8", newline="")
    assert read_pairs(path) == [Pair("love", "sex", 6.77), Pair("tiger", "cat", 7.35)]


@pytest.mark.parametrize(
    ("text", "code", "values"),
    [
        ("a b 1\nc d\n", "malformed_data", {"number": 2, "got": "c d"}),
        ("a b 1\nc d nan\n", "malformed_data", {"number": 2}),
        ("a b 1\nc d 1 2\n", "malformed_data", {"number": 2}),
        ("a\tb\t1\n\td\t1\n", "malformed_data", {"number": 2}),
        ("word1 word2 score\n", "empty_data", {}),
        ("", "empty_data", {}),
    ],
)
def test_malformed_files_are_refused(text, code, values, tmp_path):
    path = tmp_path / "pairs.txt"
    path.write_text(text)
    with refuses(code, path=path, **values):
        read_pairs(path)


def test_nan_is_refused():
    with refuses("non_finite"):
        word_similarity(Vectors(["a", "b"], [[1.0, 0.0], [np.nan, 1.0]]), [Pair("a", "b", 1.0)])
