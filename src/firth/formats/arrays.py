"""Vectors as arrays that are mapped from their file: .npy with keys beside it, and .safetensors.

The keys are a JSON list of strings, so that any text can be one: in NAME.keys.json beside NAME.npy, and as
the bytes of the array "keys" in a .safetensors file. They are read at their first use.
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


def read_safetensors(path: Path) -> Vectors:
    arrays = read_arrays(path)
    keys = arrays.get("keys")
    if keys is None or keys.dtype != np.uint8 or keys.ndim != 1:
        names = ", ".join(arrays) or "nothing"
        raise FirthError(
            "damaged_file",
            '{path} holds {available}, but no keys of its rows: the bytes of a JSON list, named "keys".',
            path=path,
            available=names,
        )
    try:
        matrix = unpack_rows(arrays)
    except FirthError as error:
        raise FirthError("damaged_file", "{path}: {reason}.", path=path, reason=str(error)) from None
    return lazy_vectors(path, lambda: keys.tobytes(), matrix)


def write_safetensors(vectors: Vectors, path: Path, storage: str = "float") -> None:
    keys = np.frombuffer(keys_to_json(vectors.keys), dtype=np.uint8)
    arrays = {**pack_rows(vectors.matrix, storage), "keys": keys}
    with new_file(path) as work, work.open("wb") as file:
        dump_arrays(file, arrays)


def read_npy(path: Path) -> Vectors:
    """The matrix with the keys that belong to it, also where a writer that exchanges the two (`new_pair`) is at work or
    was killed: while NAME.keys.json is missing, keys are bound to the matrix by its content."""
    keys_file, n_matrix = keys_path(path), 0
    for _ in range(TRIES):
        keys = OpenFile.of(keys_file)
        with open_npy(path) as file:
            matrix = map_npy(path, file)
            n_matrix = len(matrix)
            if keys is not None and keys.is_same_file(keys_file):
                return lazy_vectors(keys_file, keys.read, matrix)
            if keys is None and not orphaned_keys_files(keys_file.resolve()):
                continue  # none at all, or they are in place by now
            bound = bound_keys_path(keys_file.resolve(), file)
        keys = OpenFile.of(bound)
        if keys is not None:
            return lazy_vectors(bound, keys.read, matrix)
    raise FirthError(
        "damaged_file",
        "{path} has no keys: put {name}, a JSON list of {n_matrix:,} strings, beside it.",
        path=path,
        name=keys_file.name,
        n_matrix=n_matrix,
    )


class OpenFile:
    """A file as it was when it was opened, whatever takes its place before it is read."""

    def __init__(self, path: Path) -> None:
        self._file = path.open("rb")

    @classmethod
    def of(cls, path: Path) -> OpenFile | None:
        """None where there is no such file."""
        try:
            return cls(path)
        except FileNotFoundError:
            return None
        except OSError as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror
            ) from None

    def is_same_file(self, path: Path) -> bool:
        try:
            return os.path.samestat(os.fstat(self._file.fileno()), path.stat())
        except OSError:
            return False

    def read(self) -> bytes:
        """All of it, as often as it is asked for, by any thread."""
        size, data = os.fstat(self._file.fileno()).st_size, b""
        while len(data) < size and (more := os.pread(self._file.fileno(), size - len(data), len(data))):
            data += more
        return data

    def __del__(self) -> None:
        if hasattr(self, "_file"):
            self._file.close()


def write_npy(vectors: Vectors, path: Path) -> None:
    rows = np.ascontiguousarray(vectors.matrix)
    with new_pair(path) as (matrix, keys):
        keys.write_bytes(keys_to_json(vectors.keys))
        with matrix.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(rows))
            file.write(rows.data)  # np.save does not say that the disk is full


@contextlib.contextmanager
def new_pair(path: Path) -> Iterator[tuple[Path, Path]]:
    """Temporary files for a matrix and its keys, which become NAME.npy and NAME.keys.json when the block ends well.

    Two files cannot be exchanged in one step. So both lists of keys are first put under names that are bound to their
    matrix by its sha256: the new one as a copy, the old one by a rename, so that there is no NAME.keys.json while the
    matrix is exchanged. Whoever is killed at any moment leaves a matrix, old or new, whose keys `read_npy` finds.
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
        if old != new:  # else it is the same matrix, whose keys are replaced in one step
            shutil.copyfile(keys, new)
            sync(new)
            sync(keys_file.parent)
            if old is not None and keys_file.is_file():
                keys_file.replace(old)
            keys_file.unlink(missing_ok=True)  # without a matrix they are nobody's
            sync(keys_file.parent)


def finish_exchange(path: Path, keys_file: Path) -> None:
    """Ends an exchange, whoever began it: keys that are bound to the matrix become NAME.keys.json, others go."""
    with contextlib.suppress(OSError):  # what is left is read all the same
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
    """Keys that an exchange left, of any matrix."""
    pattern = re.compile(re.escape(f".{keys_file.name}-") + "[0-9a-f]{64}")
    return [path for path in keys_file.parent.iterdir() if pattern.fullmatch(path.name)]


def bound_keys_path(keys_file: Path, matrix: IO[bytes]) -> Path:
    """Where the keys of a matrix are while files are exchanged."""
    digest = hashlib.sha256()
    matrix.seek(0)
    while block := matrix.read(1 << 20):
        digest.update(block)
    return keys_file.with_name(f".{keys_file.name}-{digest.hexdigest()}")


@contextlib.contextmanager
def lock_of(keys_file: Path) -> Iterator[None]:
    """Writers of one pair follow each other, where the file system has locks. Not by a lock on the folder, which
    whoever fills a folder with pairs may have."""
    lock, handle = keys_file.with_name(f".{keys_file.name}.lock"), None
    while handle is None:
        try:
            handle = hold(lock, os.O_RDWR | os.O_CREAT)
        except (BlockingIOError, FileNotFoundError):  # noqa: PERF203 (held, or removed by who held it)
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
    return path.with_name(path.name.removesuffix(".npy") + ".keys.json")


LONGEST_HEADER = 1 << 16
TRIES = 100  # to find a matrix and its keys, while others exchange them
# What NumPy's own reader of a header lets through, on a damaged one.
_BROKEN = (ValueError, TypeError, SyntaxError, OSError, EOFError, RecursionError, MemoryError, tokenize.TokenError)


@contextlib.contextmanager
def open_npy(path: Path) -> Iterator[IO[bytes]]:
    try:
        file = path.open("rb")
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    with file:
        yield file


def map_npy(path: Path, file: IO[bytes]) -> Matrix:
    """The matrix of a .npy file, mapped; its header is checked against the size of the file."""
    try:
        head = io.BytesIO(file.read(LONGEST_HEADER))  # NumPy would make room for any length the file claims
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
            "{path} holds {kind} of shape {shape}; vectors are a matrix of float, at least 1 × 1.",
            path=path,
            kind=dtype,
            shape=shape,
        )
    size = os.fstat(file.fileno()).st_size
    needed = start + shape[0] * shape[1] * dtype.itemsize
    if needed != size:
        raise FirthError(
            "damaged_file",
            "{path} has {size:,} bytes where its header {shape} needs {needed:,}; it is cut or damaged.",
            path=path,
            size=size,
            shape=shape,
            needed=needed,
        )
    matrix = np.memmap(file, dtype=dtype, mode="r", offset=start, shape=shape, order="F" if by_columns else "C")
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite and is refused at its use
        return np.asarray(matrix, dtype=np.float32)


def lazy_vectors(path: Path, read: Callable[[], bytes], matrix: Matrix) -> Vectors:
    if not matrix.size:
        raise FirthError(
            "damaged_file",
            "{path} holds a matrix of {shape}; vectors are at least 1 × 1.",
            path=path,
            shape=matrix.shape,
        )

    def keys() -> Sequence[str]:
        try:
            key_list = json.loads(read())
        except (ValueError, RecursionError, OSError) as error:
            raise FirthError(
                "damaged_file", "The keys in {path} are not a JSON list ({reason}).", path=path, reason=str(error)
            ) from None
        if (
            not isinstance(key_list, list)
            or not all(isinstance(key, str) for key in key_list)
            or len(key_list) != len(matrix)
        ):
            raise FirthError(
                "damaged_file",
                "The keys in {path} must be a JSON list of {n_matrix:,} strings, one a row.",
                path=path,
                n_matrix=len(matrix),
            )
        return key_list

    return Vectors(keys, matrix)


def keys_to_json(keys: Sequence[str]) -> bytes:
    try:
        return json.dumps(list(keys), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FirthError(
            "invalid_encoding", "A key is not Unicode text ({reason}); rename it.", reason=error.reason
        ) from None
