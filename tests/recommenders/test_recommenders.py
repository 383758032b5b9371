"""All recommenders: known tastes are recovered, new users are folded in, runs are resumed and continued."""

from __future__ import annotations

import dataclasses
from pathlib import Path

import numpy as np
import pytest
from breaking import Notes, break_off
from refusing import refuses, warns_code
from scipy.sparse import coo_array
from sklearn.linear_model import Ridge
from sklearn.model_selection import cross_val_predict

import firth
from firth import evaluate
from firth.core.model import Recommends
from firth.data.splits import split
from firth.training import epoch_loop as loop

# Settings for small synthetic data with five genres, chosen on data of another seed (78).
NETWORKS = [firth.MultVAE(dim=16, epochs=40, learning_rate=0.01), firth.MultDAE(dim=16, epochs=60, learning_rate=0.01)]
METHODS = [firth.ALS(dim=8), firth.BPR(dim=8, regularization=0.1), firth.Item2Vec(dim=8)]
EVERY = [*METHODS, firth.RatingFactors(dim=8)]
implicit_methods = pytest.mark.parametrize("method", METHODS, ids=lambda method: type(method).__name__)
every_method = pytest.mark.parametrize("method", EVERY, ids=lambda method: type(method).__name__)


def small(method: firth.Method) -> firth.Method:
    return type(method)(dim=8, epochs=2)


def history_of(ratings: firth.Interactions, user: str) -> dict[str, float]:
    return ratings.histories()[user]


@pytest.mark.parametrize("method", [*METHODS, *NETWORKS], ids=lambda method: type(method).__name__)
def test_tastes_are_recovered_and_popularity_is_beaten(method, society, parts):
    """User vectors predict each user's share of every genre, and rankings come close to those of an oracle."""
    model = method.fit(parts.train)
    result = evaluate.recommendations(model, parts.test)
    ours, popular = result.scores[type(method).__name__], result.scores["popularity"]
    truth = oracle(model, society, parts.train)
    ideal = evaluate.recommendations(truth, parts.test, baselines=False)
    assert result.users > 780 and result.unknown_users == 0
    for metric in ours:
        assert ours[metric] > 1.25 * popular[metric]
        assert ours[metric] > 0.75 * ideal[metric] > popular[metric]
    tastes = society.tastes[[int(user) for user in model.users.keys]]

    def explained(vectors: np.ndarray) -> float:
        predicted = cross_val_predict(Ridge(1e-3), vectors, tastes, cv=5)
        return float(1 - ((tastes - predicted) ** 2).sum() / ((tastes - tastes.mean(axis=0)) ** 2).sum())

    assert explained(model.users.unit) > 0.6
    counts = np.diff(parts.train.summed().starts)[:, None]  # all that popularity uses of a user: the number of items
    assert explained(counts) < 0.05
    shuffled = np.random.default_rng(1).permutation(model.users.unit)
    assert explained(shuffled) < 0.05


def oracle(model, society, train):
    """A model that scores items by the true tastes and traits, weighted by the popularity of items."""
    traits = society.traits[[int(item) for item in model.items.keys]]
    odds = traits * np.bincount(train.item_ids, minlength=len(traits))[:, None]
    rows = {
        "users": society.tastes[[int(user) for user in model.users.keys]].astype(np.float32),
        "items": (odds / odds.sum(axis=0)).astype(np.float32),
        "scale": np.ones(1),
    }
    return firth.ALS.model(
        firth.ALS(dim=5), rows, model.seen, {name: model.tables[name].keys for name in rows if name != "scale"}, {}
    )


@implicit_methods
def test_items_of_the_same_genre_are_neighbors(method, society, parts):
    model = method.fit(parts.train)
    genre = society.traits.argmax(axis=1)
    same = [
        genre[int(item)] == genre[int(hit.key)]
        for item in model.items.keys[:100]
        for hit in model.items.neighbors(item, 5)
    ]
    chance = float(np.square(np.bincount(genre) / len(genre)).sum())
    assert np.mean(same) > 2.5 * chance


@implicit_methods
def test_new_users_are_folded_in(method, ratings):
    """Held-out users are folded in with four fifths of their history; the rest is recommended to them."""
    train, test, history = split(ratings, "user", 0.2)
    model = method.fit(train)
    result = evaluate.recommendations(model, test, history=history)
    ours = result.scores[type(method).__name__]
    assert result.unknown_users == 0
    assert all(ours[metric] > 1.1 * result.scores["popularity"][metric] for metric in ours)


@every_method
def test_folding_in_a_training_user_gives_a_similar_vector(method, ratings):
    model = method.fit(ratings)
    users, histories = model.users.keys[:60], list(ratings.histories().values())[:60]
    rows = model.fold_in(histories)
    nearest = [model.users.neighbors(row[: model.items.dim], 5) for row in rows]
    is_neighbor = [user in [hit.key for hit in hits] for user, hits in zip(users, nearest, strict=True)]
    assert np.mean(is_neighbor) > 0.75
    assert rows.tobytes() == model.fold_in(histories).tobytes()
    alone = model.fold_in([histories[7]])
    assert np.array_equal(alone[0], rows[7])  # independent of the other histories


@every_method
def test_recommending(method, ratings):
    model = small(method).fit(ratings)
    assert isinstance(model, Recommends) and list(model.tables) == ["items", "users"]
    user = ratings.users[3]
    history_items = set(history_of(ratings, user))
    hits = model.recommend(user, 5)
    assert len(hits) == 5 and not history_items & {hit.key for hit in hits}
    assert [hit.score for hit in hits] == sorted((hit.score for hit in hits), reverse=True)
    everything = model.recommend(user, 10_000, seen=True)
    assert len(everything) == len(ratings.items) and history_items <= {hit.key for hit in everything}
    assert len(model.recommend(user, 10_000)) == len(ratings.items) - len(history_items)
    row = model.user_rows([user])
    by_key = dict(zip(model.tables["items"].keys, model.scores(row)[0], strict=True))
    assert all(by_key[hit.key] == pytest.approx(hit.score, rel=1e-4, abs=1e-5) for hit in everything[:20])
    history = dict(list(history_of(ratings, user).items())[:3])
    new = model.recommend_for(history, 4)
    assert len(new) == 4 and not set(history) & {hit.key for hit in new}


@every_method
def test_unknown_users_and_invalid_histories_are_refused(method, ratings):
    model = small(method).fit(ratings)
    assert isinstance(model, Recommends)
    with refuses("unknown_key", key="nobody") as caught:
        model.recommend("nobody")
    assert all(name in str(caught.value) for name in ("recommend_for(", "fold_in("))  # what to call instead
    with refuses("unknown_key", key="nothing"):
        model.recommend_for({"nothing": 1.0})
    with refuses("invalid_value", option="k", got=0):
        model.recommend(ratings.users[0], 0)
    with refuses("invalid_type", argument="histories"):
        model.fold_in({ratings.items[0]: 1.0})  # type: ignore[arg-type]
    if not isinstance(method, firth.RatingFactors):
        with refuses("invalid_value", item=ratings.items[0], min_weight=0.0, got=-1.0):
            model.fold_in([{ratings.items[0]: -1.0}])
        assert np.array_equal(model.fold_in([{ratings.items[0]: 0.0}]), model.fold_in([[]]))  # weight 0: not used
        assert np.array_equal(model.fold_in([[ratings.items[0]] * 2]), model.fold_in([{ratings.items[0]: 2.0}]))


@every_method
def test_users_without_items_and_items_without_users(method):
    """Row 2 and column 3 of the matrix are empty: their vectors are zero, and that user gets popular items."""
    random = np.random.default_rng(3)
    dense = (random.random((30, 12)) < np.linspace(0.9, 0.1, 12)) * random.integers(1, 6, (30, 12))
    dense[2], dense[:, 3] = 0, 0
    ratings = firth.Interactions(coo_array(dense.astype(float)))
    model = type(method)(dim=4, **({"regularization": 1.0} if isinstance(method, firth.ALS) else {})).fit(ratings)
    assert not model.users["2"].any() and not model.items["3"].any() and np.isfinite(model.items.matrix).all()
    order = [hit.key for hit in model.recommend("2", 12)]
    if isinstance(method, firth.RatingFactors):  # sorted by item bias
        bias = dict(zip(model.items.keys, model.item_rows[:, -1].tolist(), strict=True))
        assert order == sorted(order, key=lambda item: -bias[item]) and bias["3"] == 0
    elif isinstance(method, firth.BPR):
        assert np.corrcoef([dense[:, int(key)].astype(bool).sum() for key in order], np.arange(12))[0, 1] < -0.8
    else:
        assert order == ratings.items  # the most used first
    assert len(model.fold_in([{}])) == 1 and len(model.fold_in([])) == 0


@every_method
def test_a_resumed_run_equals_an_uninterrupted_one(method, ratings, tmp_path, monkeypatch):
    monkeypatch.setattr(loop, "SLICE_SECONDS", 0.004)
    method = type(method)(dim=8, epochs=8 if isinstance(method, firth.BPR) else 3)
    notes = Notes()
    run = firth.Run(threads=2, deterministic=True, checkpoint_every=1e-9, checkpoint_folder=tmp_path, report=notes)
    uninterrupted = method.fit(ratings, firth.Run(threads=1, deterministic=True))
    break_off(lambda: method.fit(ratings, run), 2)
    resumed = method.fit(ratings, run)
    assert notes.codes[-1] == "resumed"
    for name, array in uninterrupted.parts().arrays.items():
        assert array.tobytes() == resumed.parts().arrays[name].tobytes(), name


@every_method
def test_a_budget_stops_in_time(method, ratings):
    model = type(method)(dim=16, epochs=100_000).fit(ratings, firth.Run(budget=0.2, report=Notes()))
    assert model.training["finished_epochs"] < 100_000 and model.training["seconds"] < 5


@every_method
def test_continuing_from_a_model(method, ratings, parts):
    first = type(method)(dim=8).fit(parts.train)
    continued = type(method)(dim=8, epochs=1).fit(ratings, start=first)
    untrained = type(method)(dim=8, epochs=1).fit(ratings)
    assert continued.training["loss"] < untrained.training["loss"]
    with refuses("incompatible_start", method=type(method).__name__, dim=9, got=first):
        type(method)(dim=9).fit(ratings, start=first)


@every_method
def test_invalid_data_is_refused(method, ratings):
    name = type(method).__name__
    with refuses("too_few", method=name):
        method.fit([])
    with refuses("invalid_type", method=name):
        method.fit(["some text"])
    with refuses("unsupported_device", method=name):
        method.fit(ratings, firth.Run(device="cuda"))
    if not isinstance(method, firth.RatingFactors):
        with refuses("malformed_data", got=-1.0) as caught:
            method.fit([("a", "x", -1.0), ("a", "y", 1.0)])
        assert "'a'" in str(caught.value) and "'x'" in str(caught.value)


@pytest.mark.parametrize("array", ["seen", "items", "starts"])
def test_damaged_parts_are_refused(array, ratings):
    parts = firth.ALS(dim=4, epochs=1).fit(ratings).parts()
    arrays = {**parts.arrays, array: parts.arrays[array][:, :2] if array == "items" else parts.arrays[array][:-1]}
    with refuses("damaged_model") as caught:
        firth.ALS.model.from_parts(firth.ALS(dim=4), firth.core.model.Parts(arrays, parts.documents), {})
    assert array in str(caught.value)


def test_a_saved_model_recommends_the_same(ratings, tmp_path: Path):
    for method in EVERY:
        model = small(method).fit(ratings)
        loaded = firth.load(model.save(tmp_path / type(method).__name__))
        assert isinstance(model, Recommends) and isinstance(loaded, Recommends)
        assert loaded.recommend(ratings.users[5], 4) == model.recommend(ratings.users[5], 4)
        history = history_of(ratings, ratings.users[5])
        assert loaded.recommend_for(history, 4) == model.recommend_for(history, 4)


def test_adding_one_user_keeps_the_others(ratings):
    first = firth.ALS(dim=8, epochs=3).fit(ratings)
    continued = firth.ALS(dim=8, epochs=1).fit([("nobody before", first.items.keys[0])], start=first)
    assert len(continued.users) == len(first.users) + 1 and continued.items.keys == first.items.keys
    assert (
        continued.training["users"] == len(continued.users)
        and continued.training["pairs"] == first.training["pairs"] + 1
    )
    user = first.users.keys[5]
    common_hits = {hit.key for hit in first.recommend(user, 10)} & {hit.key for hit in continued.recommend(user, 10)}
    assert len(common_hits) >= 8
    history = {
        continued.items.keys[item] for item in continued.seen.items[continued.seen.starts[5] : continued.seen.starts[6]]
    }
    assert history == set(ratings.histories()[user])
    with refuses("incompatible_start", method="ALS", missing="weights"):
        firth.ALS(dim=8).fit([("a", "b")], start=without_weights(first))


def without_weights(model):
    """The model as an earlier version saved it, without the array of weights."""
    parts = model.parts()
    arrays = {name: array for name, array in parts.arrays.items() if name != "weights"}
    return type(model).from_parts(model.method, dataclasses.replace(parts, arrays=arrays), model.training)


@pytest.mark.parametrize("kind", [firth.ALS, firth.BPR, firth.RatingFactors])
def test_continuing_with_new_data_equals_continuing_with_all_data(kind, ratings, tmp_path):
    events = [(f"u{u}", f"i{i}", float(w)) for u, i, w in zip(*ratings.events()[:3], strict=True)][:600]
    old, new = events[:500], [*events[500:], ("new", "i0", 3.0), (events[0][0], "new item", 2.0)]
    run = firth.Run(deterministic=True)
    kind(dim=8, epochs=3).fit(old, run).save(tmp_path / "first")
    first = firth.load(tmp_path / "first")
    alone, both = (kind(dim=8, epochs=2).fit(data, run, start=first) for data in (new, old + new))
    assert alone.users.keys == both.users.keys and alone.items.keys == both.items.keys
    for name, array in alone.parts().arrays.items():
        assert array.tobytes() == both.parts().arrays[name].tobytes(), name


def test_repeated_pairs_add_weights_or_replace_ratings():
    old, new = [("a", "x", 2.0), ("a", "y", 1.0), ("b", "x", 5.0)], [("a", "x", 1.0), ("c", "z", 4.0)]
    for kind, expected in ((firth.ALS, 3.0), (firth.RatingFactors, 1.0)):
        first = kind(dim=2, regularization=0.1).fit(old)
        continued = kind(dim=2, regularization=0.1).fit(new, start=first)
        weights = dict(zip(pairs_of(continued), continued._rows["weights"].tolist(), strict=True))
        assert weights == {("a", "x"): expected, ("a", "y"): 1.0, ("b", "x"): 5.0, ("c", "z"): 4.0}
    ranked = firth.BPR(dim=2, epochs=1).fit(old)
    events = [("a", "x", 0.0), ("c", "z", 4.0)]  # weight 0 does not remove a pair
    ranked = firth.BPR(dim=2, epochs=1).fit(events, start=ranked)
    assert ("a", "x") in pairs_of(ranked) and len(pairs_of(ranked)) == 4
    timed = firth.RatingFactors(dim=2).fit([("a", "x", 2.0, 50), ("a", "y", 1.0, 60)])
    continued = firth.RatingFactors(dim=2).fit(
        [("a", "x", 9.0, 10)], start=timed
    )  # new data wins even with an earlier time
    assert dict(zip(pairs_of(continued), continued._rows["weights"].tolist(), strict=True))[("a", "x")] == 9.0


def pairs_of(model):
    owners = np.repeat(np.arange(len(model.users)), np.diff(model.seen.starts))
    return [(model.users.keys[u], model.items.keys[i]) for u, i in zip(owners, model.seen.items, strict=True)]


@pytest.mark.parametrize("exponent", [0.75, 0.0])
def test_item2vec_continues_with_new_items(exponent):
    old = [(f"u{n}", f"i{item}") for n in range(30) for item in ((n * 7) % 20, (n * 3) % 20, n % 5)]
    method = firth.Item2Vec(dim=8, epochs=3, subsample=0, negative_exponent=exponent)
    first = method.fit(old, firth.Run(deterministic=True))
    baskets = [("u0", "new"), ("u0", "i1"), ("fresh", "new"), ("fresh", "i1")]
    continued = method.fit(baskets, firth.Run(deterministic=True), start=first)
    untouched = [key for key in first.items.keys if key != "i1"]
    assert all((continued.items[key] == first.items[key]).all() for key in untouched)
    assert (continued.items["i1"] != first.items["i1"]).any() and continued.items["new"].any()
    counts = {key: sum(item == key for _, item in old + baskets) for key in continued.items.keys}
    priors = continued.item_rows[:, 8]
    assert priors == pytest.approx([exponent * np.log(counts[key]) for key in continued.items.keys], abs=1e-4)
    history = {item for user, item in pairs_of(continued) if user == "u0"}
    assert history == {item for user, item in old + baskets if user == "u0"}


@pytest.mark.parametrize("kind", [firth.ALS, firth.BPR, firth.Item2Vec, firth.RatingFactors, firth.MultDAE])
def test_unknown_items_of_a_history_are_counted_and_ignored(kind, ratings):
    model = kind(dim=4, epochs=1).fit(ratings)
    history = dict.fromkeys(model.items.keys[:3], 2.0)
    expected = model.recommend_for(history, 5)
    with warns_code("unknown_items") as issued:
        assert model.recommend_for({**history, "no such": 1.0}, 5) == expected
    assert [warning.code for warning in issued] == ["unknown_items"]
    assert str(issued[0]).startswith("1 item ") and "'no such'" in str(issued[0])
    with warns_code("unknown_items") as issued:
        rows = model.fold_in([history, {**history, "a": 1.0, "b": 1.0}, {**history, "a": 2.0}])
    assert str(issued[0]).startswith("3 items ")
    assert (rows == model.fold_in([history])[0]).all()
    for unknown in ({"no such": 1.0, "nor such": 1.0}, {"no such": 1.0}):
        with refuses("unknown_key", key="no such"):
            model.recommend_for(unknown)
    item = next(iter(history))
    with refuses("unknown_key", key=int(item)):  # keys are texts
        model.recommend_for({int(item): 1.0} | {item: 1.0})
    assert len(model.recommend_for({}, 5)) == 5  # an empty history
