"""The pieces of the splits "gpt2" and "bert" in plain Python: what cpp/pieces.h does natively.

The native tables are those of the package `tokenizers`, whose Unicode differs from Python's in rare code points.
"""

from __future__ import annotations

import re
import unicodedata

# GPT-2 writes a byte as a letter: printable Latin-1 as itself, the others as U+0100, U+0101, …
PRINTABLE = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
BYTE_LETTERS = {byte: chr(byte) for byte in PRINTABLE}
BYTE_LETTERS |= {
    byte: chr(0x100 + number) for number, byte in enumerate(byte for byte in range(256) if byte not in BYTE_LETTERS)
}
LETTER_BYTES = {ord(letter): byte for byte, letter in BYTE_LETTERS.items()}

CONTRACTION = re.compile("'(?:s|t|re|ve|m|ll|d)")
# The rest of GPT-2's expression, over a sign a character: Letter, Number, Other, Space and _ for the plain space.
SHAPE = re.compile("_?L+|_?N+|_?O+|[_S]+(?![LNO])|[_S]+")
CHINESE = (
    range(0x4E00, 0xA000), range(0x3400, 0x4DC0), range(0x20000, 0x2A6E0), range(0x2A700, 0x2B740),
    range(0x2B740, 0x2B820), range(0x2B920, 0x2CEB0), range(0xF900, 0xFB00), range(0x2F800, 0x2FA20),
)  # fmt: skip


def letters_to_text(piece: str) -> str:
    """A piece of the split "gpt2" as it stood in the text."""
    return bytes(LETTER_BYTES[ord(letter)] for letter in piece).decode()


def gpt2_twin(text: str) -> list[str]:
    shape, pieces, place = "".join(map(sign, text)), list[str](), 0
    while place < len(text):
        found = CONTRACTION.match(text, place) or SHAPE.match(shape, place)
        assert found is not None  # each sign has its alternative
        pieces.append("".join(BYTE_LETTERS[byte] for byte in text[place : found.end()].encode()))
        place = found.end()
    return pieces


def sign(character: str) -> str:
    if character == " ":
        return "_"
    kind = unicodedata.category(character)[0]
    if kind in "LN":
        return kind
    return "S" if character.isspace() and character not in "\x1c\x1d\x1e\x1f" else "O"


def bert_twin(text: str, fold: bool) -> list[str]:
    cleaned = "".join(map(clean, text))
    if fold:
        marked = unicodedata.normalize("NFD", cleaned)
        cleaned = "".join(c.lower() for c in marked if unicodedata.category(c) != "Mn")
    spaced = "".join(f" {c} " if is_punctuation(c) else c for c in cleaned)
    return spaced.split()


def clean(character: str) -> str:
    """Without control characters; space as plain spaces; spaces around Chinese characters."""
    if character in "\t\n\r":
        return " "
    if character == "\ufffd" or unicodedata.category(character) in ("Cc", "Cf", "Co"):
        return ""
    if any(ord(character) in block for block in CHINESE):
        return f" {character} "
    return " " if character.isspace() else character


def is_punctuation(character: str) -> bool:
    ascii_sign = character.isascii() and not character.isalnum() and not character.isspace()
    return ascii_sign or unicodedata.category(character).startswith("P")
