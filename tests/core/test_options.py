"""Options: their ranges, and what is said of values outside them."""

from dataclasses import dataclass

import pytest

from firth import FirthError, option
from firth.core.options import build_settings, check_options, options_of


@dataclass(frozen=True)
class Settings:
    window: int = option(5, "words each side", low=1, high=100)
    rate: float = option(0.05, "first learning rate", low=0)
    loss: str = option("negative", "what is learned", choices=("negative", "softmax"))
    name: str = option("", "any text")
    shuffle: bool = option(True, "mix the documents")
    limit: int | None = option(None, "most words", low=1)
    plain: int = 3

    def __post_init__(self) -> None:
        check_options(self)


def test_options_in_the_order_they_are_written() -> None:
    found = options_of(Settings)
    assert [item.name for item in found] == ["window", "rate", "loss", "name", "shuffle", "limit"]
    assert [item.kind for item in found] == [int, float, str, str, bool, int]
    first = found[0]
    assert (first.default, first.help, first.low, first.high) == (5, "words each side", 1, 100)
    assert options_of(Settings()) == found


@pytest.mark.parametrize(
    "values",
    [{}, {"window": 1}, {"window": 100}, {"rate": 0}, {"limit": None}, {"limit": 5}, {"loss": "softmax"}],
)
def test_values_within_the_range(values: dict[str, object]) -> None:
    settings = build_settings(Settings, values)
    assert {name: getattr(settings, name) for name in values} == values


@pytest.mark.parametrize(
    ("values", "rule"),
    [
        ({"window": 0}, r"Settings\.window must be at least 1; got 0\."),
        ({"window": 101}, "window must be at most 100; got 101"),
        ({"window": 2.0}, "window must be a whole number; got 2.0"),
        ({"window": "5"}, "window must be a whole number; got '5'"),
        ({"window": True}, "window must be a whole number; got True"),
        ({"window": None}, "window must be a whole number; got None"),
        ({"window": 10**400}, "window must be at most 100"),
        ({"rate": -0.1}, "rate must be at least 0; got -0.1"),
        ({"rate": "fast"}, "rate must be a number"),
        ({"rate": float("nan")}, "rate must be a finite number; got nan"),
        ({"rate": float("inf")}, "rate must be a finite number; got inf"),
        ({"loss": "hinge"}, "loss must be one of negative, softmax; got 'hinge'"),
        ({"loss": ["negative"]}, "loss must be one of"),
        ({"name": 5}, "name must be text; got 5"),
        ({"shuffle": 1}, "shuffle must be true or false; got 1"),
        ({"limit": 0}, "limit must be at least 1; got 0"),
        ({"windows": 5}, r"Settings has no option 'windows'. It has window, rate, loss, name, shuffle, limit\."),
        ({"plain": 5}, "Settings has no option 'plain'"),
    ],
)
def test_values_outside_are_refused_with_the_rule_and_the_value(values: dict[str, object], rule: str) -> None:
    with pytest.raises(FirthError, match=rule):
        build_settings(Settings, values)
