"""How test files find their words in vectors: the most frequent part of them, upper and lower case as one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path

import numpy as np

from firth.core.errors import FirthError
from firth.core.vectors import Vectors

Lookup = dict[str, list[int]]


def fold(word: str, fold_case: bool) -> str:
    """Upper case as word2vec's own scorer and gensim have it."""
    return word.upper() if fold_case else word


def row_lookup(vectors: Vectors, restrict: int | None, fold_case: bool) -> Lookup:
    """Rows of each word among the first `restrict`: several where keys differ in case only, the most frequent first."""
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
    """A NaN would win every comparison or none: no score is better than a wrong one."""
    finite = np.isfinite(vectors.matrix[:restrict]).all(axis=1)
    if not finite.all():
        bad = int(np.argmin(finite))
        raise FirthError(
            "non_finite",
            "Vectors to evaluate must be finite; that of {key!r} (row {bad}) is not. Remove it or train again.",
            key=vectors.keys[bad],
            bad=bad,
        )


def numbered_lines(path: str | os.PathLike[str]) -> Iterator[tuple[int, str]]:
    """(number, line) of a UTF-8 text file, from 1, blank lines left out."""
    try:
        text = Path(path).read_text(encoding="utf-8-sig")
    except UnicodeDecodeError as error:
        raise FirthError(
            "invalid_encoding",
            "{path} is not UTF-8 text (byte {start:,}); convert it first.",
            path=path,
            start=error.start,
        ) from None
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    for number, line in enumerate(text.split("\n"), 1):
        if line.strip():
            yield number, line.strip()
