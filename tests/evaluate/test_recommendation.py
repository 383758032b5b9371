"""Ranking metrics compared with hand-computed values and scikit-learn; baselines compared with their definitions."""

from __future__ import annotations

import math
import tracemalloc
from typing import Any, ClassVar

import numpy as np
import pytest
from refusing import refuses
from scipy.sparse import random as random_sparse
from sklearn.metrics import ndcg_score
from sklearn.metrics.pairwise import cosine_similarity

import firth
from firth.core.model import Histories
from firth.core.vectors import Hits, Vectors
from firth.evaluate import baselines, rating_errors, recommendations
from firth.evaluate.baselines import WEIGHTINGS, item_knn, popularity
from firth.evaluate.recommendation import user_metrics

CUT = [("recall", 3), ("ndcg", 3), ("map", 3)]


def test_metrics_by_hand():
    """Hits at ranks 1 and 3, 4 relevant items, k = 3.

    recall = 2 / min(3, 4) = 2/3. DCG = 1/log₂2 + 1/log₂4 = 1.5; ideal 1 + 1/log₂3 + 1/2; AP = (1/1 + 2/3) / 3.
    """
    values = user_metrics(np.array([True, False, True, True]), 4, CUT)
    assert values == pytest.approx([2 / 3, 1.5 / (1.5 + 1 / math.log2(3)), (1 + 2 / 3) / 3])
    assert user_metrics(np.array([True, True]), 2, CUT) == [1, 1, 1]  # all relevant items come first
    assert user_metrics(np.zeros(5, dtype=bool), 1, CUT) == [0, 0, 0]
    assert user_metrics(np.zeros(0, dtype=bool), 1, CUT) == [0, 0, 0]  # an empty ranking
    assert user_metrics(np.array([False, True]), 1, CUT) == pytest.approx([1, 1 / math.log2(3), 0.5])


def test_ndcg_is_that_of_scikit_learn():
    random = np.random.default_rng(8)
    for k in (1, 5, 20):
        scores, relevant = random.random(30), random.random(30) < 0.3
        ranking = np.argsort(-scores)[:20]
        values = user_metrics(relevant[ranking], int(relevant.sum()), [("ndcg", k)])
        assert values[0] == pytest.approx(ndcg_score([relevant], [scores], k=k))


class Fixed:
    """Ranks the items a, b, c, d, e in this order for every user. The user ann has the history a, bob has none."""

    seen = Histories(np.array([0, 1, 1]), np.array([0], dtype=np.int32))
    tables: ClassVar[Any] = {
        "items": Vectors(list("abcde"), np.zeros((5, 1))),
        "users": Vectors(["ann", "bob"], np.zeros((2, 1))),
    }

    def user_rows(self, users):
        return np.ones((len(users), 1), dtype=np.float32)

    def fold_in(self, histories):
        return np.ones((len(histories), 1), dtype=np.float32)

    def scores(self, users):
        return users @ np.array([[5, 4, 3, 2, 1]], dtype=np.float32)

    def recommend(self, user, k=10, *, seen=False):
        return Hits()

    def recommend_for(self, history, k=10, *, seen=False):
        return Hits()


def test_items_of_the_history_are_not_recommended():
    test = {
        "ann": ["a", "b", "d"],  # a is in the history, so b and d are relevant; b, c, d, e are ranked: ranks 1 and 3
        "bob": ["zzz", "a"],  # zzz is unseen in training: it counts as missed
        "eve": ["b"],  # neither in the model nor with a history
        "joe": ["e"],  # the history below has a and b, so e is third
    }
    result = recommendations(
        Fixed(), test, history={"joe": ["a", "b", "yyy"]}, metrics=("recall@2", "map@3"), baselines=False
    )
    assert (result.users, result.unknown_users, result.nothing_new, result.unknown_items) == (3, 1, 0, 1)
    assert result["recall@2"] == pytest.approx((1 / 2 + 1 / 2 + 0) / 3)
    assert result["map@3"] == pytest.approx(((1 + 2 / 3) / 2 + 1 / 2 + 1 / 3) / 3)
    assert "3 users (1 unknown, 0 with nothing new left out); 1 test items unseen" in str(result)
    nothing = recommendations(Fixed(), {"ann": ["a"]}, baselines=False)
    assert (nothing.users, nothing.nothing_new) == (0, 1) and math.isnan(nothing["map@10"])
    assert nothing.to_json()["scores"]["Fixed"]["map@10"] is None


def test_a_weight_of_zero_is_no_interaction():
    test, history = {"ann": {"b": 0.0, "c": 2.0}, "joe": {"a": 1.0}}, {"joe": {"a": 0.0, "b": 1.0}}
    result = recommendations(Fixed(), test, history=history, metrics=("recall@1", "map@2"), baselines=False)
    assert result["recall@1"] == pytest.approx((0 + 1) / 2)  # c is second for ann; joe's history is b only
    assert result["map@2"] == pytest.approx((1 / 2 + 1) / 2)
    nobody = recommendations(Fixed(), {"bob": {"a": 0.0}}, baselines=False)
    assert (nobody.users, nobody.nothing_new) == (0, 1)


def test_invalid_arguments_are_refused():
    with refuses("invalid_value", got="precision@5"):
        recommendations(Fixed(), {}, metrics=("precision@5",))
    with refuses("invalid_type", got="list"):
        recommendations(Fixed(), ["a"])
    vectors, fixed = firth.Vectors(["a"], [[1.0]]), Fixed()
    with refuses("unsupported_model", model=vectors):
        recommendations(vectors, {})
    with refuses("unsupported_model", model=fixed):
        rating_errors(fixed, {})  # type: ignore[arg-type]


@pytest.fixture
def matrix():
    return random_sparse(40, 25, 0.2, "csr", rng=np.random.default_rng(5), dtype=np.float32)


def seen_in(matrix: Any) -> Histories:
    return Histories(matrix.indptr.astype(np.int64), matrix.indices.astype(np.int32))


def test_popularity_counts_users(matrix):
    scores = popularity(seen_in(matrix), 25)([[1], []])
    assert np.array_equal(scores, [np.diff(matrix.tocsc().indptr)] * 2)


def test_item_knn_is_the_sum_of_cosines(matrix):
    ones = (matrix > 0).toarray().astype(float)
    similarity = cosine_similarity(ones.T)
    np.fill_diagonal(similarity, 0)
    histories = [[1, 5, 7], [], [24]]
    scores = item_knn(seen_in(matrix), 25, neighbors=25)(histories)
    np.testing.assert_allclose(scores, [similarity[history].sum(axis=0) for history in histories], atol=1e-5)
    least = np.sort(similarity, axis=1)[:, -4][:, None]
    few = np.where(similarity >= least, similarity, 0)
    np.testing.assert_allclose(
        item_knn(seen_in(matrix), 25, neighbors=4)([[3, 4]])[0], few[[3, 4]].sum(axis=0), atol=1e-5
    )


@pytest.mark.parametrize("neighbors", [1, 3, 24, 25])
@pytest.mark.parametrize("weighting", WEIGHTINGS)
@pytest.mark.parametrize("entries", [1, 40, 1 << 20])
def test_item_knn_block_by_block_is_the_dense_computation(matrix, neighbors, weighting, entries, monkeypatch):
    """The result does not depend on the blocks; ties with the last neighbor (there are many here) are included."""
    monkeypatch.setattr(baselines, "ENTRIES", entries)
    seen = seen_in(matrix)
    columns = baselines.unit_columns(seen, 25, weighting)
    dense = (columns.T.tocsr() @ columns).toarray()
    np.fill_diagonal(dense, 0)
    dense[dense < np.sort(dense, axis=1)[:, -neighbors][:, None]] = 0
    sparse = baselines.item_similarity(seen, 25, neighbors, weighting)
    assert np.array_equal(sparse.toarray(), dense)


def test_item_knn_needs_no_memory_for_items_without_common_users():
    """There are 20,000 items and two per user; a dense block of 256 items alone would take 20 MB."""
    items = np.arange(20_000, dtype=np.int32)
    seen = Histories(np.arange(0, 20_001, 2), items)
    item_knn(seen, 20_000)  # imports
    tracemalloc.start()
    item_knn(seen, 20_000)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 10e6


def test_the_baselines_report_their_progress():
    events: list[Any] = []

    class Recorded(firth.core.report.Silence):
        def begin(self, task, total, unit):
            events.append((task, total, unit))

        def step(self, done, **metrics):
            events.append(done)

        def end(self):
            events.append("end")

    recommendations(Fixed(), {"ann": ["b"]}, report=Recorded())
    assert events == [("item-kNN baseline", 5, "items"), 5, "end"]
    events.clear()
    recommendations(Fixed(), {"ann": ["b"]}, report=Recorded(), baselines=False)
    assert events == []


def test_bm25_by_hand():
    """Two users of 1 and 3 items (mean 2), items in 2, 1, 1 of them."""
    seen = Histories(np.array([0, 1, 4]), np.array([0, 0, 1, 2], dtype=np.int32))
    user = [2.2 / (1.2 * (0.25 + 0.75 * length / 2) + 1) for length in (1, 3)]
    rare = [math.log1p(2 / (1 + count)) for count in (2, 1, 1)]
    columns = np.array([[user[0] * rare[0], 0, 0], [user[1] * rare[i] for i in range(3)]])
    similarity = cosine_similarity(columns.T)
    np.fill_diagonal(similarity, 0)
    np.testing.assert_allclose(
        item_knn(seen, 3, weighting="bm25")([[0], [1, 2]]), [similarity[0], similarity[1] + similarity[2]], atol=1e-6
    )
    with refuses("invalid_value", option="weighting", choices="cosine, bm25", got="tf"):
        item_knn(seen, 3, weighting="tf")


def test_rating_errors_by_hand():
    class Half:
        mean = 3.0
        tables = Fixed.tables

        def rate(self, users, items):
            return np.full(len(users), 3.5, dtype=np.float32)

    result = rating_errors(Half(), {"ann": {"a": 4.0, "b": 1.5}, "bob": {"zzz": 1.0}})
    assert (result.rmse, result.mae) == pytest.approx((math.sqrt((0.25 + 4) / 2), 1.25))
    assert (result.mean_rmse, result.mean_mae) == pytest.approx((math.sqrt((1 + 2.25) / 2), 1.25))
    assert (result.pairs, result.skipped) == (2, 1) and "2 ratings (1 of unknown" in str(result)
    with refuses("empty_data", n_pairs=0):
        rating_errors(Half(), {"ann": ["a"]})
