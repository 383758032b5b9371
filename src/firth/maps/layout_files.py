"""Layouts saved with a model: `MODEL/maps/TABLE-METHOD.safetensors`, one file each, written atomically.

Layouts are not among the files that config.json lists, because they are derived from the model. A layout records the
fingerprint of its vectors and is ignored once these have changed.
"""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import HasVectors
from firth.core.run import Run
from firth.core.saved import load
from firth.core.storage import MAPS, new_file, read_arrays, write_arrays
from firth.core.vectors import Vectors
from firth.maps.layouts import METHODS, Layout, check, first_rows, layout, neighbor_count
from firth.maps.preserved import Preservation

PathLike = str | os.PathLike[str]


def saved_layouts(folder: PathLike) -> dict[str, Layout]:
    """Return the saved layouts of a model's current vectors by TABLE-METHOD, such as "words-tsne". Damaged files are
    refused."""
    layouts: dict[str, Layout] = {}
    for table, vectors in vector_tables(folder).items():
        for method in METHODS:
            stored = read_layout(folder, table, method, vectors)
            if stored is not None:
                layouts[f"{table}-{method}"] = stored
    return layouts


def saved_layout(
    folder: PathLike,
    method: str = "pca",
    *,
    table: str | None = None,
    restrict: int | None = None,
    metric: str = "cosine",
    neighbors: int | None = None,
    run: Run = Run(),
) -> Layout:
    """Return the saved layout with these settings; if there is none, compute and save it. `restrict` limits it to the
    first rows."""
    tables = vector_tables(folder)
    table = table or next(iter(tables))
    if table not in tables:
        raise FirthError(
            "unknown_table",
            "{folder} has no table {table!r}; it has {tables}.",
            folder=os.fspath(folder),
            table=table,
            tables=", ".join(tables),
        )
    vectors = first_rows(tables[table], restrict)
    check(vectors, method, metric, neighbors)
    try:
        stored = read_layout(folder, table, method, tables[table])
    except FirthError as error:
        stored = None
        run.report.note(f"{error} It is computed again.", "damaged_layout")
    wanted = (len(vectors), metric, neighbor_count(method, len(vectors), neighbors), run.seed)
    if stored is None or (len(stored.keys), stored.metric, stored.neighbors, stored.seed) != wanted:
        stored = layout(vectors, method, metric=metric, neighbors=neighbors, run=run)
        save_layout(stored, folder, table)
    return stored


def save_layout(computed: Layout, folder: PathLike, table: str) -> Path:
    """Save a layout in the model's folder, replacing that of the same table and method."""
    properties = {
        "method": computed.method,
        "metric": computed.metric,
        "neighbors": computed.neighbors,
        "seed": computed.seed,
        "score": computed.score.to_json(),
        "vectors": computed.vectors,
        "sha256": hashlib.sha256(computed.xy.tobytes()).hexdigest(),
    }
    path = layout_path(folder, table, computed.method)
    with new_file(path) as temporary:
        encoded = json.dumps(properties).encode()
        write_arrays(temporary, {"xy": computed.xy, "facts": np.frombuffer(encoded, dtype=np.uint8)})
    return path


def read_layout(folder: PathLike, table: str, method: str, vectors: Vectors) -> Layout | None:
    """Read a saved layout; None if there is none, or if the vectors of the table have changed."""
    path = layout_path(folder, table, method)
    if not path.exists():
        return None
    arrays = read_arrays(path)
    try:
        properties: dict[str, Any] = json.loads(arrays["facts"].tobytes())
        xy = np.array(arrays["xy"])
        is_intact = (
            hashlib.sha256(xy.tobytes()).hexdigest() == properties["sha256"] and xy.ndim == 2 and xy.shape[1] == 2
        )
        score = Preservation.from_json(properties["score"])
        settings = (properties["method"], properties["metric"], properties["neighbors"], properties["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise FirthError(
            "damaged_file", "{path} is not a saved layout ({reason}). Delete it.", path=path, reason=str(error)
        ) from None
    if not is_intact:
        raise FirthError("hash_mismatch", "{path} was modified since it was written. Delete it.", path=path)
    if not 0 < len(xy) <= len(vectors):
        return None
    plotted = first_rows(vectors, len(xy))
    if plotted.fingerprint() != properties["vectors"]:
        return None
    return Layout(plotted.keys, xy, *settings, score, properties["vectors"])


def layout_path(folder: PathLike, table: str, method: str) -> Path:
    """Return the file of a saved layout."""
    return Path(folder) / MAPS / f"{table}-{method}.safetensors"


def vector_tables(folder: PathLike) -> dict[str, Vectors]:
    """Return the vector tables of a model folder."""
    model = load(folder)
    tables = dict(model.tables) if isinstance(model, HasVectors) and Path(folder).is_dir() else {}
    if not tables:
        raise FirthError(
            "unsupported_model",
            "{folder} is not the folder of a model with vectors, so no layout can be saved with it.",
            folder=os.fspath(folder),
        )
    return tables
