from __future__ import annotations

import pytest

import firth
from firth.data.splits import Split, split
from firth.data.world import World
from firth.data.world.society import SyntheticRatings as Society


@pytest.fixture(scope="session")
def society() -> Society:
    """Synthetic users with known tastes, from a seed that no setting was tuned on."""
    return World(seed=77).ratings(users=800, items=300, each=40)


@pytest.fixture(scope="session")
def ratings(society: Society) -> firth.Interactions:
    return firth.Interactions(zip(society.users, society.items, society.ratings, strict=True))


@pytest.fixture(scope="session")
def parts(ratings: firth.Interactions) -> Split:
    return split(ratings, "random", 0.2)
