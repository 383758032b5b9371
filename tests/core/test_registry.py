"""Methods and options by name: hyphens and underscores are the same everywhere a name is taken."""

from __future__ import annotations

import pytest

import firth
from firth.core import registry, renamed
from firth.core.errors import FirthError
from firth.core.options import build_settings, options_of

UNDERSCORED = [name for name in registry.method_classes() if "_" in name]


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


@pytest.mark.parametrize(("old", "new"), sorted(renamed.METHODS.items()))
def test_a_method_of_an_earlier_name_is_stored_only(old, new):
    """Folders that name it open; commands and scripts are told the new name."""
    assert type(registry.stored_method(old, {})) is registry.method(new)
    with pytest.raises(FirthError) as caught:
        registry.method(old)
    assert caught.value.code == "unknown_method" and repr(new) in caught.value.values["hint"]


@pytest.mark.parametrize("old", sorted(renamed.OPTIONS))
def test_an_option_of_an_earlier_name_is_stored_only(old):
    """Every entry of the table is an option of some method, under its new name alone."""
    methods = [registry.method(name) for name in registry.method_classes()]
    for new in renamed.OPTIONS[old]:
        having = [kind for kind in methods if new in {item.name for item in options_of(kind)}]
        assert having
        changed = [kind for kind in having if old not in {item.name for item in options_of(kind)}]
        default = next(item.default for item in options_of(changed[0]) if item.name == new)
        stored = registry.stored_method(changed[0].method_name(), {old: default})
        assert getattr(stored, new) == default
        with pytest.raises(FirthError) as caught:
            build_settings(changed[0], {old: default})
        assert caught.value.code == "unknown_option" and repr(new) in caught.value.values["hint"]


@pytest.mark.parametrize(
    ("method", "old", "new"),
    [
        ("text_classifier", "cut", "truncate"),
        ("text_regressor", "refuse", "refuse"),
        ("token_classifier", "parts", "chunk"),
    ],
)
def test_values_of_earlier_versions_have_their_current_names(method: str, old: str, new: str) -> None:
    assert registry.stored_method(method, {"overlong": old}).options()["overlong"] == new
