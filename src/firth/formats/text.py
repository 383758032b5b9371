"""Rows of a word and its numbers as text: word2vec, GloVe and fastText .vec.

A row is split from the right on ASCII space only, for GloVe's 840B words contain spaces; the trailing space of
word2vec and fastText is allowed. The numbers are parsed by Arrow, a block of lines at a time: every number is a
slice of the block, found by comparing bytes.
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import new_file
from firth.core.vectors import Matrix, Vectors
from firth.formats.files import (
    BLOCK,
    LONGEST_ROW,
    Collector,
    check_words,
    is_number,
    looks_like_header,
    open_unzipped,
    parse_header,
    preview,
)


def read_text(path: Path, header: bool | None = True) -> Vectors:
    """Vectors of a text file with a first line of rows and dimensions (`header`: None = with or without it)."""
    with open_unzipped(path) as file:
        blocks = line_blocks(path, file)
        block = next(blocks, b"")
        if not block:
            raise FirthError("damaged_file", "{path} is empty.", path=path)
        line_number, rows = 1, None
        if header or looks_like_header(block):
            line, _, block = block.partition(b"\n")
            rows, dims = parse_header(path, line)
            line_number = 2
        else:
            dims = most_common_dims(path, block)
        table = Collector(path, dims)
        while block or (block := next(blocks, b"")):
            lines = split_lines(block)
            table.add(*parse_rows(path, lines, dims, line_number))
            line_number += len(lines.starts)
            block = b""
    if rows is not None and rows != len(table.keys):
        raise FirthError(
            "damaged_file",
            "{path}: line 1 says {rows:,} rows, but {n_keys:,} follow; the file is cut, or line 1 is wrong.",
            path=path,
            rows=rows,
            n_keys=len(table.keys),
        )
    return table.vectors()


def line_blocks(path: Path, file: io.BufferedIOBase) -> Iterator[bytes]:
    """Whole lines, about a block at a time, with \\n ends; the last line may lack its own."""
    parts: list[bytes] = []
    while chunk := file.read(BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            lines = b"".join([*parts, chunk[:cut]])
            yield lines.replace(b"\r\n", b"\n") if b"\r" in lines else lines  # looking is quicker than replacing
            parts = []
        parts.append(chunk[cut:])
        if len(parts) > LONGEST_ROW // BLOCK:
            raise FirthError(
                "damaged_file",
                "{path}: a line is longer than {longest_row:,} bytes; it is no text of vectors.",
                path=path,
                longest_row=LONGEST_ROW,
            )
    if last := b"".join(parts):
        yield last.rstrip(b"\r") + b"\n"


class Lines(NamedTuple):
    """Where the lines and fields of a block are."""

    block: bytes
    separators: NDArray[np.int32]  # byte of every space and newline
    starts: NDArray[np.int32]  # byte where each line begins
    last: NDArray[np.intp]  # in `separators`: the one that ends each line's last field
    fields: NDArray[np.intp]  # how many fields each line has


def split_lines(block: bytes) -> Lines:
    data = np.frombuffer(block, dtype=np.uint8)
    separators = np.flatnonzero((data == ord(" ")) | (data == ord("\n"))).astype(np.int32)
    newlines = np.flatnonzero(data[separators] == ord("\n"))
    ends = separators[newlines]
    starts = np.concatenate([np.zeros(1, dtype=np.int32), ends[:-1] + 1])
    trailing = (ends > starts) & (data[ends - 1] == ord(" "))
    last = newlines - trailing
    fields = last - np.concatenate([[-1], newlines[:-1]])
    return Lines(block, separators, starts, last, fields)


def most_common_dims(path: Path, block: bytes) -> int:
    """Numbers a row where no first line says it: as most lines of the first block have, for words may hold spaces."""
    dims = int(np.bincount(split_lines(block).fields).argmax()) - 1
    if dims < 1:
        first = block.partition(b"\n")[0]
        raise FirthError(
            "damaged_file",
            "{path}: line 1 must be a word and its numbers, with one space between; got {got}.",
            path=path,
            got=preview(first),
        )
    return dims


def parse_rows(path: Path, lines: Lines, dims: int, line_number: int) -> tuple[list[bytes], Matrix]:
    """Words and numbers of a block whose first line is the file's `line_number`."""
    short = np.flatnonzero(lines.fields <= dims)
    if len(short):
        got = lines.fields[short[0]] - 1
        raise FirthError(
            "damaged_file",
            "{path}: line {line_number:,} has {got:,} numbers where {dims:,} are expected.",
            path=path,
            line_number=line_number + short[0],
            got=got,
            dims=dims,
        )
    word_ends = lines.separators[lines.last - dims]
    words = [lines.block[start:end] for start, end in zip(lines.starts.tolist(), word_ends.tolist(), strict=True)]
    for row in np.flatnonzero(lines.fields > dims + 1):
        if is_number(words[row].rpartition(b" ")[2]):
            raise FirthError(
                "damaged_file",
                "{path}: line {line_number:,} has more than {dims:,} numbers, or a word that ends in a number "
                "({word}); remove the line.",
                path=path,
                line_number=line_number + row,
                dims=dims,
                word=preview(words[row]),
            )
    bounds = lines.separators[lines.last[:, None] + np.arange(-dims, 1)]  # rows × (dims + 1)
    numbers = parse_numbers(lines.block, bounds)
    if numbers is None:
        bad_row, field = first_bad_field(lines.block, bounds)
        raise FirthError(
            "damaged_file",
            "{path}: line {line_number:,} has {field} where a number is expected.",
            path=path,
            line_number=line_number + bad_row,
            field=preview(field),
        )
    return words, numbers


def parse_numbers(block: bytes, bounds: NDArray[np.int32]) -> Matrix | None:
    """The numbers between the separators at `bounds`; None when one of them is not a number."""
    import pyarrow as pa

    count = bounds.shape[0] * (bounds.shape[1] - 1)
    # Arrow's strings lie end to end, so what stands between two numbers is a string too: it is marked null.
    offsets = np.empty(2 * count + 1, dtype=np.int32)
    offsets[:-1:2] = (bounds[:, :-1] + 1).ravel()
    offsets[1::2] = bounds[:, 1:].ravel()
    offsets[-1] = offsets[-2]
    valid = np.full((2 * count + 7) // 8, 0b01010101, dtype=np.uint8)
    strings = pa.StringArray.from_buffers(
        2 * count, pa.py_buffer(offsets), pa.py_buffer(block), pa.py_buffer(valid), null_count=count
    )
    try:
        numbers = strings.cast(pa.float32())
    except pa.ArrowInvalid:
        return None
    values = np.frombuffer(numbers.buffers()[1], dtype=np.float32, count=2 * count)[::2]
    return values.reshape(len(bounds), -1)


def first_bad_field(block: bytes, bounds: NDArray[np.int32]) -> tuple[int, bytes]:
    """The row and the text of the first field that is not a number."""
    row = next(row for row in range(len(bounds)) if parse_numbers(block, bounds[row : row + 1]) is None)
    ends = bounds[row]
    column = next(c for c in range(len(ends) - 1) if parse_numbers(block, ends[None, c : c + 2]) is None)
    return row, block[ends[column] + 1 : ends[column + 1]]


def write_text(vectors: Vectors, path: Path, header: bool = True) -> None:
    import pyarrow as pa
    import pyarrow.compute as pc

    words = check_words(vectors)
    if vectors.dim == 1 and not header:
        raise FirthError(
            "conflicting_options",
            "GloVe text of one dimension cannot be told from a header; write word2vec text (.txt).",
        )
    step = max(1, BLOCK // (12 * vectors.dim))
    with new_file(path) as work, work.open("wb") as file:
        if header:
            file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for first in range(0, len(vectors), step):
            block = np.ascontiguousarray(vectors.matrix[first : first + step])
            numbers = pa.array(block.ravel()).cast(pa.string())  # the shortest digits that give each float32 back
            offsets = pa.array(np.arange(0, block.size + 1, vectors.dim, dtype=np.int32))
            rows = pc.binary_join(pa.ListArray.from_arrays(offsets, numbers), " ").cast(pa.binary()).to_pylist()
            file.writelines(b"%b %b\n" % pair for pair in zip(words[first : first + step], rows, strict=True))
