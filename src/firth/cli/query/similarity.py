"""`firth query similarity MODEL A B`: the similarity of two words or texts."""

from __future__ import annotations

import click

from firth.cli.common import (
    does_not_embed,
    json_flag,
    metric_option,
    open_model,
    open_vectors,
    print_json,
    resolve_keys,
    table_option,
)


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("a")
@click.argument("b")
@click.option("--texts", is_flag=True, help="A and B are texts (models that embed texts).")
@table_option
@metric_option
@json_flag
def command(path: str, a: str, b: str, texts: bool, table: str | None, metric: str, as_json: bool) -> None:
    """Print the similarity of A and B, two words or (with --texts) two texts.

    MODEL is a model folder or a vector file.
    """
    if texts and table:
        raise click.UsageError("--table selects a table of keys; it cannot be combined with --texts.")
    if texts:
        from firth.core.embedding import EmbedsTexts
        from firth.core.vectors import similarity

        model = open_model(path)
        if not isinstance(model, EmbedsTexts):
            raise does_not_embed(model, path)
        first, second = model.embed([a, b])
        score = similarity(first, second, metric)
    else:
        vectors = open_vectors(path, table)
        first_key, second_key = resolve_keys(vectors, (a, b))
        score = vectors.similarity(first_key, second_key, metric)
    if as_json:
        print_json({"a": a, "b": b, "metric": metric, "score": score})
    else:
        click.echo(f"{score:.4f}")
