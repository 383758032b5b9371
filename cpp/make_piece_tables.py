"""Writes cpp/piece_tables.h: how the package `tokenizers` sees each code point. `python cpp/make_piece_tables.py`.

Its classes are of several Unicode versions (the regular expressions' and those of BERT's normalizer differ), so they
are asked for, not derived: subwords are then the same as that package's on any text. Takes a minute.
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


class Seen(NamedTuple):
    """What the library makes of one code point."""

    kind: str  # C++ expression of its classes
    stripped: str  # without accents
    lower: str


def gpt2_class(character: str) -> str:
    """Letters join a letter before them, numbers one behind them, others an exclamation mark before them."""

    def joined(text: str) -> bool:
        return len(gpt2.pre_tokenize_str(text)) == 1

    if character == " ":  # joins what follows, whatever it is
        return "kSpaces"
    if joined("a" + character):
        return "kLetters"
    if joined(character + "1"):
        return "kNumbers"
    return "kOthers" if joined("!" + character) else "kSpaces"


def punctuation(character: str) -> bool:
    return len(bert.pre_tokenize_str(f"a{character}b")) == 3


def bert_class(character: str, folded: str) -> str:
    """How a code point that becomes `folded` stands in a word."""
    cleaned = clean.normalize_str(f"a{character}b")
    if cleaned == "ab" or not folded:
        return "kDropped"
    if cleaned == "a b":
        return "kSeparates"
    assert not any(map(punctuation, folded)) or len(folded) == 1, "a code point must be of one class"
    return "kAlone" if chinese.normalize_str(character) != character or punctuation(folded) else "kInWord"


def seen(code: int) -> Seen:
    character = chr(code)
    stripped = strip.normalize_str(character)
    plain, folded = bert_class(character, character), bert_class(character, stripped)
    kind = f"{gpt2_class(character)} | {plain} << kPlain | {folded} << kFolded"
    return Seen(kind, stripped, lower.normalize_str(character))


def class_ranges(table: dict[int, Seen]) -> list[str]:
    ranges: list[tuple[int, int, str]] = []
    for code, facts in table.items():
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == facts.kind:
            ranges[-1] = (ranges[-1][0], code, facts.kind)
        else:
            ranges.append((code, code, facts.kind))
    usual = "kOthers | kInWord << kPlain | kInWord << kFolded"
    return [f"    {{0x{first:X}, 0x{last:X}, {kind}}}," for first, last, kind in ranges if kind != usual]


def lower_ranges(table: dict[int, Seen]) -> list[str]:
    """(first, last, step, lower - upper), for the code points whose lower case is one code point."""
    ranges: list[tuple[int, int, int, int]] = []
    for code, facts in table.items():
        if facts.lower == chr(code) or len(facts.lower) > 1:
            continue
        difference = ord(facts.lower) - code
        if ranges and ranges[-1][3] == difference:
            first, last, step, _ = ranges[-1]
            gap = code - last
            if gap == step or (first == last and gap in (1, 2)):
                ranges[-1] = (first, code, gap, difference)
                continue
        ranges.append((code, code, 1, difference))
    return [f"    {{0x{a:X}, 0x{b:X}, {step}, {difference}}}," for a, b, step, difference in ranges]


def stripped_codes(table: dict[int, Seen]) -> list[str]:
    """Code points that become others without their accents: up to three, 0 behind the last."""
    rows = [
        (code, *[ord(c) for c in facts.stripped], 0, 0, 0)[:4]
        for code, facts in table.items()
        if facts.stripped not in ("", chr(code)) and code not in HANGUL
    ]
    cells = ["{" + ", ".join(f"0x{code:X}" for code in row) + "}" for row in rows]
    return ["    " + ", ".join(cells[i : i + 4]) + "," for i in range(0, len(cells), 4)]


def main() -> None:
    table = {code: seen(code) for code in range(LAST) if not 0xD800 <= code < 0xE000}
    assert [code for code, facts in table.items() if len(facts.lower) > 1] == [0x130], "only İ is special"
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
