"""`firth evaluate recommendations MODEL… DATA`: how many later interactions the recommendations contain."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import add_flags, choose_report, file_flags, json_flag, open_model
from firth.cli.evaluate.results import models_and_data, print_results
from firth.data.interactions import Interactions


@click.command()
@models_and_data
@click.option("--history", metavar="FILE", help="The history of users unseen in training.")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Also score popularity and item-kNN, which is slow with many items.",
)
@add_flags(file_flags(Interactions.file_options))
@json_flag
def command(
    models: tuple[str, ...], data: str, history: str | None, baselines: bool, as_json: bool, **columns: Any
) -> None:
    """Measure recall, NDCG and MAP of recommendations on later interactions, beside popularity and item-kNN.

    DATA are the interactions of the users after those of the training data: user, item, rating.
    """
    from firth.evaluate import recommendations

    test = Interactions(data, **columns)
    earlier = Interactions(history, **columns) if history else None

    def evaluate(path: str) -> Any:
        model: Any = open_model(path)
        return recommendations(model, test, history=earlier, baselines=baselines, report=choose_report())

    print_results(models, evaluate, as_json)
