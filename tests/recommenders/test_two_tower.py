"""TwoTower: features place new users and items, beside baselines that cannot."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from refusing import refuses, warns_code

import firth
from firth.data.world.society import SyntheticRatings as Society

METHOD = firth.TwoTower(dim=16, epochs=60)


class Cold:
    """Users and items of the synthetic society, a part of which has features only."""

    def __init__(self, society: Society) -> None:
        self.genres, self.tastes = society.traits.argmax(axis=1), society.tastes.argmax(axis=1)
        self.items = {str(item) for item in range(0, len(self.genres), 10)}
        self.users = {str(user) for user in range(0, len(self.tastes), 10)}
        pairs = zip(map(str, society.users), map(str, society.items), strict=True)
        self.events = [pair for pair in pairs if pair[0] not in self.users and pair[1] not in self.items]
        items, users = range(len(self.genres)), range(len(self.tastes))
        self.item_features = {
            "item": [str(item) for item in items],
            "genre": [f"g{self.genres[item]}" for item in items],
        }
        self.user_features = {
            "user": [str(user) for user in users],
            "group": [f"g{self.tastes[user]}" for user in users],
            "age": [20 + user % 50 for user in users],  # says nothing
        }


@pytest.fixture(scope="module")
def cold(society: Society) -> Cold:
    return Cold(society)


@pytest.fixture(scope="module")
def model(cold: Cold) -> firth.Model:
    data = firth.Interactions(cold.events, user_features=cold.user_features, item_features=cold.item_features)
    return METHOD.fit(data)


def share(cold: Cold, model, users, items) -> float:
    """How often the best of these items is of the genre that the user prefers."""
    scores = model.scores(model.user_rows(users))[:, [model.items.rows[item] for item in items]]
    return float(
        np.mean(
            [
                cold.genres[int(items[row.argmax()])] == cold.tastes[int(user)]
                for user, row in zip(users, scores, strict=True)
            ]
        )
    )


def test_new_items_and_new_users_are_placed_by_their_features(cold, model):
    new_items, new_users = sorted(cold.items), sorted(cold.users)
    known_users = [user for user in model.users.keys if user not in cold.users][:200]
    known_items = [item for item in model.items.keys if item not in cold.items]
    assert model.training["new_items"] == len(new_items) and model.training["new_users"] == len(new_users)
    assert share(cold, model, known_users, new_items) > 0.75
    assert share(cold, model, new_users, known_items) > 0.75
    assert share(cold, model, new_users, new_items) > 0.75
    chance = np.square(np.bincount(cold.genres) / len(cold.genres)).sum()
    plain = METHOD.fit(firth.Interactions(cold.events))  # without features all new users are alike
    rows = plain.fold_in([[]] * len(new_users))
    best = [plain.items.keys[row.argmax()] for row in plain.scores(rows)]
    matches = [cold.genres[int(item)] == cold.tastes[int(user)] for item, user in zip(best, new_users, strict=True)]
    assert np.mean(matches) < chance + 0.25


def test_items_and_users_come_after_training(cold, model, tmp_path: Path):
    table = {"item": ["brand new", "0"], "genre": ["g2", "g1"]}
    later = model.with_items(table)
    assert len(later.items) == len(model.items) + 1  # item 0 is known and stays as it is
    assert np.array_equal(later.items["0"], model.items["0"])
    genres = [cold.genres[int(hit.key)] for hit in later.items.neighbors("brand new", 5)]
    assert np.mean(np.array(genres) == 2) > 0.75
    hits = model.recommend_for([], 5, features={"group": "g2"})  # of group 2
    assert np.mean([cold.genres[int(hit.key)] == 2 for hit in hits]) > 0.75
    assert later.recommend_for(["brand new"], 3, features={"group": "g2", "age": "40"})
    later.save(tmp_path / "model")
    loaded = firth.load(tmp_path / "model")
    assert isinstance(loaded, type(later))
    assert np.array_equal(loaded.items.matrix, later.items.matrix)
    assert loaded.recommend_for([], 3, features={"group": "g2"}) == later.recommend_for([], 3, features={"group": "g2"})
    history = model.items.keys[:3]
    known = model.fold_in([history, history], {"group": ["g1", "g3"]})
    assert not np.allclose(known[0], known[1], atol=0.1)
    assert np.allclose(known[0], model.fold_in([history], {"group": ["g1"]})[0], atol=1e-5)


def test_wrong_features_are_refused(cold, model):
    with refuses("unknown_column", name="shoe size"):
        model.recommend_for([], features={"shoe size": 44})
    with refuses("shape_mismatch", got=1, n_rows=2):
        model.fold_in([[], []], {"age": [30]})
    with refuses("wrong_input"):
        METHOD.fit(cold.events[:200]).recommend_for([], features={"age": 44})
    with refuses("unsupported_start"):
        METHOD.fit(cold.events, start=model)
    with refuses("too_few"):
        firth.Interactions(cold.events, user_features={"user": ["a"]})
    with refuses("duplicate_name", name="a"):
        firth.Interactions(cold.events, user_features={"user": ["a", "a"], "age": [1, 2]})
    with warns_code("unused_features"):
        firth.ALS(dim=4).fit(firth.Interactions(cold.events, user_features=cold.user_features))


def test_features_are_read_from_files_by_key(tmp_path: Path):
    (tmp_path / "people.csv").write_text("age,user\n30,007\n40,8\n")
    features = firth.Interactions([("8", "x")], user_features=tmp_path / "people.csv").user_features
    assert features is not None and features.keys == ["007", "8"]
    assert features.aligned(["8", "nobody", "007"]).to_dict() == {"age": [40, None, 30]}
