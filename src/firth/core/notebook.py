"""HTML for notebooks. Everything is escaped: keys, texts and labels come from data."""

from __future__ import annotations

import html
from collections.abc import Iterable, Sequence
from itertools import islice
from typing import Any

Row = Sequence[str]
ROWS = 5  # first rows of data that are shown
COLUMNS = 8
CELL = 80  # characters


def html_table(header: Row, rows: Iterable[Row], numbers: Sequence[int] = ()) -> str:
    """Return an HTML table; the columns in `numbers` are right-aligned."""

    def line(row: Row, tag: str) -> str:
        styles = [' style="text-align:right"' if column in numbers else "" for column in range(len(row))]
        cells = (f"<{tag}{style}>{html.escape(cell)}</{tag}>" for cell, style in zip(row, styles, strict=True))
        return f"<tr>{''.join(cells)}</tr>"

    return f"<table>{line(header, 'th')}{''.join(line(row, 'td') for row in rows)}</table>"


def html_lines(*lines: str) -> str:
    """Return one paragraph per line of text; empty lines are left out."""
    return "".join(f"<p>{html.escape(line)}</p>" for text in lines for line in text.splitlines() if line.strip())


def short_cell(value: Any) -> str:
    """A value as one line of limited length; a missing one is empty."""
    text = " ".join(("" if value is None else f"{value:.4g}" if isinstance(value, float) else str(value)).split())
    return text if len(text) <= CELL else text[: CELL - 1] + "…"


class ShowsRows:
    """Shows its `repr` and its first rows in a notebook."""

    def _rows_shown(self) -> tuple[Sequence[str], Iterable[Sequence[Any]]]:
        """The header, and rows of which the first are shown. Must not read what can be read once only."""
        raise NotImplementedError

    def _repr_html_(self) -> str:
        header, rows = self._rows_shown()
        cut = len(header) > COLUMNS
        shown = [[*map(short_cell, row[:COLUMNS]), *(["…"] if cut else [])] for row in islice(rows, ROWS)]
        table = html_table([*map(short_cell, header[:COLUMNS]), *(["…"] if cut else [])], shown) if shown else ""
        return html_lines(repr(self)) + table
