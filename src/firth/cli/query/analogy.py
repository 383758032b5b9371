"""`firth query analogy MODEL A B C`: A is to B as C is to what?"""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_vectors, print_json, resolve_keys, restrict_option, table_option


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("a")
@click.argument("b")
@click.argument("c")
@click.option("-k", type=int, default=5, show_default=True, help="How many answers to show.")
@click.option("--mul", is_flag=True, help="Multiply cosines (3CosMul) instead of adding them (3CosAdd).")
@table_option
@restrict_option
@json_flag
def command(
    path: str, a: str, b: str, c: str, k: int, mul: bool, table: str | None, restrict: int | None, as_json: bool
) -> None:
    """Answer the analogy A is to B as C is to what.

    MODEL is a model folder or a vector file.
    """
    vectors = open_vectors(path, table)
    a, b, c = resolve_keys(vectors, (a, b, c))
    hits = vectors.analogy(a, b, c, k, method="mul" if mul else "add", restrict=restrict)
    if as_json:
        print_json([hit._asdict() for hit in hits])
    else:
        click.echo(repr(hits))
