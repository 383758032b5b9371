"""/api/latent: the latent space of an autoencoder, and rows decoded from its points."""

from __future__ import annotations

from typing import Annotated, Any

import numpy as np
from fastapi import APIRouter, Request
from numpy.typing import NDArray
from pydantic import BaseModel, Field

from firth.data.table import Table
from firth.server.errors import RequestError
from firth.server.workbench.asking import model_with, reading, rounded
from firth.server.workspace import Workspace

router = APIRouter()

MAX_POINTS = 3000
MAX_CODES = 400
MAX_LABELS = 10  # distinguishable colors

Number = Annotated[float, Field(ge=-1e6, le=1e6, allow_inf_nan=False)]


class ModelBody(BaseModel):
    """A model with a latent space."""

    model: str


class PlaneBody(ModelBody):
    """The rows whose codes are shown, and the column of their labels."""

    source: str | None = None  # a table of the workspace; by default the rows whose codes the model saved
    labels: str | None = None  # one of its columns


class CodesBody(ModelBody):
    """Codes to decode."""

    codes: list[list[Number]] = Field(min_length=1, max_length=MAX_CODES)


def latent_model(body: ModelBody, request: Request) -> Any:
    """Return the model of a request, which must have a latent space."""
    return model_with(request, body.model, "interpolates", "autoencoder and vae models have a latent space")


@router.post("/latent")
def plane(body: PlaneBody, request: Request) -> dict[str, Any]:
    """Return the 2-D projection of the codes of rows, its axes, and the range of each latent dimension."""
    from firth.tables.latent_space import code_plane, known_codes, picture_side

    model = latent_model(body, request)
    workspace: Workspace = request.app.state.workspace
    table = None
    if body.source is not None:
        with reading(path := workspace.source(body.source)):
            table = Table(path)
    codes = known_codes(model, table)
    if not len(codes):
        raise RequestError(400, "The table has no rows.", field="source")
    rows = np.arange(len(codes))
    if len(rows) > MAX_POINTS:
        rows = np.sort(np.random.default_rng(1).choice(len(codes), MAX_POINTS, replace=False))
    codes = codes[rows]
    projection = code_plane(codes)
    return {
        "dim": codes.shape[1],
        "rows": len(codes),
        "columns": len(model.layout.columns),
        "side": picture_side(model),
        "center": rounded(projection.center),
        "axes": rounded(projection.axes, 7),
        "points": rounded(projection.points, 4),
        "explained": round(projection.explained, 4),
        "mean": rounded(codes.mean(axis=0)),
        "low": rounded(codes.min(axis=0)),
        "high": rounded(codes.max(axis=0)),
        "names": [] if table is None else label_columns(table),
        "labels": None if table is None else labels_of(table, body.labels, rows),
    }


def label_columns(table: Table) -> list[str]:
    """Return the columns with 2 to MAX_LABELS different values, which can color points."""
    return [name for name in table.names if 2 <= len(table.codes(name).levels) <= MAX_LABELS]


def labels_of(table: Table, name: str | None, rows: NDArray[np.int64]) -> list[str] | None:
    """Return the labels of rows from a column of the table."""
    if not name:
        return None
    if name not in table.names:
        raise RequestError(400, f"The table has no column {name!r}.", field="labels")
    values = table.categories(name)
    return [values[row] or "" for row in rows]


@router.post("/latent/decode")
def decode(body: CodesBody, request: Request) -> dict[str, Any]:
    """Decode codes to rows; to pixels if the rows are images."""
    from firth.tables.latent_space import decoded_cells, decoded_pictures, picture_side

    model = latent_model(body, request)
    invalid = next((len(code) for code in body.codes if len(code) != model.method.dim), None)
    if invalid is not None:
        raise RequestError(
            400, f"A code of {body.model} must have {model.method.dim} values; got {invalid}.", field="codes"
        )
    if picture_side(model):
        return {"pictures": rounded(decoded_pictures(model, body.codes), 3)}
    return {"rows": [[cell._asdict() for cell in row] for row in decoded_cells(model, body.codes)]}
