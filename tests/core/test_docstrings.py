"""Every public function, class, method and property has a docstring, its own or that of the method it implements."""

from __future__ import annotations

import importlib
import inspect
import pkgutil
from collections.abc import Iterator
from types import ModuleType
from typing import Any

import pytest

import firth

REPORTING = ("begin", "step", "end", "note")  # the methods of `firth.core.report.Report`
MODULES = sorted(info.name for info in pkgutil.walk_packages(firth.__path__, "firth."))
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


def undocumented(module: ModuleType) -> Iterator[str]:
    """Functions, classes, methods and properties of a module without a docstring."""
    for name, value in vars(module).items():
        if name.startswith("_") or getattr(value, "__module__", "") != module.__name__:
            continue
        if inspect.isclass(value):
            members = {attribute: member for attribute, member in vars(value).items() if not attribute.startswith("_")}
            for attribute, member in members.items():
                plain = member.__func__ if isinstance(member, classmethod | staticmethod) else member
                code = inspect.isfunction(plain) or isinstance(plain, property)
                implements = attribute in REPORTING and hasattr(value, "step")
                # Protocols list the options of methods, which their fields document.
                if code and not implements and not is_protocol(value) and not inspect.getdoc(plain):
                    inherited = (getattr(base, attribute, None) for base in value.__mro__)
                    if not any(inspect.getdoc(each) for each in inherited if each is not None):
                        yield f"{name}.{attribute}"
        if (inspect.isclass(value) or inspect.isfunction(value)) and not inspect.getdoc(value):
            yield name


def is_protocol(value: type) -> bool:
    return bool(getattr(value, "_is_protocol", False))


@pytest.mark.parametrize("name", MODULES)
def test_what_a_module_defines_has_a_docstring(name):
    if name.endswith(("__main__", "_native")):
        pytest.skip("a program, and a native module, whose stub is documented where it is called")
    assert list(undocumented(importlib.import_module(name))) == []
