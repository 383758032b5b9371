"""Lookup of test words among the most frequent vectors, ignoring case."""

from __future__ import annotations

import os
from collections.abc import Iterator

import numpy as np

from firth.core.errors import FirthError
from firth.core.remote import as_path
from firth.core.vectors import Vectors

Lookup = dict[str, list[int]]


def fold(word: str, fold_case: bool) -> str:
    """Return the word in upper case, as word2vec's own scorer and gensim do, unless case matters."""
    return word.upper() if fold_case else word


def row_lookup(vectors: Vectors, restrict: int | None, fold_case: bool) -> Lookup:
    """Return the rows of each word among the first `restrict`; keys that differ only in case share an entry, in order
    of frequency."""
    if restrict is not None and restrict < 1:
        raise FirthError(
            "invalid_value",
            "{option} must be at least 1, or None for all words; got {got}.",
            option="restrict",
            got=restrict,
        )
    lookup: Lookup = {}
    for row, key in enumerate(vectors.keys[:restrict]):
        lookup.setdefault(fold(key, fold_case), []).append(row)
    return lookup


def check_finite(vectors: Vectors, restrict: int | None) -> None:
    """Refuse vectors with NaN or infinity, whose scores would be meaningless."""
    finite = np.isfinite(vectors.matrix[:restrict]).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise FirthError(
            "non_finite",
            "Vectors must be finite to be evaluated; that of {key!r} (row {row}) is not. Remove it or train again.",
            key=vectors.keys[bad],
            row=bad,
        )


def not_utf8(path: object, error: UnicodeDecodeError) -> FirthError:
    """Return the error for a file that is not UTF-8 text."""
    return FirthError(
        "invalid_encoding",
        "{path} is not UTF-8 text (byte {start:,}). Convert it to UTF-8 first.",
        path=path,
        start=error.start,
    )


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """Yield (number, line) of a UTF-8 text file, counted from 1, without blank lines."""
    try:
        text = as_path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise not_utf8(path, error) from None
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.strip()
