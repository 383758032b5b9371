"""Plots of parts of models: the Huffman tree of a vocabulary, and position embeddings."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import unit_rows
from firth.kernels.predict import huffman_paths
from firth.maps.drawing import BLUE, INK, MUTED, ORANGE, RULE, check_suffix, fonts, new_figure, save_figure, style
from firth.maps.plots import PathLike

if TYPE_CHECKING:
    from matplotlib.figure import Figure

MAX_LEAVES = 40  # with more, the words are too small to read
MAX_POSITIONS = 512


class TreeCost(NamedTuple):
    """The mean number of binary decisions per word of a text."""

    huffman: float
    entropy: float  # log₂ of the unigram perplexity: the lower bound of all trees
    balanced: float  # log₂ of the vocabulary size

    def __str__(self) -> str:
        return f"{self.huffman:.2f} steps per word; entropy {self.entropy:.2f}, balanced tree {self.balanced:.2f}"


def tree_cost(counts: NDArray[np.int64]) -> TreeCost:
    """Return the cost of the Huffman tree of word counts, with the entropy and a balanced tree for comparison."""
    probabilities = counts / counts.sum()
    steps = np.diff(huffman_paths(counts).starts)
    return TreeCost(
        float(probabilities @ steps), float(-probabilities @ np.log2(probabilities)), float(np.log2(len(counts)))
    )


def plot_tree(counts: Mapping[str, int], k: int = 16, path: PathLike | None = None) -> Figure:
    """Plot the Huffman tree of the k most frequent words with their counts. The subtitle states the cost of the tree of
    all words."""
    if path is not None:
        check_suffix(path)
    frequent = sorted(((count, word) for word, count in counts.items() if count > 0), key=lambda each: -each[0])
    if len(frequent) < 2 or not 2 <= k <= MAX_LEAVES:
        raise FirthError(
            "invalid_value",
            "plot_tree shows 2 to {most} words; got k={k} and {got:,} words with a count.",
            most=MAX_LEAVES,
            got=len(frequent),
            k=k,
        )
    all_counts = np.array([count for count, _ in frequent])
    shown_counts, words = all_counts[:k], [word for _, word in frequent[:k]]
    paths = huffman_paths(shown_counts)
    codes = [
        "".join(map(str, paths.turns[begin:end].tolist()))
        for begin, end in zip(paths.starts[:-1], paths.starts[1:], strict=True)
    ]
    title = f"Huffman tree of the {len(words)} most frequent words"
    note = f"tree of all {len(frequent):,} words: {tree_cost(all_counts)}"
    figure, axes = new_figure(3 + 0.62 * len(words), 2.5 + 0.62 * max(map(len, codes)), title, note)
    coordinates = {code: (float(column), -len(code)) for column, code in enumerate(sorted(codes))}
    inner = {code[:end] for code in codes for end in range(len(code))}
    for node in sorted(inner, key=len, reverse=True):  # children first
        coordinates[node] = (coordinates[f"{node}0"][0] + coordinates[f"{node}1"][0]) / 2, -len(node)
    for code, (x, y) in coordinates.items():
        if code:
            parent = coordinates[code[:-1]]
            axes.plot([parent[0], x, x], [parent[1], parent[1], y], color=MUTED, linewidth=1, zorder=1)
            axes.annotate(code[-1], (x, parent[1]), (-7, -9), textcoords="offset points", fontsize=7, color=MUTED)
    for word, code, count in zip(words, codes, shown_counts.tolist(), strict=True):
        x, y = coordinates[code]
        axes.plot(x, y, "o", color=ORANGE, markersize=4, zorder=2)
        rotated: dict[str, Any] = {"ha": "right", "va": "top", "rotation": 40, "rotation_mode": "anchor"}
        axes.text(
            x, y - 0.12, f"{word}  {count:,}", color=INK, parse_math=False, fontfamily=fonts(), fontsize=9, **rotated
        )
    axes.plot(*coordinates[""], "o", color=BLUE, markersize=6, zorder=2)
    axes.set_ylim(min(y for _, y in coordinates.values()) - 1.6, 0.3)
    axes.set_xlim(-1.6, len(words) - 0.4)
    axes.set_axis_off()
    return _saved(figure, path)


def plot_positions(table: NDArray[Any], path: PathLike | None = None, title: str = "Position embeddings") -> Figure:
    """Plot position embeddings, one row per position, and the cosine similarity of all pairs of positions."""
    if path is not None:
        check_suffix(path)
    rows = np.asarray(table, dtype=np.float32)
    if rows.ndim != 2 or not 2 <= len(rows) <= MAX_POSITIONS or not np.isfinite(rows).all():
        raise FirthError(
            "invalid_value",
            "plot_positions shows 2 to {most} positions with one row of finite values each; got shape {got}.",
            most=MAX_POSITIONS,
            got=rows.shape,
        )
    figure, left = new_figure(11, 5.2, title, f"{len(rows)} positions × {rows.shape[1]} dimensions")
    grid = figure.add_gridspec(1, 2)
    left.set_subplotspec(grid[0])
    right = figure.add_subplot(grid[1])
    style(right)
    units = unit_rows(rows)
    limit = float(np.quantile(np.abs(rows), 0.99)) or 1.0  # clips a few huge values, which would make all others pale
    panels = ((left, rows, limit, "dimension"), (right, units @ units.T, 1.0, "position"))
    for axes, values, bound, x_label in panels:
        image = axes.imshow(values, cmap="RdBu_r", vmin=-bound, vmax=bound, aspect="auto", interpolation="nearest")
        axes.set_xlabel(x_label)
        axes.set_ylabel("position")
        axes.spines[:].set(visible=True, color=RULE)
        figure.colorbar(image, ax=axes, shrink=0.8).outline.set_visible(False)
    right.set_title("cosine similarity", loc="left", fontsize=9, color=MUTED)
    return _saved(figure, path)


def _saved(figure: Figure, path: PathLike | None) -> Figure:
    if path is not None:
        save_figure(figure, path)
    return figure
