"""`firth query odd-one-out MODEL WORD…`: the word that fits least among several."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_vectors, print_json, resolve_keys, table_option


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("words", nargs=-1, required=True, metavar="WORD…")
@table_option
@json_flag
def command(path: str, words: tuple[str, ...], table: str | None, as_json: bool) -> None:
    """Print the WORD, of three or more, that is least similar to the others.

    MODEL is a model folder or a vector file.
    """
    from firth.core.vectors import odd_one_out

    vectors = open_vectors(path, table)
    odd = odd_one_out(vectors, resolve_keys(vectors, words))
    if as_json:
        print_json({"words": words, "odd": odd})
    else:
        click.echo(odd)
