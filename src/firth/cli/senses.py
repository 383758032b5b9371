"""`firth senses MODEL TEXT TEXT … --word WORD`: how far apart a word's vectors are, layer by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from firth.cli.common import json_flag, open_model, print_json, print_table
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Senses

MOST_COLUMNS = 6  # pairs that have a column each


@click.command()
@click.argument("model")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@click.option("--word", required=True, help="A word of all the texts, or several, such as new york.")
@click.option(
    "--pieces",
    type=click.Choice(("mean", "first", "last")),
    default="mean",
    show_default=True,
    help="The vector of a word of several pieces.",
)
@click.option("-o", "--output", metavar="FILE", help="A .png or .svg: the distances, and the word's way up the layers.")
@json_flag
def command(model: str, texts: tuple[str, ...], word: str, pieces: str, output: str | None, as_json: bool) -> None:
    """How far apart the vectors of WORD are in the TEXTs (1 − cosine), from the input (layer 0) to the last layer.

    \b
      firth senses bert "the sandy river bank" "the country's central bank" --word bank

    "others" is the mean distance between other words of different texts: what a distance is to be compared with.
    """
    from firth.core.model import Contextual

    opened = open_model(model)
    if not isinstance(opened, Contextual):
        raise FirthError(
            "unsupported_model",
            "{model} has one vector a word ({method}); bert and gpt have many.",
            model=model,
            method=type(opened.method).method_name(),
        )
    found = opened.senses(texts, word, pieces)
    if output:
        from firth.maps.senses import plot_senses

        plot_senses(found, output)
    if as_json:
        print_json({**document(found), "output": output})
    elif output:
        click.echo(output)
    else:
        show(found)


def document(found: Senses) -> dict[str, object]:
    others = [None if math.isnan(value) else round(float(value), 6) for value in found.others]
    return {
        "word": found.word,
        "occurrences": [{"text": found.texts[text], "offsets": [a, b]} for text, a, b in found.occurrences],
        "layers": [
            {"layer": layer, "distances": distances.round(6).tolist(), "others": others[layer]}
            for layer, distances in enumerate(found.distances)
        ],
    }


def show(found: Senses) -> None:
    """The texts with the word marked, a row a layer, and the last layer's pairs where they are many."""
    from firth.maps.senses import highlight_word, occurrence_labels

    names = occurrence_labels(found)
    width = max(map(len, names))
    for name, occurrence in zip(names, found.occurrences, strict=True):
        click.echo(f"{name:<{width}}  {highlight_word(found.texts[occurrence.text], occurrence)}")
    click.echo()
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    means = [sum(layer[pair] for pair in pairs) / len(pairs) for layer in found.distances]
    shown = pairs if len(pairs) <= MOST_COLUMNS else []
    columns = [f"{names[a]}–{names[b]}" for a, b in shown] if len(shown) > 1 else []
    columns += ["distance" if len(pairs) == 1 else "mean", "others", ""]
    longest = max([*means, *(value for value in found.others if not math.isnan(value)), 1e-3])  # less is rounding
    rows = []
    for layer, (distances, mean, others) in enumerate(zip(found.distances, means, found.others, strict=True)):
        each = [f"{distances[pair]:.3f}" for pair in shown] if len(shown) > 1 else []
        beside = "–" if math.isnan(others) else f"{others:.3f}"
        rows.append([str(layer), *each, f"{mean:.3f}", beside, bar(mean, others, longest)])
    print_table(["layer", *columns], rows, numbers=range(len(columns)))
    if not shown:
        click.echo(f"\nlayer {len(found.distances) - 1}")
        last = [
            [name, *(f"{value:.3f}" for value in row)] for name, row in zip(names, found.distances[-1], strict=True)
        ]
        print_table(["", *names], last, numbers=range(1, len(names) + 1))


def bar(value: float, others: float, longest: float, width: int = 30) -> str:
    """As long as the distance, with a mark where the other words' is."""
    cells = list("█" * round(width * value / longest))
    if not math.isnan(others):
        place = round(width * others / longest)
        cells += [" "] * (place + 1 - len(cells))
        cells[place] = "│"
    return "".join(cells)
