"""Tokenization and encoding of text: the native functions (cpp/text.cpp), and the same rules in plain Python.

"words": a word is a run of Unicode letters, numbers and underscores, with their combining marks (Mn, Mc). An apostrophe
(' or ’) between letters and a point or comma between digits belong to the word; everything else separates words. A
combining mark on any other character separates too, so the invisible mark after an emoji is not a word. Lowercasing
works code point by code point: İ becomes i, Σ always becomes σ, ß stays.
"whitespace": as `str.split()`, and also at NUL. "characters": each letter, number or underscore with its marks.
"separated": ready-made tokens, each followed by a NUL.
"gpt2" and "bert": the pre-tokens of subword tokenizers, as in the package `tokenizers` (cpp/pieces.h). If lowercased,
"bert" also strips accents. The module `pieces` has both in plain Python.
"""

from __future__ import annotations

import unicodedata
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native
from firth.kernels._native import line_ends, paragraph_ends, safe_cut, translate

SPLITS = ("words", "whitespace", "characters", "separated", "gpt2", "bert")
DOCUMENT_END = -1  # follows each document in a stream of ids
TextEncoder = _native.TextEncoder

__all__ = [
    "DOCUMENT_END", "SPLITS", "Merged", "TextEncoder", "as_bytes", "line_ends", "merge", "paragraph_ends", "safe_cut",
    "tokenize", "tokenize_twin", "translate", "unicode_version",
]  # fmt: skip


class Merged(NamedTuple):
    """The vocabulary of an encoder, most frequent words first, and the map of each slot's ids to it (−1 = dropped)."""

    words: list[str]
    counts: NDArray[np.int64]
    maps: list[NDArray[np.int32]]
    types: int  # distinct words before dropping
    tokens: int  # tokens before dropping
    top_count: int
    dropped_types: int
    dropped_tokens: int


def merge(encoder: TextEncoder, min_count: int, max_size: int | None) -> Merged:
    """Return the vocabulary of an encoder; words below `min_count` or beyond `max_size` are dropped."""
    parts = encoder.merge(min_count, max_size or 0)
    words = parts.pop("words").decode("utf-8").split("\0")[:-1]
    return Merged(words=words, **parts)


def as_bytes(data: bytes | bytearray | memoryview) -> NDArray[np.uint8]:
    """Return the bytes as an array, without a copy."""
    return np.frombuffer(data, dtype=np.uint8)


def tokenize(text: str, split: str, lowercase: bool) -> list[str]:
    """Return the tokens of one text."""
    tokens = _native.tokenize(text.encode("utf-8", "surrogatepass"), split, lowercase)
    return tokens.decode("utf-8").split("\0")[:-1]


def unicode_version() -> str:
    """Return the Unicode version of the native tables."""
    return _native.unicode_version()


def tokenize_twin(text: str, split: str, lowercase: bool) -> list[str]:
    """`tokenize` in plain Python."""
    text = text.encode("utf-8", "surrogatepass").decode("utf-8", "replace")  # lone surrogates are not valid text
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
    words, word, previous = [], "", ""  # previous: class of the word's last character, "" outside a word
    for i, character in enumerate(text):
        following = _character_class(text[i + 1]) if i + 1 < len(text) else ""
        kind = _character_class(character)
        if kind == "mark":
            kind = previous if previous != "inner" else ""  # a combining mark takes the class of its base
        elif kind == "":
            between_letters = character in "'’" and previous == following == "letter"
            between_digits = character in ".," and previous == following == "digit"
            kind = "inner" if between_letters or between_digits else ""
        if kind:
            word += character
        elif word:
            words.append(word)
            word = ""
        previous = kind
    return [*words, word] if word else words


def _characters(text: str) -> list[str]:
    tokens: list[str] = []
    open = False
    for character in text:
        kind = _character_class(character)
        if kind == "mark" and open:
            tokens[-1] += character
        elif kind not in ("", "mark"):
            tokens.append(character)
        open = kind != "" and (open or kind != "mark")
    return tokens


def _character_class(character: str) -> str:
    """Return "letter", "digit", "mark", "underscore" or "" (separates)."""
    category = unicodedata.category(character)
    if category[0] in "LN":
        return "letter" if category[0] == "L" else "digit"
    if category in ("Mn", "Mc"):
        return "mark"
    return "underscore" if character == "_" else ""


def _lower(character: str) -> str:
    return character.lower()[0]  # İ is the only character whose lower case has two code points
