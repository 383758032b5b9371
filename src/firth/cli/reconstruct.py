"""`firth reconstruct MODEL TABLE`: what is left of rows when only their codes are known, and which rows are odd."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, keep_inputs, open_model, open_rows, print_json, print_table, write_table
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("table")
@click.option("-k", type=click.IntRange(1), default=10, show_default=True, help="How many odd rows to name.")
@click.option("-o", "--output", metavar="FILE", help="The rebuilt rows: csv, tsv, jsonl or parquet.")
@click.option("--errors", metavar="FILE", help="The errors of every row and column: csv, tsv, jsonl or parquet.")
@json_flag
def command(model: str, table: str, k: int, output: str | None, errors: str | None, as_json: bool) -> None:
    """Rebuild the rows of TABLE from their codes; tell how far off each column is, and which rows stand out.

    An error is (x − x̂)² of a number, in units of its column's scale, and −log p of a category.
    """
    from firth.data.table import Table

    keep_inputs(output, model, table)
    keep_inputs(errors, model, table)
    found: Any = open_model(model)
    if not hasattr(found, "errors"):
        raise FirthError(
            "unsupported_model",
            "{model} does not rebuild rows ({method}); autoencoders do.",
            model=model,
            method=type(found.method).method_name(),
        )
    rows = found.open(open_rows(table))
    if not len(rows):
        raise FirthError("empty_data", "There is nothing to rebuild: the table has no rows.")
    wrong = found.errors(rows)
    if output:
        write_table(found.reconstruct(rows), output)
    if errors:
        columns = {name: wrong.cells[:, place] for place, name in enumerate(wrong.columns)}
        write_table(Table({"row": range(1, len(rows) + 1), "error": wrong.rows, **columns}), errors)
    odd = [{"row": row + 1, "error": error, "column": column} for row, error, column in wrong.outliers(k)]
    means = dict(zip(wrong.columns, wrong.cells.mean(axis=0).tolist(), strict=True))
    if as_json:
        print_json({"rows": len(rows), "error": float(wrong.rows.mean()), "columns": means, "odd": odd})
        return
    print_table(("column", "error"), [[name, f"{error:.4f}"] for name, error in means.items()], numbers=(1,))
    click.echo(f"\n{len(rows):,} rows, mean error {wrong.rows.mean():.4f}. Those that stand out:\n")
    listed = [[str(each["row"]), f"{each['error']:.4f}", str(each["column"])] for each in odd]
    print_table(("row", "error", "most of it in"), listed, numbers=(0, 1))
