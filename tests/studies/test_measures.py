"""Measures compared with hand-computed values, and the bootstrap with theoretical results."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses

from firth.core.vectors import unit_rows
from firth.studies.bootstrap import distinguishable, interval, resampled, statistic
from firth.studies.comparison import make_measure
from firth.studies.measures import (
    clusters,
    known_item_ranks,
    most_frequent,
    narrowed,
    overlap,
    probe,
    purity,
    word_ranks,
)


def test_ranks_of_known_items_by_hand():
    targets = np.array([[1, 0], [0, 1], [1, 1]], np.float32)
    queries = np.array([[1, 0.1], [1, 0.2], [1, 0.9]], np.float32)
    # Query 0 lies nearest to target 0. Query 1 has target 1, at 0.2/√1.04, behind 0 and 2. Query 2 lies on target 2.
    assert known_item_ranks(queries, targets).tolist() == [1, 3, 1]
    assert np.mean(1 / known_item_ranks(queries, targets)) == pytest.approx((1 + 1 / 3 + 1) / 3)


def test_ties_get_their_mean_rank():
    targets = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    queries = np.array([[1, 0], [1, 0], [0, 0]], np.float32)
    assert known_item_ranks(queries, targets).tolist() == [1.5, 1.5, 2]


def test_ranks_do_not_depend_on_batches():
    random = np.random.default_rng(0)
    queries, targets = random.standard_normal((2, 1200, 8)).astype(np.float32)
    one = [known_item_ranks(queries[row : row + 1], np.roll(targets, -row, axis=0))[0] for row in range(0, 1200, 97)]
    assert known_item_ranks(queries, targets)[::97].tolist() == one


def test_bm25_ranks_prefer_rare_words():
    targets = ["the river bank", "the money bank", "the tall tree"]
    assert word_ranks(["river", "bank money", "bank"], targets).tolist() == [1, 1, 3]


def test_purity_by_hand():
    """The example of Manning, Raghavan & Schütze, Introduction to Information Retrieval, figure 16.4: 12 / 17."""
    result = np.repeat([0, 1, 2], [6, 6, 5])
    labels = np.array([0] * 5 + [1] + [1] * 4 + [0, 2] + [2] * 3 + [0] * 2)
    assert purity(result, labels).sum() == 12 and purity(result, labels).mean() == pytest.approx(12 / 17)


def test_clusters_find_separated_groups():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1, 2], 30)
    rows = (np.eye(3)[labels] * 5 + random.standard_normal((90, 3)) * 0.3).astype(np.float32)
    assert purity(clusters(rows, 3, seed=1), labels).mean() == 1
    assert clusters(rows, 3, seed=1).tolist() == clusters(rows, 3, seed=1).tolist()


def test_clusters_of_wide_rows_are_those_of_narrow_ones():
    """A rotation into more dimensions changes no distance."""
    random = np.random.default_rng(4)
    rows = random.standard_normal((60, 5))
    wide = rows @ np.linalg.qr(random.standard_normal((300, 5)))[0].T
    assert narrowed(wide).shape == (60, 60)
    np.testing.assert_allclose(narrowed(wide) @ narrowed(wide).T, rows @ rows.T, atol=1e-9)
    assert (
        clusters(wide.astype(np.float32), 4, seed=1).tolist() == clusters(rows.astype(np.float32), 4, seed=1).tolist()
    )


def test_clusters_are_as_tight_as_those_of_scikit_learn():
    from sklearn.cluster import KMeans

    rows = unit_rows(np.random.default_rng(3).standard_normal((300, 6))).astype(np.float64)
    result = clusters(rows.astype(np.float32), 8, seed=1)
    spread = sum(((rows[result == each] - rows[result == each].mean(axis=0)) ** 2).sum() for each in range(8))
    assert spread < 1.01 * KMeans(8, n_init=10, random_state=0).fit(rows).inertia_


def test_overlap_by_hand():
    a = np.array([[1, 0], [0.9, 0.1], [0, 1], [0.1, 0.9]], np.float32)
    b = a[[0, 2, 1, 3]]  # 1 and 2 change places
    # The nearest of 0 is 1 in a and 2 in b; of 1: 0 and 3; of 2: 3 and 0; of 3: 2 and 1.
    assert overlap(a, b, 1).tolist() == [0, 0, 0, 0]
    assert overlap(a, a * 3, 1).tolist() == [1, 1, 1, 1]
    # Two nearest: of 0 they are {1, 3} in a and {2, 3} in b, one of two the same.
    assert overlap(a, b, 2)[0] == 0.5
    assert overlap(a, b, 3).tolist() == [1, 1, 1, 1]  # all others


def test_overlap_of_independent_spaces_is_chance():
    random = np.random.default_rng(1)
    a, b = random.standard_normal((2, 800, 20)).astype(np.float32)
    assert overlap(a, b, 10).mean() == pytest.approx(10 / 799, abs=0.004)


def test_overlap_refuses_more_neighbors_than_rows():
    with refuses("invalid_value", option="k", limit=3):
        overlap(np.eye(4, dtype=np.float32), np.eye(4, dtype=np.float32), 4)


def test_the_probe_predicts_separable_labels_only():
    random = np.random.default_rng(0)
    labels = np.repeat([0, 1], [140, 60])
    apart = (labels[:, None] * 6 + random.standard_normal((200, 4))).astype(np.float32)
    noise = random.standard_normal((200, 4)).astype(np.float32)
    assert probe(apart, labels, seed=1).mean() == 1 and len(probe(apart, labels, seed=1)) == 100
    guessed = np.mean([most_frequent(labels, seed).mean() for seed in range(20)])
    assert guessed == pytest.approx(0.7, abs=0.02)
    assert np.mean([probe(noise, labels, seed).mean() for seed in range(5)]) < guessed + 0.05


# ---- the bootstrap ----


def test_interval_of_a_mean_is_that_of_the_normal_distribution():
    values = np.random.default_rng(0).standard_normal(2000)
    low, high = interval(resampled(values[None], draws=2000)[0])
    wide = 1.96 * values.std() / np.sqrt(len(values))
    assert low == pytest.approx(values.mean() - wide, abs=0.005)
    assert high == pytest.approx(values.mean() + wide, abs=0.005)


def test_interval_of_a_share_is_that_of_the_binomial_distribution():
    values = np.repeat([1.0, 0.0], [30, 70])
    low, high = interval(resampled(values[None], draws=4000)[0])
    assert (low, high) == pytest.approx((0.21, 0.39), abs=0.011)  # 0.3 ± 1.96 √(0.3 · 0.7 / 100)


def test_intervals_cover_the_truth_in_about_95_of_100_cases():
    random = np.random.default_rng(5)
    held = []
    for case in range(120):
        low, high = interval(resampled(random.random((1, 100)), draws=400, seed=case)[0])
        held.append(low <= 0.5 <= high)
    assert 0.90 <= np.mean(held) <= 0.985


def test_the_same_seed_gives_the_same_draws():
    values = np.random.default_rng(0).random((2, 50))
    assert np.array_equal(resampled(values, seed=3), resampled(values, seed=3))
    assert not np.array_equal(resampled(values, seed=3), resampled(values, seed=4))


def test_pairing_distinguishes_what_separate_intervals_do_not():
    """Items differ much, models little but consistently."""
    items = np.random.default_rng(0).normal(0, 1, 200)
    better, worse = items + 0.05 + np.random.default_rng(1).normal(0, 0.05, 200), items
    draws = resampled(np.array([better, worse]))
    assert distinguishable(*draws)
    assert interval(draws[0])[0] < interval(draws[1])[1]  # their own intervals overlap


def test_random_differences_are_distinguishable_in_about_5_of_100_cases():
    random = np.random.default_rng(7)
    flags = [distinguishable(*resampled(random.random((2, 100)), draws=300, seed=case)) for case in range(120)]
    assert np.mean(flags) <= 0.1


def test_a_model_is_not_distinguishable_from_itself():
    values = np.random.default_rng(0).random(60)
    result = make_measure("x", "x", {"a": values, "b": values.copy()})
    assert result.are_indistinguishable("a", "b") and result.is_best("a") and result.is_best("b")


def test_correlations_are_resampled_by_pairs():
    truth = np.arange(100.0)
    near, noise = truth + np.random.default_rng(0).normal(0, 10, 100), np.random.default_rng(1).random(100)
    result = make_measure("x", "x", {"near": near, "noise": noise}, truth=truth)
    assert result.scores["near"].value == statistic(near, truth) > 0.9
    assert result.scores["noise"].low < 0 < result.scores["noise"].high
    assert not result.are_indistinguishable("near", "noise") and result.best == "near" and not result.is_best("noise")


def test_a_baseline_is_never_the_best():
    result = make_measure("x", "x", {"a": np.zeros(20)}, baseline=("BM25", np.ones(20)))
    assert result.best == "a" and result.models == ["a"] and result.to_json()["baseline"]["value"] == 1


def test_the_probe_of_wide_rows_ignores_words_that_only_the_test_half_has():
    random = np.random.default_rng(6)
    labels = np.arange(80) % 2
    rows = np.hstack([random.standard_normal((80, 3)) + 2 * labels[:, None], np.eye(80)]).astype(np.float32)
    assert probe(rows, labels, seed=1).mean() > 0.85
