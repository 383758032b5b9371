"""Vectors in the files of the field: word2vec, GloVe, fastText, NumPy and safetensors.

vectors = firth.read_vectors("glove.6B.100d.txt")     # what it is, is seen from its content
firth.write_vectors(vectors, "glove.safetensors", storage="half")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import HasVectors
from firth.core.vectors import Vectors
from firth.formats.arrays import read_npy, read_safetensors, write_npy, write_safetensors
from firth.formats.binary import read_binary, write_binary
from firth.formats.detect import detect
from firth.formats.quantize import STORAGES, dequantize_rows, pack_rows, quantize_rows, unpack_rows
from firth.formats.text import read_text, write_text

__all__ = [
    "FORMATS",
    "Format",
    "dequantize_rows",
    "pack_rows",
    "quantize_rows",
    "read_vectors",
    "unpack_rows",
    "write_vectors",
]


class Format(NamedTuple):
    """One way to keep vectors in a file."""

    suffixes: tuple[str, ...]
    read: Callable[[Path], Vectors]
    write: Callable[[Vectors, Path], None]
    summary: str


#: Every format by the name that `read_vectors` and `write_vectors` take.
FORMATS = {
    "word2vec": Format((".txt", ".w2v"), read_text, write_text, "word2vec text: rows and dimensions, then the rows"),
    "word2vec-binary": Format((".bin",), read_binary, write_binary, "word2vec binary: words and raw float32"),
    "glove": Format(
        (".glove", ".glove.txt"),
        partial(read_text, header=None),
        partial(write_text, header=False),
        "GloVe text: rows alone (read with or without a first line of rows and dimensions)",
    ),
    "fasttext": Format((".vec",), read_text, write_text, "fastText .vec: written as word2vec text"),
    "npy": Format((".npy",), read_npy, write_npy, "a NumPy matrix, with its keys beside it in NAME.keys.json"),
    "safetensors": Format(
        (".safetensors",), read_safetensors, write_safetensors, "one file of keys and matrix: float, half or int8"
    ),
}


def read_vectors(path: str | os.PathLike[str], format: str | None = None) -> Vectors:
    """Vectors of a file; its format is seen from its content, then from its name, unless `format` says it.

    Files compressed by gzip are read as they are (npy and safetensors are mapped, so they can't be compressed).
    Of a word that stands twice the first row is kept, and bytes that are not UTF-8 are replaced: both are
    counted in a `FirthWarning`. NaN and infinity are refused: by npy and safetensors, which open without
    reading the matrix, at the first question.
    """
    source = Path(path)
    if source.is_dir():
        raise FirthError(
            "wrong_input",
            "{path} is a folder; a model is opened by firth.load({path_2!r}).",
            path=source,
            path_2=str(source),
        )
    if not source.is_file():
        raise FirthError("not_found", "No file at {path}.", path=source)
    return format_named(format or format_of(source)).read(source)


def format_of(path: Path) -> str:
    """The format of a file's content, or else of its name."""
    name = detect(path) or format_of_name(path.with_name(path.name.removesuffix(".gz")))
    if name is None:
        raise FirthError(
            "unknown_format", "{path} is in none of the formats Firth reads: {listing}.", path=path, listing=listing()
        )
    return name


def write_vectors(
    vectors: Vectors, path: str | os.PathLike[str], format: str | None = None, storage: str = "float"
) -> None:
    """Writes a file, whole or not at all, in the format of its suffix unless `format` says another.

    Text holds as many digits as give back each float32 exactly, where word2vec prints 6 decimals and
    fastText 5 digits. `storage` is "float", "half" (2 bytes a number) or "int8" (1 byte a number, one scale
    a row), the last two in .safetensors only.
    """
    if isinstance(vectors, HasVectors):
        raise FirthError(
            "invalid_type", "A table of vectors is written, not a model: pass model.vectors, or one of model.tables."
        )
    target = Path(path)
    name = format or format_of_name(target)
    if name is None:
        raise FirthError(
            "unknown_format",
            "The name {name} does not say its format; end it with one of: {listing}.",
            name=target.name,
            listing=listing(),
        )
    write = format_named(name).write
    if storage not in STORAGES:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="storage",
            choices=", ".join(STORAGES),
            got=storage,
        )
    if storage != "float":
        if name != "safetensors":
            raise FirthError(
                "conflicting_options",
                "{name} holds float only; storage={storage!r} needs .safetensors.",
                name=name,
                storage=storage,
            )
        write = partial(write_safetensors, storage=storage)
    check_numbers(vectors)
    write(vectors, target)


def check_numbers(vectors: Vectors) -> None:
    if not vectors.matrix.size:
        raise FirthError(
            "empty_data",
            "Nothing to write: there are {n_vectors} vectors of {dim} numbers.",
            n_vectors=len(vectors),
            dim=vectors.dim,
        )
    step = max(1, (1 << 20) // vectors.dim)  # a block at a time, for the matrix may be larger than memory
    for first in range(0, len(vectors), step):
        invalid = np.flatnonzero(~np.isfinite(vectors.matrix[first : first + step]).all(axis=1))
        if len(invalid):
            row = first + int(invalid[0])
            raise FirthError(
                "non_finite",
                "The vector of {key!r} (row {row:,}) holds NaN or infinity, which Firth does not write; leave "
                "such rows out.",
                key=vectors.keys[row],
                row=row + 1,
            )


def format_named(name: str) -> Format:
    if name not in FORMATS:
        raise FirthError(
            "unknown_format", "There is no format {name!r}; there are {choices}.", name=name, choices=", ".join(FORMATS)
        )
    return FORMATS[name]


def format_of_name(path: Path) -> str | None:
    """The format of a file's suffix; the longest suffix wins (.glove.txt over .txt)."""
    text = path.name.lower()
    by_suffix = {suffix: name for name, entry in FORMATS.items() for suffix in entry.suffixes if text.endswith(suffix)}
    return by_suffix[max(by_suffix, key=len)] if by_suffix else None


def listing() -> str:
    return ", ".join(f"{name} ({', '.join(entry.suffixes)})" for name, entry in FORMATS.items())
