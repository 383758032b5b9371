"""/api/map/export: the selected rows of a map as a file for people and their spreadsheets.

What a spreadsheet would take for a formula is escaped here, and in the page's own csv (web/src/lib/save.ts). Data that
the command line writes is never changed in this way: Firth reads it back.
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
from firth.server.workbench.maps import MOST, Space, framed, grouped, map_of, space_of

BATCH = 1000  # rows that are written at a time
FORMULA = re.compile(r"[=+\-@\t\r\n＝＋－＠]")  # what a formula begins with
NUMBER = re.compile(r"[+-]?(\d+\.?\d*|\.\d+)([eE][+-]?\d+)?")

router = APIRouter(prefix="/map")


class Selection(BaseModel):
    of: str
    rows: list[int] = Field(min_length=1, max_length=MOST)
    method: str = "pca"
    k: int = Field(10, ge=2)  # groups


@router.post("/export")
def export(request: Request, asked: Selection) -> StreamingResponse:
    """Key, text, columns, group and place on the map of each row; the headers tell how many rows there are and how many
    of their cells were escaped."""
    space = space_of(request, asked.of)
    wrong = next((row for row in asked.rows if not 0 <= row < len(space.vectors)), None)
    if wrong is not None:
        raise RequestError(404, f"There is no row {wrong}; there are {len(space.vectors):,}.", field="rows")
    made = map_of(space, asked.method)
    if made is None:
        raise RequestError(409, "The map is still being made.", kind="unavailable")
    found = grouped(space, asked.k)
    names = np.array(found.names, dtype=object)[found.rows]
    xy = framed(made.xy).astype(np.float64).round(6)
    facts = {"group": names, "x": xy[:, 0], "y": xy[:, 1]}
    if space.counts is not None:
        facts = {"count": space.counts, **facts}
    parts = [asked.rows[begin : begin + BATCH] for begin in range(0, len(asked.rows), BATCH)]
    escapes = sum(
        value != escaped(value)
        for part in parts
        for column in columns_of(space, facts, part).values()
        for value in column
        if isinstance(value, str)
    )
    told = {"x-firth-rows": str(len(asked.rows)), "x-firth-escaped": str(escapes)}
    lines = (written(columns_of(space, facts, part), begins=not place) for place, part in enumerate(parts))
    return StreamingResponse(lines, media_type="text/csv; charset=utf-8", headers=told)


def columns_of(space: Space, facts: dict[str, NDArray[Any]], rows: Sequence[int]) -> dict[str, list[Any]]:
    """By their names: first what the index or the model says of the rows, then what the map does."""
    found: dict[str, list[Any]] = {"key": [space.vectors.keys[row] for row in rows]}
    if space.attributes is not None:
        names = sorted(space.attributes.column_names, key=lambda name: name != TEXT)  # the text first
        found |= {name: space.attributes.column(name).take(rows).to_pylist() for name in names}
    for name, values in facts.items():
        while name in found:  # a column may have any name
            name = f"map_{name}"
        found[name] = values[rows].tolist()
    return found


def written(columns: dict[str, list[Any]], begins: bool) -> str:
    """Some rows as csv, with their header where the file begins."""
    text = io.StringIO(newline="")
    rows = csv.writer(text)
    if begins:
        rows.writerow([escaped(name) for name in columns])
    rows.writerows([cell(value) for value in row] for row in zip(*columns.values(), strict=True))
    return text.getvalue()


def cell(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, (list, dict)):
        value = json.dumps(value, ensure_ascii=False, default=str)
    return escaped(value) if isinstance(value, str) else str(value)


def escaped(text: str) -> str:
    """With an apostrophe before what a spreadsheet would take for a formula; numbers stay as they are."""
    return f"'{text}" if FORMULA.match(text) and not NUMBER.fullmatch(text) else text
