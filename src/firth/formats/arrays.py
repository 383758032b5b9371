"""Memory-mapped vector files: .npy with a separate file of keys, and .safetensors.

The keys are a JSON list of strings, so any text can be a key. They are in NAME.keys.json next to NAME.npy, or the bytes
of the array "keys" in a .safetensors file, and are read at their first use.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import re
import shutil
import time
import tokenize
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import IO

import numpy as np

from firth.core.errors import FirthError
from firth.core.storage import dump_arrays, hold, new_file, read_arrays, sync
from firth.core.vectors import Matrix, Vectors
from firth.formats.quantize import pack_rows, unpack_rows


def read_safetensors(path: Path, limit: int | None = None) -> Vectors:
    """Open a .safetensors file; float32 vectors stay memory-mapped. `limit` is the maximum number of rows."""
    arrays = read_arrays(path)
    keys = arrays.get("keys")
    if keys is None or keys.dtype != np.uint8 or keys.ndim != 1:
        names = ", ".join(arrays) or "nothing"
        raise FirthError(
            "damaged_file",
            '{path} has no array "keys" with the bytes of a JSON list; its arrays are: {available}.',
            path=path,
            available=names,
        )
    try:
        matrix = unpack_rows(arrays, limit)
    except FirthError as error:
        raise FirthError("damaged_file", "{path}: {reason}.", path=path, reason=str(error)) from None
    return lazy_vectors(path, lambda: keys.tobytes(), matrix, len(arrays["vectors"]))


def write_safetensors(vectors: Vectors, path: Path, storage: str = "float") -> None:
    """Write vectors and keys to one .safetensors file."""
    keys = np.frombuffer(keys_to_json(vectors.keys), dtype=np.uint8)
    arrays = {**pack_rows(vectors.matrix, storage), "keys": keys}
    with new_file(path) as work, work.open("wb") as file:
        dump_arrays(file, arrays)


def read_npy(path: Path, limit: int | None = None) -> Vectors:
    """Open a .npy matrix with its keys; `limit` is the maximum number of rows.

    This also works while a writer replaces the two files (`new_pair`), or after it was killed: while NAME.keys.json
    does not exist, a file named by the hash of the matrix has the keys.
    """
    keys_file, n_matrix = keys_path(path), 0
    for _ in range(TRIES):
        keys = OpenFile.of(keys_file)
        with open_npy(path) as file:
            matrix = map_npy(path, file)
            n_matrix = len(matrix)
            if keys is not None and keys.is_same_file(keys_file):
                return lazy_vectors(keys_file, keys.read, matrix[:limit], n_matrix)
            if keys is None and not orphaned_keys_files(keys_file.resolve()):
                continue  # there are no keys, or the exchange has just ended
            bound = bound_keys_path(keys_file.resolve(), file)
        keys = OpenFile.of(bound)
        if keys is not None:
            return lazy_vectors(bound, keys.read, matrix[:limit], n_matrix)
    raise FirthError(
        "damaged_file",
        "{path} has no keys. Add {name} in the same folder: a JSON list of {rows:,} strings.",
        path=path,
        name=keys_file.name,
        rows=n_matrix,
    )


class OpenFile:
    """An open file, whose content stays the same if its path is replaced before it is read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    @classmethod
    def of(cls, path: Path) -> OpenFile | None:
        """Open a file; return None if it does not exist."""
        try:
            return cls(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror
            ) from None

    def is_same_file(self, path: Path) -> bool:
        """Whether the path still refers to this file."""
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except OSError:
            return False

    def read(self) -> bytes:
        """Return the whole content; can be called repeatedly and from any thread."""
        size, data = os.fstat(self._file.fileno()).st_size, b""
        while len(data) < size and (more := os.pread(self._file.fileno(), size - len(data), len(data))):
            data += more
        return data

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def write_npy(vectors: Vectors, path: Path) -> None:
    """Write NAME.npy and NAME.keys.json."""
    rows = np.ascontiguousarray(vectors.matrix)
    with new_pair(path) as (matrix, keys):
        keys.write_bytes(keys_to_json(vectors.keys))
        with matrix.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(rows))
            file.write(rows.data)  # np.save does not report a full disk


@contextlib.contextmanager
def new_pair(path: Path) -> Iterator[tuple[Path, Path]]:
    """Yield temporary files for a matrix and its keys, which become NAME.npy and NAME.keys.json if no error occurs.

    Two files cannot be replaced atomically. Both lists of keys are therefore first stored under names that contain the
    sha256 of their matrix: the new list as a copy, the old one by renaming, so that NAME.keys.json does not exist while
    the matrix is replaced. A process killed at any moment leaves the old or the new matrix, and `read_npy` finds its
    keys.
    """
    keys_file = keys_path(path).resolve()
    with contextlib.ExitStack() as ending, new_file(keys_file) as keys, new_file(path) as matrix:
        yield matrix, keys
        ending.enter_context(lock_of(keys_file))
        ending.callback(finish_exchange, path, keys_file)
        finish_exchange(path, keys_file)
        for each in (keys, matrix):
            sync(each)
        with matrix.open("rb") as file:
            new = bound_keys_path(keys_file, file)
        old = None
        if path.is_file():
            with path.open("rb") as file:
                old = bound_keys_path(keys_file, file)
        if old != new:  # otherwise the matrix is the same, and replacing the keys is atomic
            shutil.copyfile(keys, new)
            sync(new)
            sync(keys_file.parent)
            if old is not None and keys_file.is_file():
                keys_file.replace(old)
            keys_file.unlink(missing_ok=True)  # keys without a matrix are useless
            sync(keys_file.parent)


def finish_exchange(path: Path, keys_file: Path) -> None:
    """Complete a replacement, possibly of a killed process: the keys of the current matrix become NAME.keys.json.

    Other temporary key files are removed.
    """
    with contextlib.suppress(OSError):  # an incomplete replacement can still be read
        bound = orphaned_keys_files(keys_file)
        if bound and path.is_file() and not keys_file.exists():
            with path.open("rb") as file:
                own = bound_keys_path(keys_file, file)
            if own in bound:
                own.replace(keys_file)
                sync(keys_file.parent)
        for each in bound:
            each.unlink(missing_ok=True)


def orphaned_keys_files(keys_file: Path) -> list[Path]:
    """Return the temporary key files of a replacement, for any matrix."""
    pattern = re.compile(re.escape(f".{keys_file.name}-") + "[0-9a-f]{64}")
    return [path for path in keys_file.parent.iterdir() if pattern.fullmatch(path.name)]


def bound_keys_path(keys_file: Path, matrix: IO[bytes]) -> Path:
    """Return the temporary path of a matrix's keys, named by the sha256 of the matrix."""
    digest = hashlib.sha256()
    matrix.seek(0)
    while block := matrix.read(1 << 20):
        digest.update(block)
    return keys_file.with_name(f".{keys_file.name}-{digest.hexdigest()}")


@contextlib.contextmanager
def lock_of(keys_file: Path) -> Iterator[None]:
    """Hold the lock of a pair of files, so that writers take turns, if the file system supports locks.

    The folder itself is not locked, because a caller that writes many pairs into a folder may hold that lock.
    """
    lock, handle = keys_file.with_name(f".{keys_file.name}.lock"), None
    while handle is None:
        try:
            handle = hold(lock, os.O_RDWR | os.O_CREAT)
        except (BlockingIOError, FileNotFoundError):  # noqa: PERF203 (held, or just removed by its holder)
            time.sleep(0.01)
        except OSError:
            break
    try:
        yield
    finally:
        lock.unlink(missing_ok=True)
        if handle is not None:
            os.close(handle)


def keys_path(path: Path) -> Path:
    """Return the path of the keys of a .npy file."""
    return path.with_name(path.name.removesuffix(".npy") + ".keys.json")


LONGEST_HEADER = 1 << 16
TRIES = 100  # attempts to open a matrix with its keys while other processes replace them
# Exceptions that NumPy's header parser raises on damaged headers.
_BROKEN = (ValueError, TypeError, SyntaxError, OSError, EOFError, RecursionError, MemoryError, tokenize.TokenError)


@contextlib.contextmanager
def open_npy(path: Path) -> Iterator[IO[bytes]]:
    """Open a file for reading, with a FirthError if that fails."""
    try:
        file = path.open("rb")
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    with file:
        yield file


def map_npy(path: Path, file: IO[bytes]) -> Matrix:
    """Memory-map the matrix of a .npy file; its header is checked against the size of the file."""
    try:
        head = io.BytesIO(file.read(LONGEST_HEADER))  # NumPy would allocate any length that the file claims
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, dtype = read(head)
        start = head.tell()
    except _BROKEN as error:
        raise FirthError(
            "damaged_file", "{path} is not a .npy file ({reason}).", path=path, reason=str(error)
        ) from None
    if len(shape) != 2 or dtype.kind != "f" or dtype.itemsize > 8 or min(shape) < 1:
        raise FirthError(
            "damaged_file",
            "{path} has an array of dtype {dtype} and shape {shape}; expected a float matrix of at least 1 × 1.",
            path=path,
            dtype=dtype,
            shape=shape,
        )
    size = os.fstat(file.fileno()).st_size
    needed = start + shape[0] * shape[1] * dtype.itemsize
    if needed != size:
        raise FirthError(
            "damaged_file",
            "{path} has {size:,} bytes, but the shape {shape} in its header needs {expected:,}. It is truncated or "
            "damaged.",
            path=path,
            size=size,
            shape=shape,
            expected=needed,
        )
    matrix = np.memmap(file, dtype=dtype, mode="r", offset=start, shape=shape, order="F" if by_columns else "C")
    with np.errstate(over="ignore"):  # numbers beyond float32 become infinite and are refused when used
        return np.asarray(matrix, dtype=np.float32)


def lazy_vectors(path: Path, read: Callable[[], bytes], matrix: Matrix, rows: int) -> Vectors:
    """Return vectors whose keys are read by `read` at their first use.

    `rows` is the number of keys in the file; `matrix` may have only the first rows.
    """
    if not matrix.size:
        raise FirthError(
            "damaged_file",
            "{path} has a matrix of shape {shape}; expected at least 1 × 1.",
            path=path,
            shape=matrix.shape,
        )

    def keys() -> Sequence[str]:
        try:
            key_list = json.loads(read())
        except (ValueError, RecursionError, OSError) as error:
            raise FirthError(
                "damaged_file", "The keys in {path} are not valid JSON ({reason}).", path=path, reason=str(error)
            ) from None
        if not isinstance(key_list, list) or not all(isinstance(key, str) for key in key_list) or len(key_list) != rows:
            raise FirthError(
                "damaged_file",
                "The keys in {path} must be a JSON list of {rows:,} strings, one per row.",
                path=path,
                rows=rows,
            )
        return key_list[: len(matrix)]

    return Vectors(keys, matrix)


def keys_to_json(keys: Sequence[str]) -> bytes:
    """Encode the keys as a JSON list."""
    try:
        return json.dumps(list(keys), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FirthError(
            "invalid_encoding", "A key is not valid Unicode text ({reason}). Rename it.", reason=error.reason
        ) from None
