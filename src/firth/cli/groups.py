"""Command groups: commands that are imported only when they are used, and the new names of commands that have moved."""

from __future__ import annotations

import difflib
import importlib
from collections.abc import Mapping
from typing import Any

import click

#: Old command -> the command that does the same today. Both without the leading `firth`.
MOVED = {
    "align": "compare spaces",
    "analogy": "query analogy",
    "answer": "predict",
    "associations": "query associations",
    "attention": "inspect attention",
    "compress": "evaluate compression",
    "distil": "train distil",
    "fill": "generate fill",
    "finetune pairs": "finetune text-classifier … --other COLUMN",
    "neighbors": "query neighbors",
    "plot places": "plot positions",
    "pool": "pooling",
    "recommend": "query recommend",
    "reconstruct": "inspect reconstruction",
    "sample": "generate rows",
    "senses": "inspect senses",
    "similarity": "query similarity",
    "translate": "generate translation",
    "words": "inspect words",
}


class CommandGroup(click.Group):
    """A group that explains unknown commands. Hyphens and underscores in command names are equivalent."""

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        return super().get_command(ctx, cmd_name.replace("_", "-"))

    def resolve_command(
        self, ctx: click.Context, args: list[str]
    ) -> tuple[str | None, click.Command | None, list[str]]:
        """Find a command, or suggest a similar one."""
        if not args[0].startswith("-") and self.get_command(ctx, args[0]) is None:
            ctx.fail(self.unknown_command(ctx, args[0]))
        return super().resolve_command(ctx, args)

    def unknown_command(self, ctx: click.Context, name: str) -> str:
        """Return the message for a command that does not exist: where it moved to, or what is available."""
        group = ctx.command_path.partition(" ")[2]
        path = f"{group} {name}".strip()
        if path in MOVED:
            return f"There is no command {path!r}. It is 'firth {MOVED[path]}' now."
        available = self.list_commands(ctx)
        similar = difflib.get_close_matches(path, [*(f"{group} {each}".strip() for each in available), *MOVED], n=1)
        if similar:
            suggestion = f"Did you mean 'firth {MOVED.get(similar[0], similar[0])}'?"
        elif group:
            suggestion = f"The commands of 'firth {group}' are {', '.join(available)}."
        else:
            suggestion = "'firth --help' lists the commands."
        return f"There is no command {path!r}. {suggestion}"


class LazyGroup(CommandGroup):
    """A group whose commands are imported only when they are used.

    `sections` maps a heading of the help to a table of commands and their summaries. The command `odd-one-out` of the
    package `firth.cli.query` is the attribute `command` of `firth.cli.query.odd_one_out`.
    """

    def __init__(self, *args: Any, package: str, sections: Mapping[str, Mapping[str, str]], **settings: Any) -> None:
        super().__init__(*args, **settings)
        self.package, self.sections = package, sections
        self.summaries = {name: line for commands in sections.values() for name, line in commands.items()}

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.summaries)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = cmd_name.replace("_", "-")
        if name not in self.summaries:
            return None
        command: click.Command = importlib.import_module(f"{self.package}.{name.replace('-', '_')}").command
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        width = max(map(len, self.summaries))
        for title, commands in self.sections.items():
            with formatter.section(title):
                formatter.write_dl([(name.ljust(width), line) for name, line in commands.items()])


def lazy_group(package: str, help: str, commands: Mapping[str, str], metavar: str) -> LazyGroup:
    """Return the group of a package: `commands` maps the name of each command to its summary."""
    name = package.rpartition(".")[2]
    return LazyGroup(
        name,
        help=help,
        package=package,
        sections={"Commands": commands},
        subcommand_metavar=metavar,
        no_args_is_help=True,
    )
