"""Texts as bags of WordPieces: cpp/bags.cpp, which reads text and adds rows in one pass, and the rules in plain Python.

Words are cut as BERT cuts them (`firth.kernels.pieces`); a word is the longest piece that begins it, then the longest
that goes on (##…). Where none fits, or the word has more than 100 characters, it is unknown and does not count.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.subwords import joined

MOST_CHARACTERS = 100  # of a word
Table = NDArray[np.float32]


class Bags(NamedTuple):
    """The mean row of each text, how many pieces are in it, and how many words were unknown."""

    rows: Table
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class WordPieces:
    """A vocabulary, ready to read texts by. `fold`: without case and accents. The token `unknown` is never found."""

    def __init__(self, tokens: Sequence[str], fold: bool, unknown: int) -> None:
        self.native = _native.WordPieces(b"".join(token.encode() + b"\0" for token in tokens), fold, unknown)

    def ids(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """The known pieces of all texts, one behind the other, and where those of each text end."""
        return self.native.ids(*joined(texts))

    def means(self, texts: Sequence[str], table: Table, threads: int) -> Bags:
        """The mean of its pieces' rows for each text; zeros where it has none."""
        found = Bags(
            np.empty((len(texts), table.shape[1]), np.float32),
            np.empty(len(texts), np.int64),
            np.empty(len(texts), np.int64),
        )
        self.native.means(*joined(texts), table, found.rows, found.known, found.unknown, threads)
        return found


def cut_twin(word: str, ids: Mapping[str, int]) -> list[int] | None:
    """The pieces of a word; None where it is unknown."""
    found, begin = list[int](), 0
    while begin < len(word):
        before = "##" if begin else ""
        ends = range(len(word), begin, -1)
        end = next((end for end in ends if before + word[begin:end] in ids), None)
        if end is None or len(word) > MOST_CHARACTERS:
            return None
        found.append(ids[before + word[begin:end]])
        begin = end
    return found


def means_twin(texts: Sequence[Sequence[int]], table: Table) -> Table:
    """The mean row of each text's ids."""
    rows = np.zeros((len(texts), table.shape[1]), np.float32)
    for row, ids in zip(rows, texts, strict=True):
        for id in ids:
            row += table[id]
        row *= np.float32(1) / np.float32(max(1, len(ids)))
    return rows
