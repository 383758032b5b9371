"""`firth evaluate nodes MODEL… DATA`: node classification with a linear model on node vectors."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, open_vectors
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@click.option(
    "--layout",
    type=click.Choice(("auto", "labels", "communities")),
    default="auto",
    show_default=True,
    help="A line of DATA is a node and its labels, or the members of a community.",
)
@click.option("--share", type=float, default=0.5, show_default=True, help="The share of nodes to train on.")
@click.option("--splits", type=int, default=10, show_default=True, help="How many random splits to average.")
@json_flag
def command(models: tuple[str, ...], data: str, layout: str, share: float, splits: int, as_json: bool) -> None:
    """Measure how well a linear model predicts the labels of graph nodes from their vectors.

    MODEL is a model folder or a vector file.
    """
    from firth.evaluate import node_classification, read_labels

    def evaluate(path: str) -> Any:
        vectors = open_vectors(path)
        labels = read_labels(data, vectors, layout=layout)
        return node_classification(vectors, labels, share=share, splits=splits)

    print_results(models, evaluate, as_json)
