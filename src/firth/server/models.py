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
LOOK = 0.2  # seconds after which a folder is looked at again

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
    found = [name for name, protocol in ABILITIES.items() if isinstance(model, protocol)]
    if "embeds" in found and model.method.kind == "table":
        found[found.index("embeds")] = "codes"
    if "fills" in found and "masked" not in getattr(model, "heads", ["masked"]):
        found.remove("fills")  # an encoder without the head that predicts words
    if lacks_tokenizer(getattr(model, "method", None)):  # no function comes with a folder: it reads no text here
        found = [name for name in found if name not in ("embeds", "predicts", "fills")]
    if "vectors" in found and not any(len(table) for table in model.tables.values()):
        found.remove("vectors")
    return found


class VectorFile:
    """A file of vectors as something with tables."""

    training: Mapping[str, Any] = {}

    def __init__(self, vectors: Vectors) -> None:
        self.vectors = vectors

    @cached_property
    def tables(self) -> Mapping[str, Vectors]:
        return {"words": self.vectors}


@dataclass
class Place:
    """Where something is, and what was opened there."""

    path: Path
    kind: str  # "model" or "index"
    opened: Any = None
    stamp: Stamp | None = None
    failed: Stamp | None = None  # what could not be opened is not tried again until it changes
    why: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    told: tuple[Stamp | None, dict[str, Any]] | None = None  # what was said of it, and of which files
    looked: float = -LOOK
    latest: Stamp | None = None

    def recent(self) -> Stamp | None:
        """`now`, or what it was a moment ago: the disk is not asked for every request."""
        if time.monotonic() - self.looked >= LOOK:
            self.latest, self.looked = self.now(), time.monotonic()
        return self.latest

    def now(self) -> Stamp | None:
        """Of the file that is replaced last."""
        try:
            main = self.path
            if main.is_dir():
                main = main / MANIFEST if self.kind == "index" else network_folder(main) / CONFIG
            found = main.stat()
        except (OSError, FirthError):
            return None
        return found.st_ino, found.st_mtime_ns, found.st_size


class Models:
    """Safe to ask from any thread. Opening takes a while: not for the event loop."""

    def __init__(self, settings: Settings) -> None:
        # Whole paths: the commands that the workbench shows run wherever they are pasted.
        self._places = {name: Place(Path(path).absolute(), "model") for name, path in settings.models.items()}
        self._indexes = {name: Place(Path(path).absolute(), "index") for name, path in settings.indexes.items()}

    def names(self) -> list[str]:
        return list(self._places)

    def index_names(self) -> list[str]:
        return list(self._indexes)

    def add(self, name: str, path: Path) -> None:
        """One more, such as the workbench has trained; a name that is there already gets the new place."""
        self._places[name] = Place(path, "model")

    def add_index(self, name: str, path: Path) -> None:
        self._indexes[name] = Place(path, "index")

    def find(self, name: str, path: Path, kind: str, where: str) -> None:
        """One that lies in the folder `where` and was not named; those that were keep their names."""
        places = self._indexes if kind == "index" else self._places
        if all(place.path.resolve() != path for place in places.values()):
            places[f"{where}/{name}" if name in places else name] = Place(path, kind)

    def index_path(self, name: str) -> Path:
        return self._place(name, self._indexes, "index").path

    def path(self, name: str) -> Path:
        """Where a model is: for commands that are shown, never from a request."""
        return self._place(name, self._places, "model").path

    def get(self, name: str) -> Any:
        """The model of this name as it is on disk now."""
        return self._current(name, self._place(name, self._places, "model"))

    def index(self, name: str) -> Index:
        found: Index = self._current(name, self._place(name, self._indexes, "index"))
        return found

    def ready(self, name: str) -> Any | None:
        """The model, if it is open and unchanged: this does not wait."""
        place = self._place(name, self._places, "model")
        return place.opened if place.recent() in (place.stamp, place.failed, None) else None

    def created(self, name: str) -> int:
        """When its files were written, in seconds since 1970; 0 if they are gone."""
        stamp = self._place(name, self._places, "model").now()
        return 0 if stamp is None else stamp[1] // 10**9

    def loaded(self) -> list[str]:
        return [name for name, place in self._places.items() if place.opened is not None]

    def describe(self, name: str) -> dict[str, Any]:
        """What a model is and can do."""
        return {"name": name, **self._say(name, self._place(name, self._places, "model"), description)}

    def describe_index(self, name: str, say: Callable[[Index], dict[str, Any]]) -> dict[str, Any]:
        """What `say` says of an index; it may be opened without its model."""
        return self._say(name, self._place(name, self._indexes, "index"), say)

    def _say(self, name: str, place: Place, say: Callable[[Any], dict[str, Any]]) -> dict[str, Any]:
        """What is not open is opened for this alone: there may be many, of which few are used."""
        if place.opened is not None or place.path.is_file():
            return say(self._current(name, place))
        with place.lock:
            stamp = place.now()
            if place.told is None or place.told[0] != stamp:
                try:
                    found = Index.open(place.path) if place.kind == "index" else load(place.path)
                    place.told = stamp, say(found)
                except FirthError as error:
                    raise unavailable(name, place, error) from None
            return place.told[1]

    def _place(self, name: str, places: Mapping[str, Place], what: str) -> Place:
        found = places.get(name)
        if found is None:
            known = ", ".join(places) or "none"
            raise RequestError(
                404, f"There is no {what} {name[:80]!r} here; there is: {known}.", field=what, code=f"{what}_not_found"
            )
        return found

    def _current(self, name: str, place: Place) -> Any:
        stamp = place.recent()
        if place.opened is not None and stamp in (place.stamp, place.failed, None):
            return place.opened
        # While one thread opens the new model, the others go on with the old one.
        if not place.lock.acquire(blocking=place.opened is None):
            return place.opened
        try:
            stamp = place.now()
            if place.opened is None or stamp not in (place.stamp, place.failed, None):
                self._open(place, stamp)
        finally:
            place.lock.release()
        if place.opened is None:
            raise unavailable(name, place, place.why)
        return place.opened

    def _open(self, place: Place, stamp: Stamp | None) -> None:
        if stamp is None:
            place.why = "its files are gone."
            return
        if place.opened is None and place.failed == stamp:
            return
        try:
            while True:
                found = self._open_index(place.path) if place.kind == "index" else open_path(place.path)
                if (after := place.now()) == stamp or after is None:
                    break
                stamp = after  # replaced while it was read: parts may be of two models
            if place.kind == "index" and half_made(found) and not half_made(place.opened):
                place.failed = stamp  # the old one serves until the new one is whole
                return
            place.opened, place.stamp, place.failed = found, stamp, None
        except (FirthError, OSError) as error:  # an index may name any path as its model's
            place.failed, place.why = stamp, str(error)

    def _open_index(self, path: Path) -> Index:
        """With the model that made it, where that is found: one that is served, or where the index says it is."""
        index = Index.open(path)
        made = (index.store.manifest.get("model") or {}).get("path")
        if not made or not Path(made).exists():
            return index
        same = [name for name, place in self._places.items() if place.path.resolve() == Path(made).resolve()]
        return Index.open(path, self.get(same[0]) if same else open_path(Path(made)))


def unavailable(name: str, place: Place, why: object) -> RequestError:
    told = str(why).replace(str(place.path), place.path.name) if place.now() else "its files are gone."
    return RequestError(503, f"The {place.kind} {name!r} can't be opened now: {told}", kind="unavailable")


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


def half_made(index: Index | None) -> bool:
    """Whether `firth index build` is still at it, or has not begun."""
    return index is None or index.about.get("finished") is False


def open_path(path: Path) -> Any:
    """A model's folder, a model in one file (fastText's), or a file of vectors, read into memory: a mapped file that is
    cut short would end the server (SIGBUS), and what is read later could be of another file."""
    if path.is_file() and not is_fasttext(path):
        vectors = read_vectors(path)
        mapped = format_of(path) in ("npy", "safetensors")
        return VectorFile(Vectors(list(vectors.keys), np.array(vectors.matrix) if mapped else vectors.matrix))
    return load(path, in_memory=True)


def named(paths: list[str]) -> tuple[dict[str, Path], dict[str, Path]]:
    """Models and indexes by name, from PATH or NAME=PATH; the name is else the folder's."""
    found: tuple[dict[str, Path], dict[str, Path]] = {}, {}
    for given in paths:
        name, sign, rest = given.partition("=")
        path = Path(given) if not sign or Path(given).exists() else Path(rest)
        if path == Path(given):
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
        places = found[not is_model]
        if name in places:
            raise FirthError(
                "duplicate_name",
                "Two are called {name!r}: give one another name, as in other={path}.",
                name=name,
                path=path,
            )
        places[name] = path
    return found
