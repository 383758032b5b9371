"""The word2vec binary format: a header line "rows dimensions", then each word, a space and its float32 bytes.

The C tool writes a newline after each row, while gensim does not; newlines before a word are ignored. Firth writes the
newlines.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from firth.core.errors import FirthError
from firth.core.storage import new_file
from firth.core.vectors import Vectors
from firth.formats.files import BLOCK, LONGEST_WORD, Collector, check_words, open_unzipped, parse_header

SEARCHED = LONGEST_WORD + 2  # a newline, the word and its space


def read_binary(path: Path, limit: int | None = None) -> Vectors:
    """Read a word2vec binary file; `limit` is the maximum number of rows to read."""
    with open_unzipped(path) as file:
        line = file.readline(100)
        all_rows, dims = parse_header(path, line)
        rows = all_rows if limit is None else min(all_rows, limit)
        table = Collector(path, dims)
        begin = len(line)  # offset of `data` in the file
        data = b""
        while len(table.keys) < rows:
            more = file.read(BLOCK)
            data += more
            used = take_rows(table, data, rows, dims)
            if not used and not more:
                raise FirthError(
                    "damaged_file",
                    "{path} ends at byte {byte:,}, within row {row:,} of {rows:,}. It is truncated, or its header is "
                    "wrong.",
                    path=path,
                    byte=begin + len(data),
                    row=len(table.keys) + 1,
                    rows=all_rows,
                )
            data, begin = data[used:], begin + used
            if len(data) >= SEARCHED and data.find(b" ", 0, SEARCHED) < 0:
                raise FirthError(
                    "damaged_file",
                    "{path}: row {row:,} at byte {byte:,} has no space after the word.",
                    path=path,
                    row=len(table.keys) + 1,
                    byte=begin,
                )
        if rows == all_rows and (data + file.read(LONGEST_WORD)).strip(b"\n"):
            raise FirthError(
                "damaged_file",
                "{path} has more data after the {rows:,} rows of its header, from byte {byte:,} on.",
                path=path,
                rows=rows,
                byte=begin,
            )
        return table.vectors()


def take_rows(table: Collector, data: bytes, rows: int, dims: int) -> int:
    """Add the complete rows at the start of `data`, up to `rows` in total; return the number of bytes used."""
    words, starts = [], []
    width, position = 4 * dims, 0
    for _ in range(rows - len(table.keys)):
        space = data.find(b" ", position, position + SEARCHED)
        if space < 0 or space + 1 + width > len(data):
            break
        words.append(data[position:space].lstrip(b"\n"))
        starts.append(space + 1)
        position = space + 1 + width
    if words:
        numbers = np.frombuffer(b"".join([data[start : start + width] for start in starts]), dtype="<f4")
        table.add(words, numbers.reshape(-1, dims))
    return position


def write_binary(vectors: Vectors, path: Path) -> None:
    """Write a word2vec binary file."""
    words = check_words(vectors)
    width = 4 * vectors.dim
    step = max(1, BLOCK // width)
    with new_file(path) as work, work.open("wb") as file:
        file.write(f"{len(vectors)} {vectors.dim}\n".encode())
        for first in range(0, len(vectors), step):
            numbers = vectors.matrix[first : first + step].astype("<f4").tobytes()
            file.writelines(
                b"%b %b\n" % (word, numbers[row * width : (row + 1) * width])
                for row, word in enumerate(words[first : first + step])
            )
