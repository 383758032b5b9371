"""Saved models: folders of config.json, safetensors and JSON files, written and opened atomically."""

from __future__ import annotations

import importlib
import os
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar, cast, overload

from firth.core import registry
from firth.core.card import CARD, card_text
from firth.core.errors import FirthError
from firth.core.functions import refuse_tokenizer, restored
from firth.core.model import Model, Parts
from firth.core.remote import AnyPath
from firth.core.remote_folders import local_copy
from firth.core.run import Run
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

# Models of other libraries. These modules are imported by name, because they depend on packages above core.
FILES = "firth.model_files"
FOLDERS = "firth.model_folders"
FORMAT = 1
ATTEMPTS = 100  # to open a folder that is being replaced

T = TypeVar("T")
M = TypeVar("M", bound=Model)
M_co = TypeVar("M_co", bound=Model, covariant=True)


def save_model(model: Model, folder: AnyPath, *, overwrite: bool = False) -> Path:
    """Write a model to a temporary sibling of `folder`, sync it, and rename it; to a URL, it is uploaded."""
    with saying_where(folder):
        if folder.exists() and not overwrite and (not folder.is_dir() or any(folder.iterdir())):
            raise FirthError(
                "output_exists",
                "{folder} already exists. Choose another folder or pass overwrite=True (--overwrite).",
                folder=folder,
            )
    parts = model.parts()
    with new_folder(folder) as work:
        foreign = bool(parts.foreign)
        write_arrays(work / (FOREIGN_ARRAYS if foreign else ARRAYS), parts.arrays, foreign)
        for name, arrays in parts.more.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
            write_arrays(work / f"{name}.safetensors", arrays, foreign)
        for name, document in {**parts.documents, "training": dict(model.training)}.items():
            (work / name).parent.mkdir(parents=True, exist_ok=True)
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
    return cast(Path, folder)  # a RemotePath has the methods of a Path


class Trains(Protocol[M_co]):
    """A method, by the class of the models that it trains."""

    def fit(self, data: Any, run: Run = ..., start: Model | None = ...) -> M_co:
        """Train on `data` and return a model."""


@overload
def load(
    folder: str | os.PathLike[str], method: None = None, *, in_memory: bool = False, tokenizer: Any = None
) -> Model: ...


@overload
def load(
    folder: str | os.PathLike[str], method: type[Trains[M]], *, in_memory: bool = False, tokenizer: Any = None
) -> M: ...


def load(
    folder: str | os.PathLike[str],
    method: type[Trains[Model]] | None = None,
    *,
    in_memory: bool = False,
    tokenizer: Any = None,
) -> Model:
    """Open a model folder of Firth or of another library (see `firth.model_folders`), or a fastText file. No code is
    executed.

    `method` is the expected method (`firth.load(folder, firth.SkipGram)`): a model of another method is refused, and
    type checkers know the class of the model. A folder at a URL (s3://bucket/model) is copied to the cache first.

    All files are opened together, so that a folder that is replaced meanwhile gives the old or the new model. Arrays
    are memory-mapped and JSON files are read at first use; with `in_memory` everything is read now, and later changes
    to the files have no effect. `tokenizer` is the function that the model was trained with
    (`SkipGram(tokenizer=split)`). Without it, the model accepts lists of tokens but no raw text.
    """
    with local_copy(folder) as path:
        model = open_model(path, in_memory, tokenizer)
        model.folder = path
    if method is not None and not isinstance(model.method, method):
        raise FirthError(
            "unsupported_model",
            "{folder} holds a model of {got}; expected {expected}.",
            folder=folder,
            got=type(model.method).__name__,
            expected=method.__name__,
        )
    return model


def open_model(path: Path, in_memory: bool, tokenizer: Any) -> Model:
    """Open a folder or file; see `load`."""
    if path.is_file():
        refuse_tokenizer(tokenizer, path)
        model: Model = importlib.import_module(FILES).load_file(path, in_memory)
        return model
    if not path.exists():
        remove_leftovers(path.absolute())  # restores a folder whose replacement was interrupted
    opened = settled(path, lambda: open_external(path) or open_files(path))
    if isinstance(opened, Model):
        refuse_tokenizer(tokenizer, path)
        return opened
    return build(opened, in_memory, tokenizer)


class Files(NamedTuple):
    """The open files of a model, and its config.json."""

    folder: Path
    config: dict[str, Any]
    files: dict[str, OpenFile]


def settled(folder: Path, work: Callable[[], T]) -> T:
    """The result of `work` on a folder; repeated if the folder was replaced meanwhile."""
    for _ in range(ATTEMPTS):
        before = state_of(folder)
        try:
            result = work()
        except FirthError:
            if state_of(folder) == before:
                raise
        else:
            if state_of(folder) == before:
                return result
    raise FirthError("locked", "{folder} is being replaced repeatedly. Try again later.", folder=folder)


def state_of(folder: Path) -> list[tuple[int, ...]] | None:
    """Identifies the current version of a folder and its config.json."""
    try:
        stats = [folder.stat(), (folder / CONFIG).stat()]
    except OSError:
        return None
    return [(each.st_dev, each.st_ino, each.st_size, each.st_mtime_ns, each.st_ctime_ns) for each in stats]


def open_external(folder: Path) -> Model | None:
    """A model of another library; None for a Firth folder."""
    opener = external_opener(folder)
    return None if opener is None else opener()


def external_opener(folder: Path) -> Callable[[], Model] | None:
    """What opens a model folder of another library; None for other folders."""
    opener_of: Callable[[Path], Callable[[], Model] | None] = importlib.import_module(FOLDERS).opener_of
    return opener_of(folder)


def open_files(folder: Path) -> Files:
    """Open config.json of a model folder and all files that it lists."""
    if not folder.is_dir():
        raise FirthError("not_found", "No model folder at {folder}.", folder=folder)
    if not (folder / CONFIG).is_file():
        weights = min([*folder.glob("*.safetensors"), *folder.glob("pytorch_model*.bin")], default=None)
        if weights:
            raise FirthError(
                "incomplete_model",
                "{folder} has {name} but no {config}, which describes the network (layers, heads, …). Copy it from the "
                "source of the weights.",
                folder=folder,
                name=weights.name,
                config=CONFIG,
            )
        raise FirthError(
            "not_found", "{folder} is not a model folder: it has no {config}.", folder=folder, config=CONFIG
        )
    config = read_json(folder / CONFIG)
    if not isinstance(config, dict) or "format" not in config or not isinstance(config.get("files"), dict):
        raise FirthError("damaged_model", "{path} does not describe a Firth model.", path=folder / CONFIG)
    if config["format"] != FORMAT:
        raise FirthError(
            "unsupported_format",
            "{folder} has format {format!r}; this version of Firth ({version}) reads format {supported}. Open it with "
            "the version that wrote it or a newer one.",
            folder=folder,
            format=config["format"],
            version=__version__,
            supported=FORMAT,
        )
    if not isinstance(config.get("method"), str) or not isinstance(config.get("options"), dict):
        raise FirthError("damaged_model", "{path} does not contain the method and its options.", path=folder / CONFIG)
    return Files(folder, config, {name: open_listed(folder, name, entry) for name, entry in config["files"].items()})


def open_listed(folder: Path, name: str, entry: Any) -> OpenFile:
    """Open a file that config.json lists, and check its size."""
    inside = not Path(name).is_absolute() and ".." not in Path(name).parts
    if not inside or not (folder / name).is_file():
        raise FirthError("incomplete_model", "{folder} is incomplete: {name} is missing.", folder=folder, name=name)
    valid = isinstance(entry, dict) and isinstance(entry.get("bytes"), int) and isinstance(entry.get("sha256"), str)
    if not valid:
        raise FirthError(
            "damaged_model", "{path} does not contain the size and sha256 of {name}.", path=folder / CONFIG, name=name
        )
    file = open_file(folder / name)
    if file.size != entry["bytes"]:
        raise FirthError(
            "damaged_model",
            "{path} has {got:,} bytes; expected {bytes:,} as in {config}.",
            path=folder / name,
            got=file.size,
            config=CONFIG,
            bytes=entry["bytes"],
        )
    return file


def build(opened: Files, in_memory: bool, tokenizer: Any) -> Model:
    """Build the model from its files."""
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
        raise FirthError("damaged_model", "{path} must contain a JSON object.", path=folder / TRAINING)
    arrays = {name.removesuffix(ends): read_arrays(files[name], in_memory) for name in files if name.endswith(ends)}
    parts = Parts(arrays.pop(main.removesuffix(ends)), documents, more=arrays, folder=folder)
    with saying_which(folder):
        return method.model_class().from_parts(method, parts, training)


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder, after a check of the file sizes."""
    return settled(folder, lambda: open_files(folder)).config


def verify(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Check the sha256 of every file of a model; return the hashes by file name."""
    with local_copy(folder) as path:
        return verify_folder(path)


def verify_folder(path: Path) -> dict[str, str]:
    """See `verify`."""
    if external_opener(path) is not None:
        raise FirthError(
            "no_hashes",
            "{path} was written by another library and has no hashes to check. `firth convert {path} NEW-FOLDER` "
            "writes a folder that has them.",
            path=path,
        )
    _, config, files = settled(path, lambda: open_files(path))
    for name, entry in config["files"].items():
        actual = fingerprint(files[name])["sha256"]
        if actual != entry["sha256"]:
            raise FirthError(
                "hash_mismatch",
                "{path} was changed: its sha256 is {got}…; expected {sha256}….",
                path=path / name,
                got=actual[:12],
                sha256=entry["sha256"][:12],
            )
    return {name: entry["sha256"] for name, entry in config["files"].items()}


class LazyDocuments(Mapping[str, Any]):
    """JSON documents that are read at first use, so that large models open quickly."""

    def __init__(self, files: Mapping[str, OpenFile]) -> None:
        self._names, self._files, self._read = tuple(files), dict(files), dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        file = self._files.get(name)  # keeps the file open while another thread reads it
        if file is not None and name not in self._read:
            self._read[name] = read_json(file)
            self._files.pop(name, None)
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)

    def __reduce__(self) -> tuple[Any, ...]:
        return dict, (dict(self),)  # open files cannot be pickled
