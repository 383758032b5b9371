"""Which options a sweep may draw: values that are given, or a range about the default of a method's field."""

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

AROUND = 3  # without a range: from a third of the default to three times it
WHOLE = 10_000  # combinations that are listed, so that none is drawn twice and the end is known
DRAWS = 200


class Between(NamedTuple):
    """Any number from low to high, evenly by ratio where both are above 0."""

    low: float
    high: float


Tries = Mapping[str, "Sequence[Any] | Between | None"]
Space = Mapping[str, "tuple[Any, ...] | Between"]


def search_space(method: Method, tries: Tries | None) -> Space:
    """Of each option that varies, its values or range; without `tries`, of every option with a number above 0."""
    known = {option.name: option for option in options_of(method)}
    if tries is None:
        numbers = [name for name, option in known.items() if option.kind in (int, float) and usual(method, name) > 0]
        tries = dict.fromkeys(numbers)
    unknown = [name for name in tries if name not in known]
    if unknown:
        raise unknown_option(type(method), unknown[0])
    if not tries:
        raise FirthError(
            "invalid_value",
            "{method} has no option to vary by itself; name some with values.",
            method=type(method).__name__,
        )
    return {name: checked(method, known[name], given) for name, given in tries.items()}


def checked(method: Method, option: Option, given: Sequence[Any] | Between | None) -> tuple[Any, ...] | Between:
    """The values or the range of one option, none of them beyond its limits."""
    found = derived(method, option) if given is None else given if isinstance(given, Between) else tuple(given)
    if isinstance(found, Between):
        if option.kind not in (int, float):
            raise FirthError(
                "invalid_value", "{name} is no number, so it has no range; list its values.", name=option.name
            )
        if not found.low < found.high:
            raise FirthError(
                "invalid_value",
                "{name}: a range rises from low to high; got {got:g} to {high:g}.",
                name=option.name,
                got=found.low,
                high=found.high,
            )
        ends = (int(found.low), int(found.high)) if option.kind is int else found
    else:
        ends = found
    for value in ends:
        problem = "must be a value that can be written down" if callable(value) else option.problem(value)
        if problem and not (value is None and option.default is None):
            raise FirthError(
                "invalid_value",
                "{method}.{name} {problem}; got {got!r} to try.",
                method=type(method).__name__,
                name=option.name,
                problem=problem,
                got=value,
            )
    if not ends:
        raise FirthError("invalid_value", "{name} has no values to try.", name=option.name)
    return found if isinstance(found, Between) else tuple(dict.fromkeys(found))


def derived(method: Method, option: Option) -> tuple[Any, ...] | Between:
    if option.choices:
        return option.choices
    if option.kind is bool:
        return (False, True)
    middle = usual(method, option.name) if option.kind in (int, float) else 0
    if middle <= 0:
        value = getattr(method, option.name)
        raise FirthError(
            "invalid_value",
            "{name} is {value!r}, about which no range can be laid; give values, as in {name}=1,2.",
            name=option.name,
            value=value,
        )
    low = middle / AROUND if option.low is None else max(option.low, middle / AROUND)
    high = middle * AROUND if option.high is None else min(option.high, middle * AROUND)
    return Between(low, high) if option.kind is float else Between(max(1, math.floor(low)), math.ceil(high))


def usual(method: Method, name: str) -> float:
    value = getattr(method, name)
    return float(value) if isinstance(value, (int, float)) and not isinstance(value, bool) else 0.0


def drawn(method: Method, space: Space, seed: int, tried: Sequence[Mapping[str, Any]]) -> dict[str, Any] | None:
    """Options for the next trial: a function of the seed and of what was tried, so that a sweep needs no other memory.

    The first has none: the method as it is, to compare with. None where there is nothing new to try.
    """
    if not tried:
        return {}
    own = method.options()
    known = [{**own, **options} for options in tried]

    def new(options: Mapping[str, Any]) -> bool:
        return {**own, **options} not in known

    lists = {name: values for name, values in space.items() if not isinstance(values, Between)}
    if len(lists) == len(space) and math.prod(map(len, lists.values())) <= WHOLE:
        every = [dict(zip(lists, values, strict=True)) for values in itertools.product(*lists.values())]
        order = np.random.default_rng(seed).permutation(len(every))
        return next((every[place] for place in order if new(every[place])), None)
    kinds = {option.name: option.kind for option in options_of(method)}
    for turn in range(DRAWS):
        random = np.random.default_rng([seed, len(tried), turn])
        options = {name: one_of(values, kinds[name], random) for name, values in space.items()}
        if new(options):
            return options
    return None


def one_of(values: tuple[Any, ...] | Between, kind: type, random: np.random.Generator) -> Any:
    if not isinstance(values, Between):
        return values[int(random.integers(len(values)))]
    low, high = values
    if kind is int and low <= 0:
        return int(random.integers(int(low), int(high) + 1))
    share = float(random.random())
    found = low + share * (high - low) if low <= 0 else low * (high / low) ** share
    return min(int(high), max(math.ceil(low), round(found))) if kind is int else float(f"{found:.3g}")


def with_options(method: Method, options: Mapping[str, Any]) -> Method:
    return dataclasses.replace(method, **options)


def parsed_try(method: type[Method], text: str) -> tuple[str, Sequence[Any] | Between | None]:
    """NAME, NAME=A,B,C or NAME=LOW:HIGH, as the command line has them."""
    name, equals, given = text.partition("=")
    name = plain_name(name.strip())
    option = next((option for option in options_of(method) if option.name == name), None)
    if option is None:
        raise unknown_option(method, name)
    if not equals:
        return name, None
    if option.kind in (int, float) and given.count(":") == 1:
        low, high = (parsed_value(option, part) for part in given.split(":"))
        return name, Between(low, high)
    return name, [parsed_value(option, part) for part in given.split(",")]


def parsed_value(option: Option, text: str) -> Any:
    text = text.strip()
    if option.kind is bool:
        words = {"on": True, "true": True, "yes": True, "off": False, "false": False, "no": False}
        if text.lower() not in words:
            raise FirthError("invalid_value", "{name} is on or off; got {got!r}.", name=option.name, got=text)
        return words[text.lower()]
    if option.kind not in (int, float):
        return text
    try:
        return option.kind(text)
    except ValueError:
        what = "whole numbers" if option.kind is int else "numbers"
        raise FirthError(
            "invalid_value",
            "{name} takes {detail}, as in {name}=1,2 or {name}=1:9; got {got!r}.",
            name=option.name,
            detail=what,
            got=text,
        ) from None
