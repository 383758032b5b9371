"""`firth generate rows MODEL`: table rows sampled from a VAE, or interpolated between two rows of a table."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import dash_is_stdout, json_flag, open_model, print_rows, protect_inputs, unsupported


@click.command()
@click.argument("path", metavar="MODEL")
@click.option("-n", type=click.IntRange(1), default=10, show_default=True, help="How many rows to generate.")
@click.option("--seed", type=click.IntRange(0), default=1, show_default=True, help="The seed of the random numbers.")
@click.option("--prior", is_flag=True, help="Draw codes from N(0, 1) instead of the distribution of the rows' codes.")
@click.option("--expected", is_flag=True, help="Return the expected values at a code, without sampling noise.")
@click.option("--between", nargs=2, type=click.IntRange(1), metavar="ROW ROW", help="Interpolate between two rows …")
@click.option("--of", "table", metavar="TABLE", help="… of this table, numbered from 1.")
@click.option(
    "-o", "--output", metavar="FILE", callback=dash_is_stdout, help="csv, tsv, jsonl or parquet; printed if omitted."
)
@json_flag
def command(
    path: str,
    n: int,
    seed: int,
    prior: bool,
    expected: bool,
    between: tuple[int, int] | None,
    table: str | None,
    output: str | None,
    as_json: bool,
) -> None:
    """Sample rows from MODEL, a VAE; or interpolate between two rows of a table with any autoencoder."""
    from firth.core.model import Interpolates, Samples

    protect_inputs(output, path, table or "")
    model = open_model(path)
    if bool(between) != bool(table):
        raise click.UsageError("--between and --of TABLE must be given together.")
    if between:
        if not isinstance(model, Interpolates):
            raise unsupported(model, path, "has no codes to interpolate between", "autoencoder and vae models do.")
        print_rows(model.interpolate(table, between[0] - 1, between[1] - 1, max(2, n)), output, as_json)
        return
    if not isinstance(model, Samples):
        raise unsupported(model, path, "cannot sample rows", "vae models can.")
    sampler: Any = model
    print_rows(sampler.sample(n, seed=seed, noise=not expected, prior=prior), output, as_json)
