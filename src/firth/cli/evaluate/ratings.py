"""`firth evaluate ratings MODEL… DATA`: errors of predicted ratings."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import add_flags, file_flags, json_flag, open_model, unsupported
from firth.cli.evaluate.results import models_and_data, print_results
from firth.data.shared_options import INTERACTION_OPTIONS


@click.command()
@models_and_data
@add_flags(file_flags(INTERACTION_OPTIONS))
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool, **columns: Any) -> None:
    """Measure the errors of predicted ratings. DATA has user, item and rating; MODEL was trained by rating_factors."""
    from firth.core.model import Rates
    from firth.data.interactions import Interactions
    from firth.evaluate import rating_errors

    test = Interactions(data, **columns)

    def evaluate(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, Rates):
            raise unsupported(model, path, "does not predict ratings", "rating_factors models do.")
        return rating_errors(model, test)

    print_results(models, evaluate, as_json)
