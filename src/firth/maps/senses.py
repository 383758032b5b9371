"""Plots of one word in several contexts: the distances of its vectors, and their trajectories through the layers."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Occurrence, Senses
from firth.core.vectors import unit_rows
from firth.maps.drawing import (
    BLUE,
    INK,
    MUTED,
    ORANGE,
    RULE,
    Label,
    check_suffix,
    fonts,
    new_figure,
    place_labels,
    save_figure,
    style,
)
from firth.maps.pca import Projection, pca

if TYPE_CHECKING:
    from matplotlib.axes import Axes

COLORS = (BLUE, ORANGE, "#4f8a4c", "#8a5a9e", "#a23b46", "#6b7280", "#b08a2e", "#3aa0a0")
MAX_TEXT = 48  # characters of a text in the legend


def plot_senses(senses: Senses, path: str | os.PathLike[str]) -> None:
    """Plot the contextual vectors of a word as PNG or SVG.

    Left: the distance of each pair of occurrences by layer, and that of other words. Right: the trajectory of each
    occurrence, on the first two principal components of the unit vectors of all layers.
    """
    check_suffix(path)
    if len(senses.occurrences) > len(COLORS):
        raise FirthError(
            "invalid_value",
            "A plot shows at most {most} occurrences of a word; got {got}. The table and --json have no limit.",
            most=len(COLORS),
            got=len(senses.occurrences),
        )
    subtitle = "1 − cosine of its vectors, from the input (layer 0) to the last layer"
    figure, left = new_figure(12.5, 5.6, f"“{senses.word}” in {len(senses.occurrences)} contexts", subtitle)
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 1.15))
    left.set_subplotspec(grid[0])
    right = figure.add_subplot(grid[1])
    style(right)
    draw_distances(left, senses)
    labels, lines = draw_trajectories(right, senses)
    place_labels(figure, right, labels, size=8, obstacles=lines)
    save_figure(figure, path)


def draw_distances(axes: Axes, senses: Senses) -> None:
    """Plot the distance of each pair of occurrences by layer."""
    names, layers = occurrence_labels(senses), np.arange(len(senses.distances))
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    for a, b in pairs:
        axes.plot(layers, senses.distances[:, a, b], color=INK, marker="o", markersize=4, linewidth=1.6)
        if len(pairs) <= len(COLORS):
            line_end = (float(layers[-1]), float(senses.distances[-1, a, b]))
            offset: dict[str, Any] = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(f"{names[a]}–{names[b]}", line_end, color=INK, **offset)
    if not np.isnan(senses.others).any():
        axes.plot(layers, senses.others, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate("other words", (0, senses.others[0]), (4, 5), textcoords="offset points", color=MUTED, fontsize=9)
    axes.set_ylim(0, max(1e-3, axes.get_ylim()[1]))  # smaller values are rounding errors
    axes.set_xticks(layers if len(layers) <= 14 else layers[:: len(layers) // 12 + 1])
    axes.set_xlabel("layer")
    axes.set_ylabel("distance")
    axes.grid(axis="y", color=RULE, linewidth=0.6)


def layer_trajectories(senses: Senses, center_layers: bool = False) -> Projection:
    """Project the unit vector of each occurrence in each layer onto two principal components of them all, as
    (layers + 1) × occurrences × 2. `center_layers` subtracts the mean of each layer, which leaves only the differences
    between occurrences."""
    layers, occurrences = senses.states.shape[:2]
    rows = (
        unit_rows(senses.states.reshape(layers * occurrences, -1)).astype(np.float64).reshape(layers, occurrences, -1)
    )
    if center_layers:
        rows -= rows.mean(axis=1, keepdims=True)
    projection = pca(rows.reshape(layers * occurrences, -1))
    return Projection(projection.points.reshape(layers, occurrences, 2), projection.explained)


def draw_trajectories(axes: Axes, senses: Senses) -> tuple[list[Label], NDArray[np.float64]]:
    """Plot one line per occurrence through all layers; return the labels of its points, and points along the lines."""
    layers, (points, (first, second)) = len(senses.states), layer_trajectories(senses)
    axes.set_title(
        f"trajectories through the layers: two components, {first:.0%} and {second:.0%} of the variance",
        loc="left", fontsize=9, color=MUTED, pad=10,
    )  # fmt: skip
    labels = []
    for number, (name, occurrence) in enumerate(zip(occurrence_labels(senses), senses.occurrences, strict=True)):
        color, text = COLORS[number], shortened(senses.texts[occurrence.text], occurrence)
        x, y = points[:, number].T
        axes.plot(x, y, color=color, marker="o", markersize=4, linewidth=1.2, label=f"{name}  {text}")
        labels += [
            Label(str(layer), x, y, color, layer == layers - 1) for layer, (x, y) in enumerate(points[:, number])
        ]
    axes.tick_params(labelleft=False, labelbottom=False, length=0)
    axes.spines[:].set(visible=True, color=RULE)
    axes.margins(0.08)
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), frameon=False, fontsize=9, handlelength=1.4)
    for entry in legend.get_texts():
        entry.set(parse_math=False, fontfamily=fonts(), color=INK)
    along = np.linspace(0, 1, 30)[:, None, None, None]
    lines = points[:-1] * (1 - along) + points[1:] * along
    return labels[::-1], lines.reshape(-1, 2)  # labels of the last layers take precedence


def occurrence_labels(senses: Senses) -> list[str]:
    """Return the number of each occurrence's text: 1, 2, …; 1a, 1b if the word occurs in it twice."""
    counts, seen = Counter(each.text for each in senses.occurrences), Counter[int]()
    names = []
    for each in senses.occurrences:
        letter = "" if counts[each.text] == 1 else suffix(seen[each.text])
        seen[each.text] += 1
        names.append(f"{each.text + 1}{letter}")
    return names


def suffix(number: int) -> str:
    """Return a, b, …, z, then .27, .28, …"""
    return chr(ord("a") + number) if number < 26 else f".{number + 1}"


def highlight_word(text: str, occurrence: Occurrence) -> str:
    """Return the text on one line, with the word in ‹brackets›."""
    _, begin, end = occurrence
    return " ".join(f"{text[:begin]}‹{text[begin:end]}›{text[end:]}".split())


def shortened(text: str, occurrence: Occurrence) -> str:
    """Return the text with the word in brackets; of a long text, the part around the word."""
    around = (MAX_TEXT - (occurrence.end - occurrence.begin)) // 2
    first = max(0, min(occurrence.begin - around, len(text) - MAX_TEXT))
    last = min(len(text), first + MAX_TEXT)
    part = highlight_word(text[first:last], Occurrence(0, occurrence.begin - first, min(occurrence.end, last) - first))
    return f"{'…' * (first > 0)}{part}{'…' * (last < len(text))}"
