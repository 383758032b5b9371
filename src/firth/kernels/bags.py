"""Texts as bags of WordPiece tokens: the native kernel (cpp/bags.cpp), and the rules in plain Python.

Text is pre-tokenized as BERT does it (`firth.kernels.pieces`). Each word is split greedily into the longest token that
starts it, then the longest continuations (##…). A word is unknown if no token matches or if it has more than 100
characters; unknown words are left out of the mean. The native kernel tokenizes and sums rows in one pass.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels.subwords import joined

MAX_CHARACTERS = 100  # of a word
Table = NDArray[np.float32]


class Bags(NamedTuple):
    """The mean row of each text, with its number of known tokens and of unknown words."""

    rows: Table
    known: NDArray[np.int64]
    unknown: NDArray[np.int64]


class WordPieces:
    """A WordPiece vocabulary that tokenizes texts.

    `fold` removes case and accents first. `unknown` is the id of the unknown token, which text itself never matches.
    """

    def __init__(self, tokens: Sequence[str], fold: bool, unknown: int) -> None:
        self.native = _native.WordPieces(b"".join(token.encode() + b"\0" for token in tokens), fold, unknown)

    def ids(self, texts: Sequence[str]) -> tuple[NDArray[np.int32], NDArray[np.int64]]:
        """Return the known token ids of all texts, concatenated, and the end offset of each text."""
        return self.native.ids(*joined(texts))

    def means(self, texts: Sequence[str], table: Table, threads: int) -> Bags:
        """Return the mean of the rows of each text's tokens; zeros for a text without known tokens."""
        bags = Bags(
            np.empty((len(texts), table.shape[1]), np.float32),
            np.empty(len(texts), np.int64),
            np.empty(len(texts), np.int64),
        )
        self.native.means(*joined(texts), table, bags.rows, bags.known, bags.unknown, threads)
        return bags


def wordpiece_twin(word: str, ids: Mapping[str, int]) -> list[int] | None:
    """Return the token ids of a word, or None if it is unknown."""
    tokens, begin = list[int](), 0
    while begin < len(word):
        prefix = "##" if begin else ""
        ends = range(len(word), begin, -1)
        end = next((end for end in ends if prefix + word[begin:end] in ids), None)
        if end is None or len(word) > MAX_CHARACTERS:
            return None
        tokens.append(ids[prefix + word[begin:end]])
        begin = end
    return tokens


def means_twin(texts: Sequence[Sequence[int]], table: Table) -> Table:
    """Return the mean of the rows of each text's ids."""
    rows = np.zeros((len(texts), table.shape[1]), np.float32)
    for row, ids in zip(rows, texts, strict=True):
        for id in ids:
            row += table[id]
        row *= np.float32(1) / np.float32(max(1, len(ids)))
    return rows
