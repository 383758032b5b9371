"""/api/map/export: selected rows of a map as a CSV file for spreadsheets.

Cells that a spreadsheet would interpret as formulas are escaped here, and in the page's own CSV (web/src/lib/save.ts).
The command line does not escape its output, because Firth reads it again.
"""

from __future__ import annotations

import csv
import io
import json
import re
from collections.abc import Sequence
from typing import Any

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from pydantic import BaseModel, Field
from starlette.responses import StreamingResponse

from firth.index.segment import TEXT
from firth.server.errors import RequestError
from firth.server.workbench.maps import MAX_POINTS, Space, finished_layout, groups_of, normalized, space_of

BATCH = 1000  # rows that are written at a time
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # first characters of formulas
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

router = APIRouter(prefix="/map")


class Selection(BaseModel):
    """Rows of a map to export."""

    of: str
    rows: list[int] = Field(min_length=1, max_length=MAX_POINTS)
    method: str = "pca"
    k: int = Field(10, ge=2)  # groups


@router.post("/export")
def export(request: Request, body: Selection) -> StreamingResponse:
    """Return the key, text, attributes, group and coordinates of each row as CSV. Headers state the number of rows and
    of escaped cells."""
    space = space_of(request, body.of)
    invalid = next((row for row in body.rows if not 0 <= row < len(space.vectors)), None)
    if invalid is not None:
        raise RequestError(404, f"There is no row {invalid}; there are {len(space.vectors):,}.", field="rows")
    layout = finished_layout(space, body.method)
    if layout is None:
        raise RequestError(409, "The map is still being computed.", kind="unavailable")
    groups = groups_of(space, body.k)
    names = np.array(groups.names, dtype=object)[groups.rows]
    xy = normalized(layout.xy).astype(np.float64).round(6)
    map_columns = {"group": names, "x": xy[:, 0], "y": xy[:, 1]}
    if space.counts is not None:
        map_columns = {"count": space.counts, **map_columns}
    parts = [body.rows[begin : begin + BATCH] for begin in range(0, len(body.rows), BATCH)]
    escapes = sum(
        value != escaped(value)
        for part in parts
        for column in columns_of(space, map_columns, part).values()
        for value in column
        if isinstance(value, str)
    )
    headers = {"x-firth-rows": str(len(body.rows)), "x-firth-escaped": str(escapes)}
    lines = (csv_rows(columns_of(space, map_columns, part), begins=not number) for number, part in enumerate(parts))
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=headers)


def columns_of(space: Space, map_columns: dict[str, NDArray[Any]], rows: Sequence[int]) -> dict[str, list[Any]]:
    """Return columns by name: first those of the index or the model, then those of the map."""
    columns: dict[str, list[Any]] = {"key": [space.vectors.keys[row] for row in rows]}
    if space.attributes is not None:
        names = sorted(space.attributes.column_names, key=lambda name: name != TEXT)  # the text first
        columns |= {name: space.attributes.column(name).take(rows).to_pylist() for name in names}
    for name, values in map_columns.items():
        while name in columns:  # a column may have any name
            name = f"map_{name}"
        columns[name] = values[rows].tolist()
    return columns


def csv_rows(columns: dict[str, list[Any]], begins: bool) -> str:
    """Return rows as CSV, with a header at the beginning of the file."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    if begins:
        rows.writerow([escaped(name) for name in columns])
    rows.writerows([cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def cell(value: Any) -> str:
    """Return a value as a CSV cell that a spreadsheet does not run as a formula."""
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return escaped(value) if isinstance(value, str) else str(value)


def escaped(text: str) -> str:
    """Prefix text that a spreadsheet would interpret as a formula with an apostrophe; numbers are not changed."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
