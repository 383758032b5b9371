"""Pictures of how a task was learned: the score on dev data by epoch, and which labels are taken for which."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firth.core.errors import FirthError
from firth.maps.drawing import BLUE, INK, MUTED, ORANGE, RULE, check_suffix, new_figure, save_figure
from firth.maps.plots import MOST_WORDS, PathLike, heat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_confusion(confusion: Mapping[tuple[str, str], int], path: PathLike | None = None) -> Figure:
    """How many texts with the label of a row were given the label of a column."""
    if path is not None:
        check_suffix(path)
    names = sorted({name for pair in confusion for name in pair})
    if not 1 <= len(names) <= MOST_WORDS:
        raise FirthError(
            "invalid_value",
            "plot_confusion shows 1 to {most_words} labels; got {got}.",
            most_words=MOST_WORDS,
            got=len(names),
        )
    places = {name: place for place, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for (right, found), count in confusion.items():
        table[places[right], places[found]] = count
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)  # of a rare label the colours tell as much
    shown = [name or "(none)" for name in names]
    title = f"{int(table.trace()):,} of {int(table.sum()):,} right"
    note = "rows: right, columns: predicted"
    figure = heat_map(table, shown, shown, title, note, "Blues", (0.0, 1.0), shares)
    if path is not None:
        save_figure(figure, path)
    return figure


def plot_curve(training: Mapping[str, Any], path: PathLike | None = None) -> Figure:
    """The score on dev data by epoch, a line for each try; the best point is marked: its weights were kept."""
    if path is not None:
        check_suffix(path)
    measured = [found for found in training.get("held_out") or () if "score" in found]
    if not measured:
        raise FirthError(
            "unsupported_model", "plot_curve needs scores on dev data, which fine-tuning measures; this model has none."
        )
    tries = sorted({found.get("try", 1) for found in measured})  # sentence vectors are learned in one, without a number
    last = max(found.get("epoch", 1) for found in measured)
    epochs = max(training.get("finished_epochs", 1) // len(tries), last if len(tries) == 1 else 1)
    best = min(measured, key=lambda found: (-found["score"], found.get("held_out_loss", 0.0)))  # as weights are kept
    title = f"Score on dev data: {best['score']:.3f} at best"
    several = f"{len(tries)} {'try' if len(tries) == 1 else 'tries'}"
    figure, axes = new_figure(8, 5, title, f"{several} of {epochs} {'epoch' if epochs == 1 else 'epochs'}")
    for number in tries:
        own = [found for found in measured if found.get("try", 1) == number]
        color = BLUE if number == best.get("try", 1) else MUTED
        places = [found["share"] * epochs for found in own]
        axes.plot(places, [found["score"] for found in own], color=color, marker="o", markersize=4, linewidth=1.6)
        if "rate" in own[-1]:
            end: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(f"rate {own[-1]['rate']:g}", (places[-1], own[-1]["score"]), color=color, **end)
    axes.plot(
        [best["share"] * epochs], [best["score"]], marker="o", markersize=11, markerfacecolor="none", color=ORANGE
    )
    axes.set_xlim(0, epochs * 1.12)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_xlabel("epoch", color=INK)
    axes.set_ylabel("score", color=INK)
    if path is not None:
        save_figure(figure, path)
    return figure
