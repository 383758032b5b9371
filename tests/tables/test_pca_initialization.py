"""Autoencoders begin at PCA, VAEs at probabilistic PCA, and stay there where nothing better is found."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import sklearn.decomposition
import torch

import firth
from firth import Run, Table
from firth.cli.evaluate.compression import linear_codes, select_rows
from firth.core.components import principal_components
from firth.data.world import World
from firth.evaluate.compression import lost_variance
from firth.nets.autoencoder import TableNet, drawn
from firth.tables import pca_initialization as straight
from firth.tables.autoencoder_model import AutoencoderModel, shape_of
from firth.tables.autoencoder_training import opened
from firth.tables.pca_initialization import begin_at_pca

RUN = Run(deterministic=True)


def beginning(method: Any, data: Any) -> AutoencoderModel:
    """The model that a method has before its first step."""
    layout, table = opened(method, data, RUN, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = TableNet(shape_of(method, layout))
    begin_at_pca(net, layout.read(table), RUN.seed)
    return AutoencoderModel(method, layout, net, {})


def matrix(table: Table) -> np.ndarray:
    return np.stack([table.numbers(name) for name in table.names], axis=1)


def bent(rows: int = 80) -> np.ndarray:
    """Eight columns, some far from 0, of three causes."""
    random = np.random.default_rng(1)
    causes = random.normal(size=(rows, 3))
    return np.tanh(causes @ random.normal(size=(3, 8))) * np.arange(1, 9) + 5 + 0.1 * random.normal(size=(rows, 8))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("widths", ["", "16,8"])
@pytest.mark.parametrize("numeric", ["standardize", "common", "keep"])
def test_before_any_step_it_is_pca(numeric, widths, tied):
    rows = bent()
    scale = rows.std(axis=0) if numeric == "standardize" else 1.0
    model = beginning(firth.Autoencoder(dim=3, hidden_sizes=widths, tied=tied, numeric=numeric), rows)
    pca = firth.PCA(dim=3).fit(rows / scale)
    new = bent(90)[80:]
    expected = matrix(pca.reconstruct(new / scale)) * scale
    np.testing.assert_allclose(matrix(model.reconstruct(new)), expected, rtol=1e-5, atol=1e-4)
    if numeric == "keep":
        np.testing.assert_allclose(model.transform(new), pca.transform(new), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("category", ["embedding", "onehot"])
def test_categories_begin_at_pca_of_their_ones_and_zeros(category):
    table = Table(World(seed=4).rows(300).complete)
    model = beginning(firth.Autoencoder(dim=3, categorical=category), table)
    encoder = firth.OneHot(numeric="standardize").fit(table)
    found = principal_components(encoder.transform(table))
    plane = found.directions[:3].T @ found.directions[:3]
    expected = encoder.inverse((encoder.transform(table) - found.mean) @ plane + found.mean).to_dict()
    again = model.reconstruct(table).to_dict()
    for name in ("age", "height", "income"):
        np.testing.assert_allclose(again[name], expected[name], rtol=1e-4)
    for name in ("country", "city", "school", "owns_horse"):
        assert again[name] == expected[name]
    assert len(set(again["city"])) > 2  # not one guess for all


@pytest.mark.parametrize("numeric", ["standardize", "keep"])
def test_missing_numbers_count_as_the_mean(numeric):
    rows = bent()
    rows[::7, 2] = np.nan
    model = beginning(firth.Autoencoder(dim=2, numeric=numeric), rows)
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    np.testing.assert_allclose(model.transform(rows), model.transform(filled), atol=1e-4)
    assert np.ptp(model.transform(rows), axis=0).min() > 0.5


def test_a_vae_begins_at_probabilistic_pca():
    """What it takes rows to be distributed like, held against scikit-learn's; and codes of deviation about 1."""
    rows = bent(400)
    rows /= rows.std(axis=0)
    net = beginning(firth.VAE(dim=3, numeric="keep"), rows).net
    outward = net.decoder.straight.weight.detach().numpy()
    peer = sklearn.decomposition.PCA(3).fit(rows)
    ours = outward @ outward.T + peer.noise_variance_ * np.eye(8)
    np.testing.assert_allclose(ours, peer.get_covariance(), atol=1e-4)
    code = net.encode(torch.from_numpy(rows), torch.zeros(400, 0, dtype=torch.long))
    total = code.mean.var(dim=0) + torch.exp(code.logvar).mean(dim=0)  # of all codes together: the prior's
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64), atol=0.01, rtol=0)
    noise = torch.randn(400, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    apart = (net.decode(drawn(code, noise)).detach().numpy() - rows).std(axis=0)
    np.testing.assert_allclose(torch.exp(net.log_deviations()).detach(), apart, rtol=0.05)


def test_of_a_large_table_some_rows_tell(monkeypatch):
    rows = bent(400)
    whole = beginning(firth.Autoencoder(dim=3, numeric="keep"), rows)
    monkeypatch.setattr(straight, "PLACES", 8 * 200)
    part = beginning(firth.Autoencoder(dim=3, numeric="keep"), rows)
    lost = [lost_variance(rows, matrix(model.reconstruct(rows))) for model in (whole, part)]
    assert lost[0] < lost[1] < 1.1 * lost[0]


def test_what_makes_it_worse_is_not_kept():
    rows = bent()
    method = firth.Autoencoder(dim=2, numeric="keep", learning_rate=3.0, max_grad_norm=0, epochs=3)
    model = method.fit(rows, RUN)
    first, *later = model.training["held_out"]
    assert first["share"] == 0 and min(each["held_out_loss"] for each in later) > first["held_out_loss"]
    np.testing.assert_allclose(
        matrix(model.reconstruct(rows)), matrix(firth.PCA(dim=2).fit(rows).reconstruct(rows)), 1e-4
    )


def lost(table: Table, dim: int, seed: int) -> tuple[float, float]:
    """By an autoencoder and by PCA, of a fifth of the rows that neither learned from."""
    order = np.random.default_rng(seed).permutation(len(table))
    learned, judged = (select_rows(table, np.sort(part)) for part in np.split(order, [len(order) * 4 // 5]))
    encoder = firth.OneHot(numeric="standardize").fit(learned)
    rows = encoder.transform(judged)
    model = firth.Autoencoder(dim=dim, epochs=40).fit(learned, RUN)
    (_, pca), *_ = linear_codes(encoder, learned, rows, dim)
    return lost_variance(rows, encoder.transform(model.reconstruct(judged))), lost_variance(rows, pca.rebuilt)


@pytest.mark.parametrize("seed", [21, 22])
def test_on_the_worlds_people_it_loses_less_than_pca(seed):
    ours, pca = lost(Table(World(seed=seed).rows(250).complete), 4, seed)
    assert ours < 0.9 * pca


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_on_few_straight_rows_it_is_as_good_as_pca(seed):
    """Nothing bent is there to be found, and much to be learned by heart."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(120, 3)) @ random.normal(size=(3, 20)) + random.normal(size=(120, 20))
    ours, pca = lost(Table(rows), 3, seed)
    assert ours < 1.01 * pca
