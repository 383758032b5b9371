"""`firth serve MODEL…`: models and indexes over HTTP."""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import click

from firth.cli.common import Flags, add_flags, json_flag, print_json
from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.long_texts import REFUSE, TRUNCATE

ADDRESS_OPTIONS: Flags = (
    (
        "--host",
        {
            "default": "127.0.0.1",
            "show_default": True,
            "help": "The address to listen on; a public one needs a key.",
        },
    ),
    ("--port", {"type": int, "default": 8000, "show_default": True, "help": "The port; 0 chooses a free one."}),
    ("--key-file", {"metavar": "FILE", "help": "A file with the API key of requests; the default is FIRTH_API_KEY."}),
    ("--allow-host", {"multiple": True, "metavar": "NAME", "help": "Another host name of the server; repeatable."}),
)
address_options = add_flags(ADDRESS_OPTIONS)  # `firth studio` has them too


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
@click.option(
    "--long",
    type=click.Choice((REFUSE, TRUNCATE)),
    default=REFUSE,
    show_default=True,
    help="Texts longer than the model's context: an error, or truncation that the response reports.",
)
@click.option(
    "--precision",
    type=click.Choice(("auto", "float32", "bf16", "int8")),
    default="auto",
    show_default=True,
    help="Precision of a BERT: float32 or int8 (faster, nearly as accurate) on a CPU; bf16 or float32 on a GPU.",
)
@click.option(
    "--prompt",
    metavar="NAME",
    help="Prompt for requests that name none, such as query; by default each model's own.",
)
@click.option(
    "--replicas",
    type=click.IntRange(1),
    default=1,
    show_default=True,
    help="Processes that answer requests, each on a GPU of its own, or on its share of the cores.",
)
@click.option("--quiet", is_flag=True, help="Log only errors, not every request.")
@address_options
@json_flag
def command(
    models: tuple[str, ...],
    long: str,
    precision: str,
    prompt: str | None,
    replicas: int,
    quiet: bool,
    as_json: bool,
    **values: Any,
) -> None:
    """Serve models and indexes over HTTP: the APIs of OpenAI and text-embeddings-inference, search, and the workbench.

    MODEL is a folder of a model or an index, or NAME=FOLDER. A folder that is replaced is reloaded.
    """
    ready = partial(print_address, as_json)
    serve(models, values, ready, requests=not quiet, long=long, precision=precision, prompt=prompt, replicas=replicas)


def print_address(as_json: bool, address: str, page: str) -> None:
    """Print the address on the first line, for programs that start a server and read its address."""
    if as_json:
        print_json({"address": address, "page": page})
        return
    click.echo(address)
    if page != address:
        click.echo(f"Workbench: {page}")


def serve(
    models: tuple[str, ...], values: dict[str, Any], ready: Callable[[str, str], None], requests: bool, **more: Any
) -> None:
    """Run the server of `firth serve` and `firth studio`; `more` are further settings."""
    try:
        from firth.server.models import parse_paths
        from firth.server.replicas import run_replicas
        from firth.server.running import run
        from firth.server.settings import Settings
    except ModuleNotFoundError as error:
        raise missing_package("The server needs", str(error.name), "server") from None
    model_paths, index_paths = parse_paths(list(models))
    settings = Settings(
        models=model_paths,
        indexes=index_paths,
        host=values["host"],
        port=values["port"],
        key=read_key(values["key_file"]),
        hosts=tuple(name.lower() for name in values["allow_host"]),
        **more,
    )
    (run if settings.replicas == 1 else run_replicas)(settings, ready, requests)


def read_key(file: str | None) -> str | None:
    """Return the API key. It is never an argument, because other users of the machine can see those."""
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
