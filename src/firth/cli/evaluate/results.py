"""The arguments of the evaluation commands, and how their results are printed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import click

from firth.cli.common import Function, print_json


def models_and_data(function: Function) -> Function:
    """Add the arguments MODEL… and DATA."""
    function = click.argument("data", metavar="DATA")(function)
    return click.argument("models", nargs=-1, required=True, metavar="MODEL…")(function)


def print_results(models: Sequence[str], evaluate: Callable[[str], Any], as_json: bool) -> None:
    """Print the result of each model; with --json, one object of all results by the path of the model."""
    results: dict[str, Any] = {}
    for path in models:
        result = evaluate(path)
        results[path] = result.to_json()
        if not as_json:
            click.echo(f"{path}\n{result}\n" if len(models) > 1 else str(result))
    if as_json:
        print_json(results)
