"""Pictures of attention: one head large, all heads as a grid of layers, or a page to look around in."""

from __future__ import annotations

import html
import json
import os
from pathlib import Path
from string import Template
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Attention
from firth.core.storage import new_file
from firth.maps.drawing import INK, MUTED, ORANGE, fonts, new_figure, save_figure

MOST_TOKENS = 80  # beyond, the names of tokens can't be read
COLORS = "Blues"
SPECIAL_TOKENS = ("[CLS]", "[SEP]", "<|endoftext|>", "<s>", "</s>")  # tokens that are no words


def without_special_tokens(attention: Attention) -> Attention:
    """Only what words look at in words: many heads rest on a mark when they have nothing to look for, and next to that
    nothing else is seen. What remains of a row sums to less than 1."""
    rows, columns = ([token not in SPECIAL_TOKENS for token in names] for names in (attention.queries, attention.keys))
    if not any(rows) or not any(columns):
        raise FirthError("empty_data", "There are no words in the text, only marks.")
    return Attention(
        [token for token, kept in zip(attention.queries, rows, strict=True) if kept],
        [token for token, kept in zip(attention.keys, columns, strict=True) if kept],
        attention.weights[:, :, rows][..., columns],
        [kind for kind, kept in zip(attention.segments, columns, strict=False) if kept],
    )


def plot_attention(
    attention: Attention,
    path: str | os.PathLike[str],
    layer: int | None = None,
    head: int | None = None,
    title: str = "Where each token looks",
) -> None:
    """A heat map as PNG or SVG: rows are queries, columns keys. With `layer` and `head` that one; with `layer` alone
    the mean of its heads; with neither the grid of all. A path that ends in .html gives a page with all of them, which
    begins with the one that is named."""
    weights = select_weights(attention, layer, head)
    if Path(path).suffix.lower() == ".html":
        return write_page(attention, path, title, layer, head)
    if layer is None:
        return plot_grid(attention, path, title)
    return plot_matrix(attention, path, weights, title, head_name(layer, head))


def select_weights(attention: Attention, layer: int | None, head: int | None) -> NDArray[np.float32]:
    """The weights of one head, counted from 1, or the mean of a layer's; without a layer, all weights."""
    layers, heads = attention.weights.shape[:2]
    if layer is None:
        if head is not None:
            raise FirthError(
                "missing_option",
                "head={head} needs the layer it belongs to; give layer too, from 1 to {layers}.",
                head=head,
                layers=layers,
            )
        return attention.weights
    if not 1 <= layer <= layers:
        raise FirthError(
            "invalid_value", "{option} must be from 1 to {layers}; got {got}.", option="layer", layers=layers, got=layer
        )
    if head is not None and not 1 <= head <= heads:
        raise FirthError(
            "invalid_value", "{option} must be from 1 to {heads}; got {got}.", option="head", heads=heads, got=head
        )
    found = attention.weights[layer - 1]
    return np.asarray(found.mean(axis=0) if head is None else found[head - 1])


def head_name(layer: int, head: int | None) -> str:
    return f"layer {layer}, {'mean of its heads' if head is None else f'head {head}'}"


def plot_matrix(
    attention: Attention, path: str | os.PathLike[str], weights: NDArray[np.float32], title: str, note: str
) -> None:
    rows, columns = weights.shape
    if max(rows, columns) > MOST_TOKENS:
        raise FirthError(
            "text_too_long",
            "A picture shows at most {most_tokens} tokens; got {got}. A page (.html) has room.",
            most_tokens=MOST_TOKENS,
            got=max(rows, columns),
        )
    figure, axes = new_figure(2.6 + 0.36 * columns, 2.2 + 0.32 * rows, title, note)
    image = axes.imshow(weights, cmap=COLORS, vmin=0, vmax=max(float(weights.max()), 1e-9), aspect="auto")
    words: dict[str, Any] = {"parse_math": False, "fontfamily": fonts(), "fontsize": 9, "color": INK}
    axes.set_xticks(range(columns), [visible(token) for token in attention.keys], rotation=60, ha="right", **words)
    axes.set_yticks(range(rows), [visible(token) for token in attention.queries], **words)
    second = attention.segments.index(1) if 1 in attention.segments else None
    if second is not None:  # a line between the two texts of a pair, and the second's names in another colour
        for line in (axes.axhline, axes.axvline):
            line(second - 0.5, color=ORANGE, linewidth=1)
        for tick in (*axes.get_xticklabels()[second:], *axes.get_yticklabels()[second:]):
            tick.set_color(ORANGE)
    axes.set_xlabel("looked at")
    axes.set_ylabel("looking")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if rows * columns <= 150:
        dark = float(weights.max()) * 0.55
        for row, column in np.ndindex(rows, columns):
            value = float(weights[row, column])
            color = "white" if value > dark else INK
            axes.text(
                column,
                row,
                f"{value:.2f}"[1:] if value < 0.995 else "1",
                ha="center",
                va="center",
                fontsize=7,
                color=color,
            )
    bar = figure.colorbar(image, ax=axes, shrink=0.7, aspect=24)
    bar.outline.set_visible(False)
    bar.ax.tick_params(labelsize=8, colors=MUTED, length=0)
    save_figure(figure, path)


def plot_grid(attention: Attention, path: str | os.PathLike[str], title: str) -> None:
    """All heads, small, each with its own scale: layers from top to bottom."""
    layers, heads, rows, columns = attention.weights.shape
    gap = max(1, max(rows, columns) // 12)
    tall, wide = rows + gap, columns + gap
    sheet = np.full((layers * tall - gap, heads * wide - gap), np.nan)
    for layer, head in np.ndindex(layers, heads):
        weights = attention.weights[layer, head]
        sheet[layer * tall : layer * tall + rows, head * wide : head * wide + columns] = weights / max(
            weights.max(), 1e-9
        )
    darkest = attention.weights.max(axis=(2, 3))
    below = f"each head by its own scale: darkest is {darkest.min():.2f} to {darkest.max():.2f}"
    most = 20 + 12 * heads
    queries, keys = (
        text if len(text) <= most else text[:most] + "…"
        for text in (" ".join(map(visible, tokens)) for tokens in (attention.queries, attention.keys))
    )
    note = queries
    if attention.queries != attention.keys:  # a translator's: written tokens look at read ones
        note, below = f"looking: {queries}", f"looked at: {keys}\n{below}"
    side = 1.1
    height = side * layers * max(0.4, min(1.6, rows / columns))
    figure, axes = new_figure(max(4.5, 0.9 + side * heads), 1.9 + height, title, note)
    axes.imshow(sheet, cmap=COLORS, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set_xticks([head * wide + columns / 2 - 0.5 for head in range(heads)], [f"head {n + 1}" for n in range(heads)])
    axes.set_yticks(
        [layer * tall + rows / 2 - 0.5 for layer in range(layers)], [f"layer {n + 1}" for n in range(layers)]
    )
    axes.set_xlabel(below, loc="left", fontsize=9, color=MUTED, parse_math=False, fontfamily=fonts())
    axes.tick_params(length=0, labelsize=8, colors=MUTED)
    axes.spines[:].set_visible(False)
    save_figure(figure, path)


def visible(token: str) -> str:
    """Spaces and line ends as marks, so that a token of nothing else is seen."""
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") if not token.strip() else token.strip(" ")


def write_page(
    attention: Attention, path: str | os.PathLike[str], title: str, layer: int | None = None, head: int | None = None
) -> None:
    """One file that needs nothing else: choose layer and head, see the map and the lines between words. It begins with
    the last layer's first head, if no other is named."""
    data = {
        "queries": [visible(token) for token in attention.queries],
        "keys": [visible(token) for token in attention.keys],
        "segments": list(attention.segments),
        "marks": list(SPECIAL_TOKENS),
        "first": [(layer or len(attention.weights)) - 1, (head or 1) - 1],
        "weights": np.round(attention.weights.astype(float), 4).tolist(),
    }
    packed = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    template = Template(Path(__file__).with_name("attention.html").read_text(encoding="utf-8"))
    with new_file(Path(path)) as work:
        work.write_text(template.substitute(title=html.escape(title), data=packed), encoding="utf-8")
