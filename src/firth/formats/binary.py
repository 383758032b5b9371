"""word2vec binary: a line of rows and dimensions, then each word, a space, and its float32 as bytes.

The C tool writes a newline after each row and gensim does not: newlines before a word are dropped. Firth
writes as the C tool does.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np

from firth.core.errors import FirthError
from firth.core.storage import new_file
from firth.core.vectors import Vectors
from firth.formats.files import BLOCK, LONGEST_WORD, Collector, check_words, open_unzipped, parse_header

SEARCHED = LONGEST_WORD + 2  # a newline, the word and its space


def read_binary(path: Path) -> Vectors:
    with open_unzipped(path) as file:
        line = file.readline(100)
        rows, dims = parse_header(path, line)
        table = Collector(path, dims)
        begin = len(line)  # the file's byte where `data` begins
        data = b""
        while len(table.keys) < rows:
            more = file.read(BLOCK)
            data += more
            used = take_rows(table, data, rows, dims)
            if not used and not more:
                raise FirthError(
                    "damaged_file",
                    "{path} ends at byte {begin:,}, before the end of row {n_keys:,} of {rows:,}: it is cut, or "
                    "its first line is wrong.",
                    path=path,
                    begin=begin + len(data),
                    n_keys=len(table.keys) + 1,
                    rows=rows,
                )
            data, begin = data[used:], begin + used
            if len(data) >= SEARCHED and data.find(b" ", 0, SEARCHED) < 0:
                raise FirthError(
                    "damaged_file",
                    "{path}: row {n_keys:,} at byte {begin:,} has no space after its word.",
                    path=path,
                    n_keys=len(table.keys) + 1,
                    begin=begin,
                )
        if (data + file.read(LONGEST_WORD)).strip(b"\n"):
            raise FirthError(
                "damaged_file",
                "{path}: more follows row {rows:,}, the last by its first line, from byte {begin:,} on.",
                path=path,
                rows=rows,
                begin=begin,
            )
        return table.vectors()


def take_rows(table: Collector, data: bytes, rows: int, dims: int) -> int:
    """Adds the whole rows at the beginning of `data`, no more than `rows` in all; how many bytes they take."""
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
