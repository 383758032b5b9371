"""VAE: the bound rises, the invented world's table comes again with its dependencies, and collapse is said."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth import FirthWarning, Run
from firth.data.world import World
from firth.evaluate import independent_rows, two_sample

RUN = Run(deterministic=True)
WORLD = World(seed=3)


@pytest.fixture(scope="module")
def people():
    return firth.Table(WORLD.rows(1500).columns)


@pytest.fixture(scope="module")
def model(people):
    return firth.VAE(epochs=120).fit(people, RUN)


def test_the_bound_rises_on_held_out_rows(model):
    bounds = [-(measured["reconstruction"] + measured["kl"]) for measured in model.training["held_out"]]
    assert bounds[0] < bounds[len(bounds) // 4] < max(bounds) - 0.2
    found = model.elbo(firth.Table(World(seed=3).rows(1600).columns).slice(1500, 1600))  # rows it has not seen
    assert found["elbo"] == pytest.approx(-found["reconstruction"] - found["kl"])
    assert found["elbo"] > bounds[0] and found["kl"] > 1


def judged(columns) -> dict[str, float]:
    """How far the dependencies that `society.rows` lists hold."""
    rank = {country.country: place for place, country in enumerate(WORLD.countries)}
    capital = {country.country: country.capital for country in WORLD.countries}
    schools = {"none": 0, "school": 1, "university": 2}
    known = zip(*(columns[name] for name in ("country", "city", "school", "age", "income", "owns_horse")), strict=True)
    whole = [row for row in known if None not in row]
    country, city, school, age, income, horse = zip(*whole, strict=True)
    causes = np.column_stack(
        [np.ones(len(whole)), [rank[name] for name in country], [schools[name] for name in school], age]
    )
    weights, *_ = np.linalg.lstsq(causes, np.array(income), rcond=None)
    return {
        "capital": float(np.mean([capital[a] == b for a, b in zip(country, city, strict=True)])),
        "rank": weights[1],
        "school": weights[2],
        "age": weights[3],
        "noise": float(np.std(np.array(income) - causes @ weights)),
        "horse": float(np.mean([(i > 2400) == h for i, h in zip(income, horse, strict=True)])),
    }


def test_the_worlds_table_comes_again_with_its_dependencies(model, people):
    """The truth: 150 a rank, 600 a school, 12 a year. Columns drawn alone know none of it."""
    made, alone = judged(model.sample(1500).to_dict()), judged(independent_rows(people.to_dict(), 1500))
    assert made["capital"] > 0.75 > 0.25 > alone["capital"]
    assert 100 < made["rank"] < 200 and 450 < made["school"] < 750 and 9 < made["age"] < 15
    assert abs(alone["rank"]) < 30 and abs(alone["school"]) < 60 and abs(alone["age"]) < 3
    assert made["noise"] < 250 < 450 < alone["noise"]
    assert made["horse"] > 0.8 > alone["horse"]


def test_made_up_rows_are_harder_to_tell_from_real_ones_than_columns_drawn_alone(model, people):
    fresh = firth.Table(World(seed=3).rows(2100).complete).slice(1500, 2100)
    encoder = firth.OneHot(numeric="standardize").fit(fresh)
    real = encoder.transform(fresh)
    ours = two_sample(real, encoder.transform(model.sample(600)))
    complete = World(seed=3).rows(1500).complete
    alone = two_sample(real, encoder.transform(independent_rows(complete, 600)))
    assert ours < 0.85 < 0.95 < alone


def test_made_up_rows_keep_types_and_limits(model, people):
    made, real = model.sample(300).to_dict(), people.to_dict()
    assert all(isinstance(age, int) for age in made["age"]) and {type(horse) for horse in made["owns_horse"]} == {bool}
    for name in ("age", "height", "income"):
        known = [value for value in real[name] if value is not None]
        assert min(known) <= min(made[name]) <= max(made[name]) <= max(known)
    for name in ("country", "city", "school"):
        assert set(made[name]) <= set(real[name]) - {None}
    assert made == model.sample(300).to_dict()
    plain = model.sample(300, prior=True).to_dict()
    assert plain != made and judged(plain)["capital"] > 0.5
    assert len({tuple(row) for row in zip(*model.sample(50, noise=False).to_dict().values(), strict=True)}) > 40


def test_codes_have_uncertainty(model, people):
    """A row that is half missing is less sure than the same row whole."""
    whole = people.slice(0, 200)
    hidden = whole.to_dict() | {name: [None] * 200 for name in ("city", "income", "country")}
    sure, unsure = model.deviations(whole), model.deviations(hidden)
    assert sure.shape == (200, 8) and (sure > 0).all()
    assert (sure.mean(axis=0) < 0.9).sum() >= 2
    assert np.log(unsure / sure).sum(axis=1).mean() > 0.2  # nats by which a code's entropy grew


def test_collapse_is_said():
    """Columns that don't depend on each other have nothing to say in common: with a high beta the codes go silent."""
    rows = np.random.default_rng(1).normal(size=(200, 4))
    with pytest.warns(FirthWarning, match="The codes have collapsed: no dimension tells rows apart"):
        model = firth.VAE(dim=2, epochs=60, beta=10.0).fit(rows, RUN)
    assert model.training["active"] == 0 and "0 of them in use" in repr(model)


def test_free_bits_keep_codes_awake():
    rows = np.random.default_rng(1).normal(size=(200, 4))
    model = firth.VAE(dim=2, epochs=60, beta=10.0, free_bits=0.5).fit(rows, RUN)
    assert model.training["active"] > 0 and model.elbo(rows)["kl"] > 0.5
