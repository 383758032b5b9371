"""`firth compare models MODEL… --data DATA`: several models measured on the same data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firth.cli.cluster_options import cluster_flags, given_cluster
from firth.cli.common import json_flag, print_json, protect_inputs
from firth.core.errors import FirthError
from firth.data.shared_options import UNITS


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
@click.option("--data", multiple=True, metavar="DATA", help="Your own documents; repeatable.")
@click.option(
    "--unit",
    type=click.Choice(UNITS),
    default="line",
    show_default=True,
    help="What one document of a text file is.",
)
@click.option("--column", metavar="NAME", help="The text column (jsonl, csv, tsv, Parquet).")
@click.option("--title", metavar="NAME", help="The title column: test whether a title retrieves its text.")
@click.option("--name", metavar="NAME", help="The name column: test whether a text retrieves its name (json.loads).")
@click.option("--label", metavar="NAME", help="The label column: test classification and clustering by label.")
@click.option("--analogies", metavar="FILE", help="Analogy questions in the format of questions-words.txt.")
@click.option("--similarity", metavar="FILE", help="Word pairs with similarity scores, one pair per line.")
@click.option("--sentences", metavar="FILE", help="Sentence pairs with similarity scores (csv, tsv, jsonl).")
@click.option(
    "--sample-size", type=int, default=2000, show_default=True, metavar="N", help="Documents drawn from DATA."
)
@click.option(
    "--seed", type=click.IntRange(min=0), default=1, show_default=True, help="The seed of the random numbers."
)
@click.option(
    "--retrain", type=int, default=0, metavar="N", help="Retrain each model N times on DATA to measure stability."
)
@click.option("-o", "--output", metavar="FILE", help="Also write a report as one self-contained .html file.")
@cluster_flags
@json_flag
def command(models: tuple[str, ...], data: tuple[str, ...], output: str | None, as_json: bool, **values: Any) -> None:
    """Measure all models on the same items, with 95 % confidence intervals and a recommendation.

    MODEL is a model folder or a vector file (a text is then the mean of its words), or NAME=PATH.
    """
    from firth.studies import compare, draw, write_report

    if output and Path(output).suffix.lower() not in (".html", ".htm"):
        raise FirthError("unknown_format", "The report is written as .html; got {got}.", got=output)
    protect_inputs(output)
    columns = {name: values[name] for name in ("column", "title", "name", "label")}
    unused = [f"--{name}" for name, column in columns.items() if column]
    if not data and unused:
        raise click.UsageError(f"{', '.join(unused)}: there is no --data to read.")
    size, seed = values["sample_size"], values["seed"]
    documents = draw(*data, texts=size, seed=seed, unit=values["unit"], **columns) if data else None
    comparison = compare(
        models,
        documents,
        analogies=values["analogies"],
        similarity=values["similarity"],
        sts=values["sentences"],
        seed=seed,
        retrain=values["retrain"],
        cluster=given_cluster(values, has_shards=True),
    )
    if output:
        write_report(comparison, output)
    if as_json:
        print_json({**comparison.to_json(), "output": output})
    else:
        click.echo(str(comparison))
