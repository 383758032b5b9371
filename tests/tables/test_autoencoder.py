"""Autoencoder: equal to PCA where it is linear, better where it is not; missing values, constants and outliers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import torch
from refusing import refuses, warns_code
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import firth
from firth import Run, Table, Vectors
from firth.nets.autoencoder import TableNet
from firth.tables.autoencoder_model import AutoencoderModel, shape_of
from firth.tables.autoencoder_training import AutoencoderTraining, prepare_table

RUN = Run(deterministic=True)


def matrix(table: Table) -> np.ndarray:
    return np.stack([table.numbers(name) for name in table.names], axis=1)


def squared_error(model, rows: np.ndarray) -> float:
    return float(((matrix(model.reconstruct(rows)) - rows) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("tied", [False, True])
def test_a_linear_autoencoder_finds_the_subspace_of_pca(tied):
    """Baldi & Hornik 1989: the only minimum of a linear autoencoder is the subspace of the first principal components.
    Training starts from random weights, because `fit` would initialize the network from PCA."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(400, 2)) @ random.normal(size=(2, 6)) * 3 + random.normal(size=(400, 6)) + 7
    settings: dict[str, Any] = {
        "dim": 2,
        "hidden_sizes": "",
        "numeric": "common",
        "weight_decay": 0.0,
        "held_out": 0.0,
        "tied": tied,
    }
    method = firth.Autoencoder(**settings, epochs=500, batch_size=400, learning_rate=0.02, schedule="linear")
    layout, table = prepare_table(method, rows, RUN, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = TableNet(shape_of(method, layout))
    metrics = AutoencoderTraining(method, net, layout.read(table), table.fingerprint(), RUN).go()
    model = AutoencoderModel(method, layout, net, metrics)
    assert metrics["loss"] < metrics["epochs"][0]["loss"] / 3
    pca = firth.PCA(dim=2).fit(rows)
    ours = np.linalg.qr(matrix(model.inverse(np.eye(2))).T - matrix(model.inverse(np.zeros((1, 2)))).T)[0]
    cosines = np.linalg.svd(ours.T @ pca.components.T)[1]  # of the principal angles between the two subspaces
    assert cosines.min() > 0.999
    assert squared_error(model, rows) == pytest.approx(squared_error(pca, rows), rel=5e-3)
    other = firth.PCA(dim=2).fit(rows[:, ::-1].copy())  # another subspace of the same data
    assert np.linalg.svd(ours.T @ other.components.T)[1].min() < 0.99


def california(n: int = 600) -> np.ndarray:
    """Synthetic districts: income, age, rooms, bedrooms, people, households, coordinates; skewed and dependent."""
    random = np.random.default_rng(6)
    north, income = random.uniform(size=n), np.exp(random.normal(1.3, 0.45, n))
    households = np.exp(random.normal(6, 0.7, n))
    rooms = households * np.clip(random.normal(4.4 + 0.35 * income, 0.6, n), 1, None)
    people = households * np.clip(random.normal(3.1 - 0.05 * income, 0.4, n), 1, None)
    west = -124.3 + 10 * (1 - north) + random.normal(0, 0.6, n)
    return np.column_stack(
        [income, random.uniform(1, 52, n), rooms, rooms / 5, people, households, 32.5 + 9.5 * north, west]
    )


@pytest.mark.parametrize(
    ("rows", "dim"),
    [
        pytest.param(load_digits().data, 8, id="digits"),
        pytest.param(load_breast_cancer().data, 5, id="breast cancer"),
        pytest.param(load_wine().data, 2, id="wine"),
        pytest.param(california(), 2, id="california"),
    ],
)
def test_it_reconstructs_better_than_pca_of_the_same_dim(rows, dim):
    """Both on the training rows and on held-out rows."""
    pixels = rows.shape[1] == 64
    order = np.random.default_rng(7).permutation(len(rows))
    rows = rows[order] if pixels else ((rows - rows.mean(0)) / rows.std(0))[order]
    train, test = np.split(rows, [len(rows) * 4 // 5])
    method = firth.Autoencoder(dim=dim, numeric="common" if pixels else "standardize", epochs=25 if pixels else 60)
    model, pca = method.fit(train, RUN), firth.PCA(dim=dim).fit(train)
    assert squared_error(model, test) < squared_error(pca, test)
    assert squared_error(model, train) < squared_error(pca, train)


def mixed(n: int = 200) -> dict[str, list[Any]]:
    """`b` is −2a and `color` is the sign of a; both have missing cells."""
    random = np.random.default_rng(8)
    a = random.normal(size=n)
    hidden = random.random((2, n)) < 0.1
    return {
        "a": a.tolist(),
        "b": [None if missing else -2 * x for x, missing in zip(a, hidden[0], strict=True)],
        "color": [None if missing else "red" if x > 0 else "blue" for x, missing in zip(a, hidden[1], strict=True)],
    }


@pytest.mark.parametrize("category", ["embedding", "onehot"])
def test_missing_cells_are_predicted_from_the_others(category):
    """The truth is b = −2a and color = sign(a); a prediction that ignores a has the variance of b, 4, as its error."""
    data = mixed()
    method = firth.Autoencoder(
        dim=2, hidden_sizes="32", categorical=category, denoise=0.2, epochs=80, learning_rate=0.01
    )
    model = method.fit(data, RUN)
    incomplete = {"a": [1.5, -1.5], "b": [None, None], "color": [None, None]}
    filled = model.reconstruct(incomplete).to_dict()
    np.testing.assert_allclose(filled["b"], [-3, 3], atol=1.3)
    assert filled["color"] == ["red", "blue"]
    errors = model.errors(data)
    missing = np.array([value is None for value in data["b"]])
    assert errors.columns == ["a", "b", "color"] and (errors.cells[missing, 1] == 0).all()


def test_outliers_have_the_largest_errors():
    data = mixed(300)
    model = firth.Autoencoder(dim=1, hidden_sizes="16", epochs=60, learning_rate=0.01).fit(data, RUN)
    with_outlier = {"a": [*data["a"][:50], 1.0], "b": [*data["b"][:50], 2.0], "color": [*data["color"][:50], "red"]}
    (row, error, column), second, *_ = model.errors(with_outlier).outliers(3)
    assert row == 50 and error > 3 * second[1] and column in ("a", "b")


def test_codes_are_vectors():
    table = Table({"name": ["x", "y", "z"], "a": [1.0, 2, 4], "b": [3.0, 1, 0]})
    model = firth.Autoencoder(dim=1, epochs=2).fit(Table(table, columns=["a", "b"]), RUN)
    assert model.codes(table).keys == ["1", "2", "3"]
    codes = model.codes(table, keys="name")
    np.testing.assert_array_equal(codes["y"], model.embed(table)[1])
    assert model.feature_names == ["autoencoder0"]
    with refuses("shape_mismatch", got=1, n_rows=3):
        model.codes(table, keys=["x"])


def test_compressed_vectors_have_their_keys(tmp_path):
    random = np.random.default_rng(9)
    vectors = Vectors([f"w{i}" for i in range(60)], random.normal(size=(60, 3)) @ random.normal(size=(3, 20)))
    model = firth.Autoencoder(dim=3, epochs=60, learning_rate=0.01).fit(vectors, RUN)
    assert model.vectors.keys == vectors.keys and model.vectors.dim == 3 and list(model.tables) == ["points"]
    reconstructed = model.reconstruct(vectors)
    assert isinstance(reconstructed, Vectors) and reconstructed.keys == vectors.keys
    assert ((reconstructed.matrix - vectors.matrix) ** 2).mean() < 0.1 * vectors.matrix.var()
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(firth.load(tmp_path / "m", firth.Autoencoder).vectors["w7"], model.vectors["w7"])
    non_finite = Vectors(["a", "b"], [[1.0, np.nan], [2.0, 3.0]])
    with refuses("non_finite", key="a"):
        firth.Autoencoder(dim=1, epochs=1).fit(non_finite)


def test_embedded_categories_have_vectors():
    model = firth.Autoencoder(dim=1, epochs=2).fit(mixed(), RUN)
    assert sorted(model.tables["color"].keys) == ["blue", "red"] and model.vectors is model.tables["color"]


def test_interpolation_between_two_rows():
    data = Table({"a": [0.0, 1, 2, 3], "b": [3.0, 2, 1, 0]})
    model = firth.Autoencoder(dim=1, hidden_sizes="", epochs=200, learning_rate=0.02, held_out=0).fit(data, RUN)
    path = model.interpolate(data, 0, 3, steps=4)
    np.testing.assert_allclose(path.numbers("a"), [0, 1, 2, 3], atol=0.1)
    with refuses("invalid_value", last_row=3, got=4):
        model.interpolate(data, 0, 4)
    with refuses("invalid_value", option="steps", got=1):
        model.interpolate(data, 0, 1, 1)


# ---- constants, missing values, unseen categories ----


@pytest.mark.parametrize("method", [firth.Autoencoder, firth.VAE])
def test_constant_and_empty_columns(method):
    data = {**mixed(60), "same": [7] * 60, "one": ["x"] * 60, "empty": [None] * 60}
    with warns_code("empty_column") as issued:
        model = method(dim=1, epochs=3).fit(data, RUN)
    assert "'empty'" in str(issued[0])
    reconstructed = model.reconstruct(data).to_dict()
    assert (
        set(reconstructed["same"]) == {7.0}
        and set(reconstructed["one"]) == {"x"}
        and set(reconstructed["empty"]) == {None}
    )
    assert list(reconstructed) == list(data)
    if method is firth.VAE:
        sampled = model.sample(20).to_dict()
        assert set(sampled["same"]) == {7} and set(sampled["one"]) == {"x"} and set(sampled["empty"]) == {None}
    with refuses("no_variation", method=method.__name__):
        method(dim=1, epochs=1).fit({"same": [7, 7, 7]})


@pytest.mark.parametrize("method", [firth.Autoencoder, firth.VAE])
def test_categories_seen_once_or_never(method):
    data = mixed(60)
    data["color"][0] = "green"
    model = method(dim=1, epochs=3).fit(data, RUN)
    new = {"a": [0.5, 0.5], "b": [-1.0, -1.0], "color": ["pink", None]}
    coded = model.coded(new)
    assert coded.unseen.tolist() == [1, 0]
    np.testing.assert_array_equal(coded.matrix[0], coded.matrix[1])  # as if it were missing
    assert model.reconstruct(new).to_dict()["color"][0] in ("red", "blue", "green")
    assert model.errors(new).cells[0, 2] > 10 > model.errors(new).cells[1, 2] == 0


@pytest.mark.parametrize(
    ("data", "code", "values"),
    [
        ({"a": [1.0]}, "too_few", {"min_rows": 2}),
        ({"a": [1.0, np.inf, 2.0]}, "non_finite", {"name": "a", "row": 2}),
        ({"a": [np.nan, np.nan]}, "no_variation", {"method": "Autoencoder"}),
        ([], "too_few", {"min_rows": 2}),
    ],
)
def test_invalid_tables_are_refused(data, code, values):
    with refuses(code, **values):
        firth.Autoencoder(dim=1, epochs=1).fit(data)


def test_mixed_types_in_a_column_are_categories():
    data = {"a": [1, "two", 3.5, None] * 10, "b": list(range(40))}
    model = firth.Autoencoder(dim=2, epochs=3).fit(data, RUN)
    assert set(model.reconstruct(data).to_dict()["a"]) <= {"1", "two", "3.5"}


def test_a_code_wider_than_the_row_is_noted():
    with warns_code("wide_code") as issued:
        firth.Autoencoder(dim=5, epochs=1).fit(mixed(), RUN)  # two numbers and two colors: a row width of 4
    assert "dim=5" in str(issued[0]) and "4" in str(issued[0])


def test_conflicting_options_are_refused():
    with refuses("conflicting_options", option="Autoencoder.tied"):
        firth.Autoencoder(dim=1, tied=True).fit(mixed())
    for sizes in ("a", "64,", "0", "1.5"):
        with refuses("invalid_value", option="Autoencoder.hidden_sizes", got=sizes):
            firth.Autoencoder(hidden_sizes=sizes)
    with refuses("incompatible_start", method="Autoencoder"):
        firth.Autoencoder().fit(mixed(), RUN, start=firth.PCA().fit([[1.0], [2.0]]))


def test_continuing_from_a_model():
    data = mixed()
    settings: dict[str, Any] = {"dim": 1, "hidden_sizes": "8", "epochs": 5}
    first = firth.Autoencoder(**settings).fit(data, RUN)
    second = firth.Autoencoder(**settings).fit(data, RUN, start=first)
    assert second.training["held_out_loss"] < first.training["held_out_loss"]
    with refuses("incompatible_start", got=first.net.shape):
        firth.Autoencoder(dim=2).fit(data, RUN, start=first)


def test_vectors_of_start_that_the_data_lacks_are_counted():
    rows = np.random.default_rng(1).normal(size=(30, 6))
    first = firth.Autoencoder(dim=2, epochs=1).fit(firth.Vectors([f"a{n}" for n in range(30)], rows), RUN)
    data = firth.Vectors([f"a{n}" for n in range(20, 50)], rows)
    with warns_code("missing_points") as issued:
        continued = firth.Autoencoder(dim=2, epochs=1).fit(data, start=first)
    assert [(note.code, str(note).split()[0]) for note in issued] == [("missing_points", "20")]
    assert continued.points is not None and continued.points.keys == data.keys
