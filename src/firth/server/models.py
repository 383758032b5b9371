"""What is served: models and indexes by name, opened at their first use, and opened anew when their folder is replaced.

A request keeps the model that it was given, so a new one never disturbs it. A folder that is gone or broken leaves the
model that was open; one that was never open is said to be unavailable.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from firth.core import model as protocols
from firth.core.errors import FirthError
from firth.core.foreign import known_options, network_folder
from firth.core.functions import lacks_tokenizer
from firth.core.saved import load
from firth.core.storage import CONFIG
from firth.core.vectors import Vectors
from firth.formats import format_of, read_vectors
from firth.formats.fasttext import is_fasttext
from firth.index import Index
from firth.index.folder import MANIFEST, is_index
from firth.server.errors import RequestError
from firth.server.settings import Settings

Stamp = tuple[int, int, int]  # tells a replaced file from the old one
CHECK_SECONDS = 0.2  # seconds after which a folder is looked at again

#: What a model can do, by the protocol that says so.
ABILITIES: Mapping[str, Any] = {
    "embeds": protocols.Embeds,
    "vectors": protocols.HasVectors,
    "predicts": protocols.Predicts,
    "estimates": protocols.Estimates,
    "tags": protocols.TagsWords,
    "answers": protocols.Answers,
    "attends": protocols.Attends,
    "contextual": protocols.Contextual,
    "fills": protocols.Fills,
    "generates": protocols.Generates,
    "translates": protocols.Translates,
    "inverts": protocols.Inverts,
    "interpolates": protocols.Interpolates,
    "samples": protocols.Samples,
    "matrix": protocols.HasMatrix,
    "recommends": protocols.Recommends,
    "rates": protocols.Rates,
}


def abilities(model: Any) -> list[str]:
    """Names out of ABILITIES; `codes` instead of `embeds` where rows of a table are taken, not texts."""
    names = [name for name, protocol in ABILITIES.items() if isinstance(model, protocol)]
    if "embeds" in names and model.method.kind == "table":
        names[names.index("embeds")] = "codes"
    if "fills" in names and "masked" not in getattr(model, "heads", ["masked"]):
        names.remove("fills")  # an encoder without the head that predicts words
    if lacks_tokenizer(getattr(model, "method", None)):  # no function comes with a folder: it reads no text here
        names = [name for name in names if name not in ("embeds", "predicts", "fills")]
    if "vectors" in names and not any(len(table) for table in model.tables.values()):
        names.remove("vectors")
    return names


class VectorFile:
    """A file of vectors as something with tables."""

    training: Mapping[str, Any] = {}

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        return {"words": self.vectors}


@dataclass
class Entry:
    """Where something is, and what was opened there."""

    path: Path
    kind: str  # "model" or "index"
    resource: Any = None
    stamp: Stamp | None = None
    failed_stamp: Stamp | None = None  # what could not be opened is not tried again until it changes
    reason: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    described: tuple[Stamp | None, dict[str, Any]] | None = None  # what was said of it, and of which files
    checked: float = -CHECK_SECONDS
    latest: Stamp | None = None

    def recent_stamp(self) -> Stamp | None:
        """`now`, or what it was a moment ago: the disk is not asked for every request."""
        if time.monotonic() - self.checked >= CHECK_SECONDS:
            self.latest, self.checked = self.current_stamp(), time.monotonic()
        return self.latest

    def current_stamp(self) -> Stamp | None:
        """Of the file that is replaced last."""
        try:
            main = self.path
            if main.is_dir():
                main = main / MANIFEST if self.kind == "index" else network_folder(main) / CONFIG
            status = main.stat()
        except (OSError, FirthError):
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


class Models:
    """Safe to ask from any thread. Opening takes a while: not for the event loop."""

    def __init__(self, settings: Settings) -> None:
        # Whole paths: the commands that the workbench shows run wherever they are pasted.
        self._models = {name: Entry(Path(path).absolute(), "model") for name, path in settings.models.items()}
        self._indexes = {name: Entry(Path(path).absolute(), "index") for name, path in settings.indexes.items()}

    def names(self) -> list[str]:
        return list(self._models)

    def index_names(self) -> list[str]:
        return list(self._indexes)

    def add(self, name: str, path: Path) -> None:
        """One more, such as the workbench has trained; a name that is there already gets the new place."""
        self._models[name] = Entry(path, "model")

    def add_index(self, name: str, path: Path) -> None:
        self._indexes[name] = Entry(path, "index")

    def add_found(self, name: str, path: Path, kind: str, where: str) -> None:
        """One that lies in the folder `where` and was not named; those that were keep their names."""
        entries = self._indexes if kind == "index" else self._models
        if all(entry.path.resolve() != path for entry in entries.values()):
            entries[f"{where}/{name}" if name in entries else name] = Entry(path, kind)

    def index_path(self, name: str) -> Path:
        return self._entry(name, self._indexes, "index").path

    def path(self, name: str) -> Path:
        """Where a model is: for commands that are shown, never from a request."""
        return self._entry(name, self._models, "model").path

    def get(self, name: str) -> Any:
        """The model of this name as it is on disk now."""
        return self._current(name, self._entry(name, self._models, "model"))

    def index(self, name: str) -> Index:
        index: Index = self._current(name, self._entry(name, self._indexes, "index"))
        return index

    def ready(self, name: str) -> Any | None:
        """The model, if it is open and unchanged: this does not wait."""
        place = self._entry(name, self._models, "model")
        return place.resource if place.recent_stamp() in (place.stamp, place.failed_stamp, None) else None

    def created(self, name: str) -> int:
        """When its files were written, in seconds since 1970; 0 if they are gone."""
        stamp = self._entry(name, self._models, "model").current_stamp()
        return 0 if stamp is None else stamp[1] // 10**9

    def loaded(self) -> list[str]:
        return [name for name, place in self._models.items() if place.resource is not None]

    def describe(self, name: str) -> dict[str, Any]:
        """What a model is and can do."""
        return {"name": name, **self._describe(name, self._entry(name, self._models, "model"), description)}

    def describe_index(self, name: str, describe: Callable[[Index], dict[str, Any]]) -> dict[str, Any]:
        """What `say` says of an index; it may be opened without its model."""
        return self._describe(name, self._entry(name, self._indexes, "index"), describe)

    def _describe(self, name: str, place: Entry, describe: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What is not open is opened for this alone: there may be many, of which few are used."""
        if place.resource is not None or place.path.is_file():
            return describe(self._current(name, place))
        with place.lock:
            stamp = place.current_stamp()
            if place.described is None or place.described[0] != stamp:
                try:
                    resource = Index.open(place.path) if place.kind == "index" else load(place.path)
                    place.described = stamp, describe(resource)
                except FirthError as error:
                    raise unavailable(name, place, error) from None
            return place.described[1]

    def _entry(self, name: str, entries: Mapping[str, Entry], kind: str) -> Entry:
        entry = entries.get(name)
        if entry is None:
            available = ", ".join(entries) or "none"
            raise RequestError(
                404,
                f"There is no {kind} {name[:80]!r} here; there is: {available}.",
                field=kind,
                code=f"{kind}_not_found",
            )
        return entry

    def _current(self, name: str, place: Entry) -> Any:
        stamp = place.recent_stamp()
        if place.resource is not None and stamp in (place.stamp, place.failed_stamp, None):
            return place.resource
        # While one thread opens the new model, the others go on with the old one.
        if not place.lock.acquire(blocking=place.resource is None):
            return place.resource
        try:
            stamp = place.current_stamp()
            if place.resource is None or stamp not in (place.stamp, place.failed_stamp, None):
                self._open(place, stamp)
        finally:
            place.lock.release()
        if place.resource is None:
            raise unavailable(name, place, place.reason)
        return place.resource

    def _open(self, place: Entry, stamp: Stamp | None) -> None:
        if stamp is None:
            place.reason = "its files are gone."
            return
        if place.resource is None and place.failed_stamp == stamp:
            return
        try:
            while True:
                resource = self._open_index(place.path) if place.kind == "index" else open_path(place.path)
                if (new_stamp := place.current_stamp()) == stamp or new_stamp is None:
                    break
                stamp = new_stamp  # replaced while it was read: parts may be of two models
            if place.kind == "index" and is_unfinished(resource) and not is_unfinished(place.resource):
                place.failed_stamp = stamp  # the old one serves until the new one is whole
                return
            place.resource, place.stamp, place.failed_stamp = resource, stamp, None
        except (FirthError, OSError) as error:  # an index may name any path as its model's
            place.failed_stamp, place.reason = stamp, str(error)

    def _open_index(self, path: Path) -> Index:
        """With the model that made it, where that is found: one that is served, or where the index says it is."""
        index = Index.open(path)
        model_path = (index.store.manifest.get("model") or {}).get("path")
        if not model_path or not Path(model_path).exists():
            return index
        served = [name for name, place in self._models.items() if place.path.resolve() == Path(model_path).resolve()]
        return Index.open(path, self.get(served[0]) if served else open_path(Path(model_path)))


def unavailable(name: str, place: Entry, reason: object) -> RequestError:
    message = str(reason).replace(str(place.path), place.path.name) if place.current_stamp() else "its files are gone."
    return RequestError(503, f"The {place.kind} {name!r} can't be opened now: {message}", kind="unavailable")


def description(model: Any) -> dict[str, Any]:
    method = getattr(model, "method", None)
    tables = model.tables if isinstance(model, protocols.HasVectors) else {}
    return {
        "method": None if method is None else type(method).method_name(),
        "kind": None if method is None else method.kind,
        "summary": "vectors from a file" if method is None else method.summary,
        "can": abilities(model),
        "tables": {table: {"rows": len(rows), "dim": rows.dim} for table, rows in tables.items()},
        "options": {} if method is None else known_options(model),
    }


def is_unfinished(index: Index | None) -> bool:
    """Whether `firth index` is still at it, or has not begun."""
    return index is None or index.metadata.get("finished") is False


def open_path(path: Path) -> Any:
    """A model's folder, a model in one file (fastText's), or a file of vectors, read into memory: a mapped file that is
    cut short would end the server (SIGBUS), and what is read later could be of another file."""
    if path.is_file() and not is_fasttext(path):
        vectors = read_vectors(path)
        mapped = format_of(path) in ("npy", "safetensors")
        return VectorFile(Vectors(list(vectors.keys), np.array(vectors.matrix) if mapped else vectors.matrix))
    return load(path, in_memory=True)


def parse_paths(paths: list[str]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Models and indexes by name, from PATH or NAME=PATH; the name is else the folder's."""
    models_and_indexes: tuple[dict[str, Path], dict[str, Path]] = {}, {}
    for argument in paths:
        name, separator, rest = argument.partition("=")
        path = Path(argument) if not separator or Path(argument).exists() else Path(rest)
        if path == Path(argument):
            # A link's own name: current -> model-7 is "current".
            name = path.resolve().name if path.name in ("", "..") else path.name
        if not path.exists():
            raise FirthError("not_found", "There is no model at {path}.", path=path)
        if path.is_file() and not is_fasttext(path):
            format_of(path)  # refuses what are no vectors, before anyone asks for them
        is_model = path.is_file() or (network_folder(path) / CONFIG).is_file()
        if not is_model and not is_index(path):
            raise FirthError(
                "not_found",
                "{path} is neither a model nor an index: it has no {config} and no {manifest}.",
                path=path,
                config=CONFIG,
                manifest=MANIFEST,
            )
        entries = models_and_indexes[not is_model]
        if name in entries:
            raise FirthError(
                "duplicate_name",
                "Two are called {name!r}: give one another name, as in other={path}.",
                name=name,
                path=path,
            )
        entries[name] = path
    return models_and_indexes
