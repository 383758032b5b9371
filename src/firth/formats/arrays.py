"""Vectors as arrays that are mapped from their file: .npy with keys beside it, and .safetensors.

The keys are a JSON list of strings, so that any text can be one: in NAME.keys.json beside NAME.npy, and as
the bytes of the array "keys" in a .safetensors file. They are read at their first use.
"""

from __future__ import annotations

import io
import json
import tokenize
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from firth.core.errors import FirthError
from firth.core.storage import dump_arrays, new_file, read_arrays, sync
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
    return mapped(path, lambda: keys.tobytes(), matrix)


def write_safetensors(vectors: Vectors, path: Path, storage: str = "float") -> None:
    keys = np.frombuffer(keys_to_json(vectors.keys), dtype=np.uint8)
    arrays = {**pack_rows(vectors.matrix, storage), "keys": keys}
    with new_file(path) as work, work.open("wb") as file:
        dump_arrays(file, arrays)


def read_npy(path: Path) -> Vectors:
    matrix = map_npy(path)
    beside = keys_path(path)
    if not beside.is_file():
        raise FirthError(
            "damaged_file",
            "{path} has no keys: put {name}, a JSON list of {n_matrix:,} strings, beside it.",
            path=path,
            name=beside.name,
            n_matrix=len(matrix),
        )
    return mapped(beside, beside.read_bytes, matrix)


def write_npy(vectors: Vectors, path: Path) -> None:
    """Both files are complete on disk before the old ones go: a kill between the two renames leaves a
    matrix without keys, which is refused, never one with another's keys."""
    beside = keys_path(path).resolve()
    rows = np.ascontiguousarray(vectors.matrix)
    with new_file(beside) as keys, new_file(path) as matrix:
        keys.write_bytes(keys_to_json(vectors.keys))
        with matrix.open("wb") as file:
            np.lib.format.write_array_header_1_0(file, np.lib.format.header_data_from_array_1_0(rows))
            file.write(rows.data)  # np.save does not say that the disk is full
        sync(keys)
        sync(matrix)
        beside.unlink(missing_ok=True)


def keys_path(path: Path) -> Path:
    return path.with_name(path.name.removesuffix(".npy") + ".keys.json")


LONGEST_HEADER = 1 << 16
# What NumPy's own reader of a header lets through, on a damaged one.
_BROKEN = (ValueError, TypeError, SyntaxError, OSError, EOFError, RecursionError, MemoryError, tokenize.TokenError)


def map_npy(path: Path) -> Matrix:
    """The matrix of a .npy file, mapped; its header is checked against the size of the file."""
    try:
        with path.open("rb") as file:
            head = io.BytesIO(file.read(LONGEST_HEADER))  # NumPy would make room for any length the file claims
        version = np.lib.format.read_magic(head)
        read = np.lib.format.read_array_header_1_0 if version == (1, 0) else np.lib.format.read_array_header_2_0
        shape, by_columns, kind = read(head)
        start = head.tell()
    except _BROKEN as error:
        raise FirthError(
            "damaged_file", "{path} is not a .npy file ({reason}).", path=path, reason=str(error)
        ) from None
    if len(shape) != 2 or kind.kind != "f" or kind.itemsize > 8 or min(shape) < 1:
        raise FirthError(
            "damaged_file",
            "{path} holds {kind} of shape {shape}; vectors are a matrix of float, at least 1 × 1.",
            path=path,
            kind=kind,
            shape=shape,
        )
    size = path.stat().st_size
    needed = start + shape[0] * shape[1] * kind.itemsize
    if needed != size:
        raise FirthError(
            "damaged_file",
            "{path} has {size:,} bytes where its header {shape} needs {needed:,}; it is cut or damaged.",
            path=path,
            size=size,
            shape=shape,
            needed=needed,
        )
    matrix = np.memmap(path, dtype=kind, mode="r", offset=start, shape=shape, order="F" if by_columns else "C")
    with np.errstate(over="ignore"):  # what is beyond float32 becomes infinite and is refused at its use
        return np.asarray(matrix, dtype=np.float32)


def mapped(path: Path, read: Callable[[], bytes], matrix: Matrix) -> Vectors:
    if not matrix.size:
        raise FirthError(
            "damaged_file",
            "{path} holds a matrix of {shape}; vectors are at least 1 × 1.",
            path=path,
            shape=matrix.shape,
        )

    def keys() -> Sequence[str]:
        try:
            found = json.loads(read())
        except (ValueError, RecursionError, OSError) as error:
            raise FirthError(
                "damaged_file", "The keys in {path} are not a JSON list ({reason}).", path=path, reason=str(error)
            ) from None
        if not isinstance(found, list) or not all(isinstance(key, str) for key in found) or len(found) != len(matrix):
            raise FirthError(
                "damaged_file",
                "The keys in {path} must be a JSON list of {n_matrix:,} strings, one a row.",
                path=path,
                n_matrix=len(matrix),
            )
        return found

    return Vectors(keys, matrix)


def keys_to_json(keys: Sequence[str]) -> bytes:
    try:
        return json.dumps(list(keys), ensure_ascii=False).encode()
    except UnicodeEncodeError as error:
        raise FirthError(
            "invalid_encoding", "A key is not Unicode text ({reason}); rename it.", reason=error.reason
        ) from None
