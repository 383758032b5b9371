"""The served models and indexes by name. They are loaded at their first use and reloaded when their folder is replaced.

A request uses one loaded model throughout. If a folder is deleted or damaged, the loaded model stays in use; a model
that was not loaded before is reported as unavailable.
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
from firth.core.functions import lacks_tokenizer
from firth.core.method import Method
from firth.core.remote import is_url
from firth.core.remote_folders import local_path
from firth.core.saved import load
from firth.core.storage import CONFIG
from firth.core.vectors import Vectors
from firth.formats import format_of, read_vectors
from firth.formats.fasttext import is_fasttext
from firth.index import Index
from firth.index.folder import MANIFEST, is_index
from firth.server.errors import RequestError
from firth.server.settings import Settings
from firth.transformers.huggingface_folder import known_options, network_folder

Stamp = tuple[int, int, int]  # inode, modification time and size: changes when a file is replaced
CHECK_SECONDS = 0.2  # time after which a folder is checked again

#: Abilities of models, each with its protocol.
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
    "next_sentence": protocols.PredictsNextSentence,
    "generates": protocols.Generates,
    "generates_tokens": protocols.GeneratesTokens,
    "translates": protocols.Translates,
    "inverts": protocols.Inverts,
    "interpolates": protocols.Interpolates,
    "samples": protocols.Samples,
    "matrix": protocols.HasMatrix,
    "recommends": protocols.Recommends,
    "rates": protocols.Rates,
}


def abilities(model: Served) -> list[str]:
    """Return the model's names in ABILITIES; `codes` instead of `embeds` for models that do not embed texts."""
    names = [name for name, protocol in ABILITIES.items() if isinstance(model, protocol)]
    method = method_of(model)
    if "embeds" in names and method is not None and not method.data.has_texts:
        names[names.index("embeds")] = "codes"
    if "fills" in names and isinstance(model, protocols.HasHeads) and "masked" not in model.heads:
        names.remove("fills")  # an encoder without a masked language modeling head
    if "next_sentence" in names and isinstance(model, protocols.HasHeads) and "next_sentence" not in model.heads:
        names.remove("next_sentence")
    if method is not None and lacks_tokenizer(method):  # its tokenizer is a function, which the folder does not contain
        names = [name for name in names if name not in ("embeds", "predicts", "fills")]
    if isinstance(model, protocols.HasVectors) and not any(len(table) for table in model.tables.values()):
        names.remove("vectors")
    return names


class VectorFile:
    """A file of vectors with the interface of a model."""

    training: Mapping[str, Any] = {}

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        return {"words": self.vectors}


Served = protocols.Model | VectorFile


def method_of(model: Served) -> Method | None:
    """Return the method of a model; None for a file of vectors."""
    return model.method if isinstance(model, protocols.Model) else None


@dataclass
class Entry:
    """A path, and the model or index that was loaded from it."""

    path: Path
    kind: str  # "model" or "index"
    resource: Any = None
    stamp: Stamp | None = None
    failed_stamp: Stamp | None = None  # a file that failed to load is not tried again until it changes
    reason: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    described: tuple[Stamp | None, dict[str, Any]] | None = None  # cached description, and the stamp that it belongs to
    checked: float = -CHECK_SECONDS
    latest: Stamp | None = None

    def recent_stamp(self) -> Stamp | None:
        """Return the stamp, cached for CHECK_SECONDS to save disk access."""
        if time.monotonic() - self.checked >= CHECK_SECONDS:
            self.latest, self.checked = self.current_stamp(), time.monotonic()
        return self.latest

    def current_stamp(self) -> Stamp | None:
        """Return the stamp of the file that is replaced last; None if it does not exist."""
        try:
            main = self.path
            if main.is_dir():
                main = main / MANIFEST if self.kind == "index" else network_folder(main) / CONFIG
            status = main.stat()
        except (OSError, FirthError):
            return None
        return status.st_ino, status.st_mtime_ns, status.st_size


class Models:
    """All served models and indexes. Thread-safe. Loading is slow, so it must not happen in the event loop."""

    def __init__(self, settings: Settings) -> None:
        # Absolute paths: the commands that the workbench shows work in any directory.
        self._models = {name: Entry(Path(path).absolute(), "model") for name, path in settings.models.items()}
        self._indexes = {name: Entry(Path(path).absolute(), "index") for name, path in settings.indexes.items()}

    def names(self) -> list[str]:
        """Return the names of the models."""
        return list(self._models)

    def index_names(self) -> list[str]:
        """Return the names of the indexes."""
        return list(self._indexes)

    def add(self, name: str, path: Path) -> None:
        """Add a model, such as one trained in the workbench; an existing name gets the new path."""
        self._models[name] = Entry(path, "model")

    def add_index(self, name: str, path: Path) -> None:
        """Add an index."""
        self._indexes[name] = Entry(path, "index")

    def add_found(self, name: str, path: Path, kind: str, where: str) -> None:
        """Add a model or index from the folder `where`, unless it was added by name before."""
        entries = self._indexes if kind == "index" else self._models
        if all(entry.path.resolve() != path for entry in entries.values()):
            entries[f"{where}/{name}" if name in entries else name] = Entry(path, kind)

    def index_path(self, name: str) -> Path:
        """Return the path of an index."""
        return self._entry(name, self._indexes, "index").path

    def path(self, name: str) -> Path:
        """Return the path of a model, for the commands that the workbench shows."""
        return self._entry(name, self._models, "model").path

    def get(self, name: str) -> Any:
        """Return the model of this name, reloaded if it has changed on disk."""
        return self._current(name, self._entry(name, self._models, "model"))

    def index(self, name: str) -> Index:
        """Return the index of this name, reopened if it has changed on disk."""
        index: Index = self._current(name, self._entry(name, self._indexes, "index"))
        return index

    def ready(self, name: str) -> Any | None:
        """Return the model if it is loaded and unchanged, without blocking."""
        entry = self._entry(name, self._models, "model")
        return entry.resource if entry.recent_stamp() in (entry.stamp, entry.failed_stamp, None) else None

    def created(self, name: str) -> int:
        """Return the modification time of a model in seconds since 1970; 0 if its files were deleted."""
        stamp = self._entry(name, self._models, "model").current_stamp()
        return 0 if stamp is None else stamp[1] // 10**9

    def loaded(self) -> list[str]:
        """Return the names of the models in memory."""
        return [name for name, entry in self._models.items() if entry.resource is not None]

    def describe(self, name: str) -> dict[str, Any]:
        """Describe a model: its method, tables, options and abilities."""
        return {"name": name, **self._describe(name, self._entry(name, self._models, "model"), description)}

    def describe_index(self, name: str, describe: Callable[[Index], dict[str, Any]]) -> dict[str, Any]:
        """Describe an index with a function; the index may be opened without its model."""
        return self._describe(name, self._entry(name, self._indexes, "index"), describe)

    def _describe(self, name: str, entry: Entry, describe: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """Describe a resource. One that is not loaded is opened only for that: few of many may be used."""
        if entry.resource is not None or entry.path.is_file():
            return describe(self._current(name, entry))
        with entry.lock:
            stamp = entry.current_stamp()
            if entry.described is None or entry.described[0] != stamp:
                try:
                    resource = Index.open(entry.path) if entry.kind == "index" else load(entry.path)
                    entry.described = stamp, describe(resource)
                except FirthError as error:
                    raise unavailable(name, entry, error) from None
            return entry.described[1]

    def _entry(self, name: str, entries: Mapping[str, Entry], kind: str) -> Entry:
        entry = entries.get(name)
        if entry is None:
            available = ", ".join(entries) or "none"
            raise RequestError(
                404,
                f"There is no {kind} {name[:80]!r}. Available: {available}.",
                field=kind,
                code=f"{kind}_not_found",
            )
        return entry

    def _current(self, name: str, entry: Entry) -> Any:
        stamp = entry.recent_stamp()
        if entry.resource is not None and stamp in (entry.stamp, entry.failed_stamp, None):
            return entry.resource
        # While one thread loads the new model, the others use the old one.
        if not entry.lock.acquire(blocking=entry.resource is None):
            return entry.resource
        try:
            stamp = entry.current_stamp()
            if entry.resource is None or stamp not in (entry.stamp, entry.failed_stamp, None):
                self._open(entry, stamp)
        finally:
            entry.lock.release()
        if entry.resource is None:
            raise unavailable(name, entry, entry.reason)
        return entry.resource

    def _open(self, entry: Entry, stamp: Stamp | None) -> None:
        if stamp is None:
            entry.reason = "its files were deleted."
            return
        if entry.resource is None and entry.failed_stamp == stamp:
            return
        try:
            while True:
                resource = self._open_index(entry.path) if entry.kind == "index" else open_path(entry.path)
                if (new_stamp := entry.current_stamp()) == stamp or new_stamp is None:
                    break
                stamp = new_stamp  # replaced during loading: the parts may be of two models
            if isinstance(resource, Index) and is_unfinished(resource) and not is_unfinished(entry.resource):
                entry.failed_stamp = stamp  # the old index is used until the new one is complete
                return
            entry.resource, entry.stamp, entry.failed_stamp = resource, stamp, None
        except (FirthError, OSError) as error:  # the path of an index's model may be invalid
            entry.failed_stamp, entry.reason = stamp, str(error)

    def _open_index(self, path: Path) -> Index:
        """Open an index with its model, if available: a served one, or the one at the path that the index records."""
        index = Index.open(path)
        model_path = (index.store.manifest.get("model") or {}).get("path")
        if not model_path or not Path(model_path).exists():
            return index
        served = [name for name, entry in self._models.items() if entry.path.resolve() == Path(model_path).resolve()]
        model = self.get(served[0]) if served else open_path(Path(model_path))
        return Index.open(path, model) if isinstance(model, protocols.Model) else index


def unavailable(name: str, entry: Entry, reason: object) -> RequestError:
    """Return the error for a model or index that cannot be opened now."""
    message = (
        str(reason).replace(str(entry.path), entry.path.name) if entry.current_stamp() else "its files were deleted."
    )
    return RequestError(503, f"The {entry.kind} {name!r} is not available: {message}", kind="unavailable")


def description(model: Served) -> dict[str, Any]:
    """Describe a loaded model."""
    method = method_of(model)
    tables = model.tables if isinstance(model, protocols.HasVectors) else {}
    return {
        "method": None if method is None else type(method).method_name(),
        "data": None if method is None else method.data.__name__,
        "summary": "vectors from a file" if method is None else method.summary,
        "can": abilities(model),
        "tables": {table: {"rows": len(rows), "dim": rows.dim} for table, rows in tables.items()},
        "options": known_options(model) if isinstance(model, protocols.Model) else {},
    }


def is_unfinished(index: Index | None) -> bool:
    """Return whether `firth index build` has not finished this index."""
    return index is None or index.metadata.get("finished") is False


def open_path(path: Path) -> Served:
    """Load a model folder, a fastText file or a file of vectors into memory. Files are not memory-mapped: truncating a
    mapped file would kill the server (SIGBUS), and later reads could see another file."""
    if path.is_file() and not is_fasttext(path):
        vectors = read_vectors(path)
        mapped = format_of(path) in ("npy", "safetensors")
        return VectorFile(Vectors(list(vectors.keys), np.array(vectors.matrix) if mapped else vectors.matrix))
    return load(path, in_memory=True)


def parse_paths(paths: list[str]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Return models and indexes by name, from PATH or NAME=PATH; the default name is that of the folder."""
    models_and_indexes: tuple[dict[str, Path], dict[str, Path]] = {}, {}
    for argument in paths:
        name, separator, rest = argument.partition("=")
        given = argument if not separator or is_url(argument) or Path(argument).exists() else rest
        path = local_path(given)  # a URL is fetched now, and served as it is now
        if given == argument:
            # The name of a link itself: current -> model-7 is "current".
            name = path.resolve().name if path.name in ("", "..") else path.name
        if not path.exists():
            raise FirthError("not_found", "There is no model at {path}.", path=path)
        if path.is_file() and not is_fasttext(path):
            format_of(path)  # refuses other files before the server starts
        is_model = path.is_file() or (network_folder(path) / CONFIG).is_file()
        if not is_model and not is_index(path):
            raise FirthError(
                "not_found",
                "{path} is neither a model nor an index: it has neither {config} nor {manifest}.",
                path=path,
                config=CONFIG,
                manifest=MANIFEST,
            )
        entries = models_and_indexes[not is_model]
        if name in entries:
            raise FirthError(
                "duplicate_name",
                "Two models or indexes have the name {name!r}. Rename one: other={path}.",
                name=name,
                path=path,
            )
        entries[name] = path
    return models_and_indexes
