"""Plots of attention weights: one head, a grid of all layers and heads, or an interactive page."""

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
from firth.core.remote import as_path
from firth.core.storage import new_file
from firth.maps.drawing import INK, MUTED, ORANGE, fonts, new_figure, save_figure

MAX_TOKENS = 80  # with more, token labels are too small to read
COLORMAP = "Blues"
SPECIAL_TOKENS = ("[CLS]", "[SEP]", "<|endoftext|>", "<s>", "</s>")


def without_special_tokens(attention: Attention) -> Attention:
    """Return the attention between ordinary tokens only. Many heads put most of their weight on a special token, which
    hides all other weights in a plot. The remaining weights of a row sum to less than 1."""
    keep_queries, keep_keys = (
        [token not in SPECIAL_TOKENS for token in names] for names in (attention.queries, attention.keys)
    )
    if not any(keep_queries) or not any(keep_keys):
        raise FirthError("empty_data", "The text contains only special tokens.")
    return Attention(
        [token for token, keep in zip(attention.queries, keep_queries, strict=True) if keep],
        [token for token, keep in zip(attention.keys, keep_keys, strict=True) if keep],
        attention.weights[:, :, keep_queries][..., keep_keys],
        [kind for kind, keep in zip(attention.segments, keep_keys, strict=False) if keep],
    )


def plot_attention(
    attention: Attention,
    path: str | os.PathLike[str],
    layer: int | None = None,
    head: int | None = None,
    title: str = "Attention weights",
) -> None:
    """Plot attention weights as a heat map with queries as rows and keys as columns, as PNG or SVG.

    With `layer` and `head`, plot that head; with only `layer`, the mean of its heads; with neither, a grid of all
    heads. A path that ends in .html writes an interactive page of all heads, which opens at the given one.
    """
    weights = select_weights(attention, layer, head)
    if Path(path).suffix.lower() == ".html":
        return write_page(attention, path, title, layer, head)
    if layer is None:
        return plot_grid(attention, path, title)
    return plot_matrix(attention, path, weights, title, head_name(layer, head))


def select_weights(attention: Attention, layer: int | None, head: int | None) -> NDArray[np.float32]:
    """Return the weights of one head, counted from 1, or the mean of a layer's heads; without a layer, all weights."""
    layers, heads = attention.weights.shape[:2]
    if layer is None:
        if head is not None:
            raise FirthError(
                "missing_option",
                "head={head} also needs a layer. Set layer to a number from 1 to {layers}.",
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
    layer_weights = attention.weights[layer - 1]
    return np.asarray(layer_weights.mean(axis=0) if head is None else layer_weights[head - 1])


def head_name(layer: int, head: int | None) -> str:
    """Return a label such as "layer 2, head 3"."""
    return f"layer {layer}, {'mean of its heads' if head is None else f'head {head}'}"


def plot_matrix(
    attention: Attention, path: str | os.PathLike[str], weights: NDArray[np.float32], title: str, subtitle: str
) -> None:
    """Plot the weights of one head, with numbers in the cells if there are few."""
    rows, columns = weights.shape
    if max(rows, columns) > MAX_TOKENS:
        raise FirthError(
            "text_too_long",
            "A plot shows at most {most} tokens; got {got}. Write a page (.html) instead.",
            most=MAX_TOKENS,
            got=max(rows, columns),
        )
    figure, axes = new_figure(2.6 + 0.36 * columns, 2.2 + 0.32 * rows, title, subtitle)
    image = axes.imshow(weights, cmap=COLORMAP, vmin=0, vmax=max(float(weights.max()), 1e-9), aspect="auto")
    font: dict[str, Any] = {"parse_math": False, "fontfamily": fonts(), "fontsize": 9, "color": INK}
    axes.set_xticks(range(columns), [visible(token) for token in attention.keys], rotation=60, ha="right", **font)
    axes.set_yticks(range(rows), [visible(token) for token in attention.queries], **font)
    second = attention.segments.index(1) if 1 in attention.segments else None
    if second is not None:  # a line between the two texts of a pair, and another color for the second
        for line in (axes.axhline, axes.axvline):
            line(second - 0.5, color=ORANGE, linewidth=1)
        for tick in (*axes.get_xticklabels()[second:], *axes.get_yticklabels()[second:]):
            tick.set_color(ORANGE)
    axes.set_xlabel("key")
    axes.set_ylabel("query")
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    if rows * columns <= 150:
        threshold = float(weights.max()) * 0.55
        for row, column in np.ndindex(rows, columns):
            value = float(weights[row, column])
            color = "white" if value > threshold else INK
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
    """Plot all heads as a grid, each with its own color scale; layers from top to bottom."""
    layers, heads, rows, columns = attention.weights.shape
    gap = max(1, max(rows, columns) // 12)
    cell_height, cell_width = rows + gap, columns + gap
    canvas = np.full((layers * cell_height - gap, heads * cell_width - gap), np.nan)
    for layer, head in np.ndindex(layers, heads):
        weights = attention.weights[layer, head]
        canvas[layer * cell_height : layer * cell_height + rows, head * cell_width : head * cell_width + columns] = (
            weights / max(weights.max(), 1e-9)
        )
    maxima = attention.weights.max(axis=(2, 3))
    caption = f"each head has its own scale: its largest weight is {maxima.min():.2f} to {maxima.max():.2f}"
    max_characters = 20 + 12 * heads
    queries, keys = (
        text if len(text) <= max_characters else text[:max_characters] + "…"
        for text in (" ".join(map(visible, tokens)) for tokens in (attention.queries, attention.keys))
    )
    subtitle = queries
    if attention.queries != attention.keys:  # cross-attention from the target to the source
        subtitle, caption = f"queries: {queries}", f"keys: {keys}\n{caption}"
    cell_inches = 1.1
    height = cell_inches * layers * max(0.4, min(1.6, rows / columns))
    figure, axes = new_figure(max(4.5, 0.9 + cell_inches * heads), 1.9 + height, title, subtitle)
    axes.imshow(canvas, cmap=COLORMAP, vmin=0, vmax=1, aspect="auto", interpolation="nearest")
    axes.set_xticks(
        [head * cell_width + columns / 2 - 0.5 for head in range(heads)], [f"head {n + 1}" for n in range(heads)]
    )
    axes.set_yticks(
        [layer * cell_height + rows / 2 - 0.5 for layer in range(layers)], [f"layer {n + 1}" for n in range(layers)]
    )
    axes.set_xlabel(caption, loc="left", fontsize=9, color=MUTED, parse_math=False, fontfamily=fonts())
    axes.tick_params(length=0, labelsize=8, colors=MUTED)
    axes.spines[:].set_visible(False)
    save_figure(figure, path)


def visible(token: str) -> str:
    """Return a token for display, with symbols for white space if it consists of nothing else."""
    return token.replace("\n", "⏎").replace("\t", "⇥").replace(" ", "␣") if not token.strip() else token.strip(" ")


def write_page(
    attention: Attention, path: str | os.PathLike[str], title: str, layer: int | None = None, head: int | None = None
) -> None:
    """Write a self-contained page to choose a layer and a head, with a heat map and lines between tokens. By default,
    it opens at the first head of the last layer."""
    data = {
        "queries": [visible(token) for token in attention.queries],
        "keys": [visible(token) for token in attention.keys],
        "segments": list(attention.segments),
        "marks": list(SPECIAL_TOKENS),
        "first": [(layer or len(attention.weights)) - 1, (head or 1) - 1],
        "weights": np.round(attention.weights.astype(float), 4).tolist(),
    }
    payload = json.dumps(data, ensure_ascii=False, separators=(",", ":")).replace("<", "\\u003c")
    template = Template(Path(__file__).with_name("attention.html").read_text(encoding="utf-8"))
    with new_file(as_path(path)) as temporary:
        temporary.write_text(template.substitute(title=html.escape(title), data=payload), encoding="utf-8")
