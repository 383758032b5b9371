"""What the readers and writers of word files share: opening, the first line, collecting rows, words."""

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
LONGEST_ROW = 1 << 24  # a row of 16 MiB is no vector: 4 million float32
LONGEST_WORD = 1 << 16
_NUMBER = re.compile(rb"[-+]?((\d+\.?\d*|\.\d+)(e[-+]?\d+)?|nan|inf(inity)?)", re.IGNORECASE)
_SPACE = re.compile(r"[ \t\n\v\f\r]")


@contextlib.contextmanager
def open_unzipped(path: Path) -> Iterator[io.BufferedIOBase]:
    """The bytes of a file, unpacked where they are gzip."""
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
    """Two whole numbers; or two fields above a longer line, so that a broken header is called one."""
    first, _, rest = head.partition(b"\n")
    fields = first.split()
    if len(fields) != 2:
        return False
    following = rest.partition(b"\n")[0].split()
    return all(field.isdigit() for field in fields) or (len(following) > 2 and is_number(following[-1]))


def is_number(field: bytes) -> bool:
    return _NUMBER.fullmatch(field) is not None


def parse_header(path: Path, line: bytes) -> tuple[int, int]:
    """Rows and dimensions. Nothing is allocated by them: they are compared with what the file holds."""
    fields = line.split()
    if len(fields) != 2 or not all(field.isdigit() and len(field) <= 30 for field in fields):
        raise FirthError(
            "damaged_file",
            '{path}: line 1 must be rows and dimensions, such as "400000 300"; got {got}.',
            path=path,
            got=preview(line),
        )
    rows, dims = int(fields[0]), int(fields[1])
    if rows < 1 or dims < 1:
        raise FirthError(
            "damaged_file",
            "{path}: line 1 says {rows:,} rows of {dims:,} numbers; there must be at least 1 of each.",
            path=path,
            rows=rows,
            dims=dims,
        )
    if dims > LONGEST_ROW // 4:
        raise FirthError(
            "damaged_file",
            "{path}: line 1 says {dims:,} dimensions; Firth reads at most {longest_row:,}.",
            path=path,
            dims=dims,
            longest_row=LONGEST_ROW // 4,
        )
    return rows, dims


class Collector:
    """Rows as they come; the matrix grows with them, whatever the first line promised."""

    def __init__(self, path: Path, dims: int) -> None:
        self.path = path
        self.keys: list[str] = []
        self.undecodable = 0
        self._matrix: Matrix = np.empty((0, dims), dtype=np.float32)

    def add(self, words: Sequence[bytes], numbers: Matrix) -> None:
        if not np.isfinite(numbers).all():
            invalid = int(np.flatnonzero(~np.isfinite(numbers).all(axis=1))[0])
            raise FirthError(
                "non_finite",
                "{path}: row {n_keys:,} ({word}) holds NaN, infinity or a number beyond float32; remove the row "
                "from the file.",
                path=self.path,
                n_keys=len(self.keys) + invalid + 1,
                word=preview(words[invalid]),
            )
        first, last = len(self.keys), len(self.keys) + len(words)
        if last > len(self._matrix):
            # In place, so that no second copy stands beside a large table.
            self._matrix.resize((max(last, first + first // 2), numbers.shape[1]), refcheck=False)
        self._matrix[first:last] = numbers
        try:
            self.keys += [word.decode() for word in words]
        except UnicodeDecodeError:
            self.keys += [self._decode_lossy(word) for word in words]

    def _decode_lossy(self, word: bytes) -> str:
        """word2vec cuts words at 99 bytes, even inside a character."""
        text = word.decode(errors="replace")
        self.undecodable += text.encode() != word
        return text

    def vectors(self) -> Vectors:
        self._matrix.resize((len(self.keys), self._matrix.shape[1]), refcheck=False)
        if self.undecodable:
            warn(f"{self.path}: {self.undecodable:,} words are not UTF-8; the bytes at fault became U+FFFD.")
        first_rows = dict(zip(reversed(self.keys), range(len(self.keys) - 1, -1, -1), strict=True))
        if len(first_rows) == len(self.keys):
            return Vectors(self.keys, self._matrix)
        selected_rows = sorted(first_rows.values())
        word = next(key for row, key in enumerate(self.keys) if first_rows[key] != row)
        repeated = len(self.keys) - len(selected_rows)
        warn(f"{self.path}: {repeated:,} rows repeat a word ({word!r} first) and were left out.")
        return Vectors([self.keys[row] for row in selected_rows], self._matrix[selected_rows])


def warn(text: str) -> None:
    warnings.warn(text, FirthWarning, stacklevel=5)


def check_words(vectors: Vectors) -> list[bytes]:
    """The keys as bytes, refused where a reader could not tell their end."""
    words = []
    for row, key in enumerate(vectors.keys):
        try:
            word = key.encode()
        except UnicodeEncodeError:
            raise FirthError(
                "invalid_encoding",
                "The key {key!r} (row {row:,}) is not Unicode text; rename it.",
                key=key,
                row=row + 1,
            ) from None
        if not 0 < len(word) <= LONGEST_WORD or _SPACE.search(key):
            raise FirthError(
                "invalid_value",
                "A word of this format must be 1 to {longest_word:,} bytes without white space; row {row:,} is "
                "{word}. Write .safetensors or .npy, which take any key.",
                longest_word=LONGEST_WORD,
                row=row + 1,
                word=preview(word),
            )
        words.append(word)
    return words


def preview(text: bytes) -> str:
    """The beginning of some bytes, fit for an error's one line."""
    return repr(text[:40].decode(errors="replace")) + ("…" if len(text) > 40 else "")
