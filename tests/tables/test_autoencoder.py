"""Autoencoder: PCA where it is linear, better where it is not; what comes of odd tables."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.datasets import load_breast_cancer, load_digits, load_wine

import firth
from firth import FirthError, FirthWarning, Run, Table, Vectors
from firth.nets.autoencoder import TableNet
from firth.tables.autoencoder_model import AutoencoderModel, shape_of
from firth.tables.autoencoder_training import AutoencoderTraining, prepare_table

RUN = Run(deterministic=True)


def matrix(table: Table) -> np.ndarray:
    return np.stack([table.numbers(name) for name in table.names], axis=1)


def squared_error(model, rows: np.ndarray) -> float:
    return float(((matrix(model.reconstruct(rows)) - rows) ** 2).sum(axis=1).mean())


@pytest.mark.parametrize("tied", [False, True])
def test_without_layers_it_finds_the_subspace_of_pca(tied):
    """Baldi & Hornik 1989: the linear autoencoder's only minimum is the plane of the first principal components. From
    random weights: those that `fit` begins with are there already."""
    random = np.random.default_rng(5)
    rows = random.normal(size=(400, 2)) @ random.normal(size=(2, 6)) * 3 + random.normal(size=(400, 6)) + 7
    settings = {"dim": 2, "hidden_sizes": "", "numeric": "common", "weight_decay": 0.0, "held_out": 0.0, "tied": tied}
    method = firth.Autoencoder(**settings, epochs=500, batch_size=400, learning_rate=0.02, schedule="linear")
    layout, table = prepare_table(method, rows, RUN, None)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(1)
        net = TableNet(shape_of(method, layout))
    figures = AutoencoderTraining(method, net, layout.read(table), table.fingerprint(), RUN).go()
    model = AutoencoderModel(method, layout, net, figures)
    assert figures["loss"] < figures["epochs"][0]["loss"] / 3
    pca = firth.PCA(dim=2).fit(rows)
    ours = np.linalg.qr(matrix(model.inverse(np.eye(2))).T - matrix(model.inverse(np.zeros((1, 2)))).T)[0]
    cosines = np.linalg.svd(ours.T @ pca.components.T)[1]  # of the angles between the two planes
    assert cosines.min() > 0.999
    assert squared_error(model, rows) == pytest.approx(squared_error(pca, rows), rel=5e-3)
    other = firth.PCA(dim=2).fit(rows[:, ::-1].copy())  # a plane of the same data that is not the right one
    assert np.linalg.svd(ours.T @ other.components.T)[1].min() < 0.99


def california(n: int = 600) -> np.ndarray:
    """Districts: income, age, rooms, bedrooms, people, households, place; skewed, and dependent as in the census."""
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
def test_it_rebuilds_better_than_pca_of_the_same_width(rows, dim):
    """Rows that neither learned from."""
    pixels = rows.shape[1] == 64
    order = np.random.default_rng(7).permutation(len(rows))
    rows = rows[order] if pixels else ((rows - rows.mean(0)) / rows.std(0))[order]
    learned, judged = np.split(rows, [len(rows) * 4 // 5])
    method = firth.Autoencoder(dim=dim, numeric="common" if pixels else "standardize", epochs=25 if pixels else 60)
    model, pca = method.fit(learned, RUN), firth.PCA(dim=dim).fit(learned)
    assert squared_error(model, judged) < squared_error(pca, judged)
    assert squared_error(model, learned) < squared_error(pca, learned)


def mixed(n: int = 200) -> dict[str, list]:
    """`b` is −2a; `color` tells the sign of a; both may be missing."""
    random = np.random.default_rng(8)
    a = random.normal(size=n)
    gone = random.random((2, n)) < 0.1
    return {
        "a": a.tolist(),
        "b": [None if missing else -2 * x for x, missing in zip(a, gone[0], strict=True)],
        "color": [None if missing else "red" if x > 0 else "blue" for x, missing in zip(a, gone[1], strict=True)],
    }


@pytest.mark.parametrize("category", ["embedding", "onehot"])
def test_missing_cells_are_told_from_the_others(category):
    """The truth: b = −2a, and the colour is a's sign; a guess that ignores a is wrong by b's variance, 4."""
    data = mixed()
    model = firth.Autoencoder(
        dim=2, hidden_sizes="32", categorical=category, denoise=0.2, epochs=80, learning_rate=0.01
    )
    model = model.fit(data, RUN)
    asked = {"a": [1.5, -1.5], "b": [None, None], "color": [None, None]}
    again = model.reconstruct(asked).to_dict()
    np.testing.assert_allclose(again["b"], [-3, 3], atol=1.3)
    assert again["color"] == ["red", "blue"]
    errors = model.errors(data)
    gaps = np.array([value is None for value in data["b"]])
    assert errors.columns == ["a", "b", "color"] and (errors.cells[gaps, 1] == 0).all()


def test_odd_rows_stand_out():
    data = mixed(300)
    model = firth.Autoencoder(dim=1, hidden_sizes="16", epochs=60, learning_rate=0.01).fit(data, RUN)
    strange = {"a": [*data["a"][:50], 1.0], "b": [*data["b"][:50], 2.0], "color": [*data["color"][:50], "red"]}
    (row, error, column), second, *_ = model.errors(strange).outliers(3)
    assert row == 50 and error > 3 * second[1] and column in ("a", "b")


def test_codes_are_vectors():
    table = Table({"name": ["x", "y", "z"], "a": [1.0, 2, 4], "b": [3.0, 1, 0]})
    model = firth.Autoencoder(dim=1, epochs=2).fit(Table(table, columns=["a", "b"]), RUN)
    assert model.codes(table).keys == ["1", "2", "3"]
    codes = model.codes(table, keys="name")
    np.testing.assert_array_equal(codes["y"], model.embed(table)[1])
    assert model.feature_names == ["autoencoder0"]
    with pytest.raises(FirthError, match="a key for each row; got 1 keys for 3 rows"):
        model.codes(table, keys=["x"])


def test_vectors_are_squeezed_with_their_keys(tmp_path):
    random = np.random.default_rng(9)
    vectors = Vectors([f"w{i}" for i in range(60)], random.normal(size=(60, 3)) @ random.normal(size=(3, 20)))
    model = firth.Autoencoder(dim=3, epochs=60, learning_rate=0.01).fit(vectors, RUN)
    assert model.vectors.keys == vectors.keys and model.vectors.dim == 3 and list(model.tables) == ["points"]
    again = model.reconstruct(vectors)
    assert isinstance(again, Vectors) and again.keys == vectors.keys
    assert ((again.matrix - vectors.matrix) ** 2).mean() < 0.1 * vectors.matrix.var()
    model.save(tmp_path / "m")
    np.testing.assert_array_equal(firth.load(tmp_path / "m").vectors["w7"], model.vectors["w7"])
    odd = Vectors(["a", "b"], [[1.0, np.nan], [2.0, 3.0]])
    with pytest.raises(FirthError, match="vector of 'a' holds NaN or infinity"):
        firth.Autoencoder(dim=1, epochs=1).fit(odd)


def test_categories_have_vectors():
    model = firth.Autoencoder(dim=1, epochs=2).fit(mixed(), RUN)
    assert sorted(model.tables["color"].keys) == ["blue", "red"] and model.vectors is model.tables["color"]


def test_the_way_between_two_rows():
    data = Table({"a": [0.0, 1, 2, 3], "b": [3.0, 2, 1, 0]})
    model = firth.Autoencoder(dim=1, hidden_sizes="", epochs=200, learning_rate=0.02, held_out=0).fit(data, RUN)
    between = model.interpolate(data, 0, 3, steps=4)
    np.testing.assert_allclose(between.numbers("a"), [0, 1, 2, 3], atol=0.1)
    for wrong, message in (((0, 4), "from 0 to 3; got 4"), ((0, 1, 1), "steps must be at least 2")):
        with pytest.raises(FirthError, match=message):
            model.interpolate(data, *wrong)


# ---- odd tables ----


@pytest.mark.parametrize("method", [firth.Autoencoder, firth.VAE])
def test_constant_and_empty_columns(method):
    data = {**mixed(60), "same": [7] * 60, "one": ["x"] * 60, "empty": [None] * 60}
    with pytest.warns(FirthWarning, match="Nothing is known of 'empty': all cells are missing"):
        model = method(dim=1, epochs=3).fit(data, RUN)
    again = model.reconstruct(data).to_dict()
    assert set(again["same"]) == {7.0} and set(again["one"]) == {"x"} and set(again["empty"]) == {None}
    assert list(again) == list(data)
    if method is firth.VAE:
        made = model.sample(20).to_dict()
        assert set(made["same"]) == {7} and set(made["one"]) == {"x"} and set(made["empty"]) == {None}
    with pytest.raises(FirthError, match="needs a column that varies"):
        method(dim=1, epochs=1).fit({"same": [7, 7, 7]})


@pytest.mark.parametrize("method", [firth.Autoencoder, firth.VAE])
def test_categories_seen_once_or_never(method):
    data = mixed(60)
    data["color"][0] = "green"
    model = method(dim=1, epochs=3).fit(data, RUN)
    new = {"a": [0.5, 0.5], "b": [-1.0, -1.0], "color": ["pink", None]}
    found = model.coded(new)
    assert found.unseen.tolist() == [1, 0]
    np.testing.assert_array_equal(found.matrix[0], found.matrix[1])  # as if it were missing
    assert model.reconstruct(new).to_dict()["color"][0] in ("red", "blue", "green")
    assert model.errors(new).cells[0, 2] > 10 > model.errors(new).cells[1, 2] == 0


@pytest.mark.parametrize(
    ("data", "message"),
    [
        ({"a": [1.0]}, "needs at least 2 rows and a column; got Table\\(1 rows"),
        ({"a": [1.0, np.inf, 2.0]}, "Column 'a', row 2 is infinite"),
        ({"a": [np.nan, np.nan]}, "needs a column that varies"),
        ([], "needs at least 2 rows"),
    ],
)
def test_what_can_not_be_learned_is_refused(data, message):
    with pytest.raises(FirthError, match=message):
        firth.Autoencoder(dim=1, epochs=1).fit(data)


def test_mixed_types_in_a_column_are_categories():
    data = {"a": [1, "two", 3.5, None] * 10, "b": list(range(40))}
    model = firth.Autoencoder(dim=2, epochs=3).fit(data, RUN)
    assert set(model.reconstruct(data).to_dict()["a"]) <= {"1", "two", "3.5"}


def test_a_wide_code_is_allowed_and_said():
    with pytest.warns(FirthWarning, match="dim=5 is more than the 4 numbers of a row"):
        firth.Autoencoder(dim=5, epochs=1).fit(mixed(), RUN)  # 2 numbers and 2 colours


def test_options_that_do_not_go_together():
    with pytest.raises(FirthError, match=r"Autoencoder\.tied needs categorical='onehot'"):
        firth.Autoencoder(dim=1, tied=True).fit(mixed())
    for widths in ("a", "64,", "0", "1.5"):
        with pytest.raises(FirthError, match=r"Autoencoder\.hidden_sizes must be whole numbers .* got '"):
            firth.Autoencoder(hidden_sizes=widths)
    with pytest.raises(FirthError, match="start must be an Autoencoder model"):
        firth.Autoencoder().fit(mixed(), RUN, start=firth.PCA().fit([[1.0], [2.0]]))


def test_it_goes_on_from_a_model():
    data = mixed()
    settings = {"dim": 1, "hidden_sizes": "8", "epochs": 5}
    first = firth.Autoencoder(**settings).fit(data, RUN)
    second = firth.Autoencoder(**settings).fit(data, RUN, start=first)
    assert second.training["held_out_loss"] < first.training["held_out_loss"]
    with pytest.raises(FirthError, match="same size"):
        firth.Autoencoder(dim=2).fit(data, RUN, start=first)


def test_vectors_that_start_had_and_the_data_lacks_are_counted():
    rows = np.random.default_rng(1).normal(size=(30, 6))
    first = firth.Autoencoder(dim=2, epochs=1).fit(firth.Vectors([f"a{n}" for n in range(30)], rows), RUN)
    data = firth.Vectors([f"a{n}" for n in range(20, 50)], rows)
    with pytest.warns(firth.FirthWarning) as said:
        again = firth.Autoencoder(dim=2, epochs=1).fit(data, start=first)
    assert [(note.message.code, str(note.message).split()[0]) for note in said] == [("missing_points", "20")]
    assert again.points.keys == data.keys
