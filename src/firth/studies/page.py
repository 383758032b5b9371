"""A comparison as one self-contained HTML file: the table, a plot of each measure, and the overlap of models."""

from __future__ import annotations

import html
import io
import os
import re
from pathlib import Path
from string import Template
from typing import TYPE_CHECKING, Any

import numpy as np

from firth.core.notebook import html_table
from firth.core.remote import as_path
from firth.core.storage import new_file
from firth.evaluate.layout import decimal
from firth.maps.drawing import BLUE, INK, MUTED, ORANGE, RULE, style
from firth.studies.comparison import Comparison, Measure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

#: The colors that matplotlib writes into the SVG, replaced by the page's variables so that they follow its theme.
THEMED = {INK: "var(--ink)", MUTED: "var(--muted)", RULE: "var(--rule)", BLUE: "var(--blue)", ORANGE: "var(--orange)"}
HEADER = re.compile(r"\A.*?(?=<svg)", re.DOTALL)  # <?xml … and <!DOCTYPE …
GROUP_IDS = re.compile(r'<g id="[^"]*"')  # figure_1, axes_1: repeated in every picture and never referred to
MARKED = re.compile(r"(±[\d.]+) ([*≈† ])</td>")
BEST = re.compile(r'<td class="number">([^<]*<span class="mark">\*)')
METADATA = re.compile(r"\s*<metadata>.*?</metadata>", re.DOTALL)


def write_report(comparison: Comparison, path: str | os.PathLike[str]) -> None:
    """Write the report; the file is replaced only when it is complete."""
    plots = [(measure.what, forest_plot(measure, comparison.models)) for measure in comparison.measures]
    if comparison.overlap and len(comparison.models) > 1:
        plots.append(
            (f"share of the 10 nearest that two models agree on: {comparison.overlap_of}", heat_map(comparison))
        )
    figure_html = "\n".join(
        f"<figure>{picture(figure, f'plot{number}', what)}<figcaption>{html.escape(what)}</figcaption></figure>"
        for number, (what, figure) in enumerate(plots)
    )
    *lines, recommendation = comparison.lines()
    template = Template(Path(__file__).with_name("report.html").read_text(encoding="utf-8"))
    page = template.substitute(
        title=html.escape(" · ".join(comparison.models)),
        recommendation=html.escape(recommendation),
        table=table_html(comparison),
        lines="".join(f"<p>{html.escape(line)}</p>" for line in lines),
        figures=figure_html,
    )
    with new_file(as_path(path)) as work:
        work.write_text(page, encoding="utf-8")


def table_html(comparison: Comparison) -> str:
    """Return the table with aligned numbers, marks in elements of their own, and the best in bold."""
    table = html_table(*comparison.table()).replace(' style="text-align:right"', ' class="number"')
    table = MARKED.sub(r'\1<span class="mark">\2</span></td>', table.replace("<th></th>", "<th>measure</th>", 1))
    return BEST.sub(r'<td class="number best">\1', table)


def forest_plot(measure: Measure, models: list[str]) -> Figure:
    """Plot one line per model: its score and interval, filled if it is the best or not distinguishable from it."""
    names = [name for name in (*models, measure.baseline_name) if name in measure.scores]
    figure, axes = empty_figure(4.6, 0.9 + 0.32 * len(names))
    for y, name in enumerate(names):
        score = measure.scores[name]
        color = MUTED if name == measure.baseline_name else BLUE
        axes.plot([score.low, score.high], [y, y], color=color, linewidth=2.2, solid_capstyle="round")
        face = color if measure.is_best(name) or color == MUTED else "none"
        axes.plot([score.value], [y], "o", markersize=7, color=color, markerfacecolor=face, markeredgewidth=1.6)
        axes.annotate(
            decimal(score.value), (1.02, y), xycoords=("axes fraction", "data"), va="center", fontsize=9, color=INK
        )
    marks = [" †" if name in measure.excluded else "" for name in names]
    axes.set_yticks(range(len(names)), [label_text(name) + mark for name, mark in zip(names, marks, strict=True)])
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.set_title(measure.name, loc="left", fontsize=11, fontweight="bold", color=INK)
    axes.locator_params(axis="x", nbins=5)
    axes.grid(axis="x", color=RULE, linewidth=0.6)
    axes.set_axisbelow(True)
    axes.tick_params(axis="y", length=0, labelcolor=INK)
    axes.spines["left"].set_visible(False)
    return figure


def heat_map(comparison: Comparison) -> Figure:
    """Plot the overlap of each two models."""
    names = [name for name in comparison.models if any(name in pair for pair in comparison.overlap)]
    shares = np.ones((len(names), len(names)))
    for (a, b), share in comparison.overlap.items():
        i, j = names.index(a), names.index(b)
        shares[[i, j], [j, i]] = share
    figure, axes = empty_figure(1.6 + 0.62 * len(names), 1.2 + 0.5 * len(names))
    for (row, column), share in np.ndenumerate(shares):
        if row == column:  # always 100 %
            continue
        axes.fill_between([column - 0.48, column + 0.48], row - 0.48, row + 0.48, color=BLUE, alpha=0.7 * share, lw=0)
        axes.text(column, row, f"{share:.0%}", ha="center", va="center", fontsize=9, color=INK)
    ticks = [label_text(name) for name in names]
    axes.set_yticks(range(len(names)), ticks)
    axes.set_xticks(range(len(names)), ticks, rotation=35, ha="right", rotation_mode="anchor")
    axes.set_xlim(-0.5, len(names) - 0.5)
    axes.set_ylim(len(names) - 0.5, -0.5)
    axes.tick_params(length=0, labelcolor=INK)
    axes.spines[:].set_visible(False)
    axes.set_title("neighbors in common", loc="left", fontsize=11, fontweight="bold", color=INK)
    return figure


def empty_figure(width: float, height: float) -> tuple[Figure, Any]:
    """Return a figure of this size with one styled axes."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(width, height), layout="constrained")
    axes = figure.add_subplot()
    style(axes)
    return figure, axes


def label_text(name: str, max_length: int = 24) -> str:
    """Return the name as an axis label: shortened, with "$" escaped for matplotlib."""
    short = name if len(name) <= max_length else name[: max_length - 1] + "…"
    return short.replace("$", r"\$")


def picture(figure: Figure, salt: str, what: str) -> str:
    """Return the figure as inline SVG with text as text, the page's colors, and ids that are unique by `salt`."""
    from matplotlib import rc_context

    buffer = io.StringIO()
    with rc_context({"svg.fonttype": "none", "svg.hashsalt": salt}):
        figure.savefig(buffer, format="svg", transparent=True, metadata={"Date": None})
    svg = GROUP_IDS.sub("<g", METADATA.sub("", HEADER.sub("", buffer.getvalue())))
    for color, name in THEMED.items():
        svg = svg.replace(color, name)
    return svg.replace("<svg ", f'<svg role="img" aria-label="{html.escape(what)}" ', 1)
