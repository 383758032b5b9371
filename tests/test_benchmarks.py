"""Benchmarks run seldom, and names move meanwhile: whatever they import of Firth is there."""

from __future__ import annotations

import ast
import importlib
import importlib.util
from pathlib import Path

import click
import pytest

from firth.cli.main import cli

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


def test_the_commands_of_the_pictures_parse() -> None:
    tree = ast.parse((FOLDER / "pictures.py").read_text(encoding="utf-8"))
    values = {target.id: node.value for node in tree.body if isinstance(node, ast.Assign) for target in node.targets
              if isinstance(target, ast.Name)}  # fmt: skip
    lines = ast.literal_eval(values["COMMANDS"]).strip().splitlines()
    assert len(lines) > 10
    for line in lines:
        command: click.Command = cli
        context = command.make_context("firth", line.split())
        while isinstance(command, click.Group):
            name, subcommand, rest = command.resolve_command(context, [*context._protected_args, *context.args])
            assert subcommand is not None
            context, command = subcommand.make_context(name, rest, parent=context), subcommand
