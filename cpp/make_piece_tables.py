"""Write cpp/piece_tables.h: how the package `tokenizers` treats each code point. `python cpp/make_piece_tables.py`.

That package mixes Unicode versions (its regular expressions and BERT's normalizer differ), so the classes are found
by calling it, not derived from Unicode. Pre-tokens are then equal to that package's on any text. Takes a minute.
"""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import tokenizers
from tokenizers import normalizers, pre_tokenizers

LAST = 0x110000
HANGUL = range(0xAC00, 0xD7A4)  # decomposed by arithmetic
CLEAN = {"handle_chinese_chars": False, "strip_accents": False, "lowercase": False}
clean = normalizers.BertNormalizer(clean_text=True, **CLEAN)
chinese = normalizers.BertNormalizer(**{**CLEAN, "handle_chinese_chars": True}, clean_text=False)
strip = normalizers.BertNormalizer(**{**CLEAN, "strip_accents": True}, clean_text=False)
lower = normalizers.Lowercase()
bert = pre_tokenizers.BertPreTokenizer()
gpt2 = pre_tokenizers.ByteLevel(add_prefix_space=False)


class CodePoint(NamedTuple):
    """How the package treats one code point."""

    kind: str  # C++ expression of its classes
    stripped: str  # without accents
    lower: str


def gpt2_class(character: str) -> str:
    """Return GPT-2's class: letters join a preceding letter, numbers a following one, others a preceding "!"."""

    def joined(text: str) -> bool:
        return len(gpt2.pre_tokenize_str(text)) == 1

    if character == " ":  # joins any following character
        return "kSpaces"
    if joined("a" + character):
        return "kLetters"
    if joined(character + "1"):
        return "kNumbers"
    return "kOthers" if joined("!" + character) else "kSpaces"


def punctuation(character: str) -> bool:
    """Return whether BERT treats a character as punctuation."""
    return len(bert.pre_tokenize_str(f"a{character}b")) == 3


def bert_class(character: str, folded: str) -> str:
    """Return BERT's class of a code point that is folded to `folded`."""
    cleaned = clean.normalize_str(f"a{character}b")
    if cleaned == "ab" or not folded:
        return "kDropped"
    if cleaned == "a b":
        return "kSeparates"
    assert not any(map(punctuation, folded)) or len(folded) == 1, "a code point must be of one class"
    return "kAlone" if chinese.normalize_str(character) != character or punctuation(folded) else "kInWord"


def code_point(code: int) -> CodePoint:
    """Return how the package treats a code point."""
    character = chr(code)
    stripped = strip.normalize_str(character)
    plain, folded = bert_class(character, character), bert_class(character, stripped)
    kind = f"{gpt2_class(character)} | {plain} << kPlain | {folded} << kFolded"
    return CodePoint(kind, stripped, lower.normalize_str(character))


def class_ranges(table: dict[int, CodePoint]) -> list[str]:
    """Return the ranges of code points of one class, without the default class."""
    ranges: list[tuple[int, int, str]] = []
    for code, entry in table.items():
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == entry.kind:
            ranges[-1] = (ranges[-1][0], code, entry.kind)
        else:
            ranges.append((code, code, entry.kind))
    default_class = "kOthers | kInWord << kPlain | kInWord << kFolded"
    return [f"    {{0x{first:X}, 0x{last:X}, {kind}}}," for first, last, kind in ranges if kind != default_class]


def lower_ranges(table: dict[int, CodePoint]) -> list[str]:
    """Return (first, last, step, lower - upper) for the code points whose lower case is one code point."""
    ranges: list[tuple[int, int, int, int]] = []
    for code, entry in table.items():
        if entry.lower == chr(code) or len(entry.lower) > 1:
            continue
        difference = ord(entry.lower) - code
        if ranges and ranges[-1][3] == difference:
            first, last, step, _ = ranges[-1]
            gap = code - last
            if gap == step or (first == last and gap in (1, 2)):
                ranges[-1] = (first, code, gap, difference)
                continue
        ranges.append((code, code, 1, difference))
    return [f"    {{0x{a:X}, 0x{b:X}, {step}, {difference}}}," for a, b, step, difference in ranges]


def stripped_codes(table: dict[int, CodePoint]) -> list[str]:
    """Return the code points that change without accents: up to three replacements, padded with 0."""
    rows = [
        (code, *[ord(c) for c in entry.stripped], 0, 0, 0)[:4]
        for code, entry in table.items()
        if entry.stripped not in ("", chr(code)) and code not in HANGUL
    ]
    cells = ["{" + ", ".join(f"0x{code:X}" for code in row) + "}" for row in rows]
    return ["    " + ", ".join(cells[i : i + 4]) + "," for i in range(0, len(cells), 4)]


def main() -> None:
    table = {code: code_point(code) for code in range(LAST) if not 0xD800 <= code < 0xE000}
    assert [code for code, entry in table.items() if len(entry.lower) > 1] == [0x130], "only İ is special"
    lines = [
        f"// Made by make_piece_tables.py from tokenizers {tokenizers.__version__}; not to be edited by hand.",
        "#pragma once",
        "",
        "static const PieceRange kPieceRanges[] = {",
        *class_ranges(table),
        "};",
        "",
        "static const PieceLower kPieceLower[] = {",
        *lower_ranges(table),
        "};",
        "",
        "static const Stripped kStripped[] = {",
        *stripped_codes(table),
        "};",
    ]
    target = Path(__file__).with_name("piece_tables.h")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{target.name}: {len(lines)} lines, tokenizers {tokenizers.__version__}")


if __name__ == "__main__":
    main()
