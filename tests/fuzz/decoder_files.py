"""Damages a GGUF file by random edits: it is read or refused, with memory bounded by its size.

python tests/fuzz/decoder_files.py [CASES]
"""

from __future__ import annotations

import random
import sys
import tempfile
import tracemalloc
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parents[1]))

CASES = 20_000


def edited(content: bytes, choice: random.Random, tokens: list[bytes], header: int) -> bytes:
    """The content with one to five replacements, insertions, deletions or cuts, mostly of the header."""
    for _ in range(choice.randint(1, 5)):
        at = choice.randrange(min(len(content), header) if choice.random() < 0.7 else len(content)) if content else 0
        token = choice.choice(tokens) if choice.random() < 0.6 else choice.randbytes(choice.randint(1, 9))
        kind = choice.choice(("replace", "insert", "delete", "cut"))
        if kind == "cut":
            content = content[:at]
        else:
            rest = at + (0 if kind == "insert" else len(token))
            content = content[:at] + (b"" if kind == "delete" else token) + content[rest:]
    return content


def main() -> int:
    from formats.test_gguf import TOKENS, open_bytes, valid

    import firth

    cases, choice, refused, wrong = int(sys.argv[1]) if len(sys.argv) > 1 else CASES, random.Random(1), 0, 0
    content = valid()
    header = content.index(b"t.F32") + 600
    with tempfile.TemporaryDirectory() as folder:
        for number in range(cases):
            damaged = edited(content, choice, TOKENS, header)
            tracemalloc.start()
            try:
                open_bytes(Path(folder, "m.gguf"), damaged)
            except firth.FirthError:
                refused += 1
            except Exception as error:
                wrong += 1
                print(f"WRONG: case {number}: {type(error).__name__}: {error}")
            peak = tracemalloc.get_traced_memory()[1]
            tracemalloc.stop()
            if peak > 1_000_000 + 100 * len(damaged):
                wrong += 1
                print(f"WRONG: case {number}: {peak:,} bytes of memory for a file of {len(damaged):,}")
    print(f"{cases:,} files: {refused:,} refused, {cases - refused - wrong:,} read, {wrong:,} wrong")
    return int(wrong > 0)


if __name__ == "__main__":
    sys.exit(main())
