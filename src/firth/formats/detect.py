"""Detects the format of a vector file from its first bytes."""

from __future__ import annotations

from pathlib import Path

from firth.core.errors import FirthError
from firth.formats.fasttext import MAGIC
from firth.formats.files import BLOCK, is_number, looks_like_header, open_unzipped, parse_header

_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\v\f\r"


def detect(path: Path) -> str | None:
    """Return the name of the format, or None if it cannot be detected from the content."""
    with open_unzipped(path) as file:
        head = file.read(BLOCK)
    if not head:
        raise FirthError("damaged_file", "{path} is empty.", path=path)
    if head.startswith(MAGIC.to_bytes(4, "little")):
        raise FirthError(
            "wrong_input",
            "{path} is a {found}, not a table of vectors. Open it with firth.load({path!r}).",
            path=str(path),
            found="fastText model",
        )
    if head.startswith(b"\x93NUMPY"):
        return "npy"
    if head[8:9] == b"{" and int.from_bytes(head[:8], "little") <= path.stat().st_size - 8:
        return "safetensors"
    if looks_like_header(head):
        line, _, rest = head.partition(b"\n")
        return "word2vec" if is_text(rest, parse_header(path, line)[1]) else "word2vec-binary"
    fields = head.partition(b"\n")[0].rstrip(b" \r").split(b" ")
    return "glove" if len(fields) > 1 and is_number(fields[-1]) else None


def is_text(rows: bytes, dims: int) -> bool:
    """Whether the rows after a header are text: the first one ends in `dims` numbers.

    A malformed row also counts as text if it has a number and no bytes that occur only in binary floats.
    """
    line = rows.partition(b"\n")[0]
    fields = line.rstrip(b" \r").split(b" ")
    if len(fields) > dims and all(map(is_number, fields[-dims:])):
        return True
    return not rows or (
        any(map(is_number, fields[1:])) and not rows.translate(None, delete=_TEXT_BYTES) and is_utf8(line)
    )


def is_utf8(text: bytes) -> bool:
    """Whether bytes are valid UTF-8."""
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
