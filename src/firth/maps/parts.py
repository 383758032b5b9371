"""Pictures of what methods are built of: the Huffman tree of a vocabulary, the vectors that tell places apart."""

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

MOST_LEAVES = 40  # of a tree: beyond it the words are too small to read
MOST_PLACES = 512


class TreeCost(NamedTuple):
    """Yes-or-no questions a word, averaged over a text."""

    huffman: float
    entropy: float  # log₂ of the unigram perplexity: no tree asks fewer
    balanced: float  # log₂ of the number of words

    def __str__(self) -> str:
        return f"{self.huffman:.2f} steps a word; entropy {self.entropy:.2f}, log₂ of the words {self.balanced:.2f}"


def tree_cost(counts: NDArray[np.int64]) -> TreeCost:
    """What Huffman's tree over these counts asks, and what it can be compared with."""
    shares = counts / counts.sum()
    steps = np.diff(huffman_paths(counts).starts)
    return TreeCost(float(shares @ steps), float(-shares @ np.log2(shares)), float(np.log2(len(counts))))


def plot_tree(counts: Mapping[str, int], k: int = 16, path: PathLike | None = None) -> Figure:
    """Huffman's tree of the k most frequent words, each with its count and its code; what it costs, and what the tree
    of all words does."""
    if path is not None:
        check_suffix(path)
    known = sorted(((count, word) for word, count in counts.items() if count > 0), key=lambda each: -each[0])
    if len(known) < 2 or not 2 <= k <= MOST_LEAVES:
        raise FirthError(
            "invalid_value",
            "plot_tree shows 2 to {most_leaves} words; got {got:,}, of them k={k} to be drawn.",
            most_leaves=MOST_LEAVES,
            got=len(known),
            k=k,
        )
    numbers = np.array([count for count, _ in known])
    shown, words = numbers[:k], [word for _, word in known[:k]]
    paths = huffman_paths(shown)
    codes = [
        "".join(map(str, paths.turns[begin:end].tolist()))
        for begin, end in zip(paths.starts[:-1], paths.starts[1:], strict=True)
    ]
    title = f"Huffman's tree of the {len(words)} most frequent words"
    note = f"the tree of all {len(known):,} words: {tree_cost(numbers)}"
    figure, axes = new_figure(3 + 0.62 * len(words), 2.5 + 0.62 * max(map(len, codes)), title, note)
    place = {code: (float(column), -len(code)) for column, code in enumerate(sorted(codes))}
    inner = {code[:end] for code in codes for end in range(len(code))}
    for node in sorted(inner, key=len, reverse=True):  # children first
        place[node] = (place[f"{node}0"][0] + place[f"{node}1"][0]) / 2, -len(node)
    for code, (x, y) in place.items():
        if code:
            above = place[code[:-1]]
            axes.plot([above[0], x, x], [above[1], above[1], y], color=MUTED, linewidth=1, zorder=1)
            axes.annotate(code[-1], (x, above[1]), (-7, -9), textcoords="offset points", fontsize=7, color=MUTED)
    for word, code, count in zip(words, codes, shown.tolist(), strict=True):
        x, y = place[code]
        axes.plot(x, y, "o", color=ORANGE, markersize=4, zorder=2)
        slanted: dict[str, Any] = {"ha": "right", "va": "top", "rotation": 40, "rotation_mode": "anchor"}
        axes.text(
            x, y - 0.12, f"{word}  {count:,}", color=INK, parse_math=False, fontfamily=fonts(), fontsize=9, **slanted
        )
    axes.plot(*place[""], "o", color=BLUE, markersize=6, zorder=2)
    axes.set_ylim(min(y for _, y in place.values()) - 1.6, 0.3)
    axes.set_xlim(-1.6, len(words) - 0.4)
    axes.set_axis_off()
    return _saved(figure, path)


def plot_positions(table: NDArray[Any], path: PathLike | None = None, title: str = "Vectors of places") -> Figure:
    """Left: the vector of each place as a row of colours. Right: how like each other the places are (cosine)."""
    if path is not None:
        check_suffix(path)
    rows = np.asarray(table, dtype=np.float32)
    if rows.ndim != 2 or not 2 <= len(rows) <= MOST_PLACES or not np.isfinite(rows).all():
        raise FirthError(
            "invalid_value",
            "plot_places shows 2 to {most_places} places, a row of finite numbers each; got {got}.",
            most_places=MOST_PLACES,
            got=rows.shape,
        )
    figure, left = new_figure(11, 5.2, title, f"{len(rows)} places × {rows.shape[1]} dimensions")
    grid = figure.add_gridspec(1, 2)
    left.set_subplotspec(grid[0])
    right = figure.add_subplot(grid[1])
    style(right)
    units = unit_rows(rows)
    most = float(np.quantile(np.abs(rows), 0.99)) or 1.0  # a few huge numbers would leave all others pale
    parts = ((left, rows, most, "dimension"), (right, units @ units.T, 1.0, "place"))
    for axes, values, limit, across in parts:
        image = axes.imshow(values, cmap="RdBu_r", vmin=-limit, vmax=limit, aspect="auto", interpolation="nearest")
        axes.set_xlabel(across)
        axes.set_ylabel("place")
        axes.spines[:].set(visible=True, color=RULE)
        figure.colorbar(image, ax=axes, shrink=0.8).outline.set_visible(False)
    right.set_title("cosine of each two", loc="left", fontsize=9, color=MUTED)
    return _saved(figure, path)


def _saved(figure: Figure, path: PathLike | None) -> Figure:
    if path is not None:
        save_figure(figure, path)
    return figure
