"""What all plots share: a sober figure, labels that keep out of each other's way, a file whole or not at all."""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from firth.core.errors import FirthError, FirthWarning
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


def new_figure(width: float, height: float, title: str, note: str) -> tuple[Figure, Axes]:
    """An empty figure in inches; `title` says what is shown, the smaller `note` how it was made."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure  # no pyplot: nothing global, no window, works in threads
    from matplotlib.layout_engine import ConstrainedLayoutEngine

    layout = ConstrainedLayoutEngine(w_pad=0.2, h_pad=0.2)
    figure = Figure(figsize=(width, height), dpi=DPI, facecolor="white", layout=layout)
    FigureCanvasAgg(figure)  # keeps one renderer for measuring all labels
    axes = figure.add_subplot()
    words: dict[str, Any] = {"parse_math": False, "fontfamily": fonts()}  # "$" in a word is a dollar
    axes.set_title(title, loc="left", pad=26, fontsize=13, fontweight="bold", color=INK, **words)
    beside: dict[str, Any] = {"xycoords": "axes fraction", "textcoords": "offset points"}
    axes.annotate(note, (0, 1), xytext=(0, 10), fontsize=9, color=MUTED, **beside, **words)
    style(axes)
    return figure, axes


def style(axes: Axes) -> None:
    """Quiet axes."""
    axes.spines[["top", "right"]].set_visible(False)
    axes.spines[["left", "bottom"]].set_color(RULE)
    axes.tick_params(which="both", colors=MUTED, labelsize=9, length=3)
    axes.xaxis.label.set_color(INK)
    axes.yaxis.label.set_color(INK)


def fonts() -> list[str]:
    """matplotlib's own font, then whichever installed one has Chinese, Japanese and Korean characters."""
    from matplotlib import font_manager

    installed = set(font_manager.get_font_names())
    return ["DejaVu Sans", *(name for name in CJK_FONTS if name in installed)]


class Label(NamedTuple):
    """A word at a point; of two labels that compete for room, the earlier one wins."""

    text: str
    x: float
    y: float
    color: str = INK
    bold: bool = False


def place_labels(
    figure: Figure, axes: Axes, labels: Sequence[Label], size: float = 8, obstacles: ArrayLike = ()
) -> int:
    """Writes labels beside their points, none over another; how many found no room and were left out.

    They keep clear of all points and of `obstacles`, further points such as those of a line, as far as possible.
    """
    figure.draw_without_rendering()  # fixes the layout: from here on pixels are known
    figure.set_layout_engine("none")
    frame = axes.get_window_extent()
    points = axes.transData.transform(np.reshape([(label.x, label.y) for label in labels], (-1, 2)))
    avoid = np.vstack((points, axes.transData.transform(np.reshape(obstacles, (-1, 2)))))
    taken = np.empty((0, 4))
    left_out = 0
    families = fonts()
    for label, point in zip(labels, points, strict=True):
        text = axes.text(
            label.x, label.y, label.text, fontsize=size, color=label.color, parse_math=False, zorder=4,
            fontweight="bold" if label.bold else "normal", fontfamily=families, ha="left", va="bottom",
        )  # fmt: skip
        extent = text.get_window_extent()
        boxes = _boxes_around(point, extent.width, extent.height)
        inside = (boxes[:, :2] >= (frame.x0, frame.y0)).all(axis=1) & (boxes[:, 2:] <= (frame.x1, frame.y1)).all(axis=1)
        free = inside & ~_overlaps(boxes, taken).any(axis=1)
        if not free.any():
            text.remove()
            left_out += 1
            continue
        covered = _overlaps(boxes, np.hstack((avoid, avoid))).sum(axis=1)
        box = boxes[np.where(free, covered, np.iinfo(np.int64).max).argmin()]
        x, y = axes.transData.inverted().transform(box[:2])
        text.set_position((x, y))
        taken = np.vstack((taken, box + np.array((-GAP, -1, GAP, 1))))
    return left_out


def tell_missing(figure: Figure) -> None:
    """A note where letters are drawn as boxes, since no installed font has them."""
    from matplotlib.font_manager import findfont, get_font
    from matplotlib.text import Text

    texts = [text.get_text() for text in figure.findobj(Text) if isinstance(text, Text)]
    drawn = {letter for text in texts for letter in text if not letter.isspace()}
    known = set().union(*(get_font(findfont(name)).get_charmap() for name in fonts()))
    missing = sorted(letter for letter in drawn if ord(letter) not in known)
    if missing:
        warnings.warn(
            f"No installed font has {len(missing):,} of the characters ({' '.join(missing[:5])}): boxes are drawn. "
            "A font such as Noto Sans CJK, installed, is found by itself.",
            FirthWarning,
            stacklevel=3,
        )


def save_figure(figure: Figure, path: str | os.PathLike[str]) -> None:
    """Writes a PNG or SVG, as the suffix says, to a temporary sibling that then takes the name."""
    from matplotlib import rc_context

    target = Path(path)
    check_suffix(target)
    metadata = {"Date": None} if target.suffix.lower() == ".svg" else {"Software": None}
    tell_missing(figure)
    with new_file(target) as work, rc_context({"svg.hashsalt": "firth"}):  # the same picture is the same bytes
        figure.savefig(work, format=target.suffix[1:].lower(), metadata=metadata)


def check_suffix(path: str | os.PathLike[str]) -> None:
    suffix = Path(path).suffix
    if suffix.lower() not in SUFFIXES:
        raise FirthError(
            "unknown_format",
            "A plot is saved as {suffixes}; got {got!r}.",
            suffixes=" or ".join(SUFFIXES),
            got=os.fspath(path),
        )


def _boxes_around(point: NDArray[np.float64], width: float, height: float) -> NDArray[np.float64]:
    """Places for a label about a point, best first, as (left, bottom, right, top) in pixels."""
    sides = [(1, 0), (0, 1), (0, -1), (-1, 0), (1, 1), (1, -1), (-1, 1), (-1, -1)]
    lower_left = [
        (point[0] + (across - 1) * width / 2 + across * gap, point[1] + (up - 1) * height / 2 + up * gap)
        for gap in (8.0, 16.0)
        for across, up in sides
    ]
    corners = np.array(lower_left)
    return np.hstack((corners, corners + np.array((width, height))))


def _overlaps(boxes: NDArray[np.float64], others: NDArray[np.float64]) -> NDArray[np.bool_]:
    """boxes × others; a box that is a point overlaps what it lies in."""
    apart = (boxes[:, None, 2:] < others[None, :, :2]) | (boxes[:, None, :2] > others[None, :, 2:])
    return np.asarray(~apart.any(axis=2))
