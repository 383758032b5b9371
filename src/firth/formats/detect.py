"""Detects the format of a vector file from its first bytes."""

from __future__ import annotations

import re
from pathlib import Path

from firth.core.errors import FirthError
from firth.formats.fasttext import MAGIC
from firth.formats.files import BLOCK, is_number, looks_like_header, open_unzipped, parse_header

_TEXT_BYTES = bytes(range(32, 256)) + b"\t\n\v\f\r"
#: The module and class of a gensim object in a pickle: separated by a newline up to protocol 3, strings from 4 on.
_GENSIM_CLASS = re.compile(rb"(gensim\.[\w.]+)(?:\n|\x94?\x8c.)(\w+)", re.DOTALL)
_EXPORTABLE = ("Word2Vec", "FastText", "Doc2Vec")


def detect(path: Path) -> str | None:
    """Return the name of the format, or None if it cannot be detected from the content."""
    with open_unzipped(path) as file:
        head = file.read(BLOCK)
    if not head:
        raise FirthError("damaged_file", "{path} is empty.", path=path)
    refuse_gensim_pickle(path, head)
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


def refuse_gensim_pickle(path: Path, head: bytes | None = None) -> None:
    """Refuse a file that gensim's `save` wrote, with instructions to export it. The pickle is never loaded.

    `head` has the first bytes of the file, if they were already read.
    """
    if head is None:
        with open_unzipped(path) as file:
            head = file.read(BLOCK)
    if head[:1] != b"\x80" or head[1:2] not in (b"\x02", b"\x03", b"\x04", b"\x05") or b"gensim." not in head:
        return
    match = _GENSIM_CLASS.search(head)
    module, name = (match[1].decode(), match[2].decode()) if match else ("gensim", "object")
    package = "gensim.models" if name in (*_EXPORTABLE, "KeyedVectors") else module
    load = f"{package}.{name}.load({str(path)!r})"
    if name.endswith("KeyedVectors"):
        export = f'{load}.save_word2vec_format("vectors.bin", binary=True)'
    elif name in _EXPORTABLE:
        export = f'model = {load}; model.wv.save_word2vec_format("vectors.bin", binary=True)'
    else:
        export = 'model.wv.save_word2vec_format("vectors.bin", binary=True)'
    raise FirthError(
        "unsafe_pickle",
        "{path} is a pickled gensim {found}. Firth does not load pickles, because they can run any code. Export the "
        "vectors with gensim, then read vectors.bin: {export}",
        path=path,
        found=name,
        export=export,
    )


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
