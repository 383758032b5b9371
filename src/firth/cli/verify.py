"""`firth verify PATH`: are the files those that were written?"""

from __future__ import annotations

import click

from firth.cli.common import json_flag, print_json


@click.command()
@click.argument("path")
@json_flag
def command(path: str, as_json: bool) -> None:
    """Check every file of the model or index in PATH against the hash that was stored with it."""
    from firth.core.saved import verify
    from firth.index.folder import is_index, verify_index

    hashes = verify_index(path) if is_index(path) else verify(path)
    if as_json:
        print_json({"path": path, "sha256": hashes})
    else:
        for name, found in hashes.items():
            click.echo(f"{found}  {name}")
        click.echo(f"{path} is as it was written.")
