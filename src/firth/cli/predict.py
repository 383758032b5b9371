"""`firth predict MODEL DATA…`: the labels of texts, one line each."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

import click

from firth.cli.common import data_options, open_model, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Model, Predicts

BATCH = 1024


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, required=True, metavar="DATA…")
@click.option("-k", type=int, default=1, show_default=True, help="How many labels a text, the most probable ones.")
@click.option("--threshold", type=float, default=0.0, help="Only labels with at least this probability.")
@data_options
@click.option("--json", "as_json", is_flag=True, help="Print a line of JSON a text.")
def command(
    path: str,
    data: tuple[str, ...],
    k: int,
    threshold: float,
    unit: str,
    column: str | None,
    key: str | None,
    as_json: bool,
) -> None:
    """The most probable label of each text and its probability, a line a text: label, tab, probability, and so on.

    MODEL is the folder of a classifier or a .bin or .ftz file of fastText; DATA are files, globs in quotes, or - for
    standard input. A text in which the model knows nothing gives an empty line.
    """
    from firth.data.corpus import Corpus

    model = classifier(open_model(path), path)
    documents = iter(Corpus(*data, unit=unit, column=column, key=key))
    while batch := list(islice(documents, BATCH)):
        for (name, _), found in zip(batch, model.predict([text for _, text in batch], k, threshold), strict=True):
            if as_json:
                labels = [{"label": label, "probability": probability} for label, probability in found]
                print_json({"key": name, "labels": labels})
            else:
                click.echo("\t".join(f"{label}\t{probability:.4f}" for label, probability in found))


def classifier(model: Model, path: str) -> Predicts:
    from firth.core.model import Predicts

    if not isinstance(model, Predicts):
        method = type(model.method).method_name()
        raise FirthError(f"{path} predicts no labels ({method}); train one with: firth train fasttext_classifier.")
    return model
