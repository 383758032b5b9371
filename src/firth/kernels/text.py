"""Text to counts and ids: the native functions of cpp/text.cpp, and the same rules in plain Python.

The rules of "words": a word is a run of Unicode letters, numbers and underscores (with the marks Mn and Mc on them);
an apostrophe (' or ’) between letters and a point or comma between digits stay inside; everything else separates.
A mark that stands on no such character separates too (so the invisible mark after an emoji is no word).
Lower case is taken code point by code point: İ becomes i, Σ becomes σ everywhere, ß stays.
"whitespace" splits as `str.split()` does, and at NUL. "characters": each letter, number or underscore with its marks.
"separated": tokens that come ready, with a NUL after each.
"gpt2" and "bert" are the pieces that subwords are made of, as the package `tokenizers` cuts them (cpp/pieces.h); with
`lowercase`, "bert" folds accents too. Their plain form stands in `firth.kernels.pieces`.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels._native import line_ends, paragraph_ends, safe_cut, translate

SPLITS = ("words", "whitespace", "characters", "separated", "gpt2", "bert")
DOCUMENT_END = -1  # stands in a stream of ids after each document
TextEncoder = _native.TextEncoder

__all__ = [
    "DOCUMENT_END", "SPLITS", "Merged", "TextEncoder", "as_bytes", "line_ends", "merge", "paragraph_ends", "safe_cut",
    "tokenize", "tokenize_twin", "translate", "unicode_version",
]  # fmt: skip


class Merged(NamedTuple):
    """The vocabulary of an encoder: words most frequent first, and each slot's ids in terms of it (−1 = dropped)."""

    words: list[str]
    counts: NDArray[np.int64]
    maps: list[NDArray[np.int32]]
    types: int  # of all words met
    tokens: int
    top_count: int
    dropped_types: int
    dropped_tokens: int


def merge(encoder: TextEncoder, min_count: int, max_size: int | None) -> Merged:
    parts = encoder.merge(min_count, max_size or 0)
    words = parts.pop("words").decode("utf-8").split("\0")[:-1]
    return Merged(words=words, **parts)


def as_bytes(data: bytes | bytearray | memoryview) -> NDArray[np.uint8]:
    """The bytes as an array, not copied."""
    return np.frombuffer(data, dtype=np.uint8)


def tokenize(text: str, split: str, lowercase: bool) -> list[str]:
    """The tokens of one text."""
    tokens = _native.tokenize(text.encode("utf-8", "surrogatepass"), split, lowercase)
    return tokens.decode("utf-8").split("\0")[:-1]


def unicode_version() -> str:
    """The version of Unicode that the native tables follow."""
    return _native.unicode_version()


def tokenize_twin(text: str, split: str, lowercase: bool) -> list[str]:
    """`tokenize` in plain Python."""
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # lone surrogates are no text
    if split == "whitespace":
        tokens = text.replace("\0", " ").split()
    elif split == "separated":
        tokens = [token for token in text.split("\0") if token]
    elif split == "characters":
        tokens = _characters(text)
    else:
        tokens = _words(text)
    return ["".join(_lower(c) for c in token) for token in tokens] if lowercase else tokens


def _words(text: str) -> list[str]:
    words, word, before = [], "", ""  # before: what the word's last character is, "" outside a word
    for place, character in enumerate(text):
        after = _kind(text[place + 1]) if place + 1 < len(text) else ""
        kind = _kind(character)
        if kind == "mark":
            kind = before if before != "inner" else ""  # a mark is what it stands on
        elif kind == "":
            between_letters = character in "'’" and before == after == "letter"
            between_digits = character in ".," and before == after == "digit"
            kind = "inner" if between_letters or between_digits else ""
        if kind:
            word += character
        elif word:
            words.append(word)
            word = ""
        before = kind
    return [*words, word] if word else words


def _characters(text: str) -> list[str]:
    tokens: list[str] = []
    open = False
    for character in text:
        kind = _kind(character)
        if kind == "mark" and open:
            tokens[-1] += character
        elif kind not in ("", "mark"):
            tokens.append(character)
        open = kind != "" and (open or kind != "mark")
    return tokens


def _kind(character: str) -> str:
    category = unicodedata.category(character)
    if category[0] in "LN":
        return "letter" if category[0] == "L" else "digit"
    if category in ("Mn", "Mc"):
        return "mark"
    return "underscore" if character == "_" else ""


def _lower(character: str) -> str:
    return character.lower()[0]  # İ is the only one with a lower case of two
