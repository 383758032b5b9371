"""Character n-grams of words, numbered by fastText's hash: the native functions (cpp/subwords.cpp), and plain Python.

An n-gram is a run of `minn` to `maxn` code points of <word>, where < and > mark the start and end of the word; < and >
alone are not n-grams. Its row is hash(n-gram) % buckets, so any word has rows. `</s>`, fastText's end of line, has
none.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

END_OF_LINE = "</s>"


class Ngrams(NamedTuple):
    """The rows of the n-grams of several words; word i has `rows[starts[i] : starts[i + 1]]`."""

    starts: NDArray[np.int64]
    rows: NDArray[np.int32]


def ngrams(words: Sequence[str] | Sequence[bytes], minn: int, maxn: int, buckets: int) -> Ngrams:
    """Return the rows (0 … buckets − 1) of each word's n-grams; none for maxn = 0."""
    text, starts = joined(words)
    row_starts = np.zeros(len(starts), dtype=np.int64)
    return Ngrams(row_starts, _native.subwords(text, starts, minn, maxn, buckets, row_starts))


def word_hashes(words: Sequence[str] | Sequence[bytes]) -> NDArray[np.uint32]:
    """Return fastText's hash of each word, without < and >."""
    text, starts = joined(words)
    hashes = np.zeros(len(words), dtype=np.uint32)
    _native.hash_words(text, starts, hashes)
    return hashes


def joined(words: Iterable[str] | Iterable[bytes]) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    """Return the concatenated bytes of all words, and the start offset of each."""
    parts = [as_bytes(word) for word in words]
    starts = np.zeros(len(parts) + 1, dtype=np.int64)
    np.cumsum(np.fromiter(map(len, parts), dtype=np.int64, count=len(parts)), out=starts[1:])
    return np.frombuffer(b"".join(parts), dtype=np.uint8), starts


def as_bytes(word: str | bytes) -> bytes:
    """Return a word as UTF-8; lone surrogates are passed through."""
    return word.encode("utf-8", "surrogatepass") if isinstance(word, str) else word


def ngram_hash(ngram: str | bytes) -> int:
    """Return the 32-bit FNV-1a hash, except that bytes from 128 on are sign-extended, as in fastText."""
    hash = 2166136261
    for byte in as_bytes(ngram):
        hash = ((hash ^ (byte | 0xFFFFFF00 if byte > 127 else byte)) * 16777619) & 0xFFFFFFFF
    return hash


def ngrams_of(word: str, minn: int, maxn: int) -> list[str]:
    """Return the n-grams of one word, in the order of `ngrams`."""
    bracketed = f"<{word}>"
    if word == END_OF_LINE:
        return []
    return [
        bracketed[first : first + size]
        for first in range(len(bracketed))
        for size in range(max(1, minn), min(maxn, len(bracketed) - first) + 1)
        if size > 1 or 0 < first < len(bracketed) - 1
    ]
