"""Files of documents: plain text, JSON lines, CSV, TSV and Parquet, each also compressed."""

from __future__ import annotations

import bz2
import contextlib
import csv
import glob
import gzip
import json
import lzma
import os
import shutil
import sys
import tempfile
import zlib
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import IO, Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.storage import saying_where

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
HEAD = 1 << 16  # bytes looked at to tell text from something else


class Record(NamedTuple):
    """One document of a file of records; key is None where no key column was asked for."""

    key: str | None
    text: str


class Several(str):
    """The name of a key column whose values may be lists: their parts are joined by NUL, and null is none at all."""

    def joined(self, value: Any) -> str:
        parts = value if isinstance(value, (list, tuple)) else [] if value is None else [value]
        return "\0".join(str(part) for part in parts)


def find_files(pattern: str | os.PathLike[str]) -> list[Path]:
    """The files a path or glob names, in order."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        raise FirthError(f"{path} is a folder; name the files in it, such as {path / '*.txt'}.")
    if path.exists():
        return [path]
    if not any(sign in str(path) for sign in "*?["):
        raise FirthError(f"There is no file {path}.")
    found = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]  # noqa: PTH207
    if not found:
        raise FirthError(f"No file matches {path}.")
    return found


def kind_of(path: Path) -> tuple[str, str]:
    """Format ("" = text) and compression ("" = none) by suffix: wiki.jsonl.gz -> .jsonl, .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes and suffixes[-1] in RECORDS else ""), compression


@contextlib.contextmanager
def opened(path: Path) -> Iterator[tuple[IO[bytes], Any]]:
    """The raw file (whose position tells how far reading is) and its decompressed bytes; damage is told in one line."""
    _, compression = kind_of(path)
    try:
        with path.open("rb", buffering=0) as raw, decompressed(raw, compression) as stream:
            yield raw, stream
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FirthError(f"{path} is damaged or not {compression[1:]}: {error}.") from None
    except OSError as error:
        reason = error.strerror or f"damaged or not {compression[1:]} ({error})"
        raise FirthError(f"Cannot read {path}: {reason}.") from None


def decompressed(raw: Any, compression: str) -> Any:
    if compression == ".gz":
        return gzip.GzipFile(fileobj=raw)
    if compression == ".xz":
        return lzma.LZMAFile(raw)
    if compression == ".bz2":
        return bz2.BZ2File(raw)
    if compression == ".zst":
        import pyarrow

        return pyarrow.CompressedInputStream(pyarrow.PythonFile(raw, mode="r"), "zstd")
    return contextlib.nullcontext(raw)


def check_head(head: bytes, name: str) -> bytes:
    """The head without a UTF-8 byte order mark; refuses what is no UTF-8 text at all."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FirthError(f"{name} is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 {name}.")
    if b"\0" in head:
        raise FirthError(f"{name} looks binary: it has NUL bytes; give text, jsonl, csv, tsv or Parquet.")
    return head.removeprefix(b"\xef\xbb\xbf")


def copy_to_temporary(stream: Any) -> Any:
    """A named temporary file with all that `stream` holds; it disappears with the object."""
    with saying_where(Path(tempfile.gettempdir())):
        file = tempfile.NamedTemporaryFile(prefix="firth-")  # noqa: SIM115
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
    return file


def read_records(path: Path, stream: Any, column: str | None, key: str | None) -> Iterator[Record]:
    """The records of a decompressed stream, by the file's format."""
    form, compression = kind_of(path)
    if form == ".parquet":
        yield from parquet_records(path, stream, compression, column, key)
    elif form in (".csv", ".tsv"):
        yield from separated_records(text_lines(stream, path), path, "," if form == ".csv" else "\t", column, key)
    else:
        yield from json_records(text_lines(stream, path), path, column, key)


def text_lines(stream: Any, path: Path) -> Iterator[str]:
    """Lines with their ends. Bytes that are not UTF-8 become lone surrogates, which `to_bytes` turns back."""
    rest = check_head(stream.read(HEAD), str(path))
    while True:
        lines = rest.split(b"\n")
        rest = lines.pop()
        for line in lines:
            yield line.decode("utf-8", "surrogateescape") + "\n"
        more = stream.read(1 << 20)
        if not more:
            break
        rest += more
    if rest:
        yield rest.decode("utf-8", "surrogateescape")


def to_bytes(text: str) -> bytes:
    """UTF-8; bytes that were not UTF-8 when read are given back as they were, to be counted with all others."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def json_records(lines: Iterable[str], path: Path, column: str | None, key: str | None) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FirthError(f"{path}, line {number}: not valid JSON ({error}).") from None
        if not isinstance(record, dict):
            raise FirthError(f"{path}, line {number}: a record must be an object; got {line.strip()[:40]}.")
        where = f"{path}, line {number}"
        texts = [name for name, value in record.items() if isinstance(value, str) and name != key]
        column = column or choose_column(list(record), texts, where)
        yield Record(field(record, key, where) if key else None, field(record, column, where))


def field(record: dict[str, Any], name: str, where: str) -> str:
    """The text of a record's field; null is an empty text."""
    if name not in record:
        raise FirthError(f"{where}: no column {name!r}; there are {', '.join(record)}.")
    value = record[name]
    if isinstance(name, Several):
        return name.joined(value)
    if isinstance(value, (dict, list)):
        raise FirthError(f"{where}: column {name!r} holds no text but a {type(value).__name__}.")
    return "" if value is None else str(value)


def choose_column(names: Sequence[str], texts: Sequence[str], where: str) -> str:
    """ "text" if there is one, else the only column of strings."""
    if "text" in names:
        return "text"
    if len(texts) == 1:
        return texts[0]
    raise FirthError(f"{where}: which column is the text? Pass column=…; there are {', '.join(names) or 'none'}.")


def separated_records(
    lines: Iterable[str], path: Path, delimiter: str, column: str | None, key: str | None
) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)  # a field may be a whole book
    rows = csv.reader(lines, delimiter=delimiter, strict=True)
    try:
        header = next(rows, [])
        column = column or choose_column(header, [name for name in header if name != key], f"{path}, line 1")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise FirthError(f"{path}, line {rows.line_num}: {len(row)} fields where the header has {len(header)}.")
            record = dict(zip(header, row, strict=True))
            where = f"{path}, line {rows.line_num}"
            yield Record(field(record, key, where) if key else None, field(record, column, where))
    except csv.Error as error:
        raise FirthError(f"{path}, line {rows.line_num}: {error}.") from None


def parquet_records(path: Path, stream: Any, compression: str, column: str | None, key: str | None) -> Iterator[Record]:
    import pyarrow
    import pyarrow.parquet

    file = copy_to_temporary(stream) if compression else stream  # Parquet is read from its end
    try:
        parquet = pyarrow.parquet.ParquetFile(file)
    except pyarrow.ArrowInvalid as error:
        raise FirthError(f"{path} is not Parquet: {error}.") from None
    if parquet.metadata.num_rows == 0:
        raise FirthError(f"{path} has no rows.")
    names = text_columns(parquet.schema_arrow, column, key, str(path))
    try:
        for batch in parquet.iter_batches(batch_size=4096, columns=list(dict.fromkeys(names))):
            yield from table_records(batch, names)
    except (pyarrow.ArrowInvalid, OSError) as error:
        raise FirthError(f"{path} is damaged: {error}.") from None


def text_columns(schema: Any, column: str | None, key: str | None, where: str) -> list[str]:
    """Names of the text column and, where asked for, of the key column; both must exist."""
    import pyarrow.types as kinds

    def is_text(kind: Any) -> bool:
        inner = kind.value_type if kinds.is_dictionary(kind) else kind
        return bool(kinds.is_string(inner) or kinds.is_large_string(inner) or "string_view" in str(inner))

    texts = [item.name for item in schema if is_text(item.type)]
    others = [name for name in texts if name != key]
    names = [column or choose_column(schema.names, others, where), *([key] if key else [])]
    for name in names:
        if name not in schema.names:
            raise FirthError(f"{where}: no column {name!r}; there are {', '.join(schema.names)}.")
    if names[0] not in texts:
        raise FirthError(f"{where}: column {names[0]!r} holds no text but {schema.field(names[0]).type}.")
    return names


def table_records(batch: Any, names: Sequence[str]) -> Iterator[Record]:
    """Rows of a pyarrow batch; a missing text is an empty one."""
    texts = batch.column(names[0]).to_pylist()
    keys = batch.column(names[1]).to_pylist() if len(names) > 1 else [None] * len(texts)
    as_key = names[-1].joined if isinstance(names[-1], Several) else str
    for key, text in zip(keys, texts, strict=True):
        yield Record(None if len(names) == 1 else as_key(key), text or "")
