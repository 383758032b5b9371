"""`firth associations MODEL WORD`: what goes with a word more than by chance, from a PMI model's counts."""

from __future__ import annotations

from dataclasses import asdict

import click

from firth.cli.common import json_flag, open_model, print_json, print_table
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("word")
@click.option("-k", type=int, default=10, show_default=True, help="How many.")
@click.option("--by", type=click.Choice(("npmi", "pmi", "count")), default="npmi", show_default=True)
@click.option("--min-count", type=float, default=0, show_default=True, help="Leave out pairs counted less often.")
@json_flag
def command(model: str, word: str, k: int, by: str, min_count: float, as_json: bool) -> None:
    """The contexts that WORD goes with, with PMI (in bits), NPMI (from -1 to 1) and count. MODEL is trained by pmi."""
    opened = open_model(model)
    if not hasattr(opened, "associations"):
        method = type(opened.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{model} holds no counts of pairs ({method}); `firth train pmi` makes a model that does.",
            model=model,
            method=method,
        )
    found = opened.associations(word, k, by=by, min_count=min_count)
    if as_json:
        print_json([asdict(one) for one in found])
    else:
        rows = [(one.context, f"{one.pmi:.2f}", f"{one.npmi:.3f}", f"{one.count:,.10g}") for one in found]
        print_table(("context", "PMI", "NPMI", "count"), rows, numbers=(1, 2, 3))
