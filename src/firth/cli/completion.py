"""`firth completion SHELL`: the script that completes commands, methods and flags in a shell."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

from firth.cli.common import json_flag, print_json

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@json_flag
@click.pass_context
def command(ctx: click.Context, shell: str, as_json: bool) -> None:
    """Print the completion script of SHELL.

    \b
    bash:  firth completion bash >> ~/.bashrc
    zsh:   firth completion zsh >> ~/.zshrc
    fish:  firth completion fish > ~/.config/fish/completions/firth.fish
    """
    script = get_completion_class(shell)
    assert script is not None  # click supports all of SHELLS
    source = script(ctx.find_root().command, {}, "firth", "_FIRTH_COMPLETE").source()
    print_json({"shell": shell, "script": source}) if as_json else click.echo(source)
