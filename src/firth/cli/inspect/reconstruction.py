"""`firth inspect reconstruction MODEL TABLE`: reconstruction errors of rows and columns, and the outliers."""

from __future__ import annotations

import click

from firth.cli.common import (
    json_flag,
    open_model,
    open_table_input,
    print_json,
    print_table,
    protect_inputs,
    unsupported,
    write_table,
)
from firth.core.errors import FirthError


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("table")
@click.option("-k", type=click.IntRange(1), default=10, show_default=True, help="How many outliers to list.")
@click.option("-o", "--output", metavar="FILE", help="Write the reconstructed rows: csv, tsv, jsonl or parquet.")
@click.option("--errors", metavar="FILE", help="Write the error of every row and column: csv, tsv, jsonl or parquet.")
@json_flag
def command(path: str, table: str, k: int, output: str | None, errors: str | None, as_json: bool) -> None:
    """Reconstruct the rows of TABLE from their codes; show the errors of columns and the rows with the largest errors.

    The error of a number is (x − x̂)², in units of its column's scale; that of a category is −log p.
    """
    from firth.data.table import Table
    from firth.tables.table_model import MeasuresErrors

    protect_inputs(output, path, table)
    protect_inputs(errors, path, table)
    model = open_model(path)
    if not isinstance(model, MeasuresErrors):
        raise unsupported(model, path, "does not reconstruct rows", "autoencoder and vae models do.")
    rows = model.open(open_table_input(table))
    if not len(rows):
        raise FirthError("empty_data", "{path} has no rows to reconstruct.", path=table)
    row_errors = model.errors(rows)
    if output:
        write_table(model.reconstruct(rows), output)
    if errors:
        columns = {name: row_errors.cells[:, position] for position, name in enumerate(row_errors.columns)}
        write_table(Table({"row": range(1, len(rows) + 1), "error": row_errors.rows, **columns}), errors)
    outliers = [{"row": row + 1, "error": error, "column": column} for row, error, column in row_errors.outliers(k)]
    means = dict(zip(row_errors.columns, row_errors.cells.mean(axis=0).tolist(), strict=True))
    if as_json:
        print_json({"rows": len(rows), "error": float(row_errors.rows.mean()), "columns": means, "odd": outliers})
        return
    print_table(("column", "error"), [[name, f"{error:.4f}"] for name, error in means.items()], numbers=(1,))
    click.echo(f"\n{len(rows):,} rows, mean error {row_errors.rows.mean():.4f}. Largest errors:\n")
    listed = [[str(each["row"]), f"{each['error']:.4f}", str(each["column"])] for each in outliers]
    print_table(("row", "error", "largest in"), listed, numbers=(0, 1))
