"""Write cpp/unicode_tables.h from Python's unicodedata: `python cpp/make_unicode_tables.py`.

Run it with the Python whose Unicode version the tokenizer should follow; tests/kernels/test_text.py checks the table.
"""

from __future__ import annotations

import sys
import unicodedata
from pathlib import Path

LAST = 0x110000
# Scripts without spaces between words; unicodedata has no script property, so names are used.
UNSEGMENTED = ("CJK UNIFIED", "CJK COMPATIBILITY IDEOGRAPH", "HIRAGANA", "KATAKANA", "THAI", "LAO", "KHMER", "MYANMAR")


def class_of(code: int) -> str:
    """Return the C++ name of the class of a code point."""
    character = chr(code)
    category = unicodedata.category(character)
    if character == "_":
        return "kUnderscore"
    if character.isspace() or code == 0:  # a NUL separates in every tokenizer
        return "kSpace"
    if category.startswith("L"):
        kind = "kLetter"
    elif category.startswith("N"):
        kind = "kDigit"
    elif category in ("Mn", "Mc"):
        kind = "kMark"
    else:
        return "kOther"
    unsegmented = code > 0x7F and unicodedata.name(character, "").startswith(UNSEGMENTED)
    return kind + (" | kUnsegmented" if unsegmented else "")


def lower_of(code: int) -> int:
    """Return the simple lower case; İ (U+0130), whose lower case is two code points, becomes a plain i."""
    return ord(chr(code).lower()[0])


def class_ranges() -> list[tuple[int, int, str]]:
    """Return the ranges of code points of one class, without kOther."""
    ranges: list[tuple[int, int, str]] = []
    for code in range(LAST):
        kind = class_of(code)
        if ranges and ranges[-1][1] == code - 1 and ranges[-1][2] == kind:
            ranges[-1] = (ranges[-1][0], code, kind)
        else:
            ranges.append((code, code, kind))
    return [item for item in ranges if item[2] != "kOther"]


def lower_ranges() -> list[tuple[int, int, int, int]]:
    """Return (first, last, step, lower - upper): Latin Extended alternates, so steps are 1 or 2."""
    ranges: list[tuple[int, int, int, int]] = []
    for code in range(LAST):
        difference = lower_of(code) - code
        if difference == 0:
            continue
        if ranges and ranges[-1][3] == difference:
            first, last, step, _ = ranges[-1]
            gap = code - last
            if gap == step or (first == last and gap in (1, 2)):
                ranges[-1] = (first, code, gap, difference)
                continue
        ranges.append((code, code, 1, difference))
    return ranges


def main() -> None:
    lines = [
        f"// Made by make_unicode_tables.py from Unicode {unicodedata.unidata_version}; not to be edited by hand.",
        "#pragma once",
        "",
        "static const ClassRange kClassRanges[] = {",
        *(f"    {{0x{first:X}, 0x{last:X}, {kind}}}," for first, last, kind in class_ranges()),
        "};",
        "",
        "static const LowerRange kLowerRanges[] = {",
        *(f"    {{0x{a:X}, 0x{b:X}, {step}, {difference}}}," for a, b, step, difference in lower_ranges()),
        "};",
        "",
        f'static const char* const kUnicodeVersion = "{unicodedata.unidata_version}";',
    ]
    target = Path(__file__).with_name("unicode_tables.h")
    target.write_text("\n".join(lines) + "\n", encoding="utf-8")
    print(f"{target.name}: {len(lines)} lines, Unicode {unicodedata.unidata_version}, Python {sys.version.split()[0]}")


if __name__ == "__main__":
    main()
