"""ALS and RatingFactors against dense solutions, the implicit package and known truth; options of BPR and Item2Vec."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from refusing import refuses
from scipy.sparse import csr_matrix

import firth
from firth import evaluate
from firth.core.report import Silence
from firth.recommenders.recommender_model import RecommenderModel


def dense_of(ratings: firth.Interactions) -> np.ndarray:
    rows = ratings.latest()
    shape = (len(ratings.users), len(ratings.items))
    return np.asarray(csr_matrix((rows.values, rows.columns, rows.starts), shape).toarray(), np.float64)


def objective(model: RecommenderModel, confidence: np.ndarray, preference: np.ndarray, ridge: float) -> float:
    users, items = model.users.matrix.astype(np.float64), model.items.matrix.astype(np.float64)
    fit = (confidence * (preference - users @ items.T) ** 2).sum()
    return float(fit + ridge * ((users**2).sum() + (items**2).sum()))


@pytest.mark.parametrize("solver", ["cg", "cholesky"])
def test_als_minimizes_its_objective(solver, ratings):
    """The reported loss equals the objective over the dense matrix, and it falls in every epoch."""
    method = firth.ALS(dim=8, alpha=3.0, weighting="linear", regularization=2.0, solver=solver, epochs=12)
    model = method.fit(ratings)
    dense = dense_of(ratings)
    pairs = model.training["pairs"]
    losses = [epoch["loss"] * pairs for epoch in model.training["epochs"]]
    assert losses == sorted(losses, reverse=True)
    assert losses[-1] == pytest.approx(objective(model, 1 + 3 * dense, (dense > 0).astype(float), 2.0), rel=1e-4)


def test_als_reports_no_loss_before_the_first_one_is_known(ratings):
    steps = []

    class RecordedSteps(Silence):
        def step(self, done: float, **metrics: float) -> None:
            steps.append(metrics)

    firth.ALS(dim=4, epochs=2).fit(ratings, firth.Run(report=RecordedSteps()))
    assert "loss" in steps[-1] and all(metrics.get("loss", 1.0) > 0 for metrics in steps)


def test_als_equals_dense_alternating_least_squares(ratings):
    """Three epochs from the same initial vectors; NumPy solves every row over the dense matrix."""
    method = firth.ALS(dim=6, alpha=2.0, weighting="log", regularization=1.5, solver="cholesky", epochs=3)
    model = method.fit(ratings, firth.Run(seed=4))
    dense = np.log1p(dense_of(ratings))
    confidence, preference = 1 + 2 * dense, (dense > 0).astype(float)
    items = 0.1 * np.random.default_rng(4).standard_normal((dense.shape[1], 6), dtype=np.float32)

    def solved(others: np.ndarray, c: np.ndarray, p: np.ndarray) -> np.ndarray:
        rows = zip(c, p, strict=True)
        return np.stack(
            [np.linalg.solve((others.T * w) @ others + 1.5 * np.eye(6), (others.T * w) @ q) for w, q in rows]
        )

    for _ in range(3):
        users = solved(items, confidence, preference)
        items = solved(users, confidence.T, preference.T)
    np.testing.assert_allclose(model.users.matrix, users, atol=2e-3)
    np.testing.assert_allclose(model.items.matrix, items, atol=2e-3)


def test_als_agrees_with_the_implicit_package(parts):
    """Equal settings reach the same objective and the same ranking metrics."""
    from implicit.cpu.als import AlternatingLeastSquares
    from threadpoolctl import threadpool_limits

    rows = parts.train.summed()
    shape = (len(parts.train.users), len(parts.train.items))
    plain = csr_matrix((rows.values, rows.columns, rows.starts), shape)
    confident = plain.copy()
    confident.data = 1 + 2 * confident.data
    settings = {"factors": 16, "regularization": 3.0, "alpha": 1.0, "iterations": 15, "random_state": 3}
    with threadpool_limits(1, "blas"):
        theirs = AlternatingLeastSquares(**settings, num_threads=1)
        theirs.fit(confident, show_progress=False)
    method = firth.ALS(dim=16, alpha=2.0, weighting="linear", regularization=3.0, epochs=15)
    ours = method.fit(parts.train)
    arrays = {"users": theirs.user_factors, "items": theirs.item_factors, "scale": np.array([3.0])}
    as_ours = firth.ALS.model(method, arrays, ours.seen, ours._keys, {})
    dense = plain.toarray().astype(np.float64)
    losses = [objective(model, 1 + 2 * dense, (dense > 0).astype(float), 3.0) for model in (ours, as_ours)]
    assert losses[0] == pytest.approx(losses[1], rel=0.01)
    scores = [evaluate.recommendations(model, parts.test, baselines=False) for model in (ours, as_ours)]
    for metric in ("recall@20", "ndcg@100", "map@10"):
        assert scores[0][metric] == pytest.approx(scores[1][metric], rel=0.05)
    folded = theirs.recalculate_user(np.arange(3), confident[:3])
    keys = [[ours.items.keys[i] for i in plain[u].indices for _ in range(int(plain[u, i]))] for u in range(3)]
    np.testing.assert_allclose(as_ours.fold_in(keys), folded, atol=2e-3)


def test_frequency_scaling_regularizes_active_users_more(ratings):
    """The mean stays `regularization`; with a power of 1 each row's share is proportional to its total confidence."""
    method = firth.ALS(regularization=2.0, frequency_scaling=1.0)
    totals = np.array([100.0, 200.0, 600.0])
    np.testing.assert_allclose(method.ridge(totals), 2.0 * totals / 300)
    plain, scaled = (
        firth.ALS(dim=8, regularization=20.0, frequency_scaling=power).fit(ratings) for power in (0.0, 2.0)
    )
    active = np.argsort(-np.diff(plain.seen.starts))[:50]
    ratio = np.linalg.norm(scaled.users.matrix, axis=1) / np.linalg.norm(plain.users.matrix, axis=1)
    assert ratio[active].mean() < ratio.mean()


def test_weighting_changes_what_weights_count(ratings):
    doubled = firth.Interactions([(u, i, 2 * w) for u, h in ratings.histories().items() for i, w in h.items()])

    def items(data, weighting):
        return firth.ALS(dim=4, epochs=1, weighting=weighting).fit(data).items.matrix

    same = {
        weighting: np.array_equal(items(ratings, weighting), items(doubled, weighting))
        for weighting in ("linear", "log", "binary")
    }
    assert same == {"linear": False, "log": False, "binary": True}


def test_weights_beyond_single_precision_are_refused():
    with refuses("diverged", epoch=1, cause="the weights are too large for float32; scale them down."):
        firth.ALS(dim=4, weighting="linear").fit([("a", "x", 1e38), ("b", "y", 1e38), ("b", "x", 3.0)])


def test_rating_factors_recover_a_known_matrix():
    """Mean, biases, a product of rank 3 and noise: the error on held-out ratings is close to the noise."""
    random = np.random.default_rng(9)
    users, items = random.normal(0, 0.7, (150, 3)), random.normal(0, 0.7, (90, 3))
    truth = 3.2 + random.normal(0, 0.5, 150)[:, None] + random.normal(0, 0.4, 90) + users @ items.T
    noisy = truth + random.normal(0, 0.1, truth.shape)
    is_train = random.random(truth.shape) < 0.4
    is_test = ~is_train & (random.random(truth.shape) < 0.1)
    train = firth.Interactions([(u, i, noisy[u, i]) for u, i in np.argwhere(is_train)])
    test = firth.Interactions([(u, i, noisy[u, i]) for u, i in np.argwhere(is_test)])
    model = firth.RatingFactors(dim=3, regularization=0.01, epochs=30).fit(train)
    errors = evaluate.rating_errors(model, test)
    assert errors.rmse < 0.16 and errors.mean_rmse > 0.9 and errors.mae < errors.rmse
    assert model.mean == pytest.approx(noisy[is_train].mean(), abs=1e-4)
    biases = truth[:, :].mean(axis=1) - truth.mean()
    assert np.corrcoef(biases, model._rows["users"][:, 3][np.argsort([int(u) for u in model.users.keys])])[0, 1] > 0.8
    folded = model.fold_in([{str(i): noisy[5, i] for i in np.flatnonzero(is_train[5])}])
    rest = [str(i) for i in np.flatnonzero(~is_train[5])]
    predicted = model.scores(folded)[0, [model.items.row(item) for item in rest]]
    assert np.sqrt(np.mean((predicted - truth[5, ~is_train[5]]) ** 2)) < 0.2


def test_ratings_from_known_tastes_are_predicted(parts):
    """The ratings follow from tastes, so factors predict better than the mean and than biases alone."""
    errors = evaluate.rating_errors(firth.RatingFactors(dim=8).fit(parts.train), parts.test)
    biases = evaluate.rating_errors(
        firth.RatingFactors(dim=1, regularization=5.0, held_out=0).fit(parts.train), parts.test
    )
    assert errors.rmse < 0.9 * biases.rmse < biases.mean_rmse
    assert errors.skipped < 0.02 * errors.pairs


def test_rating_factors_minimize_their_objective(ratings):
    method = firth.RatingFactors(dim=5, regularization=0.2, epochs=8)
    model = method.fit(ratings)
    rows = ratings.latest()
    pairs = len(rows.columns)
    losses = [epoch["loss"] * pairs for epoch in model.training["epochs"]]
    assert losses == sorted(losses, reverse=True)
    owners = np.repeat(np.arange(len(ratings.users)), np.diff(rows.starts))
    users, items = (model._rows[side].astype(np.float64) for side in ("users", "items"))
    residuals = rows.values - model.mean - np.einsum("ij,ij->i", users[owners], items[rows.columns])
    counts = np.diff(rows.starts), np.bincount(rows.columns, minlength=len(items))
    squares = ((users[:, :6] ** 2).sum(axis=1), (items**2).sum(axis=1) - 1)
    ridge = 0.2 * sum(float(count @ square) for count, square in zip(counts, squares, strict=True))
    assert losses[-1] == pytest.approx((residuals**2).sum() + ridge, rel=1e-4)


def test_rating_factors_need_ratings_to_fold_in(ratings):
    model = firth.RatingFactors(dim=4, epochs=1).fit(ratings)
    with refuses("wrong_input"):
        model.recommend_for([ratings.items[0]])
    with refuses("shape_mismatch", n_users=1, n_items=2):
        model.rate([ratings.users[0]], ratings.items[:2])
    hated = firth.RatingFactors(dim=2).fit([("a", "x", -5.0), ("a", "y", 5.0), ("b", "y", 4.0), ("b", "x", -3.0)])
    assert hated.rate(["a", "a"], ["x", "y"]) == pytest.approx([-5, 5], abs=1.5)  # negative ratings are ratings


def test_bpr_ranks_used_items_above_unused_ones(ratings):
    model = firth.BPR(dim=16, negative_exponent=0.0).fit(ratings)
    losses = [epoch["loss"] for epoch in model.training["epochs"]]
    assert losses[0] == pytest.approx(np.log(2), abs=0.1) and losses[-1] < 0.5 * losses[0]
    scores = model.scores(model.user_rows(model.users.keys))
    used = np.zeros_like(scores, dtype=bool)
    used[np.repeat(np.arange(len(scores)), np.diff(model.seen.starts)), model.seen.items] = True
    auc = [float((scores[u][used[u]][:, None] > scores[u][~used[u]]).mean()) for u in range(len(scores))]
    assert np.mean(auc) > 0.85  # the area under the ROC curve, which BPR maximizes


def test_bpr_and_item2vec_need_two_items():
    with refuses("too_few", method="BPR", minimum=2, got=1):
        firth.BPR().fit([("a", "x"), ("b", "x")])
    with refuses("too_few", method="Item2Vec", minimum=2, got=1):
        firth.Item2Vec().fit([("a", "x"), ("b", "x")])
    with refuses("diverged"):
        firth.BPR(learning_rate=100.0, dim=4, regularization=10.0).fit([("a", "x"), ("b", "y"), ("b", "x"), ("c", "y")])


def test_item2vec_user_vectors_are_means_of_item_vectors(ratings):
    model = firth.Item2Vec(dim=8, epochs=2).fit(ratings)
    user = ratings.users[4]
    mean = np.mean([model.items[item] for item in ratings.histories()[user]], axis=0)
    np.testing.assert_allclose(model.users[user], mean, atol=1e-5)
    np.testing.assert_allclose(model.fold_in([list(ratings.histories()[user])])[0, :8], mean, atol=1e-5)


def test_sessions_learn_from_order_and_baskets_do_not():
    """Item n is followed by n + 1 of its chain, and every basket holds all chains: only order separates chains."""
    random = np.random.default_rng(4)
    events = []
    for user in range(400):
        chains = [[f"{chain}{step}" for step in range(4)] for chain in "abcdefgh"]
        random.shuffle(chains)
        steps = [item for chain in chains for item in chain]
        events += [(user, item, 1.0, time) for time, item in enumerate(steps)]
    ratings = firth.Interactions(events)

    def same_chain(**options: Any) -> float:
        model = firth.Item2Vec(dim=16, subsample=0.0, **options).fit(ratings, firth.Run(report=Silence()))
        hits = [(item, hit.key) for item in model.items.keys for hit in model.recommend_for([item], 3)]
        return float(np.mean([a[0] == b[0] for a, b in hits]))

    assert same_chain(sessions=True, window=3) > 0.9
    assert same_chain(window=3) < 0.4
