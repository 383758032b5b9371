"""`firth neighbors PATH WORD…`: the words nearest to words."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, metric_option, open_vectors, print_json, restrict_option


@click.command()
@click.argument("path")
@click.argument("words", nargs=-1, metavar="[WORD]…")
@click.option("-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--together", is_flag=True, help="The words nearest to all WORDs at once: their vectors averaged.")
@click.option("--negative", "-n", multiple=True, metavar="WORD", help="Subtract this word; implies --together.")
@click.option("--table", metavar="NAME", help="Another table of the model than its main one, such as users.")
@metric_option
@restrict_option
@json_flag
def command(
    path: str,
    words: tuple[str, ...],
    k: int,
    together: bool,
    negative: tuple[str, ...],
    table: str | None,
    metric: str,
    restrict: int | None,
    as_json: bool,
) -> None:
    """The words nearest to each WORD, side by side. PATH is a model folder or any vector file."""
    if not words and not negative:
        raise click.UsageError("Give at least one WORD.")
    vectors = open_vectors(path, table)
    if together or negative:
        hits = vectors.neighbors(list(words), k, negative=list(negative), metric=metric, restrict=restrict)
        if as_json:
            print_json([hit._asdict() for hit in hits])
        else:
            click.echo(repr(hits))
        return
    from firth.evaluate.tables import Neighbors, NeighborTable

    found = [Neighbors(word, "", vectors.neighbors(word, k, metric=metric, restrict=restrict)) for word in words]
    shown = NeighborTable(tuple(found), k)
    if as_json:
        print_json(shown.to_json())
    else:
        click.echo(str(shown))
