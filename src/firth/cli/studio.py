"""`firth studio [MODEL…]`: the workbench in the browser."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firth.cli.common import json_flag
from firth.cli.serve import address_options, serve, tell_address
from firth.core.errors import FirthError


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL…]")
@click.option("--root", metavar="FOLDER", help="Data may be picked under it, and models are trained into it.")
@click.option("--open", "browser", is_flag=True, help="Open the address in the browser.")
@address_options
@json_flag
def command(models: tuple[str, ...], root: str | None, browser: bool, as_json: bool, **values: Any) -> None:
    """Look at data, training, maps, neighbours, attention in the browser. Nothing leaves this machine."""

    def ready(address: str) -> None:
        tell_address(as_json, address)
        if browser:
            click.launch(address)

    if root is not None and not Path(root).is_dir():
        raise FirthError("invalid_value", "{option} must be a folder; got {got}.", option="--root", got=root)
    serve(models, values, ready, requests=False, root=None if root is None else Path(root).resolve())
