"""Groups: clusters are found, ordered by size and named."""

from __future__ import annotations

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.studies import groups


def clustered_vectors(seed: int = 1) -> tuple[firth.Vectors, np.ndarray, list[str]]:
    """Return three clusters of 50, 30 and 20 rows in 12 dimensions, with texts that have words of their own."""
    random = np.random.default_rng(seed)
    truth = random.permutation(np.repeat([0, 1, 2], [50, 30, 20]))
    middles = np.eye(3, 12)
    rows = middles[truth] + random.normal(scale=0.1, size=(100, 12))
    own = [("ship", "sail"), ("loaf", "oven"), ("comet", "moon")]
    texts = [f"the {own[one][random.integers(2)]} and the {own[one][0]} number {row}" for row, one in enumerate(truth)]
    return firth.Vectors([f"k{row}" for row in range(100)], rows.astype(np.float32)), truth, texts


def test_clusters_are_found_the_largest_first():
    vectors, truth, _ = clustered_vectors()
    result = groups(vectors, 3)
    assert result.sizes == [50, 30, 20]
    assert np.array_equal(result.rows, truth)
    keys = [name.split(", ") for name in result.names]
    assert all(truth[vectors.row(key)] == one for one, each in enumerate(keys) for key in each)


def test_groups_are_named_by_characteristic_words():
    vectors, _, texts = clustered_vectors()
    names = groups(vectors, 3, texts=texts).names
    for name, words in zip(names, ({"ship", "sail"}, {"loaf", "oven"}, {"comet", "moon"}), strict=True):
        assert words <= set(name.split(", "))
        assert "the" not in name.split(", ")[:2]  # occurs in every text


def test_the_same_seed_gives_the_same_groups():
    vectors, _, _ = clustered_vectors()
    assert np.array_equal(groups(vectors, 5, seed=4).rows, groups(vectors, 5, seed=4).rows)


@pytest.mark.parametrize("k", [0, 1, 101])
def test_an_invalid_number_of_groups_is_refused(k):
    with refuses("invalid_value", option="k", limit=100, got=k):
        groups(clustered_vectors()[0], k)
