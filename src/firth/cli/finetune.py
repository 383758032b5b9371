"""`firth finetune TASK BASE DATA -o FOLDER`: a trained network learns a task; flags are those of the task's method."""

from __future__ import annotations

import click

from firth.cli.train import train_command
from firth.core import registry
from firth.core.options import plain_name

FAMILY = "finetuning"
PAIRS = ("pairs", "text_classifier", "pair examples")  # a command of its own for two texts


class Tasks(click.Group):
    """The methods of the family as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        found = [name for name in registry.method_classes() if registry.family_of(name) == FAMILY]
        return sorted([*found, PAIRS[0]])

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        plain = plain_name(cmd_name)
        name, method, kind = PAIRS if plain == PAIRS[0] else (plain, plain, "")
        if name not in self.list_commands(ctx):
            return None
        return train_command(name, registry.method(method), base=True, kind=kind)


@click.command(cls=Tasks, subcommand_metavar="TASK BASE DATA -o FOLDER [OPTIONS]")
def command() -> None:
    """Teach a trained network a task with one new layer, from labelled data.

    BASE is the folder of a BERT or GPT, Firth's or Hugging Face's; DATA a csv, tsv, jsonl or Parquet file. What is
    saved is whole: BASE is not needed any more. The same command again goes on with what was broken off. Each TASK has
    options of its own: firth finetune TASK --help.
    """
