"""Autoencoders are initialized from PCA, VAEs from probabilistic PCA, and never end with worse held-out loss."""

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
from firth.nets.autoencoder import TableNet, sample_code
from firth.tables import pca_initialization
from firth.tables.autoencoder_model import AutoencoderModel, shape_of
from firth.tables.autoencoder_training import prepare_table
from firth.tables.pca_initialization import initialize_from_pca

RUN = Run(deterministic=True)


def initialized(method: Any, data: Any) -> AutoencoderModel:
    """The model before its first training step."""
    layout, table = prepare_table(method, data, RUN, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = TableNet(shape_of(method, layout))
    initialize_from_pca(net, layout.read(table), RUN.seed)
    return AutoencoderModel(method, layout, net, {})


def matrix(table: Table | firth.Vectors) -> np.ndarray:
    assert isinstance(table, Table)
    return np.stack([table.numbers(name) for name in table.names], axis=1)


def nonlinear_rows(rows: int = 80) -> np.ndarray:
    """Eight columns, some far from 0, that are nonlinear functions of three variables."""
    random = np.random.default_rng(1)
    latent = random.normal(size=(rows, 3))
    return np.tanh(latent @ random.normal(size=(3, 8))) * np.arange(1, 9) + 5 + 0.1 * random.normal(size=(rows, 8))


@pytest.mark.parametrize("tied", [False, True])
@pytest.mark.parametrize("hidden_sizes", ["", "16,8"])
@pytest.mark.parametrize("numeric", ["standardize", "common", "keep"])
def test_the_initial_network_equals_pca(numeric, hidden_sizes, tied):
    rows = nonlinear_rows()
    scale = rows.std(axis=0) if numeric == "standardize" else 1.0
    model = initialized(firth.Autoencoder(dim=3, hidden_sizes=hidden_sizes, tied=tied, numeric=numeric), rows)
    pca = firth.PCA(dim=3).fit(rows / scale)
    new = nonlinear_rows(90)[80:]
    expected = matrix(pca.reconstruct(new / scale)) * scale
    np.testing.assert_allclose(matrix(model.reconstruct(new)), expected, rtol=1e-5, atol=1e-4)
    if numeric == "keep":
        np.testing.assert_allclose(model.transform(new), pca.transform(new), rtol=1e-5, atol=1e-4)


@pytest.mark.parametrize("category", ["embedding", "onehot"])
def test_categories_are_initialized_from_pca_of_their_one_hot_codes(category):
    table = Table(World(seed=4).rows(300).complete)
    model = initialized(firth.Autoencoder(dim=3, categorical=category), table)
    encoder = firth.OneHot(numeric="standardize").fit(table)
    components = principal_components(encoder.transform(table))
    plane = components.directions[:3].T @ components.directions[:3]
    expected = encoder.inverse((encoder.transform(table) - components.mean) @ plane + components.mean).to_dict()
    reconstructed = model.reconstruct(table).to_dict()
    for name in ("age", "height", "income"):
        np.testing.assert_allclose(reconstructed[name], expected[name], rtol=1e-4)
    for name in ("country", "city", "school", "owns_horse"):
        assert reconstructed[name] == expected[name]
    assert len(set(reconstructed["city"])) > 2  # not the same prediction for all rows


@pytest.mark.parametrize("numeric", ["standardize", "keep"])
def test_missing_numbers_count_as_the_mean(numeric):
    rows = nonlinear_rows()
    rows[::7, 2] = np.nan
    model = initialized(firth.Autoencoder(dim=2, numeric=numeric), rows)
    filled = np.where(np.isnan(rows), np.nanmean(rows, axis=0), rows)
    np.testing.assert_allclose(model.transform(rows), model.transform(filled), atol=1e-4)
    assert np.ptp(model.transform(rows), axis=0).min() > 0.5


def test_a_vae_is_initialized_from_probabilistic_pca():
    """The covariance equals that of scikit-learn's PCA, and the codes have a deviation of about 1."""
    rows = nonlinear_rows(400)
    rows /= rows.std(axis=0)
    net = initialized(firth.VAE(dim=3, numeric="keep"), rows).net
    assert isinstance(net.decoder.straight, torch.nn.Linear)
    outward = net.decoder.straight.weight.detach().numpy()
    peer = sklearn.decomposition.PCA(3).fit(rows)
    ours = outward @ outward.T + peer.noise_variance_ * np.eye(8)
    np.testing.assert_allclose(ours, peer.get_covariance(), atol=1e-4)
    code = net.encode(torch.from_numpy(rows), torch.zeros(400, 0, dtype=torch.long))
    assert code.logvar is not None
    total = code.mean.var(dim=0) + torch.exp(code.logvar).mean(
        dim=0
    )  # of the aggregate posterior, which matches the prior
    torch.testing.assert_close(total, torch.ones(3, dtype=torch.float64), atol=0.01, rtol=0)
    noise = torch.randn(400, 3, generator=torch.Generator().manual_seed(2), dtype=torch.float64)
    deviation = (net.decode(sample_code(code, noise)).detach().numpy() - rows).std(axis=0)
    np.testing.assert_allclose(torch.exp(net.log_deviations()).detach(), deviation, rtol=0.05)


def test_large_tables_are_initialized_from_a_sample(monkeypatch):
    rows = nonlinear_rows(400)
    full = initialized(firth.Autoencoder(dim=3, numeric="keep"), rows)
    monkeypatch.setattr(pca_initialization, "MAX_MATRIX_CELLS", 8 * 200)
    sampled = initialized(firth.Autoencoder(dim=3, numeric="keep"), rows)
    losses = [lost_variance(rows, matrix(model.reconstruct(rows))) for model in (full, sampled)]
    assert losses[0] < losses[1] < 1.1 * losses[0]


def test_the_initial_weights_are_kept_when_training_makes_them_worse():
    rows = nonlinear_rows()
    method = firth.Autoencoder(dim=2, numeric="keep", learning_rate=3.0, max_grad_norm=0, epochs=3)
    model = method.fit(rows, RUN)
    first, *later = model.training["held_out"]
    assert first["share"] == 0 and min(each["held_out_loss"] for each in later) > first["held_out_loss"]
    np.testing.assert_allclose(
        matrix(model.reconstruct(rows)), matrix(firth.PCA(dim=2).fit(rows).reconstruct(rows)), 1e-4
    )


def lost(table: Table, dim: int, seed: int) -> tuple[float, float]:
    """The share of variance that an autoencoder and PCA lose on a held-out fifth of the rows."""
    order = np.random.default_rng(seed).permutation(len(table))
    train, test = (select_rows(table, np.sort(part)) for part in np.split(order, [len(order) * 4 // 5]))
    encoder = firth.OneHot(numeric="standardize").fit(train)
    rows = encoder.transform(test)
    model = firth.Autoencoder(dim=dim, epochs=40).fit(train, RUN)
    (_, pca), *_ = linear_codes(encoder, train, rows, dim)
    assert pca.rebuilt is not None
    return lost_variance(rows, encoder.transform(model.reconstruct(test))), lost_variance(rows, pca.rebuilt)


@pytest.mark.parametrize("seed", [21, 22])
def test_it_loses_less_variance_than_pca_on_a_mixed_table(seed):
    ours, pca = lost(Table(World(seed=seed).rows(250).complete), 4, seed)
    assert ours < 0.9 * pca


@pytest.mark.parametrize("seed", [21, 22, 23])
def test_it_equals_pca_on_few_linear_rows(seed):
    """There is no nonlinear structure to find, and few rows make overfitting easy."""
    random = np.random.default_rng(seed)
    rows = random.normal(size=(120, 3)) @ random.normal(size=(3, 20)) + random.normal(size=(120, 20))
    ours, pca = lost(Table(rows), 3, seed)
    assert ours < 1.01 * pca
