"""Plots of fine-tuning: the score on dev data by epoch, and the confusion matrix."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import numpy as np

from firth.core.errors import FirthError
from firth.maps.drawing import BLUE, INK, MUTED, ORANGE, RULE, check_suffix, new_figure, save_figure
from firth.maps.plots import MAX_WORDS, PathLike, heat_map

if TYPE_CHECKING:
    from matplotlib.figure import Figure


def plot_confusion(confusion: Mapping[tuple[str, str], int], path: PathLike | None = None) -> Figure:
    """Plot a confusion matrix: counts of texts by label (rows) and predicted label (columns)."""
    if path is not None:
        check_suffix(path)
    names = sorted({name for pair in confusion for name in pair})
    if not 1 <= len(names) <= MAX_WORDS:
        raise FirthError(
            "invalid_value",
            "plot_confusion shows 1 to {most} labels; got {got}.",
            most=MAX_WORDS,
            got=len(names),
        )
    positions = {name: position for position, name in enumerate(names)}
    table = np.zeros((len(names), len(names)))
    for (label, predicted), count in confusion.items():
        table[positions[label], positions[predicted]] = count
    shares = table / np.maximum(table.sum(axis=1, keepdims=True), 1)  # colors by row, so that rare labels are visible
    names_shown = [name or "(none)" for name in names]
    title = f"{int(table.trace()):,} of {int(table.sum()):,} correct"
    note = "rows: label, columns: prediction"
    figure = heat_map(table, names_shown, names_shown, title, note, "Blues", (0.0, 1.0), shares)
    if path is not None:
        save_figure(figure, path)
    return figure


def plot_curve(training: Mapping[str, Any], path: PathLike | None = None) -> Figure:
    """Plot the score on dev data by epoch, one line per trial. The best point, whose weights were saved, is marked."""
    if path is not None:
        check_suffix(path)
    measurements = [measurement for measurement in training.get("held_out") or () if "score" in measurement]
    if not measurements:
        raise FirthError(
            "unsupported_model", "plot_curve needs the scores on dev data of a fine-tuned model; this model has none."
        )
    trials = sorted({measurement.get("try", 1) for measurement in measurements})  # sentence encoders have only one
    last = max(measurement.get("epoch", 1) for measurement in measurements)
    epochs = max(training.get("finished_epochs", 1) // len(trials), last if len(trials) == 1 else 1)
    # The same criterion as in training.
    best = min(measurements, key=lambda each: (-each["score"], each.get("held_out_loss", 0.0)))
    title = f"Score on dev data: {best['score']:.3f} at best"
    n_trials = f"{len(trials)} {'trial' if len(trials) == 1 else 'trials'}"
    figure, axes = new_figure(8, 5, title, f"{n_trials} of {epochs} {'epoch' if epochs == 1 else 'epochs'}")
    for number in trials:
        trial = [measurement for measurement in measurements if measurement.get("try", 1) == number]
        color = BLUE if number == best.get("try", 1) else MUTED
        epochs_done = [measurement["share"] * epochs for measurement in trial]
        axes.plot(
            epochs_done,
            [measurement["score"] for measurement in trial],
            color=color,
            marker="o",
            markersize=4,
            linewidth=1.6,
        )
        if "rate" in trial[-1]:
            end: dict[str, Any] = {"xytext": (8, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(f"rate {trial[-1]['rate']:g}", (epochs_done[-1], trial[-1]["score"]), color=color, **end)
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
