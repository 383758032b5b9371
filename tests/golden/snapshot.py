"""The help of every command and the public API as text, so that a change of either shows in review.

    python tests/golden/snapshot.py     # writes help.txt and api.txt beside this file

tests/core/test_snapshot.py compares; run this after an intended change and commit the difference.
"""

from __future__ import annotations

import dataclasses
import importlib
import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import click

HERE = Path(__file__).parent
PACKAGES = ("data", "evaluate", "formats", "index", "kernels", "maps", "sklearn", "studies")


def command_help() -> str:
    """`--help` of every command and subcommand, 100 columns wide."""
    from firth.cli.main import cli

    def pages(command: click.Command, path: tuple[str, ...], parent: click.Context | None) -> Iterator[str]:
        settings = {**cli.context_settings, "max_content_width": 100}
        context = click.Context(command, info_name=path[-1], parent=parent, terminal_width=100, **settings)
        with context:
            yield f"$ {' '.join(path)} --help\n{command.get_help(context)}\n"
            if isinstance(command, click.Group):
                for name in command.list_commands(context):
                    inner = command.get_command(context, name)
                    assert inner is not None
                    yield from pages(inner, (*path, name), context)

    return "\n".join(pages(cli, ("firth",), None))


def public_api() -> str:
    """Every public name with its signature, and the public members of classes."""
    import firth
    from firth.core import registry

    names = {*firth.__all__, *(registry.method(name).__name__ for name in registry.method_classes())}
    lines = [line for name in sorted(names) for line in described(f"firth.{name}", getattr(firth, name))]
    for package in PACKAGES:
        module = importlib.import_module(f"firth.{package}")
        for name in sorted(getattr(module, "__all__", ())):
            lines += described(f"firth.{package}.{name}", getattr(module, name))
    return "\n".join(lines) + "\n"


def described(path: str, value: Any) -> list[str]:
    if not isinstance(value, type):
        return [path + (signature(value) if callable(value) else f": {type(value).__name__}")]
    lines = [f"class {path}{signature(value)}"]
    fields = {field.name for field in dataclasses.fields(value)} if dataclasses.is_dataclass(value) else set()
    for name, member in sorted(inspect.getmembers_static(value)):
        if name.startswith("_") or name in fields:
            continue
        member = member.__func__ if isinstance(member, (classmethod, staticmethod)) else member
        if inspect.isfunction(member):
            lines.append(f"    .{name}{signature(member)}")
        elif isinstance(member, property):
            lines.append(f"    .{name} (property)")
    return lines


def signature(value: Any) -> str:
    try:
        return re.sub(r" object at 0x[0-9a-f]+", "", str(inspect.signature(value)))
    except (ValueError, TypeError):
        return "(…)"


SNAPSHOTS = {"help.txt": command_help, "api.txt": public_api}

if __name__ == "__main__":
    for file, make in SNAPSHOTS.items():
        (HERE / file).write_text(make(), encoding="utf-8")
