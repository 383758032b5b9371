"""What a file is, seen from its first bytes."""

from __future__ import annotations

from pathlib import Path

from firth.core.errors import FirthError
from firth.formats.fasttext import MAGIC
from firth.formats.files import BLOCK, is_number, looks_like_header, open_unzipped, parse_header

_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\v\f\r"


def detect(path: Path) -> str | None:
    """The name of the format, or None when the content does not say."""
    with open_unzipped(path) as file:
        head = file.read(BLOCK)
    if not head:
        raise FirthError("damaged_file", "{path} is empty.", path=path)
    if head.startswith(MAGIC.to_bytes(4, "little")):
        raise FirthError(
            "wrong_input",
            "{path} is a fastText model, not a table of vectors; firth.load({path_2!r}) opens it.",
            path=path,
            path_2=str(path),
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
    """Whether the rows after a first line are text: the first ends in as many numbers as it should.

    A broken row is still called text where it has some number and no bytes that only a float has.
    """
    line = rows.partition(b"\n")[0]
    fields = line.rstrip(b" \r").split(b" ")
    if len(fields) > dims and all(map(is_number, fields[-dims:])):
        return True
    return not rows or (
        any(map(is_number, fields[1:])) and not rows.translate(None, delete=_TEXT_BYTES) and is_utf8(line)
    )


def is_utf8(text: bytes) -> bool:
    try:
        text.decode()
    except UnicodeDecodeError:
        return False
    return True
