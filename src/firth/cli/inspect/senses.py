"""`firth inspect senses MODEL TEXT TEXT … --word WORD`: distances between the vectors of a word, layer by layer."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import click

from firth.cli.common import json_flag, open_model, print_json, print_table, subwords_option, unsupported

if TYPE_CHECKING:
    from firth.core.model import Senses

MAX_COLUMNS = 6  # pairs of texts that get a column each


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("texts", nargs=-1, required=True, metavar="TEXT…")
@click.option("--word", required=True, help="A word, or several such as new york, that occurs in all texts.")
@subwords_option
@click.option(
    "-o", "--output", metavar="FILE", help="A .png or .svg of the distances and the vectors of the word by layer."
)
@json_flag
def command(path: str, texts: tuple[str, ...], word: str, subwords: str, output: str | None, as_json: bool) -> None:
    """Show the distances (1 − cosine) between the vectors of WORD in the TEXTs, layer by layer; 0 is the input.

    \b
      firth inspect senses bert "the sandy river bank" "the country's central bank" --word bank

    "others" is the mean distance between other words of different texts, as a reference.
    """
    from firth.core.model import Contextual

    model = open_model(path)
    if not isinstance(model, Contextual):
        raise unsupported(model, path, "has one vector per word", "bert and gpt models have one per occurrence.")
    senses = model.senses(texts, word, subwords)
    if output:
        from firth.maps.senses import plot_senses

        plot_senses(senses, output)
    if as_json:
        print_json({**document(senses), "output": output})
    elif output:
        click.echo(output)
    else:
        show(senses)


def document(senses: Senses) -> dict[str, object]:
    """Return the distances as JSON: the occurrences of the word, and a matrix per layer."""
    others = [None if math.isnan(value) else round(float(value), 6) for value in senses.others]
    return {
        "word": senses.word,
        "occurrences": [{"text": senses.texts[text], "offsets": [a, b]} for text, a, b in senses.occurrences],
        "layers": [
            {"layer": layer, "distances": distances.round(6).tolist(), "others": others[layer]}
            for layer, distances in enumerate(senses.distances)
        ],
    }


def show(senses: Senses) -> None:
    """Print the texts with the word marked and one row per layer; with many pairs, the last layer as a matrix."""
    from firth.maps.senses import highlight_word, occurrence_labels

    names = occurrence_labels(senses)
    width = max(map(len, names))
    for name, occurrence in zip(names, senses.occurrences, strict=True):
        click.echo(f"{name:<{width}}  {highlight_word(senses.texts[occurrence.text], occurrence)}")
    click.echo()
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    means = [sum(layer[pair] for pair in pairs) / len(pairs) for layer in senses.distances]
    shown = pairs if len(pairs) <= MAX_COLUMNS else []
    columns = [f"{names[a]}–{names[b]}" for a, b in shown] if len(shown) > 1 else []
    columns += ["distance" if len(pairs) == 1 else "mean", "others", ""]
    longest = max(
        [*means, *(value for value in senses.others if not math.isnan(value)), 1e-3]
    )  # smaller distances are rounding errors
    rows = []
    for layer, (distances, mean, others) in enumerate(zip(senses.distances, means, senses.others, strict=True)):
        each = [f"{distances[pair]:.3f}" for pair in shown] if len(shown) > 1 else []
        reference = "–" if math.isnan(others) else f"{others:.3f}"
        rows.append([str(layer), *each, f"{mean:.3f}", reference, bar(mean, others, longest)])
    print_table(["layer", *columns], rows, numbers=range(len(columns)))
    if not shown:
        click.echo(f"\nlayer {len(senses.distances) - 1}")
        last = [
            [name, *(f"{value:.3f}" for value in row)] for name, row in zip(names, senses.distances[-1], strict=True)
        ]
        print_table(["", *names], last, numbers=range(1, len(names) + 1))


def bar(value: float, others: float, longest: float, width: int = 30) -> str:
    """Return a bar as long as the distance, with a mark at the distance of other words."""
    cells = list("█" * round(width * value / longest))
    if not math.isnan(others):
        position = round(width * others / longest)
        cells += [" "] * (position + 1 - len(cells))
        cells[position] = "│"
    return "".join(cells)
