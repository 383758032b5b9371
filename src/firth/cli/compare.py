"""`firth compare MODEL… --data MY`: which model is best for your data."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import click

from firth.cli.common import UNITS, json_flag, print_json
from firth.core.errors import FirthError


@click.command()
@click.argument("models", nargs=-1, required=True, metavar="MODEL…")
@click.option("--data", multiple=True, metavar="DATA", help="Your own documents; may be given several times.")
@click.option("--unit", type=click.Choice(UNITS), default="line", show_default=True, help="One document of a text.")
@click.option("--column", metavar="NAME", help="The text's column (jsonl, csv, tsv, Parquet).")
@click.option("--title", metavar="NAME", help="The titles' column: does a title find its text?")
@click.option("--name", metavar="NAME", help="The names' column: does a text find its name, such as json.loads?")
@click.option("--label", metavar="NAME", help="The labels' column: are they told, do texts cluster by them?")
@click.option("--analogies", metavar="FILE", help="Questions as in questions-words.txt.")
@click.option("--similarity", metavar="FILE", help="Two words and how alike they are, a line.")
@click.option(
    "--sentences", "--sts", "sts", metavar="FILE", help="Two sentences and how alike they are (csv, tsv, jsonl)."
)
@click.option("--texts", type=int, default=2000, show_default=True, help="Documents drawn from DATA.")
@click.option("--seed", type=click.IntRange(min=0), default=1, show_default=True, help="Of all that is drawn.")
@click.option(
    "--retrain", type=int, default=0, metavar="N", help="Train each again N times on DATA: how much survives?"
)
@click.option("-o", "--output", metavar="FILE", help="Also write a report: one .html file that needs nothing else.")
@json_flag
def command(models: tuple[str, ...], data: tuple[str, ...], output: str | None, as_json: bool, **values: Any) -> None:
    """All models in one table, on the same items, with 95 % intervals and a recommendation.

    MODEL is a model folder or a vector file (texts are then the mean of their words), or NAME=PATH.
    """
    from firth.studies import compare, draw, write_report

    if output and Path(output).suffix.lower() not in (".html", ".htm"):
        raise FirthError("unknown_format", "The report is written as .html; got {got}.", got=output)
    reading = {name: values[name] for name in ("column", "title", "name", "label")}
    needless = [f"--{name}" for name, given in reading.items() if given]
    if not data and needless:
        raise click.UsageError(f"{', '.join(needless)}: there is no --data to read.")
    count, seed = values["texts"], values["seed"]
    documents = draw(*data, texts=count, seed=seed, unit=values["unit"], **reading) if data else None
    found = compare(
        models,
        documents,
        analogies=values["analogies"],
        similarity=values["similarity"],
        sts=values["sts"],
        seed=seed,
        retrain=values["retrain"],
    )
    if output:
        write_report(found, output)
    if as_json:
        print_json({**found.to_json(), "output": output})
    else:
        click.echo(str(found))
