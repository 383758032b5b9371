"""Shared parts of all plots: figure style, labels that do not overlap, atomic saving."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.remote import as_path
from firth.core.storage import new_file

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

INK, MUTED, RULE = "#22313f", "#7b8794", "#d9dee3"
BLUE, ORANGE = "#2b6a99", "#c8622b"
DPI = 150
GAP = 4  # pixels between a label and the next on its line
SUFFIXES = (".png", ".svg")
CJK_FONTS = ("Noto Sans CJK SC", "Noto Sans CJK JP", "Source Han Sans", "WenQuanYi Zen Hei", "PingFang SC", "SimHei")


def new_figure(width: float, height: float, title: str, subtitle: str) -> tuple[Figure, Axes]:
    """Return an empty figure; the size is in inches. The title says what is shown, the subtitle how it was computed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # no pyplot: nothing global, no window, works in threads
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)  # keeps one renderer for measuring all labels
    axes = figure.add_subplot()
    font: dict[str, Any] = {"parse_math": False, "fontfamily": fonts()}  # "$" in a word is not math
    axes.set_title(title, loc="left", pad=26, fontsize=13, fontweight="bold", color=INK, **font)
    offset: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(subtitle, (0, 1), xytext=(0, 10), fontsize=9, color=MUTED, **offset, **font)
    style(axes)
    return figure, axes


def style(axes: Axes) -> None:
    """Apply the style of all plots to axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(which="both", colors=MUTED, labelsize=9, length=3)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def fonts() -> list[str]:
    """Return matplotlib's default font, and the installed fonts with Chinese, Japanese and Korean characters."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in CJK_FONTS if name in installed)]


class Label(NamedTuple):
    """A text at a point. Earlier labels take precedence over later ones."""

    text: str
    x: float
    y: float
    color: str = INK
    bold: bool = False


def place_labels(
    figure: Figure, axes: Axes, labels: Sequence[Label], size: float = 8, obstacles: ArrayLike = ()
) -> int:
    """Write labels beside their points without overlap, and return how many were omitted for lack of space.

    Labels avoid all points and `obstacles`, which are further points such as those of a line, as far as possible.
    """
    figure.draw_without_rendering()  # fixes the layout, which determines pixel coordinates
    figure.set_layout_engine("none")
    frame = axes.get_window_extent()
    points = axes.transData.transform(np.reshape([(label.x, label.y) for label in labels], (-1, 2)))
    obstacle_points = np.vstack((points, axes.transData.transform(np.reshape(obstacles, (-1, 2)))))
    occupied = np.empty((0, 4))
    omitted = 0
    font_families = fonts()
    for label, point in zip(labels, points, strict=True):
        text = axes.text(
            label.x, label.y, label.text, fontsize=size, color=label.color, parse_math=False, zorder=4,
            fontweight="bold" if label.bold else "normal", fontfamily=font_families, ha="left", va="bottom",
        )  # fmt: skip
        extent = text.get_window_extent()
        boxes = _boxes_around(point, extent.width, extent.height)
        is_inside = (boxes[:, :2] >= (frame.x0, frame.y0)).all(axis=1) & (boxes[:, 2:] <= (frame.x1, frame.y1)).all(
            axis=1
        )
        is_free = is_inside & ~_overlaps(boxes, occupied).any(axis=1)
        if not is_free.any():
            text.remove()
            omitted += 1
            continue
        overlaps = _overlaps(boxes, np.hstack((obstacle_points, obstacle_points))).sum(axis=1)
        box = boxes[np.where(is_free, overlaps, np.iinfo(np.int64).max).argmin()]
        x, y = axes.transData.inverted().transform(box[:2])
        text.set_position((x, y))
        occupied = np.vstack((occupied, box + np.array((-GAP, -1, GAP, 1))))
    return omitted


def warn_missing_glyphs(figure: Figure) -> None:
    """Warn about characters that are drawn as boxes, because no installed font has them."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    characters = {character for text in texts for character in text if not character.isspace()}
    available = set().union(*(get_font(findfont(name)).get_charmap() for name in fonts()))
    missing = sorted(character for character in characters if ord(character) not in available)
    if missing:
        text = f"No installed font has {len(missing):,} of the characters ({' '.join(missing[:5])}); they are drawn as "
        text += "boxes. Install a font such as Noto Sans CJK."
        warnings.warn(FirthWarning(text, "missing_glyphs"), stacklevel=3)


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Write a PNG or SVG, by suffix, atomically."""
    from matplotlib import rc_context

    target = as_path(path)
    check_suffix(str(target))
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else {"Software": None}
    warn_missing_glyphs(figure)
    with new_file(target) as temporary, rc_context({"svg.hashsalt": "firth"}):  # reproducible bytes
        figure.savefig(temporary, format=target.suffix[1:].lower(), metadata=metadata)


def check_suffix(path: str | os.PathLike[str]) -> None:
    """Refuse a path that is neither PNG nor SVG."""
    suffix = as_path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise FirthError(
            "unknown_format",
            "A plot must be saved as {suffixes}; got {got!r}.",
            suffixes=" or ".join(SUFFIXES),
            got=os.fspath(path),
        )


def _boxes_around(point: NDArray[np.float64], width: float, height: float) -> NDArray[np.float64]:
    """Return candidate boxes for a label around a point, best first, as (left, bottom, right, top) in pixels."""
    sides = [(1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)]
    lower_left = [
        (point[0] + (across - 1) * width / 2 + across * gap, point[1] + (up - 1) * height / 2 + up * gap)
        for gap in (8.0, 16.0)
        for across, up in sides
    ]
    corners = np.array(lower_left)
    return np.hstack((corners, corners + np.array((width, height))))


def _overlaps(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Return which boxes overlap which others, as boxes × others. A point counts as a box without area."""
    apart = (boxes[:, None, 2:] < others[None, :, :2]) | (boxes[:, None, :2] > others[None, :, 2:])
    return np.asarray(~apart.any(axis=2))
