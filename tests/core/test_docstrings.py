"""Every public function, class, method and property has a docstring."""

from __future__ import annotations

import inspect
from collections.abc import Iterator
from typing import Any

import pytest

import firth

NAMES = sorted(name for name in firth.__all__ if not name.startswith("_"))


def public_members(name: str, value: Any) -> Iterator[tuple[str, Any]]:
    """The object, and what it defines or inherits from Firth, with names that do not begin with _."""
    yield name, value
    for base in value.__mro__ if inspect.isclass(value) else ():
        if base.__module__.startswith("firth"):
            for attribute, member in vars(base).items():
                plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                documented = inspect.isfunction(plain) or isinstance(plain, property) or hasattr(plain, "__wrapped__")
                if not attribute.startswith("_") and documented:
                    yield f"{base.__module__}.{base.__qualname__}.{attribute}", plain


@pytest.mark.parametrize("name", NAMES)
def test_what_is_public_has_a_docstring(name):
    values = [getattr(firth, name)]
    if inspect.isclass(values[0]) and issubclass(values[0], firth.Method) and hasattr(values[0], "model"):
        values.append(values[0].model)
    members = [pair for value in values if callable(value) for pair in public_members(name, value)]
    missing = [member for member, value in members if not inspect.getdoc(value) and not is_inherited(member, values)]
    assert not missing


def is_inherited(member: str, values: list[Any]) -> bool:
    """Whether a base class documents a method of this name."""
    attribute = member.rpartition(".")[2]
    documented = (vars(base).get(attribute) for value in values if inspect.isclass(value) for base in value.__mro__)
    return any(inspect.getdoc(each) for each in documented if each is not None)
