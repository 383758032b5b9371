"""`{commands} firth.cli.main:cli`: the reference of a command line, made by walking its click commands."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from typing import Any

import click
from docutils import nodes
from sphinx.application import Sphinx
from sphinx.util.docutils import SphinxDirective


class Commands(SphinxDirective):
    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        module, _, name = self.arguments[0].partition(":")
        command = getattr(importlib.import_module(module), name)
        sections: list[nodes.Node] = []
        for path, context in walk(click.Context(command, info_name="firth")):
            section = nodes.section(ids=[nodes.make_id(path)], names=[path])
            section += nodes.title(text=path)
            usage = context.command.get_help(plain(context))
            section += nodes.literal_block(usage, usage, language="text", classes=["help"])
            sections.append(section)
        return sections


def walk(context: click.Context) -> Iterator[tuple[str, click.Context]]:
    """Every visible command below a group, by its whole name, such as `firth train skipgram`."""
    command = context.command
    if not isinstance(command, click.Group):
        yield context.command_path, context
        return
    for name in command.list_commands(context):
        inner = command.get_command(context, name)
        if inner is not None and not inner.hidden:
            yield from walk(click.Context(inner, info_name=name, parent=context))


def plain(context: click.Context) -> click.Context:
    """Lines of 88 characters whatever terminal the site is built in."""
    context.terminal_width = context.max_content_width = 88
    return context


def setup(app: Sphinx) -> dict[str, Any]:
    app.add_directive("commands", Commands)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
