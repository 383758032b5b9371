"""`firth similarity PATH A B`, and `--odd` for the odd one out."""

from __future__ import annotations

import click

from firth.cli.common import (
    as_keys,
    json_flag,
    metric_option,
    no_texts,
    open_model,
    open_vectors,
    print_json,
    table_option,
)


@click.command()
@click.argument("path")
@click.argument("words", nargs=-1, required=True, metavar="A B")
@click.option("--odd", is_flag=True, help="Of three or more words, tell the one that does not belong.")
@click.option("--texts", is_flag=True, help="A and B are texts (models that embed texts).")
@table_option
@metric_option
@json_flag
def command(
    path: str, words: tuple[str, ...], odd: bool, texts: bool, table: str | None, metric: str, as_json: bool
) -> None:
    """How alike A and B are: words, or texts with --texts. PATH is a model folder or any vector file."""
    if odd and texts:
        raise click.UsageError("--odd is for words; leave --texts out.")
    if texts and table:
        raise click.UsageError("--table holds keys; leave it or --texts out.")
    if odd:
        from firth.core.vectors import odd_one_out

        vectors = open_vectors(path, table)
        found = odd_one_out(vectors, as_keys(vectors, words))
        if as_json:
            print_json({"words": words, "odd": found})
        else:
            click.echo(found)
        return
    if len(words) != 2:
        raise click.UsageError(f"Give two words, or more with --odd; got {len(words)}.")
    if texts:
        from firth.core.model import Embeds
        from firth.core.vectors import similarity

        model = open_model(path)
        if not isinstance(model, Embeds) or model.method.kind == "table":
            raise no_texts(model, path)
        first, second = model.embed(words)
        score = similarity(first, second, metric)
    else:
        vectors = open_vectors(path, table)
        a, b = as_keys(vectors, words)
        score = vectors.similarity(a, b, metric)
    if as_json:
        print_json({"a": words[0], "b": words[1], "metric": metric, "score": score})
    else:
        click.echo(f"{score:.4f}")
