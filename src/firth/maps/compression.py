"""Pictures of rows that were squeezed, rebuilt and made up: codes on a plane, images, columns, the parts of a loss."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError
from firth.maps.drawing import BLUE, INK, MUTED, ORANGE, RULE, check_suffix, fonts, new_figure, save_figure
from firth.maps.pca import pca
from firth.maps.plots import PathLike

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

#: Colours that are told apart, also by those who see few of them (Okabe & Ito 2008, Tol 2021).
COLORS = ("#2b6a99", "#c8622b", "#3f8f5f", "#a8538b", "#b59b00", "#5b5ea6", "#7a9a01", "#d1495b", "#4ba3a8", "#8c6d46")
MOST_CLASSES = len(COLORS)
MOST_BARS = 12  # categories of a column that are shown one by one


def plot_codes(
    codes: ArrayLike, labels: Sequence[str] | None = None, path: PathLike | None = None, *, title: str = ""
) -> Figure:
    """A point a row where its code lies; codes of more than two numbers on the plane of their principal components.
    Labels colour the points and are written where most of theirs are."""
    _check(path)
    points = np.asarray(codes, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] < 2 or not np.isfinite(points).all():
        raise FirthError(
            "non_finite",
            "plot_codes needs 2 rows or more of at least 2 finite numbers; got the shape {got}.",
            got=points.shape,
        )
    if labels is not None and len(labels) != len(points):
        raise FirthError(
            "shape_mismatch",
            "There must be a label for each code; got {got:,} for {n_points:,}.",
            got=len(labels),
            n_points=len(points),
        )
    note = "each point a row, where its code lies"
    if points.shape[1] > 2:
        seen = pca(points)
        note = f"the plane of two principal components: {sum(seen.explained):.0%} of what the codes vary by"
        points = seen.points
    figure, axes = new_figure(9, 8, title or f"Codes of {len(points):,} rows", note)
    names = list(dict.fromkeys(labels or ()))
    classes = sorted(names) if 1 < len(names) <= MOST_CLASSES else []
    if labels is not None and not classes:
        _shade(figure, axes, points, labels)
    elif not classes:
        axes.scatter(points[:, 0], points[:, 1], s=14, color=BLUE, alpha=0.6, linewidths=0)
    for color, name in zip(COLORS, classes, strict=False):
        here = points[np.array(labels) == name]
        axes.scatter(here[:, 0], here[:, 1], s=14, color=color, alpha=0.55, linewidths=0, zorder=2)
    for color, name in zip(COLORS, classes, strict=False):
        here = points[np.array(labels) == name]
        x, y = np.median(here, axis=0)
        words: dict[str, Any] = {"parse_math": False, "fontfamily": fonts(), "ha": "center", "va": "center"}
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": color, "linewidth": 1.2, "alpha": 0.9}
        axes.text(x, y, str(name), color=color, fontsize=12, fontweight="bold", zorder=4, bbox=box, **words)
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelleft=False, labelbottom=False, length=0)
    axes.spines[:].set(visible=True, color=RULE)
    return _saved(figure, path)


def _shade(figure: Figure, axes: Axes, points: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Labels that are numbers, from light to dark."""
    try:
        values = np.array([float(label) for label in labels])
    except ValueError:
        found = len(set(labels))
        raise FirthError(
            "invalid_value",
            "Labels are numbers, or 2 to {most_classes} different texts; got {got:,}.",
            most_classes=MOST_CLASSES,
            got=found,
        ) from None
    drawn = axes.scatter(points[:, 0], points[:, 1], s=14, c=values, cmap="viridis", alpha=0.75, linewidths=0)
    bar = figure.colorbar(drawn, ax=axes, shrink=0.6, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=9, length=3)


def plot_images(
    rows: Mapping[str, ArrayLike], shape: tuple[int, int], path: PathLike | None = None, *, title: str = ""
) -> Figure:
    """Lines of images, each under its name: rows of height × width pixels, from white to dark. All share one scale."""
    _check(path)
    lines = {name: np.asarray(pixels, dtype=np.float64) for name, pixels in rows.items()}
    size = shape[0] * shape[1]
    if not lines or any(line.ndim != 2 or line.shape[1] != size or not len(line) for line in lines.values()):
        shapes = {name: line.shape for name, line in lines.items()}
        raise FirthError(
            "shape_mismatch",
            "plot_images needs rows of {shape} × {shape_2} = {size} pixels; got {got}.",
            shape=shape[0],
            shape_2=shape[1],
            size=size,
            got=shapes,
        )
    across, first = max(map(len, lines.values())), next(iter(lines.values()))
    low, high = float(first.min()), float(first.max())
    gap = 1  # pixels between images, and a space between lines
    height, width = shape[0] + gap, shape[1] + gap
    between = max(2, shape[0] // 3)
    sheet = np.full((len(lines) * (height + between) - between, across * width), np.nan)
    middles = []
    for place, line in enumerate(lines.values()):
        top = place * (height + between)
        middles.append(top + shape[0] / 2 - 0.5)
        for number, pixels in enumerate(line):
            left = number * width
            sheet[top : top + shape[0], left : left + shape[1]] = pixels.reshape(shape)
    inches = 10 / max(across * width, 1)
    figure, axes = new_figure(
        12, 1.3 + inches * len(sheet), title, f"{shape[0]} × {shape[1]} pixels, one scale for all"
    )
    axes.imshow(sheet, cmap="Blues", vmin=low, vmax=high, interpolation="nearest")
    axes.set_yticks(middles, list(lines))
    for tick in axes.get_yticklabels():
        tick.set(parse_math=False, fontfamily=fonts(), fontsize=11, color=INK)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return _saved(figure, path)


def plot_columns(
    real: Mapping[str, Sequence[Any]], made_up: Mapping[str, Sequence[Any]], path: PathLike | None = None
) -> Figure:
    """How often each value stands in each column of real rows and of made-up ones: numbers in bins, categories one by
    one (the most frequent of them)."""
    _check(path)
    names = [name for name in real if name in made_up]
    if not names:
        raise FirthError("shape_mismatch", "plot_columns needs real and made-up rows with columns of the same names.")
    across = min(4, len(names))
    down = -(-len(names) // across)
    note = f"shares of {_length(real):,} real rows (blue) and {_length(made_up):,} made-up ones (orange)"
    figure, frame = new_figure(3.2 * across + 0.6, 2.3 * down + 1.2, "", "")
    frame.remove()
    words: dict[str, Any] = {"x": 0.02, "ha": "left", "fontfamily": fonts()}
    figure.suptitle(f"{len(names)} columns, real and made up", fontsize=13, fontweight="bold", color=INK, **words)
    figure.supxlabel(note, fontsize=9, color=MUTED, **words)
    grid = figure.add_gridspec(down, across)
    for place, name in enumerate(names):
        axes = figure.add_subplot(grid[place // across, place % across])
        _one_column(axes, _known(real[name]), _known(made_up[name]))
        axes.set_title(name, loc="left", fontsize=10, color=INK, parse_math=False, fontfamily=fonts())
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(RULE)
        axes.tick_params(colors=MUTED, labelsize=8, length=2, labelleft=False, left=False)
    return _saved(figure, path)


def _one_column(axes: Axes, real: list[Any], made_up: list[Any]) -> None:
    if not real or not made_up:
        axes.text(0.5, 0.5, "all missing", ha="center", va="center", color=MUTED, transform=axes.transAxes)
        return
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in real + made_up):
        edges = np.histogram_bin_edges(np.array(real, dtype=float), bins=min(30, max(2, len(set(real)))))
        for values, color, filled in ((real, BLUE, True), (made_up, ORANGE, False)):
            shares = np.histogram(values, edges)[0] / len(values)
            axes.stairs(shares, edges, color=color, fill=filled, alpha=0.45 if filled else 1.0, linewidth=1.6)
        return
    counts = {value: real.count(value) for value in dict.fromkeys(real)}
    shown = sorted(counts, key=lambda value: -counts[value])[:MOST_BARS]
    x = np.arange(len(shown))
    axes.bar(x, [counts[value] / len(real) for value in shown], color=BLUE, alpha=0.45, width=0.8)
    heights = [made_up.count(value) / len(made_up) for value in shown]
    axes.hlines(heights, x - 0.4, x + 0.4, color=ORANGE, linewidth=2)
    axes.set_xticks(x, [str(value)[:12] for value in shown], rotation=30, ha="right", rotation_mode="anchor")
    for tick in axes.get_xticklabels():
        tick.set(parse_math=False, fontfamily=fonts())


def plot_parts(training: Mapping[str, Any], path: PathLike | None = None) -> Figure:
    """The parts of a variational loss on held-out rows as the run went on: what rebuilding costs, and what the codes
    tell (KL)."""
    _check(path)
    found = [measured for measured in training.get("held_out", ()) if "kl" in measured]
    if len(found) < 2:
        raise FirthError(
            "unsupported_model", "plot_parts needs the held-out figures of a VAE; this model has none (held_out=0?)."
        )
    shares = [measured["share"] for measured in found]
    rebuilding, kl = (np.array([measured[name] for measured in found]) for name in ("reconstruction", "kl"))
    figure, axes = new_figure(8.5, 5, "Loss by part", "nats a held-out row; below 0 where numbers are told precisely")
    lines = [("loss (−ELBO)", rebuilding + kl, INK), ("rebuilding", rebuilding, BLUE), ("KL", kl, ORANGE)]
    for _, values, color in lines:
        axes.plot(shares, values, color=color, linewidth=1.8, marker="o", markersize=3.5)
    room = 0.05 * (axes.get_ylim()[1] - axes.get_ylim()[0])  # the height of a label
    lowest = -np.inf
    for name, values, color in sorted(lines, key=lambda line: float(line[1][-1])):
        lowest = max(float(values[-1]), lowest + room)  # lines that end together keep their labels apart
        end: dict[str, Any] = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": 10}
        text = f"{name}  {values[-1]:.4g}".replace("-", "−")
        axes.annotate(text, (shares[-1], lowest), color=color, annotation_clip=False, **end)
    axes.axhline(0, color=RULE, linewidth=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlim(0, 1.0)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_xlabel("of the run")
    axes.set_ylabel("nats")
    return _saved(figure, path)


def _known(values: Sequence[Any]) -> list[Any]:
    return [value for value in values if value is not None and value == value]


def _length(columns: Mapping[str, Sequence[Any]]) -> int:
    return len(next(iter(columns.values())))


def _check(path: PathLike | None) -> None:
    if path is not None:
        check_suffix(path)


def _saved(figure: Figure, path: PathLike | None) -> Figure:
    if path is not None:
        save_figure(figure, path)
    return figure
