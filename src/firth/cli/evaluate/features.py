"""`firth evaluate features MODEL… DATA`: a simple model on the vectors of texts, cross-validated."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import choose_report, does_not_embed, json_flag, open_model
from firth.cli.evaluate.results import models_and_data, print_results
from firth.core.data import split_names


@click.command()
@models_and_data
@click.option("--column", default="text", show_default=True, metavar="NAME", help="The text column.")
@click.option("--label", default="label", show_default=True, metavar="NAME", help="The column to predict.")
@click.option("--columns", metavar="NAMES", help="Further input columns beside the vectors, as in price,colour.")
@click.option(
    "--head",
    type=click.Choice(("logistic", "ridge", "mlp")),
    default="logistic",
    show_default=True,
    help="The model that is trained on the vectors; ridge predicts numbers.",
)
@click.option("--folds", type=int, default=5, show_default=True, help="The folds of the cross-validation.")
@json_flag
def command(
    models: tuple[str, ...],
    data: str,
    column: str,
    label: str,
    columns: str | None,
    head: str,
    folds: int,
    as_json: bool,
) -> None:
    """Train a simple model on the vectors of texts and measure how well it predicts a label or a number.

    DATA is a table (csv, tsv, jsonl, Parquet). MODEL is a model that embeds texts; its weights do not change.
    """
    import numpy as np

    from firth.core import registry
    from firth.core.embedding import EmbedsTexts
    from firth.core.options import build_settings
    from firth.data.examples import Examples, labeled_rows
    from firth.data.table import Table
    from firth.evaluate import features

    names = split_names(columns)
    examples = Examples(data, text=column, label=label, columns=names)
    texts, labels, rows = labeled_rows(examples, choose_report(), head == "ridge")
    other_features = np.zeros((len(examples), 0))
    if names:
        encoder: Any = build_settings(registry.method("onehot"), {"missing": "mean"})
        other_features = encoder.fit(Table(examples.table, columns=names)).transform(examples.table)

    def evaluate(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, EmbedsTexts):
            raise does_not_embed(model, path)
        matrix = np.hstack([model.embed(texts), other_features[rows]])
        return features(matrix, np.array(labels), head, folds, texts)

    print_results(models, evaluate, as_json)
