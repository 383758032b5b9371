"""Functions shared by the readers and writers of word vector files: opening, headers, collecting rows, words."""

from __future__ import annotations

import contextlib
import gzip
import io
import re
import warnings
import zlib
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

from firth.core.errors import FirthError, FirthWarning
from firth.core.vectors import Matrix, Vectors

BLOCK = 1 << 20  # bytes read at once
LONGEST_ROW = 1 << 24  # bytes: 16 MiB, or 4 million float32
LONGEST_WORD = 1 << 16
_NUMBER = re.compile(rb"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\v\f\r]")


@contextlib.contextmanager
def open_unzipped(path: Path) -> Iterator[io.BufferedIOBase]:
    """Open a file for reading; gzip is decompressed."""
    try:
        with path.open("rb") as file:
            if file.peek(2)[:2] == b"\x1f\x8b":
                with gzip.GzipFile(fileobj=file) as unpacked:
                    yield unpacked
            else:
                yield file
    except (OSError, EOFError, zlib.error) as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=str(error)) from error


def looks_like_header(head: bytes) -> bool:
    """Whether the first line is a header: two integers, or two fields above a longer line (a malformed header)."""
    first, _, rest = head.partition(b"\n")
    fields = first.split()
    if len(fields) != 2:
        return False
    following = rest.partition(b"\n")[0].split()
    return all(field.isdigit() for field in fields) or (len(following) > 2 and is_number(following[-1]))


def is_number(field: bytes) -> bool:
    """Whether a field is a decimal number, NaN or infinity."""
    return _NUMBER.fullmatch(field) is not None


def parse_header(path: Path, line: bytes) -> tuple[int, int]:
    """Return the rows and dimensions of a header. No memory is allocated for them before the rows are read."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) <= 30 for field in fields):
        raise FirthError(
            "damaged_file",
            '{path}: line {line} must have the numbers of rows and dimensions, such as "400000 300"; got {got}.',
            path=path,
            line=1,
            got=preview(line),
        )
    rows, dims = int(fields[0]), int(fields[1])
    if rows < 1 or dims < 1:
        raise FirthError(
            "damaged_file",
            "{path}: the header has {rows:,} rows and {dims:,} dimensions; both must be at least 1.",
            path=path,
            rows=rows,
            dims=dims,
        )
    if dims > LONGEST_ROW // 4:
        raise FirthError(
            "damaged_file",
            "{path}: the header has {dims:,} dimensions; the maximum is {maximum:,}.",
            path=path,
            dims=dims,
            maximum=LONGEST_ROW // 4,
        )
    return rows, dims


class Collector:
    """Collects rows; the matrix grows with them, independently of the header."""

    def __init__(self, path: Path, dims: int) -> None:
        self.path = path
        self.keys: list[str] = []
        self.undecodable = 0
        self._matrix: Matrix = np.empty((0, dims), dtype=np.float32)

    def add(self, words: Sequence[bytes], numbers: Matrix) -> None:
        """Add rows, and refuse NaN and infinity."""
        if not np.isfinite(numbers).all():
            invalid = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
            raise FirthError(
                "non_finite",
                "{path}: row {row:,} ({word}) has NaN, infinity or a number beyond float32. Remove the row from the "
                "file.",
                path=self.path,
                row=len(self.keys) + invalid + 1,
                word=preview(words[invalid]),
            )
        first, last = len(self.keys), len(self.keys) + len(words)
        if last > len(self._matrix):
            # In place, to avoid a second copy of a large table.
            self._matrix.resize((max(last, first + first // 2), numbers.shape[1]), refcheck=False)
        self._matrix[first:last] = numbers
        try:
            self.keys += [word.decode() for word in words]
        except UnicodeDecodeError:
            self.keys += [self._decode_lossy(word) for word in words]

    def _decode_lossy(self, word: bytes) -> str:
        """Decode a word, replacing invalid bytes; word2vec truncates words at 99 bytes, even within a character."""
        text = word.decode(errors="replace")
        self.undecodable += text.encode() != word
        return text

    def vectors(self) -> Vectors:
        """Return the collected vectors; the first row of a repeated word is used."""
        self._matrix.resize((len(self.keys), self._matrix.shape[1]), refcheck=False)
        if self.undecodable:
            text = (
                f"{self.path}: {self.undecodable:,} words are not valid UTF-8; invalid bytes were replaced by U+FFFD."
            )
            warn(text, "invalid_utf8")
        first_rows = dict(zip(reversed(self.keys), range(len(self.keys) - 1, -1, -1), strict=True))
        if len(first_rows) == len(self.keys):
            return Vectors(self.keys, self._matrix)
        selected_rows = sorted(first_rows.values())
        word = next(key for row, key in enumerate(self.keys) if first_rows[key] != row)
        repeated = len(self.keys) - len(selected_rows)
        text = f"{self.path}: {repeated:,} rows repeat an earlier word (the first is {word!r}) and were left out."
        warn(text, "repeated_words")
        return Vectors([self.keys[row] for row in selected_rows], self._matrix[selected_rows])


def warn(text: str, code: str = "invalid_utf8") -> None:
    """Issue a FirthWarning at the caller of `read_vectors`."""
    warnings.warn(FirthWarning(text, code), stacklevel=5)


def check_words(vectors: Vectors) -> list[bytes]:
    """Return the keys as bytes; refuse those that a text format could not delimit."""
    words = []
    for row, key in enumerate(vectors.keys):
        try:
            word = key.encode()
        except UnicodeEncodeError:
            raise FirthError(
                "invalid_encoding",
                "The key {key!r} (row {row:,}) is not valid Unicode text. Rename it.",
                key=key,
                row=row + 1,
            ) from None
        if not 0 < len(word) <= LONGEST_WORD or _SPACE.search(key):
            raise FirthError(
                "invalid_value",
                "In this format a word must have 1 to {maximum:,} bytes and no white space; row {row:,} has {got}. "
                "Write .safetensors or .npy, which accept any key.",
                maximum=LONGEST_WORD,
                row=row + 1,
                got=preview(word),
            )
        words.append(word)
    return words


def preview(text: bytes) -> str:
    """Return the first bytes as text for an error message."""
    return repr(text[:40].decode(errors="replace")) + ("…" if len(text) > 40 else "")
