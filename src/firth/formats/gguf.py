"""GGUF files, versions 2 and 3: the weights, settings and tokenizer of a model in one file, as llama.cpp writes them.

A file has, little-endian and in this order: magic and version; the numbers of tensors and of metadata entries; the
entries (key, type, value); the tensors (name, shape with the row length first, type, offset); padding; the data of the
tensors. See docs/gguf.md in the repository ggml.
"""

from __future__ import annotations

import math
import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.formats.mapped import MappedReader
from firth.kernels.blocks import STORAGES, Storage, dequantize

MAGIC, VERSIONS = b"GGUF", (2, 3)
ALIGNMENT = 32  # of tensors, unless the metadata give another one
MOST_DIMENSIONS = 4
LONGEST_NAME = 1 << 16  # bytes of a key or the name of a tensor
#: The types of metadata in the format of `struct`; strings and arrays are read by their own functions.
SCALARS = {0: "B", 1: "b", 2: "H", 3: "h", 4: "I", 5: "i", 6: "f", 7: "?", 10: "Q", 11: "q", 12: "d"}
STRING, ARRAY, BOOL = 8, 9, 7
#: The types of tensors. Those that Firth opens are in `STORAGES`.
TYPES = {
    0: "F32", 1: "F16", 2: "Q4_0", 3: "Q4_1", 6: "Q5_0", 7: "Q5_1", 8: "Q8_0", 9: "Q8_1", 10: "Q2_K", 11: "Q3_K",
    12: "Q4_K", 13: "Q5_K", 14: "Q6_K", 15: "Q8_K", 16: "IQ2_XXS", 17: "IQ2_XS", 18: "IQ3_XXS", 19: "IQ1_S",
    20: "IQ4_NL", 21: "IQ3_S", 22: "IQ2_S", 23: "IQ4_XS", 24: "I8", 25: "I16", 26: "I32", 27: "I64", 28: "F64",
    29: "IQ1_M", 30: "BF16", 34: "TQ1_0", 35: "TQ2_0", 39: "MXFP4", 40: "NVFP4",
}  # fmt: skip


@dataclass(frozen=True)
class GGUFTensor:
    """A tensor: its shape with the row length last, and its rows as stored, mapped from the file."""

    name: str
    shape: tuple[int, ...]
    storage: Storage
    rows: NDArray[np.uint8]  # rows × bytes of a row

    dtype = np.dtype(np.float32)  # of the values

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.shape)

    def __len__(self) -> int:
        return self.shape[0]

    def floats(self) -> NDArray[np.float32]:
        """Return the values as float32."""
        return dequantize(self.rows, self.storage.name).reshape(self.shape)

    def is_finite(self) -> bool:
        """Return whether there is no NaN or infinity; of blocks, only the scales are read."""
        if self.storage.width == 1:
            return bool(np.isfinite(self.floats()).all())
        halves = 2 if self.storage.name == "Q4_1" else 1
        blocks = self.rows.reshape(len(self.rows), -1, self.storage.size)[..., : 2 * halves]
        return bool(np.isfinite(np.ascontiguousarray(blocks).view("<f2")).all())


@dataclass(frozen=True)
class GGUFFile:
    """The content of a file. Tensors stay mapped until they are used."""

    path: Path
    version: int
    metadata: Mapping[str, Any]  # numbers, booleans, texts, arrays of numbers, lists of texts
    tensors: Mapping[str, GGUFTensor]

    def value(self, key: str, kind: type | tuple[type, ...], default: Any = None) -> Any:
        """Return a metadata entry, checked for its type; without a `default`, a missing one is an error."""
        if key not in self.metadata and default is not None:
            return default
        if key not in self.metadata:
            raise FirthError("incomplete_model", "{path} has no entry {name}.", path=self.path, name=key)
        value = self.metadata[key]
        if not isinstance(value, kind) or (isinstance(value, bool) and kind is not bool):
            raise FirthError(
                "damaged_file",
                "{path}: the entry {name} has the wrong type, {got}.",
                path=self.path,
                name=key,
                got=type(value).__name__,
            )
        return value


def is_gguf(path: str | os.PathLike[str]) -> bool:
    """Whether a file begins with the magic of GGUF."""
    try:
        with Path(path).open("rb") as file:
            return file.read(4) == MAGIC
    except OSError:
        return False


def read_gguf(path: str | os.PathLike[str], in_memory: bool = False) -> GGUFFile:
    """Open a GGUF file. Tensors are memory-mapped, or read if `in_memory` is set.

    Every size is checked against the size of the file before it is used.
    """
    reader = MappedReader(Path(path), in_memory)
    (magic,) = reader.unpack("<4s", "the magic")
    if magic != MAGIC:
        raise reader.wrong("the file must begin with", "GGUF", repr(magic)[2:-1])
    (version,) = reader.unpack("<I", "the version")
    if version not in VERSIONS:
        big_endian = version.to_bytes(4, "little") in [each.to_bytes(4, "big") for each in VERSIONS]
        raise FirthError(
            "unsupported_format",
            "{path} is GGUF of version {got}; Firth opens versions {available}, little-endian.",
            path=path,
            got=f"{int.from_bytes(version.to_bytes(4, 'little'), 'big')} in big-endian order"
            if big_endian
            else version,
            available=" and ".join(map(str, VERSIONS)),
        )
    n_tensors, n_entries = reader.unpack("<QQ", "the numbers of tensors and entries")
    metadata: dict[str, Any] = {}
    check_count(reader, n_entries, 8 + 4 + 1, "metadata entries")
    for _ in range(n_entries):
        key = read_name(reader, "a key")
        if key in metadata:
            raise reader.wrong("keys must differ, and", key, "occurs twice")
        metadata[key] = read_value(reader, key)
    tensors = read_tensors(reader, n_tensors, read_alignment(reader, metadata))
    return GGUFFile(Path(path), version, metadata, tensors)


def check_count(reader: MappedReader, count: int, least: int, what: str) -> None:
    """Refuse a number of parts that the rest of the file cannot hold at `least` bytes each."""
    position = reader.position
    reader.reserve(count * least, f"a list of {count:,} {what}")
    reader.position = position


def read_text(reader: MappedReader, what: str, longest: int | None = None) -> str:
    """Read a text: its length, then its bytes."""
    (length,) = reader.unpack("<Q", f"the length of {what}")
    if longest is not None and length > longest:
        raise reader.wrong(f"{what} must have at most", f"{longest:,} bytes", f"{length:,}")
    begin = reader.reserve(length, what)
    # Tokens of broken vocabularies are not always UTF-8; what is compared must stay distinguishable.
    return bytes(reader.data[begin : begin + length]).decode("utf-8", errors="backslashreplace")


def read_name(reader: MappedReader, what: str) -> str:
    """Read a key or the name of a tensor, which error messages repeat."""
    name = read_text(reader, what, LONGEST_NAME)
    if not name.isprintable():
        raise reader.wrong(f"{what} must be", "printable", repr(name[:40]))
    return name


def read_value(reader: MappedReader, key: str) -> Any:
    """Read the value of a metadata entry: its type, then the value."""
    (kind,) = reader.unpack("<I", f"the type of {key}")
    if kind == STRING:
        return read_text(reader, key)
    if kind == ARRAY:
        return read_array(reader, key)
    if kind not in SCALARS:
        raise reader.wrong(f"the type of {key} must be", "0 to 12", kind)
    if kind == BOOL:
        return reader.flag(f"{key} is true")
    return reader.unpack("<" + SCALARS[kind], key)[0]


def read_array(reader: MappedReader, key: str) -> list[str] | NDArray[Any]:
    """Read an array of texts or numbers."""
    kind, count = reader.unpack("<IQ", f"the type and length of {key}")
    if kind == STRING:
        check_count(reader, count, 8, f"texts of {key}")
        return [read_text(reader, f"a text of {key}") for _ in range(count)]
    if kind not in SCALARS:
        raise reader.wrong(f"the elements of {key} must be", "texts or numbers", f"type {kind}")
    dtype = "u1" if kind == BOOL else "<" + SCALARS[kind]
    return reader.array(np.dtype(dtype).str, (count,), key)


def read_alignment(reader: MappedReader, metadata: Mapping[str, Any]) -> int:
    """Return the alignment of tensors in bytes."""
    given = metadata.get("general.alignment", ALIGNMENT)
    if not isinstance(given, int) or given < 8 or given % 8:
        raise reader.wrong("general.alignment must be", "a multiple of 8", given)
    return given


def read_tensors(reader: MappedReader, count: int, align: int) -> dict[str, GGUFTensor]:
    """Read the table of tensors, and map them. Tensors must not overlap, so that no file promises more than it has."""
    check_count(reader, count, 8 + 4 + 8 + 4 + 8, "tensors")
    table: dict[str, tuple[tuple[int, ...], Storage, int]] = {}
    for _ in range(count):
        key = read_name(reader, "the name of a tensor")
        if key in table:
            raise reader.wrong("the names of tensors must differ, and", key, "occurs twice")
        table[key] = tensor_info(reader, key, align)
    reader.position += -reader.position % align if count else 0
    begin, end, tensors = reader.position, 0, dict[str, GGUFTensor]()
    for key, (shape, storage, offset) in sorted(table.items(), key=lambda item: item[1][2]):
        row_bytes = storage.row_bytes(shape[-1])
        if offset < end:
            raise reader.wrong(f"the tensor {key} must begin after the one before it, at", f"{end:,}", f"{offset:,}")
        reader.position = begin + offset
        rows = reader.array("u1", (math.prod(shape[:-1]), row_bytes), f"the tensor {key}")
        tensors[key] = GGUFTensor(key, shape, storage, rows)
        end = offset + rows.nbytes
    return {key: tensors[key] for key in table}


def tensor_info(reader: MappedReader, key: str, align: int) -> tuple[tuple[int, ...], Storage, int]:
    """Read the shape, with the row length last, the storage and the offset of a tensor."""
    (dimensions,) = reader.unpack("<I", f"the dimensions of {key}")
    if not 1 <= dimensions <= MOST_DIMENSIONS:
        raise reader.wrong(f"{key} must have", f"1 to {MOST_DIMENSIONS} dimensions", dimensions)
    shape = reader.unpack(f"<{dimensions}Q", f"the shape of {key}")[::-1]
    kind, offset = reader.unpack("<IQ", f"the type and offset of {key}")
    storage = STORAGES.get(TYPES.get(kind, ""))
    if storage is None:
        raise FirthError(
            "unsupported_format",
            "{path}: the tensor {name} is of type {got}; Firth opens {available}.",
            path=reader.path,
            name=key,
            got=TYPES.get(kind, f"{kind}, which is unknown"),
            available=", ".join(STORAGES),
        )
    if min(shape) < 1 or shape[-1] % storage.width:
        size = "×".join(map(str, shape))
        raise reader.wrong(f"{key} must have rows of a multiple of", f"{storage.width} values", size)
    if offset % align:
        raise reader.wrong(f"the offset of {key} must be a multiple of", align, offset)
    return shape, storage, offset
