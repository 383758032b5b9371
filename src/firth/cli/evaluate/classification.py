"""`firth evaluate classification MODEL… DATA`: labels or numbers predicted for labeled texts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from firth.cli.common import json_flag, open_model
from firth.cli.evaluate.results import models_and_data, print_results
from firth.core.remote import as_path

if TYPE_CHECKING:
    from firth.core.model import Model


@click.command()
@models_and_data
@click.option("-k", type=int, default=1, show_default=True, help="How many labels to predict per text.")
@click.option("--column", metavar="NAME", help="The text column (jsonl, csv, tsv, Parquet).")
@click.option("--other", metavar="NAME", help="The column of the second text, for text pairs.")
@click.option("--label", metavar="NAME", help="The column of labels or numbers, by default label.")
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool, **settings: Any) -> None:
    """Measure a classifier or regression model on labeled texts.

    DATA is a text file with __label__ words, or a table with a label column.
    """
    print_results(models, lambda path: score_labels(open_model(path), path, data, **settings), as_json)


def score_labels(
    model: Model, path: str, file: str, *, k: int = 1, column: str | None, other: str | None, label: str | None
) -> Any:
    """Return the scores of predicted labels, or of predicted numbers, for the texts of a file."""
    from firth.cli.predict import classifier, is_regression, read_rows
    from firth.core.model import ReadsColumns
    from firth.data.labeled_texts import LabeledTexts
    from firth.data.readers import format_and_compression
    from firth.evaluate import classification, label_result, number_result

    # A fine-tuned model has the labels of a table, where True is true and 01 is 1.
    is_table = isinstance(model, ReadsColumns) and format_and_compression(as_path(file))[0]
    if not (other or is_table or is_regression(model)):
        return classification(classifier(model, path), LabeledTexts(file, column=column, label=label), k)
    rows = read_rows(model, path, file, column, other, label or "label")
    if is_regression(model):
        return number_result(rows.table.numbers(rows.label), rows.estimate())
    true_labels = [{label} if label is not None else set() for label in rows.table.categories(rows.label)]
    return label_result(zip(true_labels, rows.predict(k), strict=True), k)
