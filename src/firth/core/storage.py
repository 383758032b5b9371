"""Atomic writing of files and folders, safetensors and JSON, and removal of what killed processes left behind."""

from __future__ import annotations

import contextlib
import ctypes
import errno
import hashlib
import json
import math
import os
import re
import shutil
import stat
import tempfile
import weakref
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, BinaryIO, TypeGuard

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.remote import AnyPath, RemotePath, refuse_url
from firth.core.remote_folders import uploaded_file, uploaded_folder

try:
    import fcntl
except ImportError:  # Windows: no locks, so leftovers of killed processes are kept
    fcntl = None  # type: ignore[assignment]

#: Files of a model's folder.
CONFIG, TRAINING = "config.json", "training.json"
ARRAYS, FOREIGN_ARRAYS = "vectors.safetensors", "model.safetensors"
MAPS = "maps"  # 2-D maps of its vectors, which are not part of the model
# safetensors dtypes, all little-endian. BF16, the upper half of F32, has no NumPy dtype and is converted when read.
KINDS = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BOOL": "?", "I64": "<i8", "I32": "<i4", "I16": "<i2", "I8": "i1"}
KINDS |= {"U64": "<u8", "U32": "<u4", "U16": "<u2", "U8": "u1"}


class Stacked:
    """Blocks of rows that are written as one array without being in memory together."""

    def __init__(
        self, kind: np.dtype[Any], shape: tuple[int, ...], pieces: Callable[[], Iterable[NDArray[Any]]]
    ) -> None:
        self.dtype, self.shape, self.pieces = kind, shape, pieces

    @property
    def nbytes(self) -> int:
        """The size of the array in bytes."""
        return math.prod(self.shape) * self.dtype.itemsize


Arrays = Mapping[str, NDArray[Any] | Stacked]


def write_arrays(path: Path, arrays: Arrays, foreign: bool = False) -> None:
    """Write a safetensors file."""
    with saying_where(path), path.open("wb") as file:
        dump_arrays(file, arrays, foreign)
        file.flush()
        os.fsync(file.fileno())


def dump_arrays(file: BinaryIO, arrays: Arrays, foreign: bool = False) -> None:
    """Write safetensors array by array, so that a memory-mapped matrix is never copied into memory."""
    names = {np.dtype(kind): name for name, kind in KINDS.items()}
    ordered = sorted(arrays.items(), key=lambda item: -item[1].dtype.itemsize)  # widest dtypes first keeps all aligned
    # Libraries based on torch require this entry.
    header: dict[str, Any] = {"__metadata__": {"format": "pt"}} if foreign else {}
    end = 0
    for name, array in ordered:
        kind = array.dtype.newbyteorder("<")
        if kind not in names:
            raise FirthError(
                "invalid_type",
                "{name} has dtype {dtype}, which safetensors does not support. Supported: {choices}.",
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


class OpenFile:
    """An open file: later reads see its content even if the path is replaced."""

    READING = os.O_RDONLY | getattr(os, "O_BINARY", 0) | getattr(os, "O_NONBLOCK", 0)  # do not block on a pipe

    def __init__(self, path: Path) -> None:
        self.path, self.handle = path, os.open(path, self.READING)
        self.close = weakref.finalize(self, os.close, self.handle)
        status = os.fstat(self.handle)
        if not stat.S_ISREG(status.st_mode):
            raise OSError(errno.EINVAL, "Not a regular file")
        self.size = status.st_size

    def read(self, begin: int, size: int) -> NDArray[np.uint8]:
        """Read `size` bytes from `begin`; fewer if the file was truncated."""
        data, done = np.empty(size, np.uint8), 0
        while done < size and (count := read_at(self.handle, data[done : done + READ].data, begin + done)):
            done += count
        return data[:done]

    def map(self) -> NDArray[np.uint8]:
        """Memory-map the file."""
        with os.fdopen(self.handle, "rb", buffering=0, closefd=False) as file:
            return np.memmap(file, np.uint8, "r")


READ = 1 << 30  # bytes per call: systems refuse to read more than 2 GB at once


def read_at(handle: int, view: memoryview, begin: int) -> int:
    """Read into `view` without changing the file position, which threads and processes may share."""
    if hasattr(os, "preadv"):
        return os.preadv(handle, [view], begin)
    os.lseek(handle, begin, os.SEEK_SET)
    data = os.read(handle, len(view))
    view[: len(data)] = data
    return len(data)


def open_file(path: Path) -> OpenFile:
    """Open a file for reading."""
    try:
        return OpenFile(path)
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def read_arrays(source: Path | OpenFile, in_memory: bool = False) -> dict[str, NDArray[Any]]:
    """Arrays of a safetensors file, memory-mapped or read. Header and sizes are checked before allocation.

    If another program truncates a memory-mapped file, the next access kills this process (SIGBUS); arrays in memory do
    not depend on the file.
    """
    file = source if isinstance(source, OpenFile) else open_file(source)
    path, size = file.path, file.size
    header, data = read_header(file)
    arrays: dict[str, NDArray[Any]] = {}
    mapped: NDArray[np.uint8] | None = None
    used = 0
    for name, entry in header.items():
        kind, shape, begin, end = checked_entry(path, name, entry)
        count = math.prod(shape)
        used += end - begin
        fits = begin >= 0 and min(shape, default=0) >= 0 and end - begin == count * kind.itemsize
        if not fits or data + end > size or data + used > size:  # also in total: arrays do not share bytes
            raise FirthError(
                "damaged_model",
                "{path}: {name} of shape {shape} does not fit the file's {size:,} bytes.",
                path=path,
                name=name,
                shape=shape,
                size=size,
            )
        try:
            if not count:
                arrays[name] = np.zeros(shape, dtype=kind)
                continue
            if in_memory:
                numbers = file.read(data + begin, end - begin)
            else:
                mapped = file.map() if mapped is None else mapped
                numbers = mapped[data + begin : data + end]
            array = numbers.view(kind).reshape(shape)
            if entry["dtype"] == "BF16":
                array = (array.astype("<u4") << 16).view("<f4")
            arrays[name] = array if array.flags.aligned else array.copy()  # kernels require it
        except (ValueError, OverflowError, OSError, MemoryError) as error:
            # Too many dimensions, a dimension too large for an empty array, or a file that was truncated meanwhile.
            raise FirthError(
                "damaged_model",
                "{path}: {name} of shape {shape} cannot be opened ({reason}).",
                path=path,
                name=name,
                shape=shape,
                reason=str(error),
            ) from None
    return arrays


def read_header(file: OpenFile) -> tuple[dict[str, Any], int]:
    """The JSON header of a safetensors file without metadata, and the offset of the arrays."""
    path, size = file.path, file.size
    try:
        length = int.from_bytes(file.read(0, 8).tobytes(), "little")
        if size < 8 or length > min(size - 8, 100_000_000):
            raise FirthError(
                "damaged_model",
                "{path} is not a safetensors file: its header would have {length:,} of {size:,} bytes.",
                path=path,
                length=length,
                size=size,
            )
        header = json.loads(file.read(8, length).tobytes())
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    except FirthError:
        raise
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "damaged_model", "{path} has an invalid safetensors header ({reason}).", path=path, reason=str(error)
        ) from None
    if not isinstance(header, dict):
        raise FirthError("damaged_model", "{path} has an invalid safetensors header (not an object).", path=path)
    header.pop("__metadata__", None)
    return header, 8 + length


def checked_entry(path: Path, name: str, entry: Any) -> tuple[np.dtype[Any], tuple[int, ...], int, int]:
    """Dtype, shape, begin and end of an array from its header entry."""
    fields = entry if isinstance(entry, dict) else {}
    kind, shape, offsets = fields.get("dtype"), fields.get("shape"), fields.get("data_offsets")
    if not isinstance(kind, str) or kind not in (*KINDS, "BF16"):
        raise FirthError(
            "damaged_model",
            "{path}: {name} has dtype {kind!r}; Firth reads {choices}, BF16.",
            path=path,
            name=name,
            kind=kind,
            choices=", ".join(KINDS),
        )
    if not (whole_numbers(shape) and whole_numbers(offsets) and len(offsets) == 2):
        raise FirthError("damaged_model", "{path}: {name} has no valid shape and data_offsets.", path=path, name=name)
    return np.dtype(KINDS.get(kind, "<u2")), tuple(shape), offsets[0], offsets[1]


def whole_numbers(values: Any) -> TypeGuard[list[int]]:
    """Return whether a value is a list of integers."""
    return isinstance(values, list) and all(type(value) is int for value in values)


def write_json(path: Path, document: Any, indent: int | None = None) -> None:
    """Write a JSON file and flush it to disk."""
    with saying_where(path), path.open("w", encoding="utf-8") as file:
        json.dump(document, file, ensure_ascii=False, indent=indent, allow_nan=False)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())


def read_json(source: AnyPath | OpenFile) -> Any:
    """Read a JSON file; raises a FirthError if it is damaged."""
    path = source.path if isinstance(source, OpenFile) else source
    try:
        data = source.read(0, source.size).tobytes() if isinstance(source, OpenFile) else path.read_bytes()
        return json.loads(data)
    except (ValueError, RecursionError) as error:
        raise FirthError(
            "damaged_model", "{path} is not valid JSON ({reason}).", path=path, reason=str(error)
        ) from None
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def fingerprint(source: AnyPath | OpenFile) -> dict[str, Any]:
    """Size and sha256 of a file."""
    if isinstance(source, RemotePath):
        return source.fingerprint()
    file = source if isinstance(source, OpenFile) else open_file(source)
    digest, size = hashlib.sha256(), 0
    while len(block := file.read(size, 1 << 20)):
        digest.update(block.data)
        size += len(block)
    return {"bytes": size, "sha256": digest.hexdigest()}


@contextlib.contextmanager
def new_folder(folder: AnyPath) -> Iterator[Path]:
    """A temporary sibling that replaces `folder` at the end of the block, and is removed if the block fails.

    For a URL, a temporary folder that is uploaded at the end.
    """
    if isinstance(folder, RemotePath):
        with uploaded_folder(folder) as work:
            yield work
        return
    refuse_url(folder)
    with saying_where(folder):
        folder = folder.resolve()  # a symbolic link stays, and its target is replaced
        if folder.exists() and not folder.is_dir():
            raise FirthError("unsafe_output", "{folder} is a file. Choose another path for the folder.", folder=folder)
        folder.parent.mkdir(parents=True, exist_ok=True)
    with temporary(folder, tempfile.mkdtemp) as work:
        work.chmod(0o777 & ~current_umask())
        yield work
        with saying_where(folder):
            put_in_place(work, folder)


@contextlib.contextmanager
def new_file(path: AnyPath) -> Iterator[Path]:
    """A temporary sibling that replaces `path` at the end of the block, and is removed if the block fails.

    For a URL, a temporary file that is uploaded at the end.
    """
    if isinstance(path, RemotePath):
        with uploaded_file(path) as work:
            yield work
        return
    refuse_url(path)
    with saying_where(path):
        path = path.resolve()
        if path.exists() and not path.is_file():
            raise FirthError(
                "unsafe_output", "{path} is not a regular file. Choose another path.", path=path
            )  # a rename would replace /dev/null
        path.parent.mkdir(parents=True, exist_ok=True)
    with temporary(path, empty_file) as work, saying_where(path):
        work.chmod(0o666 & ~current_umask())
        yield work
        sync(work)
        work.replace(path)
        sync(path.parent)


def empty_file(prefix: str, dir: Path) -> str:
    """Create an empty temporary file and return its path."""
    handle, name = tempfile.mkstemp(prefix=prefix, dir=dir)
    os.close(handle)
    return name


@contextlib.contextmanager
def temporary(path: Path, make: Callable[..., str]) -> Iterator[Path]:
    """A temporary sibling of `path`, created by `make` and removed at the end of the block.

    It is locked while this process lives. One without a lock was left by a killed process and is removed when the next
    one is created.
    """
    with saying_where(path):
        remove_leftovers(path)
        while True:
            work, handle = Path(make(prefix=f".{path.name}{TEMPORARY}", dir=path.parent)), None
            try:
                handle = hold(work) if fcntl else None
            except (BlockingIOError, FileNotFoundError):  # removed as a leftover before it was locked
                continue
            except OSError:  # a file system without locks: nothing counts as a leftover
                pass
            break
    try:
        yield work
    finally:
        remove(work)
        if handle is not None:
            os.close(handle)


TEMPORARY = "-tmp-"
ASIDE = "-old"


def remove_leftovers(path: Path) -> None:
    """Remove temporary siblings of `path` that killed processes left. A folder that was moved aside when its
    replacement was interrupted is restored."""
    pattern = re.compile(re.escape(f".{path.name}{TEMPORARY}") + rf"\w{{8}}({ASIDE})?")
    with contextlib.suppress(OSError):
        for leftover in [each for each in path.parent.iterdir() if pattern.fullmatch(each.name)]:
            aside = leftover.with_name(leftover.name + ASIDE)
            if leftover.name.endswith(ASIDE) and leftover.with_name(leftover.name.removesuffix(ASIDE)).exists():
                continue  # handled with its replacement, which is locked while its process lives
            with contextlib.suppress(OSError):
                handle = hold(leftover)
                if aside.exists() and not path.exists():
                    aside.rename(path)
                remove(leftover)
                os.close(handle)


def hold(path: Path, flags: int = os.O_RDONLY) -> int:
    """Open a file or folder with an exclusive lock, which is released when the process ends.

    Raises BlockingIOError if another process holds it, FileNotFoundError if it was removed meanwhile.
    """
    handle = os.open(path, flags, 0o666)
    try:
        if fcntl:
            fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(handle).st_ino != path.stat().st_ino:
            raise FileNotFoundError
    except BaseException:
        os.close(handle)
        raise
    return handle


def remove(path: Path) -> None:
    """Remove a file, or a folder with its content."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def remove_folder(folder: AnyPath) -> None:
    """Remove a folder with its content; at a URL, the files below it."""
    if isinstance(folder, Path):
        remove(folder)
        return
    for path in folder.rglob("*"):
        if path.is_file():
            with contextlib.suppress(FirthError):  # removed by another process, or left: nothing reads it
                path.unlink()


def sizes_in(folder: AnyPath) -> dict[str, int]:
    """Return the sizes of the files in a folder, from one listing; none if there is no folder."""
    try:
        return {path.name: path.stat().st_size for path in folder.iterdir() if path.is_file()}
    except (FileNotFoundError, NotADirectoryError):
        return {}


def put_in_place(work: Path, folder: Path) -> None:
    """Rename `work` to `folder`; the previous folder gets the name of `work`."""
    sync(work)
    if not folder.exists():
        work.rename(folder)
    elif not exchange(work, folder):
        aside = work.with_name(work.name + ASIDE)
        folder.rename(aside)
        work.rename(folder)
        with contextlib.suppress(FileNotFoundError):  # another process removed it as a leftover
            aside.rename(work)
    sync(folder.parent)


def exchange(a: Path, b: Path) -> bool:
    """Exchange two folders atomically if the system supports it (renameat2 on Linux)."""
    with contextlib.suppress(OSError, AttributeError):
        swap: Callable[..., int] = ctypes.CDLL(None).renameat2
        here, flag_exchange = -100, 2
        return swap(here, os.fsencode(a), here, os.fsencode(b), flag_exchange) == 0
    return False


def sync(path: Path) -> None:
    """Flush a file or folder to disk."""
    handle = os.open(path, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)


def current_umask() -> int:
    """Return the permissions that new files of this process do not get."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


@contextlib.contextmanager
def saying_where(path: AnyPath) -> Iterator[None]:
    """Report failures to write, such as a full disk, as a FirthError with the path."""
    try:
        yield
    except OSError as error:
        raise FirthError(
            "unwritable_file", "Cannot write {path}: {reason}.", path=path, reason=error.strerror or error
        ) from error


def check_writable(folder: AnyPath) -> None:
    """Raise the error that creating or writing the folder would raise, before the work starts."""
    if isinstance(folder, RemotePath):
        (folder / "file").check_writable()
        return
    refuse_url(folder)
    existing = next(path for path in (folder, *folder.absolute().parents) if path.exists())
    if existing != folder and not existing.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, os.strerror(errno.ENOTDIR), str(existing))
    if existing.is_dir() and not os.access(existing, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, os.strerror(errno.EACCES), str(existing))


#: Exceptions that inconsistent files may cause.
DAMAGE = (LookupError, TypeError, ValueError, AttributeError, AssertionError, ArithmeticError, RuntimeError)


@contextlib.contextmanager
def saying_which(folder: Path) -> Iterator[None]:
    """Add the folder to errors about the parts of a model. Inconsistent files may cause any of `DAMAGE`."""
    try:
        yield
    except FirthError as error:
        if re.search(rf"(^|\s){re.escape(str(folder))}(\W|$)", str(error)):
            raise
        raise error.within(folder) from error
    except KeyError as error:
        raise FirthError(
            "incomplete_model", "{folder} is incomplete: it has no {reason}.", folder=folder, reason=str(error)
        ) from error
    except DAMAGE as error:
        raise FirthError(
            "damaged_model",
            "{folder}: its files are inconsistent ({reason}).",
            folder=folder,
            reason=f"{type(error).__name__}: {error}",
        ) from error
