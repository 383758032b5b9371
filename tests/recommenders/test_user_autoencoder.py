"""MultVAE and MultDAE: what only networks of users do."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth import FirthError, FirthWarning, Run
from firth.core.model import Recommends

RUN = Run(deterministic=True)


@pytest.fixture(scope="module")
def model(parts):
    return firth.MultVAE(dim=16, epochs=30, learning_rate=0.01).fit(parts.train, RUN)


def test_who_had_more_is_surer(model, parts):
    """Deviations of the codes fall with the number of items that are told; nobody is as unsure as a new user."""
    items = list(parts.train.histories()["7"])[:8]
    deviations = model.uncertainty([[], items[:2], items])
    assert deviations.shape == (3, 16) and deviations[0].mean() > deviations[1].mean() > deviations[2].mean()
    assert model.tables["deviations"].matrix.shape == model.users.matrix.shape
    np.testing.assert_allclose(model.tables["deviations"]["7"], model.uncertainty([parts.train.histories()["7"]])[0])


def test_a_known_user_and_the_same_history_are_one(model, parts):
    history = parts.train.histories()["7"]
    assert isinstance(model, Recommends)
    np.testing.assert_allclose(model.fold_in([history])[0], model.users["7"], atol=1e-5)
    mine, told = model.recommend("7", 5), model.recommend_for(history, 5)
    assert [hit.key for hit in mine] == [hit.key for hit in told]
    assert not {hit.key for hit in mine} & set(history)


def test_scores_are_what_the_loss_is_made_of(model, parts):
    """Logits of all items: the softmax of a user's puts more on what the user had than on an average item."""
    scores = model.scores(model.user_rows(["7"]))[0].astype(np.float64)
    shares = np.exp(scores - scores.max()) / np.exp(scores - scores.max()).sum()
    had = [model.items.row(item) for item in parts.train.histories()["7"]]
    assert shares.sum() == pytest.approx(1) and shares[had].mean() > 1.5 / len(shares)


def test_it_is_saved_whole(model, tmp_path):
    model.save(tmp_path / "m")
    loaded = firth.load(tmp_path / "m")
    np.testing.assert_array_equal(loaded.scores(loaded.user_rows(["7"])), model.scores(model.user_rows(["7"])))
    np.testing.assert_array_equal(loaded.tables["deviations"].matrix, model.tables["deviations"].matrix)
    assert repr(loaded) == repr(model)


def test_collapse_and_starts_are_said(parts):
    with pytest.warns(FirthWarning, match="no dimension tells users apart"):
        collapsed = firth.MultVAE(dim=4, epochs=30, beta=1000.0, kl_annealing=0.0, learning_rate=0.03).fit(
            parts.train, RUN
        )
    assert collapsed.training["active"] == 0
    with pytest.raises(FirthError, match="MultVAE can't go on from a model"):
        firth.MultVAE().fit(parts.train, RUN, start=collapsed)


class Stops(firth.core.report.Silence):
    """Breaks off after some slices, as a kill would."""

    def __init__(self, after):
        self.left = after

    def step(self, done, **figures):
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt

    def note(self, text, code="note"):
        pass


@pytest.mark.parametrize("method", [firth.MultVAE(dim=4, epochs=3, batch_size=200), firth.VAE(dim=2, epochs=3)])
def test_a_resumed_run_equals_an_unbroken_one(method, parts, tmp_path, monkeypatch):
    """Noise, hidden items, the weight of KL and the order of rows all go on."""
    monkeypatch.setattr("firth.training.epoch_loop.SLICE_SECONDS", 1e-9)  # a slice is a step
    data = parts.train if isinstance(method, firth.MultVAE) else np.random.default_rng(1).normal(size=(300, 5))
    whole = method.fit(data, Run(deterministic=True, report=Stops(0)))
    with pytest.raises(KeyboardInterrupt):
        method.fit(data, Run(deterministic=True, checkpoint_folder=tmp_path, report=Stops(4)))
    again = method.fit(data, Run(deterministic=True, checkpoint_folder=tmp_path, report=Stops(0)))
    one, two = whole.parts().arrays, again.parts().arrays
    assert one.keys() == two.keys() and all(one[name].tobytes() == two[name].tobytes() for name in one)
