"""Tables as aligned text or Markdown, in which results are printed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from unicodedata import combining, east_asian_width

Row = Sequence[str]


def text_table(header: Row, rows: Sequence[Row], numbers: Sequence[int] = ()) -> str:
    """Return an aligned table; the columns in `numbers` are right-aligned."""
    widths = [max(width(row[column]) for row in (header, *rows)) for column in range(len(header))]
    lines = (
        "  ".join(_padded(cell, widths[column], column in numbers) for column, cell in enumerate(row))
        for row in (header, *rows)
    )
    return "\n".join(line.rstrip() for line in lines)


def markdown_table(header: Row, rows: Sequence[Row], numbers: Sequence[int] = ()) -> str:
    """Return a Markdown table; the columns in `numbers` are right-aligned."""
    rule = ["---:" if column in numbers else "---" for column in range(len(header))]
    escaped = [[cell.replace("|", "\\|") for cell in row] for row in (header, *rows)]
    return "\n".join(f"| {' | '.join(row)} |" for row in (escaped[0], rule, *escaped[1:]))


def width(text: str) -> int:
    """Return the number of terminal columns of `text`: 2 per East Asian wide character, 0 per combining mark."""
    return sum(0 if combining(letter) else 2 if east_asian_width(letter) in "WF" else 1 for letter in text)


def percent(share: float) -> str:
    """Format a share as a percentage; NaN is a dash."""
    return "–" if math.isnan(share) else f"{share:.1%}"


def decimal(number: float) -> str:
    """Format a number with three decimals; NaN is a dash."""
    return "–" if math.isnan(number) else f"{number:.3f}"


def number_or_none(number: float) -> float | None:
    """Return None for NaN, which JSON does not have."""
    return None if math.isnan(number) else number


def _padded(cell: str, columns: int, right: bool) -> str:
    space = " " * (columns - width(cell))
    return space + cell if right else cell + space
