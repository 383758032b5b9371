"""`firth finetune TASK BASE DATA -o MODEL`: one command per task, with flags from the fields of its method."""

from __future__ import annotations

import click

from firth.cli.groups import CommandGroup
from firth.cli.train import FINETUNING, train_command
from firth.core import registry
from firth.core.options import plain_name


class Tasks(CommandGroup):
    """The methods that fine-tune, as commands."""

    def list_commands(self, ctx: click.Context) -> list[str]:
        names = [name for name in registry.method_classes() if registry.family_of(name) == FINETUNING]
        return sorted(name.replace("_", "-") for name in names)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        name = plain_name(cmd_name)
        if name not in map(plain_name, self.list_commands(ctx)):
            return None
        return train_command(name, registry.method(name))


@click.command(cls=Tasks, subcommand_metavar="TASK BASE DATA -o MODEL [OPTIONS]")
def command() -> None:
    """Fine-tune a BERT or GPT on labeled data, or train a linear model on the vectors of any model.

    BASE is the folder of a BERT or GPT of Firth or Hugging Face; for linear-classifier and linear-regressor, of any
    model that embeds texts. DATA is a csv, tsv, jsonl or Parquet file. The new model is complete: BASE is not needed to
    use it. text-classifier and text-regressor take text pairs with --other.

    The same command resumes an interrupted run. `firth finetune TASK --help` shows the options of a task.
    """
