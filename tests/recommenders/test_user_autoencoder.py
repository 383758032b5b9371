"""MultVAE and MultDAE: uncertainty, collapse, and resuming."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses, warns_code

import firth
from firth import Run
from firth.core.model import Recommends

RUN = Run(deterministic=True)


@pytest.fixture(scope="module")
def model(parts):
    return firth.MultVAE(dim=16, epochs=30, learning_rate=0.01).fit(parts.train, RUN)


def test_longer_histories_have_less_uncertainty(model, parts):
    """The deviations of the codes fall with the length of the history, and are largest without one."""
    items = list(parts.train.histories()["7"])[:8]
    deviations = model.uncertainty([[], items[:2], items])
    assert deviations.shape == (3, 16) and deviations[0].mean() > deviations[1].mean() > deviations[2].mean()
    assert model.tables["deviations"].matrix.shape == model.users.matrix.shape
    np.testing.assert_allclose(model.tables["deviations"]["7"], model.uncertainty([parts.train.histories()["7"]])[0])


def test_a_training_user_equals_a_new_user_with_the_same_history(model, parts):
    history = parts.train.histories()["7"]
    assert isinstance(model, Recommends)
    np.testing.assert_allclose(model.fold_in([history])[0], model.tables["users"]["7"], atol=1e-5)
    for_user, for_history = model.recommend("7", 5), model.recommend_for(history, 5)
    assert [hit.key for hit in for_user] == [hit.key for hit in for_history]
    assert not {hit.key for hit in for_user} & set(history)


def test_scores_are_logits(model, parts):
    """The softmax of a user's scores gives items of the history more probability than an average item."""
    scores = model.scores(model.user_rows(["7"]))[0].astype(np.float64)
    shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    rows = [model.items.row(item) for item in parts.train.histories()["7"]]
    assert shares.sum() == pytest.approx(1) and shares[rows].mean() > 1.5 / len(shares)


def test_a_saved_model_is_equal(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = firth.load(tmp_path / "m", firth.MultVAE)
    np.testing.assert_array_equal(loaded.scores(loaded.user_rows(["7"])), model.scores(model.user_rows(["7"])))
    np.testing.assert_array_equal(loaded.tables["deviations"].matrix, model.tables["deviations"].matrix)
    assert repr(loaded) == repr(model)


def test_collapse_is_noted_and_a_start_is_refused(parts):
    with warns_code("collapsed_codes"):
        collapsed = firth.MultVAE(dim=4, epochs=30, beta=1000.0, kl_annealing=0.0, learning_rate=0.03).fit(
            parts.train, RUN
        )
    assert collapsed.training["active"] == 0
    with refuses("unsupported_start", method="MultVAE"):
        firth.MultVAE().fit(parts.train, RUN, start=collapsed)


class Stops(firth.core.report.Silence):
    """Interrupts training after some slices."""

    def __init__(self, after):
        self.left = after

    def step(self, done, **metrics):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt

    def note(self, text, code="note"):
        pass


@pytest.mark.parametrize("method", [firth.MultVAE(dim=4, epochs=3, batch_size=200), firth.VAE(dim=2, epochs=3)])
def test_a_resumed_run_equals_an_uninterrupted_one(method, parts, tmp_path, monkeypatch):
    """Noise, dropout, the weight of the KL term and the order of rows are all restored."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    data = parts.train if isinstance(method, firth.MultVAE) else np.random.default_rng(1).normal(size=(300, 5))
    uninterrupted = method.fit(data, Run(deterministic=True, report=Stops(0)))
    with pytest.raises(KeyboardInterrupt):
        method.fit(data, Run(deterministic=True, checkpoint_folder=tmp_path, report=Stops(4)))
    resumed = method.fit(data, Run(deterministic=True, checkpoint_folder=tmp_path, report=Stops(0)))
    one, two = uninterrupted.parts().arrays, resumed.parts().arrays
    assert one.keys() == two.keys() and all(one[name].tobytes() == two[name].tobytes() for name in one)


def test_synthetic_users_have_the_tastes_of_the_training_users(model, society, parts):
    """Within a profile items share genres as they do for real users; drawn by popularity they do not."""
    genre = society.traits.argmax(axis=1)

    def agreement(data: firth.Interactions) -> float:
        """How often two items of a user have the same genre."""
        shares = []
        for items in data.histories().values():
            counts = np.bincount([genre[int(item)] for item in items], minlength=5)
            shares.append((counts * (counts - 1)).sum() / max(1, counts.sum() * (counts.sum() - 1)))
        return float(np.mean(shares))

    synthetic = firth.Interactions(model.sample(300, seed=1))
    random = np.random.default_rng(1)
    by_popularity = firth.Interactions(
        list(
            zip(
                synthetic.user_ids().tolist(), random.choice(parts.train.item_ids, len(synthetic)).tolist(), strict=True
            )
        )
    )
    by_popularity.items = [parts.train.items[int(item)] for item in by_popularity.items]
    real, none = agreement(parts.train), agreement(by_popularity)
    assert real > none + 0.05 and agreement(synthetic) > none + 0.3 * (real - none)
    sizes = np.diff(synthetic.starts)
    assert set(sizes) <= set(np.diff(parts.train.summed().starts)) and (synthetic.summed().values == 1).all()
    likely = model.sample(3, seed=1, noise=False, prior=True)
    assert likely.to_dict() == model.sample(3, seed=1, noise=False, prior=True).to_dict()
    with refuses("invalid_value", option="n", got=0):
        model.sample(0)


def test_recommendations_explore_what_is_uncertain(model, parts):
    """Draws of a user with a short history differ more than those of one with a long history."""
    items = list(parts.train.histories()["7"])

    def different(history: list[str]) -> int:
        lists = [model.recommend_for(history, 10, seen=True, explore=1.0, seed=seed) for seed in range(20)]
        return len({hit.key for hits in lists for hit in hits})

    assert different(items[:1]) > different(items) > 10
    assert model.recommend_for(items, 5, explore=0.0, seed=9) == model.recommend_for(items, 5)
    assert model.recommend("7", 5, explore=1.0, seed=2) == model.recommend("7", 5, explore=1.0, seed=2)
    with refuses("invalid_value", option="explore", got=-1.0):
        model.recommend("7", explore=-1.0)
