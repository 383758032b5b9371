"""`firth completion SHELL`: the script that completes commands, methods and flags."""

from __future__ import annotations

import click
from click.shell_completion import get_completion_class

SHELLS = ("bash", "zsh", "fish")


@click.command()
@click.argument("shell", type=click.Choice(SHELLS))
@click.pass_context
def command(ctx: click.Context, shell: str) -> None:
    """Print the completion script of a SHELL.

    \b
    bash:  firth completion bash >> ~/.bashrc
    zsh:   firth completion zsh >> ~/.zshrc
    fish:  firth completion fish > ~/.config/fish/completions/firth.fish
    """
    script = get_completion_class(shell)
    assert script is not None  # click has all of SHELLS
    click.echo(script(ctx.find_root().command, {}, "firth", "_FIRTH_COMPLETE").source())
