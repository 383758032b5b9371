"""Benchmarks run seldom, and names move meanwhile: whatever they import of Firth is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import pytest

FOLDER = Path(__file__).resolve().parent.parent / "benchmarks"


def imported(script: Path) -> list[tuple[str, str]]:
    """(module, name) of each name that a script takes from Firth, inside functions too."""
    found = [
        node for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))) if isinstance(node, ast.ImportFrom)
    ]
    return [
        (node.module, one.name)
        for node in found
        if node.module is not None and node.module.split(".")[0] == "firth"
        for one in node.names
    ]


@pytest.mark.parametrize("script", sorted(FOLDER.glob("*.py")), ids=lambda path: path.stem)
def test_what_a_benchmark_imports_is_there(script: Path) -> None:
    for module, name in imported(script):
        assert hasattr(importlib.import_module(module), name) or importlib.util.find_spec(f"{module}.{name}")
