"""`firth query associations MODEL WORD`: contexts with high PMI, from the counts of a PMI model."""

from __future__ import annotations

from dataclasses import asdict

import click

from firth.cli.common import json_flag, k_option, open_model, print_json, print_table, unsupported


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("word")
@k_option
@click.option(
    "--by",
    type=click.Choice(("npmi", "pmi", "count")),
    default="npmi",
    show_default=True,
    help="The order of the list.",
)
@click.option("--min-count", type=float, default=0, show_default=True, help="Leave out pairs with a lower count.")
@json_flag
def command(path: str, word: str, k: int, by: str, min_count: float, as_json: bool) -> None:
    """Show the contexts that WORD occurs with more often than by chance.

    The table has PMI (in bits), NPMI (from -1 to 1) and the count of each pair. MODEL was trained by pmi.
    """
    from firth.words.pmi import PMIModel

    model = open_model(path)
    if not isinstance(model, PMIModel):
        raise unsupported(model, path, "has no co-occurrence counts", "Train a model with `firth train pmi`.")
    associations = model.associations(word, k, by=by, min_count=min_count)
    if as_json:
        print_json([asdict(one) for one in associations])
    else:
        rows = [(one.context, f"{one.pmi:.2f}", f"{one.npmi:.3f}", f"{one.count:,.10g}") for one in associations]
        print_table(("context", "PMI", "NPMI", "count"), rows, numbers=(1, 2, 3))
