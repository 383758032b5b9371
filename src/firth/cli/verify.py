"""`firth verify PATH`: the files of a model or index checked against their stored hashes."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, print_json


@click.command()
@click.argument("path")
@json_flag
def command(path: str, as_json: bool) -> None:
    """Check every file of the model or index PATH against its stored hash."""
    from firth.core.saved import verify
    from firth.index.folder import is_index, verify_index

    hashes = verify_index(path) if is_index(path) else verify(path)
    if as_json:
        print_json({"path": path, "sha256": hashes})
    else:
        for name, digest in hashes.items():
            click.echo(f"{digest}  {name}")
        click.echo(f"{path}: all files match their hashes.")
