"""/api/map: 2-D maps of vectors, colors of their points, and true nearest neighbors."""

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
from firth.core.vectors import Hit, Vectors
from firth.data.vocabulary import HasVocabulary
from firth.index import Index, snippet
from firth.index.hits import Hit as IndexHit
from firth.index.segment import KEY, TEXT, values_of
from firth.maps.layout_files import read_layout, save_layout
from firth.maps.layouts import METHODS, Layout, first_rows, layout
from firth.server.errors import RequestError
from firth.server.models import Served
from firth.server.workbench.placing import PendingLayout
from firth.server.workbench.search import index_description
from firth.server.workspace import Workspace
from firth.studies.groups import Groups, groups

PACKAGES = {"pca": "", "tsne": "openTSNE", "umap": "umap"}  # required for each method
MAX_POINTS = 100_000  # points of a map
MIN_POINTS = 4
CATEGORIES = 9  # distinguishable colors; the rest is "others"
GROUPS = ""  # color by cluster; an empty name, because a column may have any other
MAX_NUMERIC_LABELS = 40  # a numeric column with at most so many values, such as years, is categorical

router = APIRouter(prefix="/map")
opening = threading.Lock()


@dataclass(frozen=True, eq=False)
class Space:
    """Vectors of which a map can be computed."""

    source: Any  # the model or index; if that is reloaded, the space is created again
    vectors: Vectors  # of the points: the first MAX_POINTS rows
    all_rows: Vectors | Index  # all rows, for nearest neighbors
    counts: NDArray[np.int64] | None = None  # word frequencies
    attributes: Any = None  # a pyarrow.Table with one row per key
    home: tuple[Path, str] | None = None  # model folder and table, where layouts are saved
    cache: dict[Any, Any] = field(default_factory=dict)  # layouts and clusters, which are slow to compute

    def cached(self, key: tuple[Any, ...], compute: Callable[[], Any]) -> Any:
        """Return a cached result, computed at the first call."""
        if key not in self.cache:
            self.cache[key] = compute()
        return self.cache[key]

    @property
    def texts(self) -> list[str] | None:
        """The texts of the rows; None if there are none."""
        if self.attributes is None or TEXT not in self.attributes.column_names:
            return None
        return [text or "" for text in self.attributes.column(TEXT).to_pylist()]


def space_of(request: Request, of: str) -> Space:
    """Return the space that `of` names: model/NAME/TABLE, or index/NAME."""
    workspace: Workspace = request.app.state.workspace
    kind, _, rest = of.partition("/")
    name, _, table = rest.rpartition("/") if kind == "model" else (rest, "", "")
    if kind not in ("model", "index") or not name:
        raise RequestError(404, f"There is no space {of[:80]!r}.")
    source = workspace.models.get(name) if kind == "model" else workspace.models.index(name)
    with opening:
        space = workspace.spaces.get(of)
        if space is None or space.source is not source:
            space = workspace.spaces[of] = (
                index_space(source)
                if isinstance(source, Index)
                else model_space(source, table, workspace.models.path(name))
            )
    result: Space = space
    return result


def model_space(model: Served, table: str, path: Path) -> Space:
    """Return the space of a table of a model."""
    tables = model.tables if isinstance(model, HasVectors) else {}
    if table not in tables:
        raise RequestError(404, f"{path.name} has no table {table[:80]!r}; it has: {', '.join(tables) or 'none'}.")
    vectors = first_rows(tables[table], MAX_POINTS)
    counts = model.vocabulary.counts if isinstance(model, HasVocabulary) else np.zeros(0, np.int64)
    row_counts = counts[: len(vectors)] if len(counts) == len(tables[table]) else None
    return Space(model, vectors, tables[table], row_counts, home=(path, table) if path.is_dir() else None)


def index_space(index: Index) -> Space:
    """Return the space of an index."""
    import pyarrow

    keys, parts, tables, room = list[str](), [], [], MAX_POINTS
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
    """List all spaces: the vector tables of the models, and the indexes."""
    models = request.app.state.workspace.models
    available = []
    for name in models.names():
        try:
            described = models.describe(name)
        except FirthError:  # /api/models reports the error
            continue
        for table, table_size in described["tables"].items():
            available.append(
                {
                    "of": f"model/{name}/{table}",
                    "name": name,
                    "table": table,
                    "path": str(models.path(name)),
                    **table_size,
                }
            )
    for name in models.index_names():
        try:
            size = models.describe_index(name, index_description)
        except FirthError:  # /api/indexes reports the error
            continue
        properties = {"rows": size["rows"], "dim": size["dim"], "path": str(models.index_path(name))}
        available.append({"of": f"index/{name}", "name": name, "table": "index", **properties})
    return {"spaces": [space for space in available if space["rows"] >= MIN_POINTS and space["dim"] >= 2]}


@router.get("/about")
def about(request: Request, of: str) -> dict[str, Any]:
    """Describe a space: its keys, and what its points can be colored by."""
    space = space_of(request, of)
    colours = [GROUPS]
    if space.counts is not None:
        colours.append("frequency")
    if space.attributes is not None:
        colours += [name for name in space.attributes.column_names if name not in (TEXT, GROUPS)]
    properties = {"rows": len(space.vectors), "dim": space.vectors.dim, "keys": list(space.vectors.keys)}
    return {
        **properties,
        "colours": colours,
        "texts": space.texts is not None,
        "methods": [name for name, package in PACKAGES.items() if available(package)],
    }


def available(package: str) -> bool:
    """Return whether a package is installed."""
    return not package or importlib.util.find_spec(package) is not None


@router.get("/points")
def points(request: Request, of: str, method: str = "pca") -> Response:
    """Return the coordinates x, y, x, y, … as float32 between −1 and 1; headers state the scores of the layout.

    While the layout is being computed, the status is 202 and the body its progress.
    """
    space = space_of(request, of)
    made = finished_layout(space, method)
    if made is None:
        return JSONResponse(pending_layout(space, method).progress(), 202)
    score = made.score
    headers = {
        "x-firth-recall": f"{score.recall:.4f}",
        "x-firth-chance": f"{score.chance:.6f}",
        "x-firth-k": str(score.k),
    }
    return Response(normalized(made.xy).tobytes(), media_type="application/octet-stream", headers=headers)


def pending_layout(space: Space, method: str) -> PendingLayout:
    """Return the layout of a space, which is computed in a thread."""
    with opening:
        pending: PendingLayout = space.cached(
            ("points", method), lambda: PendingLayout(lambda run: compute_layout(space, method, run))
        )
    return pending


def finished_layout(space: Space, method: str) -> Layout | None:
    """Return the layout; None while it is being computed."""
    try:
        return pending_layout(space, method).result()
    except Exception:
        space.cache.pop(("points", method), None)  # the next request tries again
        raise


def groups_of(space: Space, k: int) -> Groups:
    """Return the clusters of a space."""
    result: Groups = space.cached(("group", k), lambda: groups(space.vectors, k, texts=space.texts))
    return result


def compute_layout(space: Space, method: str, run: Run) -> Layout:
    """Return the layout saved with the model, or compute it, and save it if the folder is writable."""
    if space.home is None:
        return layout(space.vectors, method, run=run)
    folder, table = space.home
    stored = read_layout(folder, table, method, space.vectors) if method in METHODS else None
    if stored is not None and len(stored.keys) == len(space.vectors):
        return stored
    computed = layout(space.vectors, method, run=run)
    with contextlib.suppress(FirthError):
        save_layout(computed, folder, table)
    return computed


def normalized(xy: NDArray[Any]) -> NDArray[np.float32]:
    """Scale coordinates to the square from −1 to 1, with the aspect ratio preserved."""
    low, high = xy.min(axis=0), xy.max(axis=0)
    size = float((high - low).max()) or 1.0
    return np.ascontiguousarray((xy - (low + high) / 2) * (2 / size), dtype=np.float32)


@router.get("/colour")
def colour(request: Request, of: str, by: str = GROUPS, k: int = 10) -> dict[str, Any]:
    """Return a value for each point: `values` are base64 of uint8 indices into `labels`, or of float32 numbers."""
    space = space_of(request, of)
    if by == GROUPS:
        result = groups_of(space, k)
        return category(result.rows, result.names, result.sizes)
    if by == "frequency" and space.counts is not None:
        return number(np.log10(np.maximum(1, space.counts)), "frequency", log=True)
    columns = [] if space.attributes is None else space.attributes.column_names
    if by not in columns:
        raise RequestError(404, f"{of[:80]} has no column {by[:80]!r} to color by.")
    return attribute(space.attributes.column(by), by)


def attribute(column: Any, name: str) -> dict[str, Any]:
    """Describe a column as colors: categories, or numbers."""
    import pyarrow.types as arrow_types

    values = column.to_pylist()
    is_number = arrow_types.is_integer(column.type) or arrow_types.is_floating(column.type)
    if is_number and len(set(values)) > MAX_NUMERIC_LABELS:
        return number(np.array([np.nan if value is None else float(value) for value in values]), name)
    texts = ["(none)" if value is None else str(value) for value in values]
    labels, codes, sizes = np.unique(np.array(texts, dtype=object).astype(str), return_inverse=True, return_counts=True)
    order = np.argsort(-sizes, kind="stable")
    shown = order[:CATEGORIES] if len(order) > CATEGORIES + 1 else order
    category_ids = np.full(len(labels), len(shown))
    category_ids[shown] = np.arange(len(shown))
    names, counts = [str(label) for label in labels[shown]], sizes[shown].tolist()
    if len(shown) < len(order):
        names, counts = [*names, f"{len(order) - len(shown)} others"], [*counts, int(sizes[order[len(shown) :]].sum())]
    return category(category_ids[codes], names, counts)


def category(codes: NDArray[Any], labels: list[str], sizes: list[int]) -> dict[str, Any]:
    """Describe categories as colors."""
    values = base64.b64encode(codes.astype(np.uint8).tobytes()).decode()
    return {"kind": "category", "labels": labels, "sizes": sizes, "values": values}


def number(values: NDArray[Any], label: str, log: bool = False) -> dict[str, Any]:
    """Describe numbers as colors."""
    finite = values[np.isfinite(values)]
    low, high = (float(finite.min()), float(finite.max())) if len(finite) else (0.0, 0.0)
    packed = base64.b64encode(values.astype(np.float32).tobytes()).decode()
    return {"kind": "number", "label": label, "low": low, "high": high, "log": log, "values": packed}


@router.get("/neighbors")
def neighbors(request: Request, of: str, row: int, k: int = 12) -> dict[str, Any]:
    """Return a point and its true nearest neighbors in the vector space."""
    space = space_of(request, of)
    if not 0 <= row < len(space.vectors):
        raise RequestError(404, f"There is no row {row}; there are {len(space.vectors):,}.")
    key, vector, k = space.vectors.keys[row], space.vectors.matrix[row], min(max(1, k), 100)
    search = space.all_rows.search if isinstance(space.all_rows, Index) else space.all_rows.neighbors
    hits = [hit for hit in search(vector, k + 1) if hit.key != key] if np.any(vector) else []
    return {"point": point(space, row), "near": [{**neighbor(space, hit), "score": hit.score} for hit in hits[:k]]}


def neighbor(space: Space, hit: Hit | IndexHit) -> dict[str, Any]:
    """Describe a neighbor; `row` is null if it is not on the map."""
    row = space.vectors.rows.get(hit.key)
    if row is not None:
        return point(space, row)
    text = hit.attributes.get(TEXT) if isinstance(hit, IndexHit) else None
    return {"row": None, "key": hit.key} | ({} if text is None else {"text": snippet(text, width=400)})


def point(space: Space, row: int) -> dict[str, Any]:
    """Describe a point of the map."""
    description: dict[str, Any] = {"row": row, "key": space.vectors.keys[row]}
    if space.counts is not None:
        description["count"] = int(space.counts[row])
    if space.attributes is not None:
        values = {name: space.attributes.column(name)[row].as_py() for name in space.attributes.column_names}
        description["text"] = snippet(values.pop(TEXT, None), width=400)
        description["attributes"] = json.loads(json.dumps(values, default=str))
    return description
