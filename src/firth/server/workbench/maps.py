"""/api/map: spaces as points on a plane, what colours them, what is near in truth."""

from __future__ import annotations

import base64
import contextlib
import importlib.util
import json
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from fastapi import APIRouter, Request, Response
from fastapi.responses import JSONResponse
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import HasVectors
from firth.core.run import Run
from firth.core.vectors import Vectors
from firth.index import Index, snippet
from firth.index.segment import KEY, TEXT, values_of
from firth.maps.layout_files import read_layout, save_layout
from firth.maps.layouts import METHODS, Layout, first_rows, layout
from firth.server.errors import RequestError
from firth.server.workbench.placing import Placing
from firth.server.workbench.search import description
from firth.server.workspace import Workspace
from firth.studies.groups import Groups, groups

PACKAGES = {"pca": "", "tsne": "openTSNE", "umap": "umap"}  # what draws the maps
MOST = 100_000  # points of a map
LEAST = 4
CATEGORIES = 9  # colours that can be told apart; the rest is "other"
GROUPS = ""  # colours by the groups that are found: no name, since a column may have any
FEW = 40  # different numbers that are still names of something, such as years

router = APIRouter(prefix="/map")
opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class Space:
    """Something that can be put on a plane."""

    opened: Any  # the model or the index it was taken from: when that is opened anew, so is this
    vectors: Vectors  # of the points: the first MOST rows
    whole: Vectors | Index  # all rows: what is near is looked for among them
    counts: NDArray[np.int64] | None = None  # how often each key stands in the text
    attributes: Any = None  # a pyarrow.Table, a row a key
    home: tuple[Path, str] | None = None  # the folder of the model and the table: where maps are kept
    found: dict[Any, Any] = field(default_factory=dict)  # maps and groups, which take a while

    def once(self, key: tuple[Any, ...], find: Callable[[], Any]) -> Any:
        if key not in self.found:
            self.found[key] = find()
        return self.found[key]

    @property
    def texts(self) -> list[str] | None:
        if self.attributes is None or TEXT not in self.attributes.column_names:
            return None
        return [text or "" for text in self.attributes.column(TEXT).to_pylist()]


def space_of(request: Request, of: str) -> Space:
    """`of`: model/NAME/TABLE, or index/NAME."""
    workspace: Workspace = request.app.state.workspace
    kind, _, rest = of.partition("/")
    name, _, table = rest.rpartition("/") if kind == "model" else (rest, "", "")
    if kind not in ("model", "index") or not name:
        raise RequestError(404, f"There is no space {of[:80]!r}.")
    opened = workspace.models.get(name) if kind == "model" else workspace.models.index(name)
    with opening:
        known = workspace.spaces.get(of)
        if known is None or known.opened is not opened:
            known = workspace.spaces[of] = (
                of_model(opened, table, workspace.models.path(name)) if kind == "model" else of_index(opened)
            )
    found: Space = known
    return found


def of_model(model: Any, table: str, path: Path) -> Space:
    tables = model.tables if isinstance(model, HasVectors) else {}
    if table not in tables:
        raise RequestError(404, f"{path.name} has no table {table[:80]!r}; it has: {', '.join(tables) or 'none'}.")
    vectors = first_rows(tables[table], MOST)
    counts = getattr(getattr(model, "vocabulary", None), "counts", np.zeros(0, dtype=np.int64))
    known = counts[: len(vectors)] if len(counts) == len(tables[table]) else None
    return Space(model, vectors, tables[table], known, home=(path, table) if path.is_dir() else None)


def of_index(index: Index) -> Space:
    import pyarrow

    keys, parts, tables, room = list[str](), [], [], MOST
    state = index.store.state
    for number, segment in enumerate(state.segments):
        living = state.living(number)
        rows = (np.arange(len(segment)) if living is None else living)[:room]
        keys += values_of(segment.table.column(KEY).take(rows), KEY)
        parts.append(np.asarray(segment.array("vectors")[rows], dtype=np.float32))
        tables.append(segment.table.take(rows).drop_columns([KEY]))
        room -= len(rows)
    if not keys:
        raise FirthError("empty_data", "The index is empty.")
    return Space(index, Vectors(keys, np.concatenate(parts)), index, attributes=pyarrow.concat_tables(tables))


@router.get("/spaces")
def spaces(request: Request) -> dict[str, Any]:
    """All that can be drawn: the tables of the models, and the indexes."""
    models = request.app.state.workspace.models
    found = []
    for name in models.names():
        try:
            described = models.describe(name)
        except FirthError:  # /api/models tells why
            continue
        for table, size in described["tables"].items():
            found.append(
                {"of": f"model/{name}/{table}", "name": name, "table": table, "path": str(models.path(name)), **size}
            )
    for name in models.index_names():
        try:
            told = models.describe_index(name, description)
        except FirthError:  # /api/indexes tells why
            continue
        facts = {"rows": told["rows"], "dim": told["dim"], "path": str(models.index_path(name))}
        found.append({"of": f"index/{name}", "name": name, "table": "index", **facts})
    return {"spaces": [space for space in found if space["rows"] >= LEAST and space["dim"] >= 2]}


@router.get("/about")
def about(request: Request, of: str) -> dict[str, Any]:
    """What the points are and what can colour them."""
    space = space_of(request, of)
    colours = [GROUPS]
    if space.counts is not None:
        colours.append("frequency")
    if space.attributes is not None:
        colours += [name for name in space.attributes.column_names if name not in (TEXT, GROUPS)]
    facts = {"rows": len(space.vectors), "dim": space.vectors.dim, "keys": list(space.vectors.keys)}
    return {
        **facts,
        "colours": colours,
        "texts": space.texts is not None,
        "methods": [name for name, package in PACKAGES.items() if available(package)],
    }


def available(package: str) -> bool:
    return not package or importlib.util.find_spec(package) is not None


@router.get("/points")
def points(request: Request, of: str, method: str = "pca") -> Response:
    """x, y, x, y, … as float32, between −1 and 1; the headers tell how many neighbours the map keeps.

    While it is made, 202 and how far it is: ask again.
    """
    space = space_of(request, of)
    made = map_of(space, method)
    if made is None:
        return JSONResponse(placing_of(space, method).so_far(), 202)
    score = made.score
    told = {"x-firth-kept": f"{score.recall:.4f}", "x-firth-chance": f"{score.chance:.6f}", "x-firth-k": str(score.k)}
    return Response(framed(made.xy).tobytes(), media_type="application/octet-stream", headers=told)


def placing_of(space: Space, method: str) -> Placing:
    with opening:
        found: Placing = space.once(("points", method), lambda: Placing(lambda run: placed(space, method, run)))
    return found


def map_of(space: Space, method: str) -> Layout | None:
    """None while it is made."""
    try:
        return placing_of(space, method).result()
    except Exception:
        space.found.pop(("points", method), None)  # the next one may try again
        raise


def grouped(space: Space, k: int) -> Groups:
    found: Groups = space.once(("group", k), lambda: groups(space.vectors, k, texts=space.texts))
    return found


def placed(space: Space, method: str, run: Run) -> Layout:
    """The map that the model's folder keeps, or a new one, which it then keeps if it can be written to."""
    if space.home is None:
        return layout(space.vectors, method, run=run)
    folder, table = space.home
    known = read_layout(folder, table, method, space.vectors) if method in METHODS else None
    if known is not None and len(known.keys) == len(space.vectors):
        return known
    made = layout(space.vectors, method, run=run)
    with contextlib.suppress(FirthError):
        save_layout(made, folder, table)
    return made


def framed(xy: NDArray[Any]) -> NDArray[np.float32]:
    """Into the square from −1 to 1, with the shape kept."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    size = float((high - low).max()) or 1.0
    return np.ascontiguousarray((xy - (low + high) / 2) * (2 / size), dtype=np.float32)


@router.get("/colour")
def colour(request: Request, of: str, by: str = GROUPS, k: int = 10) -> dict[str, Any]:
    """A value for each point: `values` are base64 of uint8 places in `labels`, or of float32 numbers."""
    space = space_of(request, of)
    if by == GROUPS:
        found = grouped(space, k)
        return category(found.rows, found.names, found.sizes)
    if by == "frequency" and space.counts is not None:
        return number(np.log10(np.maximum(1, space.counts)), "times met", log=True)
    columns = [] if space.attributes is None else space.attributes.column_names
    if by not in columns:
        raise RequestError(404, f"{of[:80]} has no {by[:80]!r} to colour by.")
    return attribute(space.attributes.column(by), by)


def attribute(column: Any, name: str) -> dict[str, Any]:
    import pyarrow.types as kinds

    values = column.to_pylist()
    is_number = kinds.is_integer(column.type) or kinds.is_floating(column.type)
    if is_number and len(set(values)) > FEW:
        return number(np.array([np.nan if value is None else float(value) for value in values]), name)
    texts = ["(none)" if value is None else str(value) for value in values]
    labels, codes, sizes = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = order[:CATEGORIES] if len(order) > CATEGORIES + 1 else order
    place = np.full(len(labels), len(shown))
    place[shown] = np.arange(len(shown))
    names, counts = [str(label) for label in labels[shown]], sizes[shown].tolist()
    if len(shown) < len(order):
        names, counts = [*names, f"{len(order) - len(shown)} others"], [*counts, int(sizes[order[len(shown) :]].sum())]
    return category(place[codes], names, counts)


def category(codes: NDArray[Any], labels: list[str], sizes: list[int]) -> dict[str, Any]:
    values = base64.b64encode(codes.astype(np.uint8).tobytes()).decode()
    return {"kind": "category", "labels": labels, "sizes": sizes, "values": values}


def number(values: NDArray[Any], label: str, log: bool = False) -> dict[str, Any]:
    known = values[np.isfinite(values)]
    low, high = (float(known.min()), float(known.max())) if len(known) else (0.0, 0.0)
    packed = base64.b64encode(values.astype(np.float32).tobytes()).decode()
    return {"kind": "number", "label": label, "low": low, "high": high, "log": log, "values": packed}


@router.get("/neighbors")
def neighbors(request: Request, of: str, row: int, k: int = 12) -> dict[str, Any]:
    """A point, and what is nearest to it in the space itself, whatever the picture shows."""
    space = space_of(request, of)
    if not 0 <= row < len(space.vectors):
        raise RequestError(404, f"There is no row {row}; there are {len(space.vectors):,}.")
    own, vector, k = space.vectors.keys[row], space.vectors.matrix[row], min(max(1, k), 100)
    find = space.whole.search if isinstance(space.whole, Index) else space.whole.neighbors
    hits = [hit for hit in find(vector, k + 1) if hit.key != own] if np.any(vector) else []
    return {"point": point(space, row), "near": [{**near(space, hit), "score": hit.score} for hit in hits[:k]]}


def near(space: Space, hit: Any) -> dict[str, Any]:
    """What is known of a hit; `row` is null where the map leaves it out."""
    row = space.vectors.rows.get(hit.key)
    if row is not None:
        return point(space, row)
    text = getattr(hit, "attributes", {}).get(TEXT)
    return {"row": None, "key": hit.key} | ({} if text is None else {"text": snippet(text, width=400)})


def point(space: Space, row: int) -> dict[str, Any]:
    facts: dict[str, Any] = {"row": row, "key": space.vectors.keys[row]}
    if space.counts is not None:
        facts["count"] = int(space.counts[row])
    if space.attributes is not None:
        values = {name: space.attributes.column(name)[row].as_py() for name in space.attributes.column_names}
        facts["text"] = snippet(values.pop(TEXT, None), width=400)
        facts["attributes"] = json.loads(json.dumps(values, default=str))
    return facts
