"""Groups are found where there are some, and named by what is in them."""

from __future__ import annotations

import numpy as np
import pytest

import firth
from firth.studies import groups


def gathered(seed: int = 1) -> tuple[firth.Vectors, np.ndarray, list[str]]:
    """Three heaps in 12 dimensions of 50, 30 and 20 rows, mixed, with texts that have the heap's own words."""
    random = np.random.default_rng(seed)
    truth = random.permutation(np.repeat([0, 1, 2], [50, 30, 20]))
    middles = np.eye(3, 12)
    rows = middles[truth] + random.normal(scale=0.1, size=(100, 12))
    own = [("ship", "sail"), ("loaf", "oven"), ("comet", "moon")]
    texts = [f"the {own[one][random.integers(2)]} and the {own[one][0]} number {row}" for row, one in enumerate(truth)]
    return firth.Vectors([f"k{row}" for row in range(100)], rows.astype(np.float32)), truth, texts


def test_heaps_are_found_the_largest_first():
    vectors, truth, _ = gathered()
    found = groups(vectors, 3)
    assert found.sizes == [50, 30, 20]
    assert np.array_equal(found.rows, truth)
    keys = [name.split(", ") for name in found.names]
    assert all(truth[vectors.row(key)] == one for one, each in enumerate(keys) for key in each)


def test_texts_name_their_group_by_what_stands_out():
    vectors, _, texts = gathered()
    names = groups(vectors, 3, texts=texts).names
    for name, words in zip(names, ({"ship", "sail"}, {"loaf", "oven"}, {"comet", "moon"}), strict=True):
        assert words <= set(name.split(", "))
        assert "the" not in name.split(", ")[:2]  # in every text, so it tells nothing


def test_the_same_seed_gives_the_same_groups():
    vectors, _, _ = gathered()
    assert np.array_equal(groups(vectors, 5, seed=4).rows, groups(vectors, 5, seed=4).rows)


@pytest.mark.parametrize("k", [0, 1, 101])
def test_a_number_of_groups_that_there_can_not_be(k):
    with pytest.raises(firth.FirthError, match="k must be from 2 to the 100 rows"):
        groups(gathered()[0], k)
