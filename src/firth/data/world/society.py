"""Synthetic data other than text: a friendship graph, ratings, and a table of people."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data.world.ground_truth import GroundTruth

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]

INSIDE = 0.85  # share of friends within the same community
GENRES = 5
HOMES = 6  # number of countries in the table of people
SCHOOLS = ("none", "school", "university")


class Friendships(NamedTuple):
    """An undirected graph; each edge occurs once, with the smaller number first."""

    edges: Ints  # (edges, 2)
    communities: Ints  # (people,): the community of each person


def friendships(random: np.random.Generator, people: int, communities: int, friends: int) -> Friendships:
    """Draw a graph in which each person selects `friends` others, mostly of the same community.

    The communities differ in size.
    """
    shares = np.arange(communities, 2 * communities, dtype=np.float64)
    drawn = random.choice(communities, size=people - communities, p=shares / shares.sum())
    labels = np.sort(np.concatenate([np.arange(communities), drawn]))  # no community is empty
    first, sizes = np.searchsorted(labels, np.arange(communities)), np.bincount(labels, minlength=communities)
    one = np.repeat(np.arange(people), friends)
    own = labels[one]
    inside = first[own] + (random.random(len(one)) * sizes[own]).astype(np.int64)
    other = np.where(random.random(len(one)) < INSIDE, inside, random.integers(people, size=len(one)))
    order = random.permutation(people)  # so that the number of a person carries no information
    pairs = np.sort(np.stack([order[one], order[other]], axis=1), axis=1)
    edges = _distinct(pairs[pairs[:, 0] != pairs[:, 1]], people)
    shuffled = np.empty(people, dtype=np.int64)
    shuffled[order] = labels
    return Friendships(edges, shuffled)


class SyntheticRatings(NamedTuple):
    """Ratings, with each (user, item) pair at most once, and the preferences that generated them."""

    users: Ints
    items: Ints
    ratings: Ints  # 1 … 5
    tastes: Floats  # (users, genres): preference of each user for each genre; rows sum to 1
    traits: Floats  # (items, genres): share of each genre in each item; rows sum to 1


def ratings(random: np.random.Generator, users: int, items: int, each: int) -> SyntheticRatings:
    """Draw about `each` items per user by preference and popularity; the rating depends on preference alone."""
    tastes = random.dirichlet(np.full(GENRES, 0.25), size=users)
    traits = random.dirichlet(np.full(GENRES, 0.25), size=items)
    popularity = 1.0 / (1.0 + random.permutation(items)) ** 0.5
    wanted_genres = _sample_columns(random, np.repeat(tastes, each, axis=0))
    rated_items = np.empty(len(wanted_genres), dtype=np.int64)
    for genre in range(GENRES):
        with_genre = np.flatnonzero(wanted_genres == genre)
        odds = popularity * traits[:, genre]
        rated_items[with_genre] = np.searchsorted(
            np.cumsum(odds) / odds.sum(), random.random(len(with_genre)), side="right"
        )
    rated_items = np.minimum(rated_items, items - 1)  # a rounded sum may end just under 1
    pairs = _distinct(np.stack([np.repeat(np.arange(users), each), rated_items], axis=1), items)
    match = np.einsum("ij,ij->i", tastes[pairs[:, 0]], traits[pairs[:, 1]])  # 0 … 1
    scores = np.clip(np.rint(1.5 + 4.0 * match + random.normal(0, 0.3, len(match))), 1, 5).astype(np.int64)
    return SyntheticRatings(pairs[:, 0], pairs[:, 1], scores, tastes, traits)


def _distinct(pairs: Ints, high: int) -> Ints:
    """Return the distinct pairs in sorted order; second elements are below `high`."""
    codes = np.sort(pairs[:, 0] * high + pairs[:, 1])
    return np.stack(np.divmod(codes[np.diff(codes, prepend=-1) > 0], high), axis=1)


def _sample_columns(random: np.random.Generator, odds: Floats) -> Ints:
    """Draw a column for each row of probabilities."""
    columns: Ints = (np.cumsum(odds, axis=1) < random.random((len(odds), 1))).sum(axis=1)
    np.minimum(columns, odds.shape[1] - 1, out=columns)  # a rounded sum may end just under 1
    return columns


class SyntheticTable(NamedTuple):
    """A table by columns; missing values are None. `complete` is the table without missing values."""

    columns: dict[str, list[Any]]
    complete: dict[str, list[Any]]


def rows(random: np.random.Generator, truth: GroundTruth, n: int) -> SyntheticTable:
    """Draw a table of people with these dependencies:

    - `city` is the capital of `country`;
    - `income` = 900 + 150 · (rank of the country) + 600 · (rank of `school`) + 12 · `age` + noise of deviation 60;
    - `owns_horse` is true if the income is above 2,400, with one in twenty inverted;
    - `height` is independent of everything else.

    One in ten incomes, one in twenty schools and one in twenty cities are missing.
    """
    homes = truth.countries[:HOMES]
    country = random.integers(len(homes), size=n)
    school = random.choice(3, size=n, p=(0.3, 0.45, 0.25))
    age = random.integers(18, 80, size=n)
    income = np.round(900 + 150 * country + 600 * school + 12 * age + random.normal(0, 60, n), 2)
    complete: dict[str, list[Any]] = {
        "country": [homes[i].country for i in country],
        "city": [homes[i].capital for i in country],
        "school": [SCHOOLS[i] for i in school],
        "age": age.tolist(),
        "height": np.round(random.normal(170, 9, n), 1).tolist(),
        "income": income.tolist(),
        "owns_horse": ((income > 2400) != (random.random(n) < 0.05)).tolist(),
    }
    columns = dict(complete)
    for name, share in (("income", 0.1), ("school", 0.05), ("city", 0.05)):
        missing = random.random(n) < share
        columns[name] = [
            None if is_missing else value for value, is_missing in zip(complete[name], missing, strict=True)
        ]
    return SyntheticTable(columns, complete)
