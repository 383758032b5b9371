"""The search space of a sweep: values or ranges of a method's options."""

from __future__ import annotations

import dataclasses
import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.options import Option, options_of, plain_name, unknown_option

AROUND = 3  # the default range is from a third of the default to three times it
MAX_LISTED = 10_000  # combinations up to which all are listed, so that the search ends when each was tried
DRAWS = 200  # attempts to draw options that were not tried yet


class Between(NamedTuple):
    """A range of numbers from low to high, sampled log-uniformly if both are above 0."""

    low: float
    high: float


SearchSpace = Mapping[str, "Sequence[Any] | Between | None"]
Space = Mapping[str, "tuple[Any, ...] | Between"]


def search_space(method: Method, space: SearchSpace | None) -> Space:
    """Return the values or the range of each option that varies; without `space`, of every number above 0."""
    options = {option.name: option for option in options_of(method)}
    if space is None:
        numbers = [name for name, option in options.items() if option.kind in (int, float)]
        space = dict.fromkeys(name for name in numbers if default_number(method, name) > 0)
    unknown = [name for name in space if name not in options]
    if unknown:
        raise unknown_option(type(method), unknown[0])
    if not space:
        raise FirthError(
            "invalid_value",
            "{method} has no option with a default range. Name options and their values.",
            method=type(method).__name__,
        )
    return {name: check_values(method, options[name], values) for name, values in space.items()}


def check_values(method: Method, option: Option, values: Sequence[Any] | Between | None) -> tuple[Any, ...] | Between:
    """Return the values or the range of one option; refuse what is outside its limits."""
    if values is None:
        checked: tuple[Any, ...] | Between = default_range(method, option)
    else:
        checked = values if isinstance(values, Between) else tuple(values)
    if isinstance(checked, Between):
        if option.kind not in (int, float):
            raise FirthError(
                "invalid_type", "{name} is not a number and has no range. List its values.", name=option.name
            )
        if not checked.low < checked.high:
            raise FirthError(
                "invalid_value",
                "The range of {name} must have low < high; got {low:g} to {high:g}.",
                name=option.name,
                low=checked.low,
                high=checked.high,
            )
        ends = (int(checked.low), int(checked.high)) if option.kind is int else checked
    else:
        ends = checked
    for value in ends:
        problem = "must be a value that can be stored, not a function" if callable(value) else option.problem(value)
        if problem and not (value is None and option.default is None):
            raise FirthError(
                "invalid_value",
                "{method}.{name} {problem}; got {got!r} in the search space.",
                method=type(method).__name__,
                name=option.name,
                problem=problem,
                got=value,
            )
    if not ends:
        raise FirthError("empty_data", "The search space has no values for {name}.", name=option.name)
    return checked if isinstance(checked, Between) else tuple(dict.fromkeys(checked))


def default_range(method: Method, option: Option) -> tuple[Any, ...] | Between:
    """Return all choices of an option, or a range around its default."""
    if option.choices:
        return option.choices
    if option.kind is bool:
        return (False, True)
    middle = default_number(method, option.name) if option.kind in (int, float) else 0
    if middle <= 0:
        value = getattr(method, option.name)
        raise FirthError(
            "invalid_value",
            "{name} is {value!r} and has no default range. Give values, as in {name}=1,2.",
            name=option.name,
            value=value,
        )
    low = middle / AROUND if option.low is None else max(option.low, middle / AROUND)
    high = middle * AROUND if option.high is None else min(option.high, middle * AROUND)
    return Between(low, high) if option.kind is float else Between(max(1, math.floor(low)), math.ceil(high))


def default_number(method: Method, name: str) -> float:
    """Return the value of a numeric option; 0 if it is not a number."""
    value = getattr(method, name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def next_options(method: Method, space: Space, seed: int, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Return the options of the next trial, a function of the seed and the previous trials only.

    The first trial has no options: it is the method as given. Returns None when every combination was tried.
    """
    if not tried:
        return {}
    defaults = method.options()
    previous = [{**defaults, **options} for options in tried]

    def is_new(options: Mapping[str, Any]) -> bool:
        return {**defaults, **options} not in previous

    lists = {name: values for name, values in space.items() if not isinstance(values, Between)}
    if len(lists) == len(space) and math.prod(map(len, lists.values())) <= MAX_LISTED:
        combinations = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
        order = np.random.default_rng(seed).permutation(len(combinations))
        return next((combinations[number] for number in order if is_new(combinations[number])), None)
    kinds = {option.name: option.kind for option in options_of(method)}
    for turn in range(DRAWS):
        random = np.random.default_rng([seed, len(tried), turn])
        options = {name: draw_value(values, kinds[name], random) for name, values in space.items()}
        if is_new(options):
            return options
    return None


def draw_value(values: tuple[Any, ...] | Between, kind: type, random: np.random.Generator) -> Any:
    """Draw one of the values, or a number of the range with three significant digits."""
    if not isinstance(values, Between):
        return values[int(random.integers(len(values)))]
    low, high = values
    if kind is int and low <= 0:
        return int(random.integers(int(low), int(high) + 1))
    share = float(random.random())
    value = low + share * (high - low) if low <= 0 else low * (high / low) ** share
    return min(int(high), max(math.ceil(low), round(value))) if kind is int else float(f"{value:.3g}")


def with_options(method: Method, options: Mapping[str, Any]) -> Method:
    """Return the method with these options."""
    return dataclasses.replace(method, **options)


def parse_range(method: type[Method], text: str) -> tuple[str, Sequence[Any] | Between | None]:
    """Parse NAME, NAME=A,B,C or NAME=LOW:HIGH of the command line into a name and values or a range."""
    name, equals, values = text.partition("=")
    name = plain_name(name.strip())
    option = next((option for option in options_of(method) if option.name == name), None)
    if option is None:
        raise unknown_option(method, name)
    if not equals:
        return name, None
    if option.kind in (int, float) and values.count(":") == 1:
        low, high = (parse_value(option, part) for part in values.split(":"))
        return name, Between(low, high)
    return name, [parse_value(option, part) for part in values.split(",")]


def parse_value(option: Option, text: str) -> Any:
    """Parse one value of an option."""
    text = text.strip()
    if option.kind is bool:
        words = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
        if text.lower() not in words:
            raise FirthError("invalid_value", "{name} must be on or off; got {got!r}.", name=option.name, got=text)
        return words[text.lower()]
    if option.kind not in (int, float):
        return text
    try:
        return option.kind(text)
    except ValueError:
        expected = "integers" if option.kind is int else "numbers"
        raise FirthError(
            "invalid_value",
            "{name} takes {expected}, as in {name}=1,2 or {name}=1:9; got {got!r}.",
            name=option.name,
            expected=expected,
            got=text,
        ) from None
