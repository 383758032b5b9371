"""Saved models: a folder of config.json, *.safetensors and JSON, written whole and opened as one state."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from firth.core import registry
from firth.core.card import CARD, card_text
from firth.core.errors import FirthError
from firth.core.foreign import foreign_config, foreign_method
from firth.core.functions import refuse_tokenizer, restored
from firth.core.model import Model, Parts
from firth.core.storage import (
    ARRAYS,
    CONFIG,
    FOREIGN_ARRAYS,
    TRAINING,
    OpenFile,
    fingerprint,
    new_folder,
    open_file,
    read_arrays,
    read_json,
    remove_leftovers,
    saying_where,
    saying_which,
    write_arrays,
    write_json,
)
from firth.version import __version__

FILES = "firth.model_files"  # by name: core knows where models in one file are opened, not how
FORMAT = 1
TRIES = 100  # to open a folder that is replaced again and again

Found = TypeVar("Found")


def save_model(model: Model, folder: Path, *, overwrite: bool = False) -> Path:
    """Writes `model` to `folder`: to a temporary sibling, fsynced, then put in place at once."""
    with saying_where(folder):
        if folder.exists() and not overwrite and (not folder.is_dir() or any(folder.iterdir())):
            raise FirthError(
                "output_exists",
                "{folder} exists; choose another folder or pass overwrite=True (--overwrite).",
                folder=folder,
            )
    parts = model.parts()
    with new_folder(folder) as work:
        foreign = bool(parts.foreign)
        write_arrays(work / (FOREIGN_ARRAYS if foreign else ARRAYS), parts.arrays, foreign)
        for name, arrays in parts.more.items():
            (work / name).parent.mkdir(exist_ok=True)
            write_arrays(work / f"{name}.safetensors", arrays, foreign)
        for name, document in {**parts.documents, "training": dict(model.training)}.items():
            (work / name).parent.mkdir(exist_ok=True)
            write_json(work / f"{name}.json", document)
        config = {
            **parts.foreign,
            "format": FORMAT,
            "firth": __version__,
            "method": type(model.method).method_name(),
            "options": model.method.options(),
            "files": {
                path.relative_to(work).as_posix(): fingerprint(path)
                for path in sorted(work.rglob("*"))
                if path.is_file()
            },
        }
        write_json(work / CONFIG, config, indent=2)
        (work / CARD).write_text(card_text(model), encoding="utf-8")
    return folder


def load(folder: str | os.PathLike[str], in_memory: bool = False, tokenizer: Any = None) -> Model:
    """Opens a saved model, or a model in one file (fastText's). Nothing in it is executed.

    The files are opened together, so that all are of one state, whatever becomes of the folder. Arrays are mapped and
    JSON is read at its first use; `in_memory` reads everything now: nothing that happens to the files later, not even
    their being cut short, matters then. `tokenizer` is the function that a model was trained with
    (`SkipGram(tokenizer=split)`). Without it the model opens with its vectors, and takes lists of tokens but no raw
    text.
    """
    path = Path(folder)
    if path.is_file():
        refuse_tokenizer(tokenizer, path)
        found: Model = importlib.import_module(FILES).load_file(path, in_memory)
        return found
    if not path.exists():
        remove_leftovers(path.absolute())  # which puts a folder back that was about to be replaced
    opened = settled(path, lambda: open_foreign(path) or open_files(path))
    if isinstance(opened, Model):
        refuse_tokenizer(tokenizer, path)
        return opened
    return build(opened, in_memory, tokenizer)


class Files(NamedTuple):
    """config.json of a model and its other files, open."""

    folder: Path
    config: dict[str, Any]
    files: dict[str, OpenFile]


def settled(folder: Path, work: Callable[[], Found]) -> Found:
    """What `work` finds in a folder; done again where the folder was replaced meanwhile."""
    for _ in range(TRIES):
        before = state_of(folder)
        try:
            found = work()
        except FirthError:
            if state_of(folder) == before:
                raise
        else:
            if state_of(folder) == before:
                return found
    raise FirthError("locked", "{folder} is being replaced again and again; try later.", folder=folder)


def state_of(folder: Path) -> list[tuple[int, ...]] | None:
    """Tells a folder and its config.json from their successors; also from themselves, moved away and back."""
    try:
        found = [folder.stat(), (folder / CONFIG).stat()]
    except OSError:
        return None
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in found]


def open_foreign(folder: Path) -> Model | None:
    """The model that another library wrote; None where Firth did."""
    config = foreign_config(folder)
    if not config:
        return None
    with saying_which(folder):
        method = registry.method(foreign_method(config))
        return method.model.from_foreign(folder, config, method)  # type: ignore[attr-defined, no-any-return]


def open_files(folder: Path) -> Files:
    """config.json of a model folder, checked for what the loader relies on, and all files that it lists."""
    if not folder.is_dir():
        raise FirthError("not_found", "No model folder at {folder}.", folder=folder)
    if not (folder / CONFIG).is_file():
        weights = min([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")], default=None)
        if weights:
            raise FirthError(
                "incomplete_model",
                "{folder} has {name} and no {config}, which tells what is in it (layers, heads, …): copy it from "
                "where the weights are from.",
                folder=folder,
                name=weights.name,
                config=CONFIG,
            )
        raise FirthError("not_found", "{folder} is not a model: it has no {config}.", folder=folder, config=CONFIG)
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or "format" not in config or not isinstance(config.get("files"), dict):
        raise FirthError("damaged_model", "{path} does not describe a Firth model.", path=folder / CONFIG)
    if config["format"] != FORMAT:
        raise FirthError(
            "unsupported_format",
            "{folder} has format {format!r}, this Firth ({version__}) reads format {format_2}; open it with the "
            "version that wrote it or a newer one.",
            folder=folder,
            format=config["format"],
            version__=__version__,
            format_2=FORMAT,
        )
    if not isinstance(config.get("method"), str) or not isinstance(config.get("options"), dict):
        raise FirthError("damaged_model", "{path} does not name its method and options.", path=folder / CONFIG)
    return Files(folder, config, {name: open_listed(folder, name, facts) for name, facts in config["files"].items()})


def open_listed(folder: Path, name: str, facts: Any) -> OpenFile:
    """A file that config.json lists, of the size that it says."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not inside or not (folder / name).is_file():
        raise FirthError("incomplete_model", "{folder} is incomplete: {name} is missing.", folder=folder, name=name)
    known = isinstance(facts, dict) and isinstance(facts.get("bytes"), int) and isinstance(facts.get("sha256"), str)
    if not known:
        raise FirthError(
            "damaged_model", "{path} does not give the bytes and sha256 of {name}.", path=folder / CONFIG, name=name
        )
    file = open_file(folder / name)
    if file.size != facts["bytes"]:
        raise FirthError(
            "damaged_model",
            "{path} has {got:,} bytes where {config} says {bytes:,}.",
            path=folder / name,
            got=file.size,
            config=CONFIG,
            bytes=facts["bytes"],
        )
    return file


def build(opened: Files, in_memory: bool, tokenizer: Any) -> Model:
    """The model that a folder's files hold."""
    folder, config, files = opened
    method = registry.stored_method(config["method"], restored(config["options"], tokenizer, folder))
    main, ends = FOREIGN_ARRAYS if FOREIGN_ARRAYS in files else ARRAYS, ".safetensors"
    if main not in files:
        raise FirthError("incomplete_model", "{folder} is incomplete: {name} is missing.", folder=folder, name=main)
    stored = {name[:-5]: file for name, file in files.items() if name.endswith(".json") and name != TRAINING}
    documents: Mapping[str, Any] = LazyDocuments(stored)
    if in_memory:
        documents = dict(documents)
    training = read_json(files[TRAINING]) if TRAINING in files else {}
    if not isinstance(training, dict):
        raise FirthError("damaged_model", "{path} must hold an object.", path=folder / TRAINING)
    arrays = {name.removesuffix(ends): read_arrays(files[name], in_memory) for name in files if name.endswith(ends)}
    parts = Parts(arrays.pop(main.removesuffix(ends)), documents, more=arrays, folder=folder)
    with saying_which(folder):
        return method.model.from_parts(method, parts, training)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder, checked with the sizes of the files that it lists."""
    return settled(folder, lambda: open_files(folder)).config


def verify(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Checks the sha256 of every file of a model; the hashes by file name."""
    path = Path(folder)
    if foreign_config(path):
        raise FirthError(
            "no_hashes",
            "{path} was written by another library, with no hashes to check by; `firth convert {path} NEW-FOLDER` "
            "writes a folder that has them.",
            path=path,
        )
    _, config, files = settled(path, lambda: open_files(path))
    for name, facts in config["files"].items():
        found = fingerprint(files[name])["sha256"]
        if found != facts["sha256"]:
            raise FirthError(
                "hash_mismatch",
                "{path} was changed: its sha256 is {got}…, not {sha256}….",
                path=path / name,
                got=found[:12],
                sha256=facts["sha256"][:12],
            )
    return {name: facts["sha256"] for name, facts in config["files"].items()}


class LazyDocuments(Mapping[str, Any]):
    """JSON documents read at their first use, so that a model with a million words opens at once."""

    def __init__(self, files: Mapping[str, OpenFile]) -> None:
        self._names, self._files, self._read = tuple(files), dict(files), dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        file = self._files.get(name)  # which keeps it open while another thread reads it too
        if file is not None and name not in self._read:
            self._read[name] = read_json(file)
            self._files.pop(name, None)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # an open file can't be pickled
