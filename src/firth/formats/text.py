"""Text formats with one word and its numbers per line: word2vec, GloVe and fastText .vec.

Lines are split from the right at ASCII spaces only, because some words of GloVe 840B contain spaces. The trailing space
of word2vec and fastText is accepted. Arrow parses the numbers, one block of lines at a time, as slices of the block
that are located by comparing bytes.
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


def read_text(path: Path, limit: int | None = None, header: bool | None = True) -> Vectors:
    """Read a text file with a header line "rows dimensions"; with header=None, the header is optional.

    `limit` is the maximum number of rows to read.
    """
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
        while len(table.keys) != limit and (block or (block := next(blocks, b""))):
            lines = split_lines(block)
            if limit is not None and len(table.keys) + len(lines.starts) > limit:
                lines = split_lines(block[: lines.starts[limit - len(table.keys)]])
            table.add(*parse_rows(path, lines, dims, line_number))
            line_number += len(lines.starts)
            block = b""
    is_limited = limit is not None and len(table.keys) == limit
    if rows is not None and (rows < len(table.keys) if is_limited else rows != len(table.keys)):
        raise FirthError(
            "damaged_file",
            "{path}: the header has {rows:,} rows, but the file has {got:,}. It is truncated, or the header is wrong.",
            path=path,
            rows=rows,
            got=len(table.keys),
        )
    return table.vectors()


def line_blocks(path: Path, file: io.BufferedIOBase) -> Iterator[bytes]:
    """Yield blocks of complete lines with \\n line ends, which is added to the last line if missing."""
    parts: list[bytes] = []
    while chunk := file.read(BLOCK):
        cut = chunk.rfind(b"\n") + 1
        if cut:
            lines = b"".join([*parts, chunk[:cut]])
            yield (
                lines.replace(b"\r\n", b"\n") if b"\r" in lines else lines
            )  # the check is faster than an unneeded replacement
            parts = []
        parts.append(chunk[cut:])
        if len(parts) > LONGEST_ROW // BLOCK:
            raise FirthError(
                "damaged_file",
                "{path}: a line is longer than {maximum:,} bytes, so it is not a text file of vectors.",
                path=path,
                maximum=LONGEST_ROW,
            )
    if last := b"".join(parts):
        yield last.rstrip(b"\r") + b"\n"


class Lines(NamedTuple):
    """The positions of the lines and fields of a block."""

    block: bytes
    separators: NDArray[np.int32]  # offset of every space and newline
    starts: NDArray[np.int32]  # offset of each line
    last: NDArray[np.intp]  # index in `separators` of the end of each line's last field
    fields: NDArray[np.intp]  # number of fields of each line


def split_lines(block: bytes) -> Lines:
    """Find the lines and fields of a block."""
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
    """Return the dimensions of a file without a header: the most common number of fields, as words may have spaces."""
    dims = int(np.bincount(split_lines(block).fields).argmax()) - 1
    if dims < 1:
        first = block.partition(b"\n")[0]
        raise FirthError(
            "damaged_file",
            "{path}: line {line} must have a word and its numbers, separated by single spaces; got {got}.",
            path=path,
            line=1,
            got=preview(first),
        )
    return dims


def parse_rows(path: Path, lines: Lines, dims: int, line_number: int) -> tuple[list[bytes], Matrix]:
    """Return the words and numbers of a block that begins at line `line_number` of the file."""
    short = np.flatnonzero(lines.fields <= dims)
    if len(short):
        got = lines.fields[short[0]] - 1
        raise FirthError(
            "damaged_file",
            "{path}: line {line:,} has {got:,} numbers; expected {dims:,}.",
            path=path,
            line=int(line_number + short[0]),
            got=int(got),
            dims=dims,
        )
    word_ends = lines.separators[lines.last - dims]
    words = [lines.block[start:end] for start, end in zip(lines.starts.tolist(), word_ends.tolist(), strict=True)]
    for row in np.flatnonzero(lines.fields > dims + 1):
        if is_number(words[row].rpartition(b" ")[2]):
            raise FirthError(
                "damaged_file",
                "{path}: line {line:,} has more than {dims:,} numbers, or a word that ends in a number ({word}). "
                "Remove the line.",
                path=path,
                line=int(line_number + row),
                dims=dims,
                word=preview(words[row]),
            )
    bounds = lines.separators[lines.last[:, None] + np.arange(-dims, 1)]  # rows × (dims + 1)
    numbers = parse_numbers(lines.block, bounds)
    if numbers is None:
        bad_row, field = first_bad_field(lines.block, bounds)
        raise FirthError(
            "damaged_file",
            "{path}: line {line:,} has {got} instead of a number.",
            path=path,
            line=int(line_number + bad_row),
            got=preview(field),
        )
    return words, numbers


def parse_numbers(block: bytes, bounds: NDArray[np.int32]) -> Matrix | None:
    """Parse the numbers between the separators at `bounds`; return None if one of them is not a number."""
    import pyarrow as pa

    count = bounds.shape[0] * (bounds.shape[1] - 1)
    # Arrow strings are contiguous, so the separators between the numbers are strings too, marked as null.
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
    """Return the row and the text of the first field that is not a number."""
    row = next(row for row in range(len(bounds)) if parse_numbers(block, bounds[row : row + 1]) is None)
    ends = bounds[row]
    column = next(c for c in range(len(ends) - 1) if parse_numbers(block, ends[None, c : c + 2]) is None)
    return row, block[ends[column] + 1 : ends[column + 1]]


def write_text(vectors: Vectors, path: Path, header: bool = True) -> None:
    """Write a text file with one word and its numbers per line."""
    import pyarrow as pa
    import pyarrow.compute as pc

    words = check_words(vectors)
    if vectors.dim == 1 and not header:
        raise FirthError(
            "conflicting_options",
            "GloVe text with {dim} dimension cannot be distinguished from a header. Write word2vec text (.txt).",
            dim=1,
        )
    step = max(1, BLOCK // (12 * vectors.dim))
    with new_file(path) as work, work.open("wb") as file:
        if header:
            file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for first in range(0, len(vectors), step):
            block = np.ascontiguousarray(vectors.matrix[first : first + step])
            numbers = pa.array(block.ravel()).cast(pa.string())  # the fewest digits that restore each float32
            offsets = pa.array(np.arange(0, block.size + 1, vectors.dim, dtype=np.int32))
            rows = pc.binary_join(pa.ListArray.from_arrays(offsets, numbers), " ").cast(pa.binary()).to_pylist()
            file.writelines(b"%b %b\n" % pair for pair in zip(words[first : first + step], rows, strict=True))
