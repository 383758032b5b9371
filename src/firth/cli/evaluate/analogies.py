"""`firth evaluate analogies MODEL… DATA`: accuracy on word analogies."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_vectors
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@click.option(
    "--restrict", type=int, default=30_000, show_default=True, metavar="N", help="Only the N most frequent words."
)
@click.option("--mul", is_flag=True, help="Multiply cosines (3CosMul) instead of adding them (3CosAdd).")
@json_flag
def command(models: tuple[str, ...], data: str, restrict: int, mul: bool, as_json: bool) -> None:
    """Measure the accuracy on word analogies. DATA has the format of questions-words.txt.

    MODEL is a model folder or a vector file.
    """
    from firth.evaluate import analogies, read_questions

    questions, method = read_questions(data), "mul" if mul else "add"
    print_results(
        models, lambda path: analogies(open_vectors(path), questions, restrict=restrict, method=method), as_json
    )
