"""Readers and writers of vector files: word2vec, GloVe, fastText, NumPy and safetensors.

vectors = firth.read_vectors("glove.6B.100d.txt")     # the format is detected from the content
firth.write_vectors(vectors, "glove.safetensors", storage="half")
"""

from __future__ import annotations

import os
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import NamedTuple

import numpy as np

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.model import HasVectors
from firth.core.remote import AnyPath, RemotePath, as_path
from firth.core.remote_folders import local_copy
from firth.core.storage import new_file
from firth.core.vectors import Vectors
from firth.formats.arrays import read_npy, read_safetensors, write_npy, write_safetensors
from firth.formats.binary import read_binary, write_binary
from firth.formats.detect import detect, refuse_gensim_pickle
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
    """A file format for vectors. `read` takes the path and the maximum number of rows, None for all."""

    suffixes: tuple[str, ...]
    read: Callable[[Path, int | None], Vectors]
    write: Callable[[Vectors, Path], None]
    summary: str


#: The formats by the names that `read_vectors` and `write_vectors` accept.
FORMATS = {
    "word2vec": Format(
        (".txt", ".w2v"), read_text, write_text, "word2vec text: a header with rows and dimensions, then the rows"
    ),
    "word2vec-binary": Format((".bin",), read_binary, write_binary, "word2vec binary: words and raw float32"),
    "glove": Format(
        (".glove", ".glove.txt"),
        partial(read_text, header=None),
        partial(write_text, header=False),
        "GloVe text: rows without a header (a header is accepted when reading)",
    ),
    "fasttext": Format((".vec",), read_text, write_text, "fastText .vec: the same as word2vec text"),
    "npy": Format((".npy",), read_npy, write_npy, "a NumPy matrix, with the keys in NAME.keys.json"),
    "safetensors": Format(
        (".safetensors",), read_safetensors, write_safetensors, "keys and matrix in one file: float, half or int8"
    ),
}


def read_vectors(path: str | os.PathLike[str], format: str | None = None, limit: int | None = None) -> Vectors:
    """Read a vector file. The format is detected from the content, then from the name, unless `format` is given.

    `limit` reads only the first `limit` rows; the rest of a text or binary file is not read. Frequent words come first
    in word2vec, GloVe and fastText files.

    gzip files are decompressed, except npy and safetensors, which are memory-mapped. If a word is repeated, its first
    row is used; invalid UTF-8 is replaced. Both are counted in a `FirthWarning`. NaN and infinity are refused: in npy
    and safetensors files, which are opened without reading the matrix, at the first use.
    """
    if limit is not None and (not isinstance(limit, int) or isinstance(limit, bool) or limit < 1):
        raise FirthError(
            "invalid_value",
            "{option} must be an integer of at least 1, or None; got {got!r}.",
            option="limit",
            got=limit,
        )
    with local_copy(path) as source:
        return read_local(source, format, limit)


def read_local(source: Path, format: str | None, limit: int | None) -> Vectors:
    """Read a vector file of this machine; see `read_vectors`."""
    if source.is_dir():
        raise FirthError(
            "wrong_input",
            "{path} is a folder. To open a model, use firth.load({path!r}).",
            path=str(source),
        )
    if not source.is_file():
        raise FirthError("not_found", "There is no file {path}.", path=source)
    if format is not None:
        refuse_gensim_pickle(source)
    return format_named(format or format_of(source)).read(source, limit)


def format_of(path: Path) -> str:
    """Return the format of a file, detected from its content, or else from its name."""
    name = detect(path) or format_of_name(path.with_name(path.name.removesuffix(".gz")))
    if name is None:
        raise FirthError(
            "unknown_format",
            "{path} is not in a format that Firth reads. The formats are {formats}.",
            path=path,
            formats=listing(),
        )
    return name


def write_vectors(
    vectors: Vectors, path: str | os.PathLike[str], format: str | None = None, storage: str = "float"
) -> None:
    """Write a vector file atomically, in the format of its suffix unless `format` is given.

    Text files have as many digits as needed to restore each float32 exactly, while word2vec writes 6 decimals and
    fastText 5 digits. `storage` is "float", "half" (2 bytes per number) or "int8" (1 byte per number and one scale per
    row); the last two are available in .safetensors only.
    """
    if isinstance(vectors, HasVectors):
        raise FirthError(
            "invalid_type",
            "write_vectors writes a table of vectors, not a model; got {got}. Pass model.vectors or one of "
            "model.tables.",
            got=type(vectors).__name__,
        )
    target = as_path(path)
    name = format or format_of_name(target)
    if name is None:
        raise FirthError(
            "unknown_format",
            "The suffix of {name} is not that of a format. The formats are {formats}.",
            name=target.name,
            formats=listing(),
        )
    write = format_named(name).write
    check_choice("storage", storage, STORAGES)
    if storage != "float":
        if name != "safetensors":
            raise FirthError(
                "conflicting_options",
                "The format {format} can only store float; storage={storage!r} needs .safetensors.",
                format=name,
                storage=storage,
            )
        write = partial(write_safetensors, storage=storage)
    check_numbers(vectors)
    if isinstance(target, RemotePath):
        with new_file(target) as work:
            write(vectors, work)
        return
    write(vectors, target)


def check_numbers(vectors: Vectors) -> None:
    """Refuse empty tables, NaN and infinity."""
    if not vectors.matrix.size:
        raise FirthError(
            "empty_data",
            "There are no vectors to write: the table has {rows} rows and {dim} dimensions.",
            rows=len(vectors),
            dim=vectors.dim,
        )
    step = max(1, (1 << 20) // vectors.dim)  # in blocks, because the matrix may be larger than memory
    for first in range(0, len(vectors), step):
        invalid = np.flatnonzero(~np.isfinite(vectors.matrix[first : first + step]).all(axis=1))
        if len(invalid):
            row = first + int(invalid[0])
            raise FirthError(
                "non_finite",
                "The vector of {key!r} (row {row:,}) has NaN or infinity, which cannot be written. Remove such rows.",
                key=vectors.keys[row],
                row=row + 1,
            )


def format_named(name: str) -> Format:
    """Return the format with this name."""
    if name not in FORMATS:
        raise FirthError(
            "unknown_format",
            "There is no format {got!r}; the formats are {choices}.",
            got=name,
            choices=", ".join(FORMATS),
        )
    return FORMATS[name]


def format_of_name(path: AnyPath) -> str | None:
    """Return the format of a file's suffix, or None; the longest suffix wins (.glove.txt over .txt)."""
    text = path.name.lower()
    by_suffix = {suffix: name for name, entry in FORMATS.items() for suffix in entry.suffixes if text.endswith(suffix)}
    return by_suffix[max(by_suffix, key=len)] if by_suffix else None


def listing() -> str:
    """Return the formats and their suffixes for error messages."""
    return ", ".join(f"{name} ({', '.join(entry.suffixes)})" for name, entry in FORMATS.items())
