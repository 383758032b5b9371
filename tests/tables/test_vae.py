"""VAE: the evidence lower bound rises, samples keep the dependencies between columns, and collapse is noted."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import warns_code

import firth
from firth import Run
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


def test_the_evidence_lower_bound_rises_on_held_out_rows(model):
    bounds = [-(measured["reconstruction"] + measured["kl"]) for measured in model.training["held_out"]]
    assert bounds[0] < bounds[len(bounds) // 4] < max(bounds) - 0.2
    parts = model.elbo(firth.Table(World(seed=3).rows(1600).columns).slice(1500, 1600))  # rows not in the training data
    assert parts["elbo"] == pytest.approx(-parts["reconstruction"] - parts["kl"])
    assert parts["elbo"] > bounds[0] and parts["kl"] > 1


def dependencies(columns) -> dict[str, float]:
    """The strength of the dependencies that `society.rows` lists."""
    rank = {country.country: number for number, country in enumerate(WORLD.countries)}
    capital = {country.country: country.capital for country in WORLD.countries}
    schools = {"none": 0, "school": 1, "university": 2}
    rows = zip(*(columns[name] for name in ("country", "city", "school", "age", "income", "owns_horse")), strict=True)
    complete = [row for row in rows if None not in row]
    country, city, school, age, income, horse = zip(*complete, strict=True)
    predictors = np.column_stack(
        [np.ones(len(complete)), [rank[name] for name in country], [schools[name] for name in school], age]
    )
    weights, *_ = np.linalg.lstsq(predictors, np.array(income), rcond=None)
    return {
        "capital": float(np.mean([capital[a] == b for a, b in zip(country, city, strict=True)])),
        "rank": weights[1],
        "school": weights[2],
        "age": weights[3],
        "noise": float(np.std(np.array(income) - predictors @ weights)),
        "horse": float(np.mean([(i > 2400) == h for i, h in zip(income, horse, strict=True)])),
    }


def test_samples_keep_the_dependencies_between_columns(model, people):
    """The truth: 150 per rank, 600 per school, 12 per year. Independently drawn columns have none of these."""
    sampled = dependencies(model.sample(1500).to_dict())
    independent = dependencies(independent_rows(people.to_dict(), 1500))
    assert sampled["capital"] > 0.75 > 0.25 > independent["capital"]
    assert 100 < sampled["rank"] < 200 and 450 < sampled["school"] < 750 and 9 < sampled["age"] < 15
    assert abs(independent["rank"]) < 30 and abs(independent["school"]) < 60 and abs(independent["age"]) < 3
    assert sampled["noise"] < 250 < 450 < independent["noise"]
    assert sampled["horse"] > 0.8 > independent["horse"]


def test_samples_are_harder_to_distinguish_from_real_rows_than_independent_columns(model, people):
    fresh = firth.Table(World(seed=3).rows(2100).complete).slice(1500, 2100)
    encoder = firth.OneHot(numeric="standardize").fit(fresh)
    real = encoder.transform(fresh)
    ours = two_sample(real, encoder.transform(model.sample(600)))
    complete = World(seed=3).rows(1500).complete
    independent = two_sample(real, encoder.transform(independent_rows(complete, 600)))
    assert ours < 0.85 < 0.95 < independent


def test_samples_keep_types_and_limits(model, people):
    sampled, real = model.sample(300).to_dict(), people.to_dict()
    assert all(isinstance(age, int) for age in sampled["age"])
    assert {type(horse) for horse in sampled["owns_horse"]} == {bool}
    for name in ("age", "height", "income"):
        values = [value for value in real[name] if value is not None]
        assert min(values) <= min(sampled[name]) <= max(sampled[name]) <= max(values)
    for name in ("country", "city", "school"):
        assert set(sampled[name]) <= set(real[name]) - {None}
    assert sampled == model.sample(300).to_dict()
    from_prior = model.sample(300, prior=True).to_dict()
    assert from_prior != sampled and dependencies(from_prior)["capital"] > 0.5
    assert len({tuple(row) for row in zip(*model.sample(50, noise=False).to_dict().values(), strict=True)}) > 40


def test_codes_have_uncertainty(model, people):
    """A row with missing cells has larger deviations than the complete row."""
    complete = people.slice(0, 200)
    incomplete = complete.to_dict() | {name: [None] * 200 for name in ("city", "income", "country")}
    lower, higher = model.deviations(complete), model.deviations(incomplete)
    assert lower.shape == (200, 8) and (lower > 0).all()
    assert (lower.mean(axis=0) < 0.9).sum() >= 2
    assert np.log(higher / lower).sum(axis=1).mean() > 0.2  # the increase of a code's entropy, in nats


def test_collapse_is_noted():
    """Independent columns share no information, so a high beta makes the codes collapse to the prior."""
    rows = np.random.default_rng(1).normal(size=(200, 4))
    with warns_code("collapsed_codes"):
        model = firth.VAE(dim=2, epochs=60, beta=10.0).fit(rows, RUN)
    assert model.training["active"] == 0 and "0 of them in use" in repr(model)


def test_free_bits_prevent_collapse():
    rows = np.random.default_rng(1).normal(size=(200, 4))
    model = firth.VAE(dim=2, epochs=60, beta=10.0, free_bits=0.5).fit(rows, RUN)
    assert model.training["active"] > 0 and model.elbo(rows)["kl"] > 0.5
