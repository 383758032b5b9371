"""Pre-tokenization for subword tokenizers, the splits "gpt2" and "bert", in plain Python (natively: cpp/pieces.h).

The native tables follow the package `tokenizers`, whose Unicode version differs from Python's in rare code points.
"""

from __future__ import annotations

import re
import unicodedata

# GPT-2's byte-level alphabet: printable Latin-1 bytes stand for themselves, the others become U+0100, U+0101, …
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_LETTERS = {byte: chr(byte) for byte in PRINTABLE}
BYTE_LETTERS |= {
    byte: chr(0x100 + number) for number, byte in enumerate(byte for byte in range(256) if byte not in BYTE_LETTERS)
}
LETTER_BYTES = {ord(letter): byte for byte, letter in BYTE_LETTERS.items()}

CONTRACTION = re.compile("'(?:s|t|re|ve|m|ll|d)")
# The rest of GPT-2's regular expression, over one category sign per character: Letter, Number, Other, Space and _ for
# the plain space.
SHAPE = re.compile("_?L+|_?N+|_?O+|[_S]+(?![LNO])|[_S]+")
CHINESE = (
    range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0), range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820), range(0x2B920, 0x2CEB0), range(0xF900, 0xFB00), range(0x2F800, 0x2FA20),
)  # fmt: skip


def letters_to_text(piece: str) -> str:
    """Return the text of a piece of the split "gpt2"."""
    return bytes(LETTER_BYTES[ord(letter)] for letter in piece).decode()


def gpt2_twin(text: str) -> list[str]:
    """Return the pieces of a text under the split "gpt2"."""
    signs, pieces, position = "".join(map(category_sign, text)), list[str](), 0
    while position < len(text):
        match = CONTRACTION.match(text, position) or SHAPE.match(signs, position)
        assert match is not None  # SHAPE has an alternative for each sign
        pieces.append("".join(BYTE_LETTERS[byte] for byte in text[position : match.end()].encode()))
        position = match.end()
    return pieces


def category_sign(character: str) -> str:
    """Return the sign that stands for a character in SHAPE."""
    if character == " ":
        return "_"
    category = unicodedata.category(character)[0]
    if category in "LN":
        return category
    return "S" if character.isspace() and character not in "\x1c\x1d\x1e\x1f" else "O"


def bert_twin(text: str, fold: bool) -> list[str]:
    """Return the pieces of a text under the split "bert"; `fold` removes case and accents."""
    cleaned = "".join(map(clean, text))
    if fold:
        decomposed = unicodedata.normalize("NFD", cleaned)
        cleaned = "".join(c.lower() for c in decomposed if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if is_punctuation(c) else c for c in cleaned)
    return spaced.split()


def clean(character: str) -> str:
    """Return a character without control characters, any whitespace as a space, spaces around Chinese characters."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co"):
        return ""
    if any(ord(character) in block for block in CHINESE):
        return f" {character} "
    return " " if character.isspace() else character


def is_punctuation(character: str) -> bool:
    """Return whether BERT treats a character as punctuation."""
    ascii_sign = character.isascii() and not character.isalnum() and not character.isspace()
    return ascii_sign or unicodedata.category(character).startswith("P")
