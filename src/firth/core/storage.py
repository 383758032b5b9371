"""Models on disk: a folder of config.json, *.safetensors and JSON, whole or not there at all."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import importlib
import json
import math
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.model import Model, Parts
from firth.core.options import build_settings
from firth.version import __version__

FILES = "firth.learners.files"  # by name: core knows where models in one file are opened, not how
FORMAT = 1
CONFIG = "config.json"
TRAINING = "training.json"
MAPS = "maps"  # in a model's folder: pictures of its vectors, which are no part of it
ARRAYS, FOREIGN_ARRAYS = "vectors.safetensors", "model.safetensors"
# safetensors' names of the kinds of numbers, all little-endian (BF16, the upper half of F32, has no NumPy kind: it is
# widened when it is read).
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
KINDS |= {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"}


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
    return folder


def load_model(folder: str | os.PathLike[str], whole: bool = False) -> Model:
    """Opens a saved model, or a model in one file (fastText's). Nothing in it is executed; arrays are memory-mapped.

    JSON is read at its first use; `whole` reads it now, for those who keep a model while its folder may be replaced.
    """
    path = Path(folder)
    if path.is_file():
        found: Model = importlib.import_module(FILES).load_file(path)
        return found
    from firth.core.foreign import foreign_config, foreign_method

    foreign = foreign_config(path)
    if foreign:
        theirs = registry.method(foreign_method(foreign))
        with saying_which(path):
            return theirs.model.from_foreign(path, foreign, theirs)  # type: ignore[attr-defined, no-any-return]
    config = read_config(path)
    method_class = registry.method(config["method"])
    method = build_settings(method_class, config["options"])
    names = [name for name in config["files"] if name.endswith(".json") and name != TRAINING]
    documents: Mapping[str, Any] = LazyDocuments({name[:-5]: path / name for name in names})
    if whole:
        documents = dict(documents)
    main = FOREIGN_ARRAYS if FOREIGN_ARRAYS in config["files"] else ARRAYS
    ends = ".safetensors"
    others = [name for name in config["files"] if name.endswith(ends) and name != main]
    more = {name.removesuffix(ends): read_arrays(path / name) for name in others}
    training = read_json(path / TRAINING) if TRAINING in config["files"] else {}
    try:
        with saying_which(path):
            parts = Parts(read_arrays(path / main), documents, more=more)
            return method_class.model.from_parts(method, parts, training)
    except KeyError as error:
        raise FirthError(
            "incomplete_model",
            "{path} is incomplete: it has no {reason} for {method_class}.",
            path=path,
            reason=str(error),
            method_class=method_class.__name__,
        ) from error


def read_config(folder: Path) -> dict[str, Any]:
    """config.json of a model folder, checked for what the loader relies on."""
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
    for name, facts in config["files"].items():
        inside = not Path(name).is_absolute() and ".." not in Path(name).parts
        if not inside or not (folder / name).is_file():
            raise FirthError("incomplete_model", "{folder} is incomplete: {name} is missing.", folder=folder, name=name)
        known = isinstance(facts, dict) and isinstance(facts.get("bytes"), int) and isinstance(facts.get("sha256"), str)
        if not known:
            raise FirthError(
                "damaged_model", "{path} does not give the bytes and sha256 of {name}.", path=folder / CONFIG, name=name
            )
        found = (folder / name).stat().st_size
        if found != facts["bytes"]:
            raise FirthError(
                "damaged_model",
                "{path} has {got:,} bytes where {config} says {bytes:,}.",
                path=folder / name,
                got=found,
                config=CONFIG,
                bytes=facts["bytes"],
            )
    return config


def verify_model(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Checks the sha256 of every file of a model; the hashes by file name."""
    from firth.core.foreign import foreign_config

    path = Path(folder)
    if foreign_config(path):
        raise FirthError(
            "no_hashes",
            "{path} was written by another library, with no hashes to check by; `firth convert {path} NEW-FOLDER` "
            "writes a folder that has them.",
            path=path,
        )
    config = read_config(path)
    for name, facts in config["files"].items():
        found = fingerprint(path / name)["sha256"]
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

    def __init__(self, paths: Mapping[str, Path]) -> None:
        self._paths, self._read = paths, dict[str, Any]()

    def __getitem__(self, name: str) -> Any:
        if name not in self._read:
            self._read[name] = read_json(self._paths[name])
        return self._read[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._paths)

    def __len__(self) -> int:
        return len(self._paths)


class Stacked:
    """Arrays under each other, written as one without ever being in memory together."""

    def __init__(
        self, kind: np.dtype[Any], shape: tuple[int, ...], pieces: Callable[[], Iterable[NDArray[Any]]]
    ) -> None:
        self.dtype, self.shape, self.pieces = kind, shape, pieces

    @property
    def nbytes(self) -> int:
        return math.prod(self.shape) * self.dtype.itemsize


Arrays = Mapping[str, NDArray[Any] | Stacked]


def write_arrays(path: Path, arrays: Arrays, foreign: bool = False) -> None:
    """A safetensors file."""
    with saying_where(path), path.open("wb") as file:
        dump_arrays(file, arrays, foreign)
        file.flush()
        os.fsync(file.fileno())


def dump_arrays(file: BinaryIO, arrays: Arrays, foreign: bool = False) -> None:
    """Writes safetensors array by array: a mapped matrix is never copied into memory whole."""
    names = {np.dtype(kind): name for name, kind in KINDS.items()}
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)  # wide kinds first: all stay aligned
    # torch's libraries refuse a file that doesn't say that it is theirs.
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if foreign else {}
    end = 0
    for name, array in ordered:
        kind = array.dtype.newbyteorder("<")
        if kind not in names:
            raise FirthError(
                "invalid_type",
                "{name} holds {dtype}; safetensors takes {choices}.",
                name=name,
                dtype=array.dtype,
                choices=", ".join(KINDS),
            )
        header[name] = {"dtype": names[kind], "shape": array.shape, "data_offsets": (end, end + array.nbytes)}
        end += array.nbytes
    text = json.dumps(header).encode()
    text += b" " * (-len(text) % 8)
    file.write(len(text).to_bytes(8, "little") + text)
    for _, array in ordered:
        for piece in array.pieces() if isinstance(array, Stacked) else [array]:
            file.write(np.ascontiguousarray(piece, dtype=piece.dtype.newbyteorder("<")).data)


def read_arrays(path: Path) -> dict[str, NDArray[Any]]:
    """Arrays of a safetensors file, memory-mapped. Header and sizes are checked before anything is read."""
    header, data = read_header(path)
    size = path.stat().st_size
    arrays: dict[str, NDArray[Any]] = {}
    for name, entry in header.items():
        kind, shape, begin, end = checked_entry(path, name, entry)
        count = math.prod(shape)
        if begin < 0 or min(shape, default=0) < 0 or end - begin != count * kind.itemsize or data + end > size:
            raise FirthError(
                "damaged_model",
                "{path}: {name} of shape {shape} does not fit the file's {size:,} bytes.",
                path=path,
                name=name,
                shape=shape,
                size=size,
            )
        try:
            arrays[name] = (
                np.memmap(path, dtype=kind, mode="r", offset=data + begin, shape=shape)
                if count
                else np.zeros(shape, dtype=kind)
            )
            if entry["dtype"] == "BF16":
                arrays[name] = (arrays[name].astype("<u4") << 16).view("<f4")
        except (ValueError, OverflowError, OSError) as error:  # too many dimensions, or one too long for an empty array
            raise FirthError(
                "damaged_model",
                "{path}: {name} of shape {shape} cannot be opened ({reason}).",
                path=path,
                name=name,
                shape=shape,
                reason=str(error),
            ) from None
    return arrays


def read_header(path: Path) -> tuple[dict[str, Any], int]:
    """The JSON header of a safetensors file, less its metadata, and the byte where the arrays begin."""
    try:
        with path.open("rb") as file:
            size = os.fstat(file.fileno()).st_size
            length = int.from_bytes(file.read(8), "little")
            if size < 8 or length > min(size - 8, 100_000_000):
                raise FirthError(
                    "damaged_model",
                    "{path} is not a safetensors file: its header would be {length:,} bytes of {size:,}.",
                    path=path,
                    length=length,
                    size=size,
                )
            header = json.loads(file.read(length))
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    except FirthError:
        raise
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "damaged_model", "{path} has a broken safetensors header ({reason}).", path=path, reason=str(error)
        ) from None
    if not isinstance(header, dict):
        raise FirthError("damaged_model", "{path} has a broken safetensors header (not an object).", path=path)
    header.pop("__metadata__", None)
    return header, 8 + length


def checked_entry(path: Path, name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Kind, shape, begin and end of one array, as its header entry says."""
    facts = entry if isinstance(entry, dict) else {}
    kind, shape, offsets = facts.get("dtype"), facts.get("shape"), facts.get("data_offsets")
    if not isinstance(kind, str) or kind not in (*KINDS, "BF16"):
        raise FirthError(
            "damaged_model",
            "{path}: {name} has the kind {kind!r}; Firth reads {choices}, BF16.",
            path=path,
            name=name,
            kind=kind,
            choices=", ".join(KINDS),
        )
    if not (whole_numbers(shape) and whole_numbers(offsets) and len(offsets) == 2):
        raise FirthError("damaged_model", "{path}: {name} has no proper shape and data_offsets.", path=path, name=name)
    return np.dtype(KINDS.get(kind, "<u2")), tuple(shape), offsets[0], offsets[1]


def whole_numbers(values: Any) -> TypeGuard[list[int]]:
    return isinstance(values, list) and all(type(value) is int for value in values)


def write_json(path: Path, document: Any, indent: int | None = None) -> None:
    with saying_where(path), path.open("w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, indent=indent, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_json(path: Path) -> Any:
    try:
        return json.loads(path.read_bytes())
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "damaged_model", "{path} is not valid JSON ({reason}).", path=path, reason=str(error)
        ) from None
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def fingerprint(path: Path) -> dict[str, Any]:
    with path.open("rb") as file:
        digest = hashlib.sha256()
        while block := file.read(1 << 20):
            digest.update(block)
    return {"bytes": path.stat().st_size, "sha256": digest.hexdigest()}


@contextlib.contextmanager
def new_folder(folder: Path) -> Iterator[Path]:
    """A temporary sibling that becomes `folder` when the block ends well and disappears when it doesn't."""
    with saying_where(folder):
        folder = folder.resolve()  # of a link, the folder it names is replaced
        if folder.exists() and not folder.is_dir():
            raise FirthError("unsafe_output", "{folder} is a file; choose another place for the folder.", folder=folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
        work = Path(tempfile.mkdtemp(prefix=f".{folder.name}-", dir=folder.parent))
    try:
        work.chmod(0o777 & ~current_umask())
        yield work
        with saying_where(folder):
            put_in_place(work, folder)
    finally:
        shutil.rmtree(work, ignore_errors=True)


@contextlib.contextmanager
def new_file(path: Path) -> Iterator[Path]:
    """A temporary sibling that becomes `path` when the block ends well and disappears when it doesn't."""
    with saying_where(path):
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise FirthError(
                "unsafe_output", "{path} is not a plain file; choose another place.", path=path
            )  # a rename would destroy /dev/null
        path.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{path.name}-", dir=path.parent)
        os.close(handle)
    work = Path(name)
    try:
        with saying_where(path):
            work.chmod(0o666 & ~current_umask())
            yield work
            sync(work)
            work.replace(path)
            sync(path.parent)
    finally:
        work.unlink(missing_ok=True)


def put_in_place(work: Path, folder: Path) -> None:
    """`work` becomes `folder`; what was there before ends up under the name of `work`."""
    sync(work)
    if not folder.exists():
        work.rename(folder)
    elif not exchange(work, folder):
        aside = work.with_name(work.name + "-old")
        folder.rename(aside)
        work.rename(folder)
        aside.rename(work)
    sync(folder.parent)


def exchange(a: Path, b: Path) -> bool:
    """Swaps two folders in one step where the system can (Linux renameat2)."""
    with contextlib.suppress(OSError, AttributeError):
        swap: Callable[..., int] = ctypes.CDLL(None).renameat2
        here, flag_exchange = -100, 2
        return swap(here, os.fsencode(a), here, os.fsencode(b), flag_exchange) == 0
    return False


def sync(path: Path) -> None:
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def current_umask() -> int:
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def saying_which(folder: Path) -> Iterator[None]:
    """What is wrong with a model's parts is told with its folder, which they don't know."""
    try:
        yield
    except FirthError as error:
        if re.search(rf"(^|\s){re.escape(str(folder))}(\W|$)", str(error)):
            raise
        raise FirthError("damaged_model", "{folder}: {reason}", folder=folder, reason=str(error)) from error


@contextlib.contextmanager
def saying_where(path: Path) -> Iterator[None]:
    """A full disk or a folder without permission becomes one clear line."""
    try:
        yield
    except OSError as error:
        raise FirthError(
            "unwritable_file", "Cannot write {path}: {reason}.", path=path, reason=error.strerror or error
        ) from error


def check_writable(folder: Path) -> None:
    """Raises what making the folder, or writing into it, would: before the work whose result goes there."""
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if existing != folder and not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(existing))
    if existing.is_dir() and not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(existing))
