"""Plots for autoencoders: latent codes, reconstructed and generated images, column distributions, loss terms."""

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

#: Distinguishable colors, also for color-blind readers (Okabe & Ito 2008, Tol 2021).
COLORS = ("#2b6a99", "#c8622b", "#3f8f5f", "#a8538b", "#b59b00", "#5b5ea6", "#7a9a01", "#d1495b", "#4ba3a8", "#8c6d46")
MAX_CLASSES = len(COLORS)
MAX_BARS = 12  # most frequent categories of a column that get a bar


def plot_codes(
    codes: ArrayLike, labels: Sequence[str] | None = None, path: PathLike | None = None, *, title: str = ""
) -> Figure:
    """Plot one point per row at its latent code; codes with more than two dimensions are projected with PCA. Labels
    color the points and are written at the median of their points."""
    _check(path)
    points = np.asarray(codes, dtype=np.float64)
    if points.ndim != 2 or len(points) < 2 or points.shape[1] < 2 or not np.isfinite(points).all():
        raise FirthError(
            "non_finite",
            "plot_codes needs at least 2 rows of at least 2 finite values; got the shape {got}.",
            got=points.shape,
        )
    if labels is not None and len(labels) != len(points):
        raise FirthError(
            "shape_mismatch",
            "There must be one label per code; got {n_labels:,} labels for {n_codes:,} codes.",
            n_labels=len(labels),
            n_codes=len(points),
        )
    subtitle = "one point per row, at its code"
    if points.shape[1] > 2:
        projection = pca(points)
        subtitle = f"first two principal components: {sum(projection.explained):.0%} of the variance of the codes"
        points = projection.points
    figure, axes = new_figure(9, 8, title or f"Codes of {len(points):,} rows", subtitle)
    names = list(dict.fromkeys(labels or ()))
    classes = sorted(names) if 1 < len(names) <= MAX_CLASSES else []
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
        font: dict[str, Any] = {"parse_math": False, "fontfamily": fonts(), "ha": "center", "va": "center"}
        box = {"boxstyle": "round,pad=0.25", "facecolor": "white", "edgecolor": color, "linewidth": 1.2, "alpha": 0.9}
        axes.text(x, y, str(name), color=color, fontsize=12, fontweight="bold", zorder=4, bbox=box, **font)
    axes.set_aspect("equal", adjustable="datalim")
    axes.tick_params(labelleft=False, labelbottom=False, length=0)
    axes.spines[:].set(visible=True, color=RULE)
    return _saved(figure, path)


def _shade(figure: Figure, axes: Axes, points: NDArray[np.float64], labels: Sequence[str]) -> None:
    """Plot points whose labels are numbers, with a color scale."""
    try:
        values = np.array([float(label) for label in labels])
    except ValueError:
        n_labels = len(set(labels))
        raise FirthError(
            "invalid_value",
            "Labels must be numbers, or 2 to {most} different strings; got {got:,} different strings.",
            most=MAX_CLASSES,
            got=n_labels,
        ) from None
    scatter = axes.scatter(points[:, 0], points[:, 1], s=14, c=values, cmap="viridis", alpha=0.75, linewidths=0)
    bar = figure.colorbar(scatter, ax=axes, shrink=0.6, aspect=30)
    bar.outline.set_visible(False)
    bar.ax.tick_params(colors=MUTED, labelsize=9, length=3)


def plot_images(
    rows: Mapping[str, ArrayLike], shape: tuple[int, int], path: PathLike | None = None, *, title: str = ""
) -> Figure:
    """Plot rows of grayscale images with height × width pixels, each row with its name. All share one color scale."""
    _check(path)
    image_rows = {name: np.asarray(image, dtype=np.float64) for name, image in rows.items()}
    size = shape[0] * shape[1]
    if not image_rows or any(
        images.ndim != 2 or images.shape[1] != size or not len(images) for images in image_rows.values()
    ):
        shapes = {name: images.shape for name, images in image_rows.items()}
        raise FirthError(
            "shape_mismatch",
            "plot_images needs rows of {height} × {width} = {size} pixels; got {got}.",
            height=shape[0],
            width=shape[1],
            size=size,
            got=shapes,
        )
    columns, first = max(map(len, image_rows.values())), next(iter(image_rows.values()))
    low, high = float(first.min()), float(first.max())
    gap = 1  # pixels between images, and a space between lines
    height, width = shape[0] + gap, shape[1] + gap
    row_gap = max(2, shape[0] // 3)
    canvas = np.full((len(image_rows) * (height + row_gap) - row_gap, columns * width), np.nan)
    row_centers = []
    for position, images in enumerate(image_rows.values()):
        top = position * (height + row_gap)
        row_centers.append(top + shape[0] / 2 - 0.5)
        for number, image in enumerate(images):
            left = number * width
            canvas[top : top + shape[0], left : left + shape[1]] = image.reshape(shape)
    inches = 10 / max(columns * width, 1)
    figure, axes = new_figure(
        12, 1.3 + inches * len(canvas), title, f"{shape[0]} × {shape[1]} pixels, one scale for all"
    )
    axes.imshow(canvas, cmap="Blues", vmin=low, vmax=high, interpolation="nearest")
    axes.set_yticks(row_centers, list(image_rows))
    for tick in axes.get_yticklabels():
        tick.set(parse_math=False, fontfamily=fonts(), fontsize=11, color=INK)
    axes.set_xticks([])
    axes.tick_params(length=0)
    axes.spines[:].set_visible(False)
    return _saved(figure, path)


def plot_columns(
    real: Mapping[str, Sequence[Any]], generated: Mapping[str, Sequence[Any]], path: PathLike | None = None
) -> Figure:
    """Compare the distribution of each column in real and generated rows: histograms of numbers, bars of the most
    frequent categories."""
    _check(path)
    names = [name for name in real if name in generated]
    if not names:
        raise FirthError("shape_mismatch", "plot_columns needs real and generated rows with columns of the same names.")
    n_columns = min(4, len(names))
    n_rows = -(-len(names) // n_columns)
    caption = f"shares of {_length(real):,} real rows (blue) and {_length(generated):,} generated rows (orange)"
    figure, empty_axes = new_figure(3.2 * n_columns + 0.6, 2.3 * n_rows + 1.2, "", "")
    empty_axes.remove()
    font: dict[str, Any] = {"x": 0.02, "ha": "left", "fontfamily": fonts()}
    figure.suptitle(f"{len(names)} columns, real and generated", fontsize=13, fontweight="bold", color=INK, **font)
    figure.supxlabel(caption, fontsize=9, color=MUTED, **font)
    grid = figure.add_gridspec(n_rows, n_columns)
    for position, name in enumerate(names):
        axes = figure.add_subplot(grid[position // n_columns, position % n_columns])
        _one_column(axes, _present(real[name]), _present(generated[name]))
        axes.set_title(name, loc="left", fontsize=10, color=INK, parse_math=False, fontfamily=fonts())
        axes.spines[["top", "right", "left"]].set_visible(False)
        axes.spines["bottom"].set_color(RULE)
        axes.tick_params(colors=MUTED, labelsize=8, length=2, labelleft=False, left=False)
    return _saved(figure, path)


def _one_column(axes: Axes, real: list[Any], generated: list[Any]) -> None:
    if not real or not generated:
        axes.text(0.5, 0.5, "all missing", ha="center", va="center", color=MUTED, transform=axes.transAxes)
        return
    if all(isinstance(value, (int, float)) and not isinstance(value, bool) for value in real + generated):
        edges = np.histogram_bin_edges(np.array(real, dtype=float), bins=min(30, max(2, len(set(real)))))
        for values, color, filled in ((real, BLUE, True), (generated, ORANGE, False)):
            shares = np.histogram(values, edges)[0] / len(values)
            axes.stairs(shares, edges, color=color, fill=filled, alpha=0.45 if filled else 1.0, linewidth=1.6)
        return
    counts = {value: real.count(value) for value in dict.fromkeys(real)}
    shown = sorted(counts, key=lambda value: -counts[value])[:MAX_BARS]
    x = np.arange(len(shown))
    axes.bar(x, [counts[value] / len(real) for value in shown], color=BLUE, alpha=0.45, width=0.8)
    heights = [generated.count(value) / len(generated) for value in shown]
    axes.hlines(heights, x - 0.4, x + 0.4, color=ORANGE, linewidth=2)
    axes.set_xticks(x, [str(value)[:12] for value in shown], rotation=30, ha="right", rotation_mode="anchor")
    for tick in axes.get_xticklabels():
        tick.set(parse_math=False, fontfamily=fonts())


def plot_parts(training: Mapping[str, Any], path: PathLike | None = None) -> Figure:
    """Plot the terms of a VAE's loss on held-out rows during training: the reconstruction loss and the KL
    divergence."""
    _check(path)
    measurements = [measurement for measurement in training.get("held_out", ()) if "kl" in measurement]
    if len(measurements) < 2:
        raise FirthError(
            "unsupported_model", "plot_parts needs the held-out metrics of a VAE; this model has none (held_out=0?)."
        )
    fractions = [measurement["share"] for measurement in measurements]
    reconstruction, kl = (
        np.array([measurement[name] for measurement in measurements]) for name in ("reconstruction", "kl")
    )
    figure, axes = new_figure(
        8.5, 5, "Loss by part", "nats per held-out row; negative if the predicted densities exceed 1"
    )
    lines = [("loss (−ELBO)", reconstruction + kl, INK), ("reconstruction", reconstruction, BLUE), ("KL", kl, ORANGE)]
    for _, values, color in lines:
        axes.plot(fractions, values, color=color, linewidth=1.8, marker="o", markersize=3.5)
    label_height = 0.05 * (axes.get_ylim()[1] - axes.get_ylim()[0])
    lowest = -np.inf
    for name, values, color in sorted(lines, key=lambda line: float(line[1][-1])):
        lowest = max(float(values[-1]), lowest + label_height)  # labels of lines with the same end must not overlap
        end: dict[str, Any] = {"xytext": (9, 0), "textcoords": "offset points", "va": "center", "fontsize": 10}
        text = f"{name}  {values[-1]:.4g}".replace("-", "−")
        axes.annotate(text, (fractions[-1], lowest), color=color, annotation_clip=False, **end)
    axes.axhline(0, color=RULE, linewidth=0.8, zorder=0)
    axes.xaxis.set_major_formatter(lambda value, _: f"{value:.0%}")
    axes.set_xlim(0, 1.0)
    axes.grid(axis="y", color=RULE, linewidth=0.6)
    axes.set_xlabel("training progress")
    axes.set_ylabel("nats")
    return _saved(figure, path)


def _present(values: Sequence[Any]) -> list[Any]:
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
