"""Every test asserts something, itself or through a function or fixture that does."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

TESTS = Path(__file__).parent
#: Names of calls that fail a test: of pytest, of this folder's fixtures, of other libraries.
CHECKS = {"raises", "warns", "fail", "expect", "refused", "refuses", "gradcheck", "call_and_validate"}
Function = ast.FunctionDef | ast.AsyncFunctionDef


def functions() -> Iterator[tuple[Path, Function]]:
    for path in sorted(TESTS.rglob("*.py")):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, Function):
                yield path, node


def called(function: Function) -> set[str]:
    """The names of all calls inside a function; "assert" for an assert statement."""
    names = {"assert"} if any(isinstance(node, ast.Assert) for node in ast.walk(function)) else set[str]()
    calls = [node.func for node in ast.walk(function) if isinstance(node, ast.Call)]
    names |= {each.id for each in calls if isinstance(each, ast.Name)}
    return names | {each.attr for each in calls if isinstance(each, ast.Attribute)}


def without_assertion(every: list[tuple[Path, Function]]) -> list[str]:
    """The tests that neither assert nor call a helper that does, directly or not."""
    calls = [(path, function.name, called(function)) for path, function in every]
    asserting = set(CHECKS)
    while True:
        more = {
            name
            for _, name, names in calls
            if not name.startswith("test_") and (names & asserting or any(each.startswith("assert") for each in names))
        }
        if more <= asserting:
            break
        asserting |= more
    return [
        f"{path.name}: {name}"
        for path, name, names in calls
        if name.startswith("test_") and not names & asserting and not any(each.startswith("assert") for each in names)
    ]


def test_every_test_asserts():
    every = list(functions())
    assert len(every) > 2500
    assert without_assertion(every) == []


def test_a_test_that_only_runs_is_found():
    code = "def helper():\n    run()\ndef test_it():\n    helper()\ndef test_that():\n    assert helper()\n"
    every = [(Path("test_x.py"), node) for node in ast.parse(code).body if isinstance(node, ast.FunctionDef)]
    assert without_assertion(list(every)) == ["test_x.py: test_it"]
