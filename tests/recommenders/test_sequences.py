"""Sequences: sessions and time decay of interactions, sequence recommenders, Item2Vec over sessions."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest
from refusing import refuses

import firth
from firth import evaluate
from firth.data.splits import split
from firth.recommenders.item2vec_training import baskets
from firth.recommenders.sequence_model import new_net
from firth.recommenders.sequence_training import NO_TARGET, SequenceTraining, stretches_of

ITEMS, NOISE = 60, 0.2


def cycles(users: int, events: int, seed: int = 1) -> firth.Interactions:
    """Users who mostly go on to the next item of a cycle, so that the last item tells the next; all are as popular."""
    random = np.random.default_rng(seed)
    rows = []
    for user in range(users):
        item = int(random.integers(ITEMS))
        for time in range(events):
            rows.append((f"u{user}", f"i{item}", 1.0, float(time)))
            item = int(random.integers(ITEMS)) if random.random() < NOISE else (item + 1) % ITEMS
    return firth.Interactions(rows)


SMALL: dict[str, Any] = {"dim": 16, "layers": 1, "context_length": 8, "learning_rate": 0.01, "dropout": 0.1}


@pytest.mark.parametrize(("objective", "epochs"), [("causal", 20), ("masked", 80)])
def test_the_next_item_is_recovered_and_methods_without_order_fail(objective, epochs):
    data = cycles(150, 13)
    parts = split(data, "last")
    model = firth.SequenceRecommender(objective=objective, epochs=epochs, **SMALL).fit(parts.train)
    assert model.training["held_out_loss"] < 0.75 * model.training["baseline_loss"]
    correct = [
        model.recommend_for([f"i{(n - 1) % ITEMS}", f"i{n}"], 1)[0].key == f"i{(n + 1) % ITEMS}" for n in range(ITEMS)
    ]
    assert np.mean(correct) > 0.5
    # The two items of a history in the other order have another successor.
    for first, second in ((0, 20), (20, 0)):
        pairs = [(f"i{(n + first) % ITEMS}", f"i{(n + second) % ITEMS}") for n in range(ITEMS)]
        hits = [model.recommend_for(pair, 1)[0].key == f"i{(n + second + 1) % ITEMS}" for n, pair in enumerate(pairs)]
        assert np.mean(hits) > 0.4
    ours = evaluate.recommendations(model, parts.test, metrics=["recall@1"])
    unordered = evaluate.recommendations(firth.ALS(dim=16).fit(parts.train), parts.test, metrics=["recall@1"])
    assert ours["recall@1"] > 0.35 > 3 * ours.scores["popularity"]["recall@1"]
    assert ours["recall@1"] > 2 * unordered["recall@1"]


def test_new_users_and_new_items_are_folded_in():
    data = cycles(60, 12)
    method = firth.SequenceRecommender(epochs=20, **SMALL)
    model = method.fit(data)
    user = data.users[7]
    history = [data.items[item] for item in data.item_ids[data.starts[7] : data.starts[8]]]
    assert np.allclose(model.fold_in([history])[0], model.users[user], atol=1e-5)
    assert np.array_equal(model.fold_in([["i1"], history, ["i2", "i3"]])[1], model.fold_in([history])[0])
    assert not model.fold_in([[]]).any()
    # A new item that follows i3; training continues and knows it.
    new = [(f"n{user}", item, 1.0, float(time)) for user in range(40) for time, item in enumerate(["i2", "i3", "new"])]
    later = firth.SequenceRecommender(epochs=30, **SMALL).fit(new, start=model)
    assert set(later.users.keys) >= {*model.users.keys, "n0"}
    assert later.recommend_for(["i2", "i3"], 1)[0].key == "new"
    with refuses("incompatible_start"):
        firth.SequenceRecommender(**{**SMALL, "layers": 2}).fit(new, start=model)


def test_histories_are_divided_into_stretches():
    starts, items = np.array([0, 1, 4, 11]), np.arange(11, dtype=np.int32)
    causal = stretches_of(starts, items, 4, overlap=1)  # each item but the first of a history is predicted once
    assert list(zip(causal.first, causal.last, strict=True)) == [(1, 4), (7, 11), (4, 8)]
    predicted = [item for first, last in zip(causal.first, causal.last, strict=True) for item in range(first + 1, last)]
    assert sorted(predicted) == [2, 3, 5, 6, 7, 8, 9, 10]
    masked = stretches_of(starts, items, 3, overlap=0)
    assert list(zip(masked.first, masked.last, strict=True)) == [(1, 4), (8, 11), (5, 8)]


def test_too_little_data_and_wrong_sizes_are_refused():
    with refuses("too_few", minimum=2):
        firth.SequenceRecommender().fit([("a", "x"), ("b", "y")])
    with refuses("invalid_value", got=10):
        firth.SequenceRecommender(dim=10, heads=4).fit(cycles(3, 3))


def test_sessions_end_after_a_gap_or_are_given():
    """Two visits, a million seconds apart, are two sessions, and the items of different visits are no contexts."""
    visits = [("a", item, 1.0, visit * 1e6 + step) for visit in range(2) for step, item in enumerate(["x", "y", "z"])]
    events = firth.Interactions(visits)
    assert events.sessions_of(1800)[1].tolist() == [0, 3, 6]
    assert events.sessions_of(0)[1].tolist() == [0, 6] and events.sessions_of(0.5)[1].tolist() == list(range(7))
    assert len(baskets(events, events.items, 1800)) == 2 and len(baskets(events, events.items, None)) == 1
    # Sessions of a column, which overlap in time.
    columns = {
        "user": ["a"] * 4 + ["b"],
        "item": list("vwxyz"),
        "time": [1, 2, 3, 4, 0],
        "session": ["s", "t", "s", "t", "s"],
    }
    given = firth.Interactions(columns)
    order, starts = given.sessions_of(1800)
    sessions = [[given.items[item] for item in given.item_ids[order[a:b]]] for a, b in itertools.pairwise(starts)]
    assert sessions == [["v", "x"], ["w", "y"], ["z"]]
    assert given.fingerprint() != firth.Interactions({**columns, "session": list("sssst")}).fingerprint()
    again = given.take(np.array([True, True, True, True, False]))
    assert again.sessions is not None and len(again.sessions_of(0)[1]) == 3
    without_times = firth.Interactions([("a", "x"), ("a", "y")])
    assert without_times.sessions_of(1800)[1].tolist() == [0, 2]


def test_item2vec_learns_from_sessions_not_from_visits_joined():
    """Each visit is about one of a user's two topics. Items of a topic are similar if sessions are kept apart."""
    random = np.random.default_rng(3)
    rows = []
    for user in range(120):
        for visit in range(6):
            topic = 2 * (user % 4) + visit % 2
            rows += [
                (f"u{user}", f"{topic} {item}", 1.0, 1e6 * visit + step)
                for step, item in enumerate(random.permutation(6)[:3])
            ]

    def same_topic(gap: float) -> float:
        model = firth.Item2Vec(dim=16, sessions=True, session_gap=gap).fit(rows, firth.Run(threads=1))
        hits = [(item, hit.key) for item in model.items.keys for hit in model.recommend_for([item], 5)]
        return float(np.mean([item[0] == other[0] for item, other in hits]))

    assert same_topic(1800) > 0.9 and same_topic(0) < 0.7


def test_weights_decay_with_time():
    events = firth.Interactions([("a", "x", 4.0, 0), ("a", "y", 4.0, 10), ("b", "x", 1.0, 20)])
    by_item = dict(zip([events.items[item] for item in events.item_ids], events.decayed(10).weights, strict=True))
    assert events.decayed(10).weights.tolist() == [1.0, 2.0, 1.0] and by_item["y"] == 2
    with refuses("missing_option", option="time"):
        firth.Interactions([("a", "x")]).decayed(10)
    with refuses("invalid_value", got=0):
        events.decayed(0)


def test_als_follows_tastes_that_change():
    """Users move from group 0 of the items to group 1. Decayed, the recent group is recommended."""
    random = np.random.default_rng(5)
    rows = []
    for user in range(60):
        groups = [0] * 8 + [1] * 4 if user < 30 else [user % 2] * 12  # others keep their taste
        for step, group in enumerate(groups):
            rows.append((str(user), f"{group} {random.integers(30)}", 1.0, 86400.0 * step))

    def recent(half_life: float) -> float:
        model = firth.ALS(dim=4, half_life=half_life, regularization=1.0, alpha=20.0).fit(rows)
        hits = [hit.key for user in range(30) for hit in model.recommend(str(user), 5)]
        return float(np.mean([key[0] == "1" for key in hits]))

    assert recent(86400.0) > 0.8 and recent(86400.0) > recent(0.0) + 0.2
    model = firth.ALS(dim=4, half_life=86400.0).fit(rows)
    with refuses("conflicting_options", option="half_life"):
        firth.ALS(dim=4, half_life=86400.0).fit(rows, start=model)


def test_histories_are_in_the_order_of_their_last_events():
    data = firth.Interactions(
        [("a", "x", 1, 3), ("a", "y", 1, 1), ("a", "z", 1, 2), ("a", "y", 5, 4), ("b", "z", 1, 1)]
    )
    assert {user: list(items) for user, items in data.histories().items()} == {"a": ["z", "x", "y"], "b": ["z"]}
    assert data.histories()["a"]["y"] == 5


def test_what_is_masked_does_not_depend_on_the_batch():
    data = cycles(12, 9)
    method = firth.SequenceRecommender(objective="masked", **SMALL)
    stretches = stretches_of(data.starts, data.item_ids, 8, overlap=0)
    training = SequenceTraining(method, new_net(method, len(data.items)), stretches, "", firth.Run(seed=3))
    rows = np.flatnonzero(stretches.last - stretches.first == 8)
    together, parts = training.load((2, rows)), [training.load((2, part)) for part in np.array_split(rows, 3)]
    for number, tensor in enumerate(together):
        assert np.array_equal(tensor, np.vstack([part[number] for part in parts]))
    ids, targets = together
    mask, hidden = training.padding + 1, targets != NO_TARGET
    assert hidden.any(axis=1).all() and ((ids == mask) == hidden).all()
    only_last = hidden[:, -1] & (hidden.sum(axis=1) == 1)
    assert 0 < only_last.sum() < len(rows) and not np.array_equal(training.load((3, rows))[0], ids)
