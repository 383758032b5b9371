"""`firth evaluate similarity MODEL… DATA`: correlation of word similarities with human scores."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_vectors
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool) -> None:
    """Measure the correlation of cosines with human scores of word pairs. DATA has two words and a score per line.

    MODEL is a model folder or a vector file.
    """
    from firth.evaluate import read_pairs, word_similarity

    pairs = read_pairs(data)
    print_results(models, lambda path: word_similarity(open_vectors(path), pairs), as_json)
