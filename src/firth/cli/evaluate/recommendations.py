"""`firth evaluate recommendations MODEL… DATA`: how many later interactions the recommendations contain."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import add_flags, choose_report, file_flags, json_flag, open_model, unsupported
from firth.cli.evaluate.results import models_and_data, print_results
from firth.data.shared_options import INTERACTION_OPTIONS


@click.command()
@models_and_data
@click.option("--history", metavar="FILE", help="The history of users unseen in training.")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Also score popularity and item-kNN, which is slow with many items.",
)
@add_flags(file_flags(INTERACTION_OPTIONS))
@json_flag
def command(
    models: tuple[str, ...], data: str, history: str | None, baselines: bool, as_json: bool, **columns: Any
) -> None:
    """Measure recall, NDCG and MAP of recommendations on later interactions, beside popularity and item-kNN.

    DATA are the interactions of the users after those of the training data: user, item, rating.
    """
    from firth.core.model import Recommends
    from firth.data.interactions import Interactions
    from firth.evaluate import recommendations

    test = Interactions(data, **columns)
    earlier = Interactions(history, **columns) if history else None

    def evaluate(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, Recommends):
            raise unsupported(model, path, "does not recommend", "als, bpr, item2vec and multvae models do.")
        return recommendations(model, test, history=earlier, baselines=baselines, report=choose_report())

    print_results(models, evaluate, as_json)
