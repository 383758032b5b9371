"""Options: their ranges, and what is said of values outside them."""

from dataclasses import dataclass
from typing import Any

import pytest
from refusing import refuses

from firth import option
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
        ({"window": 0}, ("invalid_value", {"method": "Settings", "name": "window", "got": 0})),
        ({"window": 101}, ("invalid_value", {"method": "Settings", "name": "window", "got": 101})),
        ({"window": 2.0}, ("invalid_value", {"method": "Settings", "name": "window", "got": 2.0})),
        ({"window": "5"}, ("invalid_value", {"method": "Settings", "name": "window", "got": "5"})),
        ({"window": True}, ("invalid_value", {"method": "Settings", "name": "window", "got": True})),
        ({"window": None}, ("invalid_value", {"method": "Settings", "name": "window", "got": None})),
        ({"window": 10**400}, ("invalid_value", {"method": "Settings", "name": "window"})),
        ({"rate": -0.1}, ("invalid_value", {"method": "Settings", "name": "rate", "got": -0.1})),
        ({"rate": "fast"}, ("invalid_value", {"method": "Settings", "name": "rate", "got": "fast"})),
        ({"rate": float("nan")}, ("invalid_value", {"method": "Settings", "name": "rate"})),
        ({"rate": float("inf")}, ("invalid_value", {"method": "Settings", "name": "rate", "got": float("inf")})),
        ({"loss": "hinge"}, ("invalid_value", {"method": "Settings", "name": "loss", "got": "hinge"})),
        ({"loss": ["negative"]}, ("invalid_value", {"method": "Settings", "name": "loss", "got": ["negative"]})),
        ({"name": 5}, ("invalid_value", {"method": "Settings", "name": "name", "got": 5})),
        ({"shuffle": 1}, ("invalid_value", {"method": "Settings", "name": "shuffle", "got": 1})),
        ({"limit": 0}, ("invalid_value", {"method": "Settings", "name": "limit", "got": 0})),
        ({"windows": 5}, ("unknown_option", {"kind": "Settings", "name": "windows"})),
        ({"plain": 5}, ("unknown_option", {"kind": "Settings", "name": "plain"})),
    ],
)
def test_values_outside_are_refused_with_the_rule_and_the_value(
    values: dict[str, object], rule: tuple[str, dict[str, Any]]
) -> None:
    with refuses(rule[0], **rule[1]):
        build_settings(Settings, values)
