"""Latent space: the plane of the codes, and decoded points."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses
from sklearn.datasets import load_digits

import firth
from firth import Run
from firth.tables.latent_space import code_plane, decoded_cells, decoded_pictures, known_codes, picture_side

RUN = Run(threads=1)


def people(rows: int = 120) -> firth.Table:
    random = np.random.default_rng(2)
    age = random.integers(20, 70, rows)
    city = np.where(age > 45, "Rome", "Oslo")
    return firth.Table({"age": age, "pay": age * 10.0 + random.normal(size=rows), "city": city})


@pytest.fixture(scope="module")
def model():
    return firth.VAE(dim=3, epochs=8).fit(people(), RUN)


def test_codes_in_a_plane_are_represented_exactly():
    codes = np.random.default_rng(1).normal(size=(30, 5)) @ np.diag([3, 2, 0, 0, 0]) + 1  # two directions vary
    plane = code_plane(codes)
    np.testing.assert_allclose(plane.center + plane.points @ plane.axes, codes, atol=1e-9)
    assert plane.explained == pytest.approx(1) and plane.points.shape == (30, 2)
    flat = code_plane(codes[:, :2])
    np.testing.assert_array_equal(flat.points, codes[:, :2])
    line = code_plane(codes[:, :1])
    np.testing.assert_array_equal(line.points, np.column_stack([codes[:, 0], np.zeros(30)]))


def test_decoded_cells_equal_inverse(model):
    codes = known_codes(model)[:4]
    rows, table = decoded_cells(model, codes), model.inverse(codes).to_dict()
    for number, row in enumerate(rows):
        assert [cell.column for cell in row] == ["age", "pay", "city"]
        assert row[0].value == pytest.approx(table["age"][number])
        assert row[1].value == pytest.approx(table["pay"][number])
        assert row[2].value == table["city"][number] == row[2].levels[0][0]
        assert sum(probability for _, probability in row[2].levels) == pytest.approx(1)
        assert (row[0].low, row[0].high) == (min(people().to_dict()["age"]), max(people().to_dict()["age"]))
    with refuses("shape_mismatch", dim=3, shape=(1, 2)):
        decoded_cells(model, [[0, 1]])


def test_known_codes_are_those_of_the_data_or_the_stored_ones(model):
    np.testing.assert_array_equal(known_codes(model), model.training_codes[0])
    np.testing.assert_array_equal(known_codes(model, people(7)), model.transform(people(7)))
    plain = firth.Autoencoder(dim=2, epochs=1).fit(people(), RUN)
    with refuses("unsupported_model"):
        known_codes(plain)
    points = firth.Autoencoder(dim=2, epochs=1).fit(firth.Vectors(["a", "b", "c"], np.eye(3)), RUN)
    assert points.points is not None
    np.testing.assert_array_equal(known_codes(points), points.points.matrix)


def test_images_are_recognized(model):
    digits = load_digits().data[:80]
    for numeric in ("common", "standardize"):
        assert picture_side(firth.VAE(dim=2, epochs=1, numeric=numeric).fit(digits, RUN)) == 8
    pixels = firth.VAE(dim=2, epochs=1).fit(digits, RUN)
    images, table = decoded_pictures(pixels, [[0, 0], [1, -1]]), pixels.inverse([[0, 0], [1, -1]])
    assert images.shape == (2, 64) and images.min() >= 0 and images.max() <= 1
    assert images[1, 20] == pytest.approx(np.clip(table.numbers(table.names[20])[1] / 16, 0, 1))
    random = np.random.default_rng(3)
    spread = random.normal(size=(40, 25)) * np.arange(1, 26) ** 2  # 25 columns of different ranges
    assert picture_side(firth.VAE(dim=2, epochs=1).fit(spread, RUN)) is None and picture_side(model) is None
