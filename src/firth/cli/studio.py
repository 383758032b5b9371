"""`firth studio [MODEL…]`: the workbench in the browser."""

from __future__ import annotations

import atexit
import tempfile
from pathlib import Path
from typing import Any

import click

from firth.cli.common import json_flag, print_json
from firth.cli.serve import address_options, serve
from firth.core.errors import FirthError


@click.command()
@click.argument("models", nargs=-1, metavar="[MODEL…]")
@click.option("--root", metavar="FOLDER", help="The folder of data to choose from; new models are saved here.")
@click.option("--open", "browser", is_flag=True, help="Open the browser.")
@address_options
@json_flag
def command(models: tuple[str, ...], root: str | None, browser: bool, as_json: bool, **values: Any) -> None:
    """Open the workbench in the browser: data, training, maps, neighbors, attention. Nothing leaves this machine.

    The printed address contains the access token of this session.
    """

    def ready(address: str, page: str) -> None:
        print_json({"address": address, "page": page}) if as_json else click.echo(page)
        if browser:
            open_privately(page)

    if root is not None and not Path(root).is_dir():
        raise FirthError("invalid_value", "{option} must be a folder; got {got}.", option="--root", got=root)
    serve(models, values, ready, requests=False, root=None if root is None else Path(root).resolve())


def open_privately(page: str) -> None:
    """Open the page through a file that only this user can read, because the arguments of a browser are visible to all
    users of the machine and the address contains the token."""
    with tempfile.NamedTemporaryFile("w", prefix="firth-", suffix=".html", delete=False) as file:
        file.write(f'<!doctype html><meta http-equiv="refresh" content="0;url={page}"><a href="{page}">Firth</a>')
    atexit.register(Path(file.name).unlink, missing_ok=True)
    click.launch(file.name)
