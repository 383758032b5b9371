"""Pictures of one word in several texts: how far its vectors part, and their way through the layers."""

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
MOST_TEXT = 48  # characters of a text in a picture


def plot_senses(senses: Senses, path: str | os.PathLike[str]) -> None:
    """Left: the distance of each pair by layer, and that of other words. Right: where each place's vector goes, on the
    plane of two principal components of the unit vectors of all layers. PNG or SVG."""
    check_suffix(path)
    if len(senses.occurrences) > len(COLORS):
        raise FirthError(
            "invalid_value",
            "A picture shows at most {n_colors} places of a word; got {got}. The table and --json have room.",
            n_colors=len(COLORS),
            got=len(senses.occurrences),
        )
    note = "1 − cosine of its vectors, from the input (layer 0) to the last layer"
    figure, left = new_figure(12.5, 5.6, f"“{senses.word}” in {len(senses.occurrences)} places", note)
    grid = figure.add_gridspec(1, 2, width_ratios=(1, 1.15))
    left.set_subplotspec(grid[0])
    right = figure.add_subplot(grid[1])
    style(right)
    draw_distances(left, senses)
    labels, lines = draw_ways(right, senses)
    place_labels(figure, right, labels, size=8, obstacles=lines)
    save_figure(figure, path)


def draw_distances(axes: Axes, senses: Senses) -> None:
    names, layers = occurrence_labels(senses), np.arange(len(senses.distances))
    pairs = [(a, b) for a in range(len(names)) for b in range(a + 1, len(names))]
    for a, b in pairs:
        axes.plot(layers, senses.distances[:, a, b], color=INK, marker="o", markersize=4, linewidth=1.6)
        if len(pairs) <= len(COLORS):
            where = (float(layers[-1]), float(senses.distances[-1, a, b]))
            beside: dict[str, Any] = {"xytext": (6, 0), "textcoords": "offset points", "va": "center", "fontsize": 9}
            axes.annotate(f"{names[a]}–{names[b]}", where, color=INK, **beside)
    if not np.isnan(senses.others).any():
        axes.plot(layers, senses.others, color=MUTED, linewidth=1.2, linestyle=(0, (4, 3)))
        axes.annotate("other words", (0, senses.others[0]), (4, 5), textcoords="offset points", color=MUTED, fontsize=9)
    axes.set_ylim(0, max(1e-3, axes.get_ylim()[1]))  # less is rounding
    axes.set_xticks(layers if len(layers) <= 14 else layers[:: len(layers) // 12 + 1])
    axes.set_xlabel("layer")
    axes.set_ylabel("distance")
    axes.grid(axis="y", color=RULE, linewidth=0.6)


def layer_trajectories(senses: Senses, apart: bool = False) -> Projection:
    """Where each place's unit vector lies in each layer, (layers + 1) × places × 2: on the plane of two principal
    components of them all. `apart`: without the mean of each layer, so that only what tells the places apart is seen.
    """
    layers, places = senses.states.shape[:2]
    rows = unit_rows(senses.states.reshape(layers * places, -1)).astype(np.float64).reshape(layers, places, -1)
    if apart:
        rows -= rows.mean(axis=1, keepdims=True)
    seen = pca(rows.reshape(layers * places, -1))
    return Projection(seen.points.reshape(layers, places, 2), seen.explained)


def draw_ways(axes: Axes, senses: Senses) -> tuple[list[Label], NDArray[np.float64]]:
    """A line for each place of the word, through all layers; the labels of its points, and points along the lines."""
    layers, (points, (first, second)) = len(senses.states), layer_trajectories(senses)
    axes.set_title(
        f"the way of its vector: two components, {first:.0%} and {second:.0%} of the variance",
        loc="left", fontsize=9, color=MUTED, pad=10,
    )  # fmt: skip
    labels = []
    for place, (name, occurrence) in enumerate(zip(occurrence_labels(senses), senses.occurrences, strict=True)):
        color, text = COLORS[place], shortened(senses.texts[occurrence.text], occurrence)
        x, y = points[:, place].T
        axes.plot(x, y, color=color, marker="o", markersize=4, linewidth=1.2, label=f"{name}  {text}")
        labels += [Label(str(layer), x, y, color, layer == layers - 1) for layer, (x, y) in enumerate(points[:, place])]
    axes.tick_params(labelleft=False, labelbottom=False, length=0)
    axes.spines[:].set(visible=True, color=RULE)
    axes.margins(0.08)
    legend = axes.legend(loc="upper center", bbox_to_anchor=(0.5, -0.04), frameon=False, fontsize=9, handlelength=1.4)
    for entry in legend.get_texts():
        entry.set(parse_math=False, fontfamily=fonts(), color=INK)
    along = np.linspace(0, 1, 30)[:, None, None, None]
    lines = points[:-1] * (1 - along) + points[1:] * along
    return labels[::-1], lines.reshape(-1, 2)  # the last layers get room first


def occurrence_labels(senses: Senses) -> list[str]:
    """1, 2, …, the number of the text; 1a, 1b where the word stands in it twice."""
    counts, seen = Counter(each.text for each in senses.occurrences), Counter[int]()
    names = []
    for each in senses.occurrences:
        letter = "" if counts[each.text] == 1 else suffix(seen[each.text])
        seen[each.text] += 1
        names.append(f"{each.text + 1}{letter}")
    return names


def suffix(number: int) -> str:
    """a, b, …, z, then .27, .28, …"""
    return chr(ord("a") + number) if number < 26 else f".{number + 1}"


def highlight_word(text: str, occurrence: Occurrence) -> str:
    """The text on one line, the word in it ‹so›."""
    _, begin, end = occurrence
    return " ".join(f"{text[:begin]}‹{text[begin:end]}›{text[end:]}".split())


def shortened(text: str, occurrence: Occurrence) -> str:
    """The marked text, or what stands around the word in a longer one."""
    around = (MOST_TEXT - (occurrence.end - occurrence.begin)) // 2
    first = max(0, min(occurrence.begin - around, len(text) - MOST_TEXT))
    last = min(len(text), first + MOST_TEXT)
    part = highlight_word(text[first:last], Occurrence(0, occurrence.begin - first, min(occurrence.end, last) - first))
    return f"{'…' * (first > 0)}{part}{'…' * (last < len(text))}"
