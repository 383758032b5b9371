"""`firth inspect attention MODEL TEXT`: attention weights as a picture, a page, a table or JSON."""

from __future__ import annotations

import click

from firth.cli.common import json_flag, open_model, print_json, print_table, unsupported


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("text")
@click.argument("other", required=False)
@click.option("--layer", type=int, help="Only this layer, counted from 1; without --head, the mean of its heads.")
@click.option("--head", type=int, help="Only this head of the layer, counted from 1.")
@click.option("--no-special-tokens", is_flag=True, help="Leave out [CLS], [SEP] and other special tokens.")
@click.option("-o", "--output", metavar="FILE", help="A .png or .svg, or an interactive page (.html).")
@json_flag
def command(
    path: str,
    text: str,
    other: str | None,
    layer: int | None,
    head: int | None,
    no_special_tokens: bool,
    output: str | None,
    as_json: bool,
) -> None:
    """Show the attention weights of MODEL on TEXT.

    With a translator, OTHER is the target text that attends to TEXT; by default it is the model's translation. With a
    BERT, OTHER is the second segment.

    A picture shows all layers and heads unless --layer is given; the printed table shows the mean of the last layer.
    """
    from firth.core.model import Attends
    from firth.maps.attention import head_name, plot_attention, select_weights, visible, without_special_tokens

    model = open_model(path)
    if not isinstance(model, Attends):
        raise unsupported(model, path, "has no attention", "bert, gpt and seq2seq models do.")
    attention = model.attention(text, other)
    if no_special_tokens:
        attention = without_special_tokens(attention)
    selected = select_weights(attention, layer, head)
    if output:
        plot_attention(attention, output, layer, head)
    if as_json:
        segments = {"segments": list(attention.segments)} if attention.segments else {}
        weights = {"layer": layer, "head": head, "weights": selected.astype(float).round(6).tolist()}
        print_json({"queries": attention.queries, "keys": attention.keys, **segments, **weights, "output": output})
    elif output:
        click.echo(output)
    else:
        last = len(attention.weights) if layer is None else layer
        click.echo(f"{head_name(last, head)}\n")
        names = [visible(key) for key in attention.keys]
        rows = [
            [visible(query), *(f"{weight:.2f}" for weight in row)]
            for query, row in zip(attention.queries, select_weights(attention, last, head), strict=True)
        ]
        print_table(["", *names], rows, numbers=range(1, len(names) + 1))
