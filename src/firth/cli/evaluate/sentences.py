"""`firth evaluate sentences MODEL… DATA`: correlation of sentence similarities with human scores (STS)."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import does_not_embed, json_flag, open_model
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool) -> None:
    """Measure the correlation of cosines with human scores of sentence pairs (STS).

    DATA is a csv, tsv or jsonl file with two texts and a score per row. MODEL is a model that embeds texts.
    """
    from firth.core.embedding import EmbedsTexts
    from firth.evaluate import read_sentence_pairs, sentence_similarity

    pairs = read_sentence_pairs(data)

    def evaluate(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, EmbedsTexts):
            raise does_not_embed(model, path)
        return sentence_similarity(model, pairs)

    print_results(models, evaluate, as_json)
