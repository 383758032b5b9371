"""The table of the architectures that open, from the tables of the families.

    python tests/docs/architectures.py

writes it into docs/files.md; the tests compare.
"""

from __future__ import annotations

import re
from pathlib import Path

from firth.transformers.families import DECODERS, ENCODER_DECODERS, ENCODERS
from firth.transformers.families.family import Family

PAGE = Path(__file__).parents[2] / "docs" / "files.md"
TABLE = re.compile(r"^\| architecture \| `model_type` .*?\n(?=\n)", re.MULTILINE | re.DOTALL)


def row(family: Family, use: str) -> str:
    """The row of a family: its classes without a head of a task, and the endings of those with one."""
    classes = list(dict.fromkeys(family.classes.values()))
    stem = family.classes[()].removesuffix("Model") if family.heads else ""
    names = [f"`{name.removeprefix(stem) if number else name}`" for number, name in enumerate(sorted(classes, key=len))]
    heads = [f"`{ending}`" for ending in family.heads]
    return f"| {family.title} | `{family.model_type}` | {use} | {', '.join([*names, *heads])} |"


def table() -> str:
    """The table in Markdown."""
    uses = (
        (ENCODERS, "vectors, masks, fine-tuning: `bert`"),
        (DECODERS, "text, chat, vectors: `gpt`"),
        (ENCODER_DECODERS, "texts from texts: `seq2seq`"),
    )
    rows = [row(family, use) for families, use in uses for family in families.values()]
    head = ["| architecture | `model_type` | used for, and as the method | classes |", "| --- | --- | --- | --- |"]
    return "\n".join([*head, *rows]) + "\n"


def titles() -> list[str]:
    """The names of the architectures."""
    return [family.title for families in (ENCODERS, DECODERS, ENCODER_DECODERS) for family in families.values()]


if __name__ == "__main__":
    text = PAGE.read_text(encoding="utf-8")
    text = text.replace("TABLE\n", table(), 1) if "TABLE\n" in text else TABLE.sub(lambda _: table(), text)
    PAGE.write_text(text, encoding="utf-8")
