"""`firth sample MODEL`: new rows like those a model learned from, or rows between two of a table."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, keep_inputs, open_model, or_stdout, print_rows
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.option("-n", type=click.IntRange(1), default=10, show_default=True, help="How many rows.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True)
@click.option("--prior", is_flag=True, help="Draw codes from N(0, 1), not from where the rows' codes lie.")
@click.option("--expected", is_flag=True, help="What is expected at a drawn code, without the scatter around it.")
@click.option("--between", nargs=2, type=click.IntRange(1), metavar="ROW ROW", help="Rows on the way between these…")
@click.option("--of", "table", metavar="TABLE", help="… two rows of this table, numbered from 1.")
@click.option(
    "-o", "--output", metavar="FILE", callback=or_stdout, help="csv, tsv, jsonl or parquet; else they are printed."
)
@json_flag
def command(
    model: str,
    n: int,
    seed: int,
    prior: bool,
    expected: bool,
    between: tuple[int, int] | None,
    table: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Make up rows like those MODEL (a VAE) learned from; or, with any autoencoder, those between two rows."""
    from firth.core.model import Interpolates, Samples

    keep_inputs(output, model, table or "")
    found: Any = open_model(model)
    if bool(between) != bool(table):
        raise click.UsageError("--between needs --of TABLE, and the other way round.")
    if between:
        if not isinstance(found, Interpolates):
            raise FirthError(
                "unsupported_model",
                "{model} has no codes to go between ({method}).",
                model=model,
                method=type(found.method).method_name(),
            )
        print_rows(found.interpolate(table, between[0] - 1, between[1] - 1, max(2, n)), output, as_json)
        return
    if not isinstance(found, Samples):
        raise FirthError(
            "unsupported_model",
            "{model} can't make up rows ({method}); vae models can.",
            model=model,
            method=type(found.method).method_name(),
        )
    made: Any = found
    print_rows(made.sample(n, seed=seed, noise=not expected, prior=prior), output, as_json)
