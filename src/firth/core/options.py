"""Options are dataclass fields with a default, a description and a range.

Command-line flags, reference pages and contract tests are derived from these fields.
"""

from __future__ import annotations

import dataclasses
import math
import types
import typing
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

from firth.core.errors import FirthError
from firth.core.functions import name_of
from firth.core.keywords import keyword_hint

Settings = TypeVar("Settings")


@dataclass(frozen=True)
class Option:
    """The description of one option."""

    name: str
    kind: type
    default: Any
    help: str
    low: float | None = None
    high: float | None = None
    choices: tuple[str, ...] | None = None
    functions: bool | None = None  # whether the value may be a function
    path: bool = False  # whether the value is a file or a folder

    def problem(self, value: Any) -> str | None:
        """The rule that `value` violates, or None."""
        if self.functions and callable(value):
            return None if name_of(value) else "must be a named function, not a lambda or a partial"
        if self.choices is not None:
            return None if value in self.choices else f"must be one of {', '.join(self.choices)}"
        if self.kind is bool:
            return None if isinstance(value, bool) else "must be true or false"
        if self.kind is str:
            return None if isinstance(value, str) else "must be text"
        if self.kind in (int, float):
            return self._number_problem(value)
        return None

    def _number_problem(self, value: Any) -> str | None:
        if isinstance(value, bool) or not isinstance(value, (int, float)):
            return "must be a whole number" if self.kind is int else "must be a number"
        if self.kind is int and not isinstance(value, int):
            return "must be a whole number"
        if isinstance(value, float) and not math.isfinite(value):
            return "must be a finite number"
        if self.low is not None and value < self.low:
            return f"must be at least {self.low:g}"
        if self.high is not None and value > self.high:
            return f"must be at most {self.high:g}"
        return None


def option(
    default: Any,
    help: str,
    *,
    low: float | None = None,
    high: float | None = None,
    choices: Sequence[str] | None = None,
    functions: bool = False,
    path: bool = False,
) -> Any:
    """Declare an option: a dataclass field with a description and a range.

    With `functions`, the value may also be a function, which is saved by name. With `path`, the value is a file or a
    folder, which the workbench accepts only below its root folder.
    """
    limits = {"low": low, "high": high, "choices": tuple(choices) if choices else None, "functions": functions or None}
    return dataclasses.field(default=default, metadata={"help": help, **limits, "path": path})


def options_of(settings: Any) -> list[Option]:
    """The options of a dataclass or of an instance, in the order of declaration."""
    kinds = typing.get_type_hints(settings if isinstance(settings, type) else type(settings))
    return [
        Option(
            name=item.name,
            kind=_plain(kinds[item.name]),
            default=item.default,
            help=item.metadata["help"],
            low=item.metadata["low"],
            high=item.metadata["high"],
            choices=item.metadata["choices"],
            functions=item.metadata["functions"],
            path=item.metadata["path"],
        )
        for item in dataclasses.fields(settings)
        if "help" in item.metadata
    ]


def _plain(kind: Any) -> Any:
    """The type without `| None`."""
    if isinstance(kind, types.UnionType):
        return next(part for part in typing.get_args(kind) if part is not type(None))
    return kind


def check_options(settings: Any) -> None:
    """Raise an error for the first value outside the range of its option."""
    for item in options_of(settings):
        value = getattr(settings, item.name)
        if value is None and item.default is None:
            continue
        problem = item.problem(value)
        if problem:
            raise FirthError(
                "invalid_value",
                "{method}.{name} {problem}; got {got!r}.",
                method=type(settings).__name__,
                name=item.name,
                problem=problem,
                got=value,
            )


def plain_name(name: str) -> str:
    """The Python spelling of a method or option: hyphens become underscores."""
    return name.replace("-", "_")


def build_settings(kind: type[Settings], values: Mapping[str, Any]) -> Settings:
    """`kind(**values)`; raises an error for unknown options. Names may be written with hyphens."""
    settings = {plain_name(name): value for name, value in values.items()}
    if len(settings) < len(values):
        twice = next(name for name in values if name != plain_name(name) and plain_name(name) in values)
        raise FirthError("duplicate_name", "The option {name} is given twice.", name=plain_name(twice))
    known = [item.name for item in options_of(kind)]
    unknown = sorted(set(settings) - set(known))
    if unknown:
        raise unknown_option(kind, unknown[0])
    return kind(**settings)


def unknown_option(kind: type, name: str) -> FirthError:
    """Return the error for an unknown option, with the intended one if it can be guessed."""
    known = [item.name for item in options_of(kind)]
    return FirthError(
        "unknown_option",
        "{kind} has no option {name!r}.{hint} It has {available}.",
        kind=kind.__name__,
        name=name,
        hint=keyword_hint(name, known),
        available=", ".join(known),
    )
