"""Maps kept with a model: `MODEL/maps/TABLE-METHOD.safetensors`, one file each, whole or not there at all.

They stand beside the model's own files, not among them: config.json lists what a model is, and a map is only drawn
from it. A map names the vectors it was drawn from by their fingerprint, and is passed over once these have changed.
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
from firth.maps.layouts import METHODS, Layout, check, first_rows, layout, reach
from firth.maps.preserved import Preservation

PathLike = str | os.PathLike[str]


def saved_layouts(folder: PathLike) -> dict[str, Layout]:
    """The maps of a model's present vectors by TABLE-METHOD, as in "words-tsne". A damaged file is refused."""
    found: dict[str, Layout] = {}
    for table, vectors in tables_of(folder).items():
        for method in METHODS:
            known = read_layout(folder, table, method, vectors)
            if known is not None:
                found[f"{table}-{method}"] = known
    return found


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
    """The map that a model keeps; where it keeps none like it, one is made and kept. Of the first `restrict` rows."""
    tables = tables_of(folder)
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
        known = read_layout(folder, table, method, tables[table])
    except FirthError as error:
        known = None
        run.report.note(f"{error} It is made anew.")
    asked = (len(vectors), metric, reach(method, len(vectors), neighbors), run.seed)
    if known is None or (len(known.keys), known.metric, known.neighbors, known.seed) != asked:
        known = layout(vectors, method, metric=metric, neighbors=neighbors, run=run)
        save_layout(known, folder, table)
    return known


def save_layout(made: Layout, folder: PathLike, table: str) -> Path:
    """Keeps a map with its model, in the place of the one of that table and method."""
    facts = {
        "method": made.method,
        "metric": made.metric,
        "neighbors": made.neighbors,
        "seed": made.seed,
        "score": made.score._asdict(),
        "vectors": made.vectors,
        "sha256": hashlib.sha256(made.xy.tobytes()).hexdigest(),
    }
    path = place(folder, table, made.method)
    with new_file(path) as work:
        text = json.dumps(facts).encode()
        write_arrays(work, {"xy": made.xy, "facts": np.frombuffer(text, dtype=np.uint8)})
    return path


def read_layout(folder: PathLike, table: str, method: str, vectors: Vectors) -> Layout | None:
    """A kept map; None where there is none, or where it was made of other vectors than the table now has."""
    path = place(folder, table, method)
    if not path.exists():
        return None
    arrays = read_arrays(path)
    try:
        facts: dict[str, Any] = json.loads(arrays["facts"].tobytes())
        xy = np.array(arrays["xy"])
        right = hashlib.sha256(xy.tobytes()).hexdigest() == facts["sha256"] and xy.ndim == 2 and xy.shape[1] == 2
        score = Preservation(**facts["score"])
        named = (facts["method"], facts["metric"], facts["neighbors"], facts["seed"])
    except (KeyError, TypeError, ValueError) as error:
        raise FirthError(
            "damaged_file", "{path} is not a map ({reason}); delete it.", path=path, reason=str(error)
        ) from None
    if not right:
        raise FirthError("hash_mismatch", "{path} was changed since it was written; delete it.", path=path)
    if not 0 < len(xy) <= len(vectors):
        return None
    shown = first_rows(vectors, len(xy))
    if shown.fingerprint() != facts["vectors"]:
        return None
    return Layout(shown.keys, xy, *named, score, facts["vectors"])


def place(folder: PathLike, table: str, method: str) -> Path:
    return Path(folder) / MAPS / f"{table}-{method}.safetensors"


def tables_of(folder: PathLike) -> dict[str, Vectors]:
    model = load(folder)
    tables = dict(model.tables) if isinstance(model, HasVectors) and Path(folder).is_dir() else {}
    if not tables:
        raise FirthError(
            "unsupported_model",
            "{folder} is no folder of a model with vectors, so it can keep no map.",
            folder=os.fspath(folder),
        )
    return tables
