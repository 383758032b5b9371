"""`firth attention MODEL TEXT`: where a network looks, as a picture, a page, a table or JSON."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_model, print_json, print_table
from firth.core.errors import FirthError


@click.command()
@click.argument("model")
@click.argument("text")
@click.argument("other", required=False)
@click.option("--layer", type=int, help="Only this layer, counted from 1; without --head, the mean of its heads.")
@click.option("--head", type=int, help="Only this head of the layer, counted from 1.")
@click.option("--no-marks", is_flag=True, help="Leave out [CLS], [SEP] and other tokens that are no words.")
@click.option("-o", "--output", metavar="FILE", help="A .png or .svg, or a page to look around in (.html).")
@json_flag
def command(
    model: str,
    text: str,
    other: str | None,
    layer: int | None,
    head: int | None,
    no_marks: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Where MODEL looks when it reads TEXT.

    A translator looks at TEXT when it writes OTHER (or its own translation); BERT reads TEXT and OTHER as one.

    Without --layer a picture shows all layers and heads; the table of the terminal shows the last layer's mean.
    """
    from firth.core.model import Attends
    from firth.maps.attention import head_name, plot_attention, select_weights, visible, without_special_tokens

    opened = open_model(model)
    if not isinstance(opened, Attends):
        method = type(opened.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{model} does not attend ({method}); bert, gpt and seq2seq do.",
            model=model,
            method=method,
        )
    found = opened.attention(text, other)
    if no_marks:
        found = without_special_tokens(found)
    shown = select_weights(found, layer, head)
    if output:
        plot_attention(found, output, layer, head)
    if as_json:
        segments = {"segments": list(found.segments)} if found.segments else {}
        weights = {"layer": layer, "head": head, "weights": shown.astype(float).round(6).tolist()}
        print_json({"queries": found.queries, "keys": found.keys, **segments, **weights, "output": output})
    elif output:
        click.echo(output)
    else:
        last = len(found.weights) if layer is None else layer
        click.echo(f"{head_name(last, head)}\n")
        names = [visible(key) for key in found.keys]
        rows = [
            [visible(query), *(f"{weight:.2f}" for weight in row)]
            for query, row in zip(found.queries, select_weights(found, last, head), strict=True)
        ]
        print_table(["", *names], rows, numbers=range(1, len(names) + 1))
