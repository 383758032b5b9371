"""The hand-written stub of the native module against the signatures that nanobind reports."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from firth import kernels
from firth.kernels import _native

STUB = Path(str(kernels.__file__)).with_name("_native.pyi")
#: The parameters of one function: positional names, keyword-only names, names with a default.
Parameters = tuple[list[str], list[str], set[str]]


def stub_functions(tree: ast.Module) -> Iterator[tuple[str, ast.FunctionDef]]:
    """Yield the name and definition of each function and method of the stub."""
    for node in tree.body:
        if isinstance(node, ast.FunctionDef):
            yield node.name, node
        elif isinstance(node, ast.ClassDef):
            for member in node.body:
                assert isinstance(member, ast.FunctionDef), f"{node.name} declares something other than methods"
                yield f"{node.name}.{member.name}", member


def declared(function: ast.FunctionDef) -> Parameters:
    """Return the parameters that the stub declares."""
    positional = [argument.arg for argument in [*function.args.posonlyargs, *function.args.args]]
    keyword = [argument.arg for argument in function.args.kwonlyargs]
    defaults = set(positional[len(positional) - len(function.args.defaults) :])
    defaults |= {name for name, value in zip(keyword, function.args.kw_defaults, strict=True) if value is not None}
    return positional, keyword, defaults


def reported(signature: str) -> Parameters:
    """Return the parameters of a signature as nanobind prints it: `def name(self, x: int, y: str = \\0) -> int`."""
    positional: list[str] = []
    keyword: list[str] = []
    defaults: set[str] = set()
    target = positional
    for parameter in split_parameters(signature):
        name = parameter.split(":")[0].split("=")[0].strip()
        if name == "*":
            target = keyword
            continue
        target.append(name)
        if without_brackets(parameter).count("="):
            defaults.add(name)
    return positional, keyword, defaults


def split_parameters(signature: str) -> list[str]:
    """Return the parameters of a signature, split at commas outside brackets."""
    parts, depth = [""], 0
    for character in signature[signature.index("(") :]:
        depth += (character in "([{") - (character in ")]}")
        if depth == 0:
            break
        if character == "," and depth == 1:
            parts.append("")
        else:
            parts[-1] += character
    parts[0] = parts[0].removeprefix("(")
    return [part.strip() for part in parts if part.strip()]


def without_brackets(text: str) -> str:
    """Return the text outside of brackets."""
    outside, depth = "", 0
    for character in text:
        depth += character in "([{"
        outside += character if depth == 0 else ""
        depth -= character in ")]}"
    return outside


def native_function(name: str) -> Any:
    """Return a function or method of the native module."""
    value: Any = _native
    for part in name.split("."):
        value = getattr(value, part)
    return value


FUNCTIONS = dict(stub_functions(ast.parse(STUB.read_text(encoding="utf-8"))))


def test_stub_declares_exactly_what_the_module_has() -> None:
    names = {name for name in vars(_native) if not name.startswith("_")}
    classes = {name for name in names if isinstance(getattr(_native, name), type)}
    methods = {
        f"{name}.{member}"
        for name in classes
        for member in vars(getattr(_native, name))
        if member == "__init__" or not member.startswith("_")
    }
    assert set(FUNCTIONS) == (names - classes) | methods


@pytest.mark.parametrize("name", FUNCTIONS)
def test_stub_has_the_parameters_of_the_module(name: str) -> None:
    overloads = native_function(name).__nb_signature__
    for signature, *_ in overloads:
        assert reported(signature) == declared(FUNCTIONS[name]), signature


def test_signatures_are_parsed() -> None:
    signature = "def f(self, a: ndarray[shape=(*, *), order='C'] | None, *, b: int, c: str = \\0) -> tuple[int, int]"
    assert reported(signature) == (["self", "a"], ["b", "c"], {"c"})
