"""Plots of vectors and training: maps, word pairs, similarities, loss, word frequencies.

Each function returns the matplotlib figure, which a notebook displays, and saves it as PNG or SVG if a path is given.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.vectors import METRICS, Vectors, similarity, unit_rows
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
)
from firth.maps.layouts import Layout
from firth.maps.pca import Projection, pca

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

PathLike = str | os.PathLike[str]
MAX_WORDS = 60  # rows or columns of a heat map; with more, the numbers are too small to read


def plot_map(
    vectors: Vectors,
    keys: int | Sequence[str] = 150,
    path: PathLike | None = None,
    *,
    highlight: Sequence[str] = (),
    layout: Layout | None = None,
) -> Figure:
    """Plot the given keys, or the first `keys` of the vectors, and highlighted keys on two principal components.

    If a `layout` of the vectors is given, its coordinates are used, and its other points are shown without labels.
    """
    _check_path(path)
    selected = list(vectors.keys[: max(keys, 0)]) if isinstance(keys, int) else list(keys)
    selected = list(dict.fromkeys([*highlight, *selected]))  # highlighted keys first: their labels take precedence
    n_highlighted = len(set(highlight))
    if layout is None:
        projection = _project(vectors, selected)
        points = projection.points
        figure, axes = _plane(points, f"Map of {len(selected):,} vectors", _components(projection))
    else:
        coordinates = dict(zip(layout.keys, layout.xy, strict=True))
        unknown = [key for key in selected if key not in coordinates]
        if unknown:
            raise FirthError(
                "unknown_key",
                "{unknown!r} is not among the {n_points:,} points of this map. Compute a layout with more rows.",
                unknown=unknown[0],
                n_points=len(coordinates),
            )
        points = np.array([coordinates[key] for key in selected], dtype=np.float64).reshape(-1, 2)
        figure, axes = _plane(layout.xy, f"Map of {len(layout.keys):,} vectors", str(layout))
        if len(coordinates) > len(selected):
            size = float(np.clip(20_000 / len(coordinates), 0.3, 8))
            axes.scatter(layout.xy[:, 0], layout.xy[:, 1], s=size, color=MUTED, alpha=0.35, linewidths=0, zorder=1)
    axes.scatter(
        points[n_highlighted:, 0], points[n_highlighted:, 1], s=12, color=BLUE, alpha=0.55, linewidths=0, zorder=2
    )
    axes.scatter(points[:n_highlighted, 0], points[:n_highlighted, 1], s=30, color=ORANGE, linewidths=0, zorder=3)
    labels = [
        Label(key, x, y, ORANGE if row < n_highlighted else INK, row < n_highlighted)
        for row, (key, (x, y)) in enumerate(zip(selected, points, strict=True))
    ]
    _write_labels(figure, axes, labels)
    return _saved(figure, path)


def plot_analogies(vectors: Vectors, pairs: Sequence[tuple[str, str]], path: PathLike | None = None) -> Figure:
    """Plot a line from a to b for each pair, such as country and capital: parallel if the relation is a direction."""
    _check_path(path)
    if not pairs or any(len(pair) != 2 for pair in pairs):
        raise FirthError(
            "invalid_value", "plot_analogies needs a list of word pairs; got {got!r}.", got=list(pairs)[:3]
        )
    words = list(dict.fromkeys(word for pair in pairs for word in pair))
    projection = _project(vectors, words)
    coordinates = dict(zip(words, projection.points, strict=True))
    examples = [f"{a} → {b}" for a, b in pairs[:2]] + ["…"] * (len(pairs) > 2)
    figure, axes = _plane(projection.points, f"{len(pairs)} pairs: {', '.join(examples)}", _components(projection))
    for a, b in pairs:
        axes.plot(
            *np.array([coordinates[a], coordinates[b]]).T, color=MUTED, linewidth=0.9, linestyle=(0, (4, 3)), zorder=1
        )
    along = np.linspace(0, 1, 100)[:, None]
    lines = np.vstack([coordinates[a] * (1 - along) + coordinates[b] * along for a, b in pairs])
    firsts, seconds = {a for a, _ in pairs}, {b for _, b in pairs}
    for members, color in ((firsts, BLUE), (seconds - firsts, ORANGE)):
        points = np.array([coordinates[word] for word in words if word in members]).reshape(-1, 2)
        axes.scatter(points[:, 0], points[:, 1], s=26, color=color, linewidths=0, zorder=2)
    labels = [Label(word, x, y, BLUE if word in firsts else ORANGE) for word, (x, y) in coordinates.items()]
    _write_labels(figure, axes, labels, size=10, obstacles=lines)
    return _saved(figure, path)


def plot_similarity(
    vectors: Vectors, words: Sequence[str], path: PathLike | None = None, metric: str = "cosine"
) -> Figure:
    """Plot the similarity of all pairs of words as a heat map with numbers."""
    _check_path(path)
    check_choice("metric", metric, METRICS)
    if not 2 <= len(words) <= MAX_WORDS:
        raise FirthError(
            "invalid_value",
            "plot_similarity shows 2 to {most} words; got {got}.",
            most=MAX_WORDS,
            got=len(words),
        )
    rows = _rows(vectors, words)
    values = np.array([[similarity(a, b, metric) for b in rows] for a in rows])
    names = {"cosine": "Cosine similarity", "dot": "Dot product", "euclidean": "Euclidean distance"}
    others = values[~np.eye(len(words), dtype=bool)]  # the diagonal would dominate the color scale
    limits = min(0.0, others.min()), max(others.max(), 1e-9)
    colors = "Blues_r" if metric == "euclidean" else "Blues"
    title = f"{names[metric]} of {len(words)} words"
    return _saved(heat_map(values, words, words, title, "darker = nearer", colors, limits), path)


def plot_block(
    values: NDArray[Any],
    rows: Sequence[str],
    columns: Sequence[str],
    path: PathLike | None = None,
    title: str = "",
    note: str = "",
) -> Figure:
    """Plot a block of a matrix, such as PMI (words × contexts) or tf-idf (documents × words), as a heat map."""
    _check_path(path)
    block = np.asarray(values, dtype=np.float64)
    if block.shape != (len(rows), len(columns)) or not 1 <= min(block.shape) <= max(block.shape) <= MAX_WORDS:
        raise FirthError(
            "shape_mismatch",
            "plot_block shows 1 to {most} rows and columns, each with a name; got the shape {got}, {n_rows} row names "
            "and {n_columns} column names.",
            most=MAX_WORDS,
            got=block.shape,
            n_rows=len(rows),
            n_columns=len(columns),
        )
    if not np.isfinite(block).all():
        raise FirthError("non_finite", "plot_block needs finite numbers; got NaN or infinity.")
    signed = block.min() < 0
    most = max(float(np.abs(block).max()), 1e-9)
    colors, limits = ("RdBu_r", (-most, most)) if signed else ("Blues", (0.0, most))
    return _saved(heat_map(block, rows, columns, title, note, colors, limits), path)


def heat_map(
    values: NDArray[np.float64],
    rows: Sequence[str],
    columns: Sequence[str],
    title: str,
    note: str,
    colors: str,
    limits: tuple[float, float],
    shades: NDArray[np.float64] | None = None,
) -> Figure:
    """Plot a heat map with numbers and named rows and columns. `shades` are the values of the colors, if different."""
    shades = values if shades is None else shades
    longest = max(len(name) for name in rows) * 0.07
    figure, axes = new_figure(2.0 + longest + 0.62 * len(columns), 2.2 + 0.62 * len(rows), title, note)
    image = axes.imshow(shades, cmap=colors, vmin=limits[0], vmax=limits[1])
    integers = bool((values == values.round()).all())
    digits = 0 if integers or np.abs(values).max() >= 100 else 2
    luminance = image.to_rgba(shades)[..., :3] @ np.array((0.299, 0.587, 0.114))
    for (row, column), value in np.ndenumerate(values):
        ink = "white" if luminance[row, column] < 0.6 else INK
        axes.text(column, row, f"{value:.{digits}f}", ha="center", va="center", fontsize=9, color=ink)
    axes.set_xticks(range(len(columns)), columns, rotation=40, ha="right", rotation_mode="anchor")
    axes.set_yticks(range(len(rows)), rows)
    for tick in (*axes.get_xticklabels(), *axes.get_yticklabels()):
        tick.set(parse_math=False, fontfamily=fonts(), fontsize=10, color=INK)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)
    return figure


def plot_variance(shares: Sequence[float] | NDArray[Any], path: PathLike | None = None) -> Figure:
    """Plot the cumulative share of a matrix that the first k dimensions explain, which helps to choose their number."""
    _check_path(path)
    values = np.asarray(shares, dtype=np.float64)
    if values.ndim != 1 or not len(values) or not np.isfinite(values).all() or values.min() < 0:
        raise FirthError("invalid_value", "plot_variance needs a 1-D array of finite shares of at least 0.")
    from matplotlib.ticker import MaxNLocator

    total = np.cumsum(values)
    title = f"{total[-1]:.0%} of the matrix in {len(values):,} dimensions"
    figure, axes = new_figure(7.2, 4.6, title, "cumulative share of the sum of squares")
    dims = np.arange(1, len(values) + 1)
    axes.plot(dims, total, color=BLUE, linewidth=1.8, marker="o" if len(values) < 30 else None, markersize=4)
    half = int(np.searchsorted(total, 0.5)) + 1
    if half <= len(values):
        axes.axvline(half, color=MUTED, linewidth=0.8, linestyle=":")
        axes.annotate(f"50% in {half:,}", (half, 0), (6, 8), textcoords="offset points", color=INK, fontsize=9)
    axes.set_ylim(0, min(1.0, total[-1] * 1.05))
    axes.yaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlim(0.5, len(values) + 0.5)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True, min_n_ticks=1))
    axes.set_xlabel("dimensions")
    return _saved(figure, path)


def plot_loss(training: Mapping[str, Any], path: PathLike | None = None) -> Figure:
    """Plot the training loss by epoch, and the held-out loss if there is one, from a model's `training`."""
    _check_path(path)
    epochs = training.get("epochs") if isinstance(training, Mapping) else None  # a number in models from fastText files
    if not isinstance(epochs, Sequence) or not epochs or not all("loss" in epoch for epoch in epochs):
        raise FirthError(
            "unsupported_model",
            "plot_loss(model.training) needs the loss of each epoch, which this model does not have. Models that "
            "Firth trains in epochs, such as SkipGram, have it.",
        )
    from matplotlib.ticker import MaxNLocator

    figure, axes = new_figure(8, 5, "Loss by epoch", f"average over each of {len(epochs)} epochs")
    series = [("training", BLUE, _series(epochs, "loss")), ("held out", ORANGE, _series(epochs, "held_out_loss"))]
    curves = sorted((each for each in series if each[2][1]), key=lambda each: float(each[2][1][-1]))
    shifts = (-6, 6) if len(curves) == 2 else (0,)  # labels of lines with the same end must not overlap
    for (label, color, (numbers, losses)), shift in zip(curves, shifts, strict=True):
        axes.plot(numbers, losses, color=color, marker="o", markersize=5, linewidth=1.8)
        end: dict[str, Any] = {"xytext": (9, shift), "textcoords": "offset points", "va": "center", "fontsize": 10}
        axes.annotate(f"{label}  {losses[-1]:.4g}", (numbers[-1], losses[-1]), color=color, **end)
    axes.set_xlim(0.7, len(epochs) + 0.3)
    axes.xaxis.set_major_locator(MaxNLocator(integer=True))
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_xlabel("epoch")
    axes.set_ylabel("loss")
    return _saved(figure, path)


def plot_zipf(counts: Mapping[str, int] | Sequence[int] | NDArray[Any], path: PathLike | None = None) -> Figure:
    """Plot word frequency by rank on log axes with a fitted power law (Zipf 1935: slope near −1)."""
    _check_path(path)
    words = sorted(counts, key=counts.__getitem__, reverse=True) if isinstance(counts, Mapping) else []
    numbers = [counts[word] for word in words] if isinstance(counts, Mapping) else counts
    frequencies = np.sort(np.asarray(numbers, dtype=np.float64))[::-1]
    if frequencies.ndim != 1 or len(frequencies) < 2 or not (np.isfinite(frequencies) & (frequencies > 0)).all():
        raise FirthError("too_few", "plot_zipf needs at least 2 counts, all above 0.")
    slope, intercept = zipf_fit(frequencies)
    ranks = _spaced(len(frequencies))  # a few hundred points give the same curve as a million
    heights, fitted = frequencies[ranks - 1], np.exp(intercept) * ranks**slope
    note = f"{len(frequencies):,} words, {frequencies.sum():,.0f} occurrences; line fitted evenly over log rank"
    figure, axes = new_figure(8, 6, f"Word frequency by rank: slope {slope:.2f}".replace("-", "−"), note)
    axes.loglog(ranks, fitted, color=ORANGE, linewidth=1.4, linestyle=(0, (5, 3)), zorder=2)
    axes.loglog(ranks, heights, color=BLUE, marker=".", markersize=4, linewidth=1, zorder=3)
    axes.set_xlabel("rank")
    axes.set_ylabel("occurrences")
    axes.grid(color=RULE, linewidth=0.6)
    labeled_ranks = [
        rank for rank in (1, 3, 10, 30, 100, 300, 1000, 3000, 10_000, 30_000, 100_000) if rank <= len(words)
    ]
    labels = [Label(words[rank - 1], rank, frequencies[rank - 1]) for rank in labeled_ranks]
    curves = np.column_stack((np.tile(ranks, 2), np.concatenate((heights, fitted))))
    _write_labels(figure, axes, labels, size=9, obstacles=curves)
    return _saved(figure, path)


def zipf_fit(frequencies: NDArray[np.float64]) -> tuple[float, float]:
    """Fit log frequency by log rank; return slope and intercept. Ranks are evenly spaced in log rank, so that the many
    rare words do not dominate."""
    ranks = _spaced(len(frequencies))
    slope, intercept = np.polyfit(np.log(ranks), np.log(frequencies[ranks - 1]), 1)
    return float(slope), float(intercept)


def _series(epochs: Sequence[Mapping[str, Any]], name: str) -> tuple[list[int], list[float]]:
    measured = [(number, epoch[name]) for number, epoch in enumerate(epochs, 1) if epoch.get(name) is not None]
    return [number for number, _ in measured], [value for _, value in measured]


def _spaced(last: int) -> NDArray[np.int64]:
    """Return ranks from 1 to `last`, evenly spaced in log rank."""
    return np.unique(np.geomspace(1, last, 400).round().astype(np.int64))


def _project(vectors: Vectors, words: Sequence[str]) -> Projection:
    if len(words) < 2:
        raise FirthError("too_few", "A map needs at least {least} words; got {got}.", least=2, got=len(words))
    return pca(unit_rows(_rows(vectors, words)))


def _rows(vectors: Vectors, words: Sequence[str]) -> NDArray[np.float32]:
    rows = vectors.matrix[[vectors.row(word) for word in words]]
    finite = np.isfinite(rows).all(axis=1)
    if not finite.all():
        raise FirthError(
            "non_finite",
            "A plot needs finite vectors; that of {word!r} has NaN or infinity.",
            word=words[int(np.argmin(finite))],
        )
    return rows


def _components(projection: Projection) -> str:
    first, second = projection.explained
    return f"first two principal components of the unit vectors: {first:.0%} and {second:.0%} of their variance"


def _plane(points: NDArray[Any], title: str, note: str) -> tuple[Figure, Axes]:
    figure, axes = new_figure(10, 8, title, note)
    axes.update_datalim(points)
    axes.margins(0.08)
    axes.autoscale_view()
    axes.set_aspect("equal", adjustable="datalim")  # equal scales, so that distances are not distorted
    axes.tick_params(labelleft=False, labelbottom=False, length=0)
    axes.spines[:].set(visible=True, color=RULE)
    return figure, axes


def _write_labels(
    figure: Figure, axes: Axes, labels: Sequence[Label], size: float = 8, obstacles: ArrayLike = ()
) -> None:
    omitted = place_labels(figure, axes, labels, size, obstacles)
    if omitted:
        text = f"{omitted} of {len(labels)} labels omitted for lack of space"
        offset: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right"}
        axes.annotate(text, (1, 1), xytext=(0, 10), fontsize=9, color=MUTED, **offset)


def _check_path(path: PathLike | None) -> None:
    if path is not None:
        check_suffix(path)  # before any computation


def _saved(figure: Figure, path: PathLike | None) -> Figure:
    if path is not None:
        save_figure(figure, path)
    return figure
