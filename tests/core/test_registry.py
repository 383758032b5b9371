"""Methods and options by name: hyphens and underscores are the same everywhere a name is taken."""

from __future__ import annotations

import pytest

import firth
from firth.core import registry
from firth.core.errors import FirthError
from firth.core.options import build_settings

UNDERSCORED = [name for name in registry.method_modules() if "_" in name]


@pytest.mark.parametrize("name", UNDERSCORED)
def test_a_method_by_either_name(name):
    hyphened = name.replace("_", "-")
    assert registry.method(hyphened) is registry.method(name)
    assert registry.family_of(hyphened) == registry.family_of(name)


def test_there_are_such_methods():
    assert {"fasttext_classifier", "rating_factors"} <= set(UNDERSCORED)


def test_an_unknown_method_is_named_as_it_was_given():
    with pytest.raises(FirthError) as caught:
        registry.method("rating-factor")
    assert (caught.value.code, caught.value.values["name"]) == ("unknown_method", "rating-factor")
    assert "rating_factors" in caught.value.values["hint"]


def test_options_by_either_name():
    assert build_settings(firth.SkipGram, {"min-count": 2, "learning_rate": 0.5}) == firth.SkipGram(
        min_count=2, learning_rate=0.5
    )
    with pytest.raises(FirthError) as caught:
        build_settings(firth.SkipGram, {"min-count": 2, "min_count": 3})
    assert caught.value.code == "duplicate_name"
