"""`firth serve MODEL…`: models and indexes behind HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from firth.cli.common import Function, json_flag, print_json
from firth.core.errors import FirthError
from firth.core.extras import missing_package


def address_options(function: Function) -> Function:
    """Where the server listens and who may ask; `firth studio` has them too."""
    for name, settings in reversed(ADDRESS_OPTIONS):
        function = click.option(name, **settings)(function)
    return function


ADDRESS_OPTIONS: tuple[tuple[str, dict[str, Any]], ...] = (
    (
        "--host",
        {
            "default": "127.0.0.1",
            "show_default": True,
            "help": "The address to listen on; one that others can reach needs a key.",
        },
    ),
    ("--port", {"type": int, "default": 8000, "show_default": True, "help": "0 takes any that is free."}),
    ("--key-file", {"metavar": "FILE", "help": "The key that requests must bring; else FIRTH_API_KEY, if it is set."}),
    ("--allow-host", {"multiple": True, "metavar": "NAME", "help": "A further name that the server is called by."}),
)


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
@click.option(
    "--long",
    type=click.Choice(("refuse", "truncate")),
    default="refuse",
    show_default=True,
    help="Texts longer than a model reads: an error, or their beginning is read and the answer says so.",
)
@click.option(
    "--precision",
    type=click.Choice(("auto", "float32", "bf16", "int8")),
    default="auto",
    show_default=True,
    help="Of a BERT: on a CPU float32, or int8 (quicker, nearly as good); on a GPU bf16, or float32.",
)
@click.option("--quiet", is_flag=True, help="Log only what is wrong, not each request.")
@address_options
@json_flag
def command(models: tuple[str, ...], long: str, precision: str, quiet: bool, as_json: bool, **values: Any) -> None:
    """Serve models and indexes: OpenAI's embeddings at /v1, text-embeddings-inference's routes, search, the workbench.

    MODEL is a folder, or NAME=FOLDER. A folder that is replaced while it is served is opened anew.
    """
    serve(models, values, partial(tell_address, as_json), requests=not quiet, long=long, precision=precision)


def tell_address(as_json: bool, address: str, page: str) -> None:
    """First the plain address, for programs that start a server and read where it is."""
    if as_json:
        print_json({"address": address, "page": page})
        return
    click.echo(address)
    if page != address:
        click.echo(f"Workbench: {page}")


def serve(
    models: tuple[str, ...], values: dict[str, Any], ready: Callable[[str, str], None], requests: bool, **more: Any
) -> None:
    """What both verbs do; `more` are further settings."""
    try:
        from firth.server.models import parse_paths
        from firth.server.running import run
        from firth.server.settings import Settings
    except ModuleNotFoundError as error:
        raise missing_package("The server needs", str(error.name), "server") from None
    places, indexes = parse_paths(list(models))
    settings = Settings(
        models=places,
        indexes=indexes,
        host=values["host"],
        port=values["port"],
        key=read_key(values["key_file"]),
        hosts=tuple(name.lower() for name in values["allow_host"]),
        **more,
    )
    run(settings, ready, requests)


def read_key(file: str | None) -> str | None:
    """Not from the command line, where others see it."""
    if file is None:
        return os.environ.get("FIRTH_API_KEY") or None
    try:
        return Path(file).read_text(encoding="utf-8").strip()
    except (OSError, UnicodeDecodeError) as error:
        raise FirthError(
            "unreadable_file",
            "Cannot read the key in {file}: {got}.",
            file=file,
            got=getattr(error, "strerror", None) or error,
        ) from None
