"""Files of documents: plain text, JSON lines, CSV, TSV and Parquet, each also compressed."""

from __future__ import annotations

import bz2
import codecs
import contextlib
import csv
import glob
import gzip
import itertools
import json
import lzma
import os
import shlex
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
TEXTS = (".txt", ".text", ".md")
RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
#: Columns that are looked for where no other is named, and what names another in the shell.
DEFAULT_COLUMNS = {name: f"--{name}" for name in ("label", "tags", "source", "target")}
DEFAULT_COLUMNS |= {"text": "--column"} | {name: f"--{name}-column" for name in ("question", "passage", "answer")}
ICONV = "iconv -f LATIN1 -t UTF-8 OLD > NEW."
HEAD = 1 << 16  # bytes looked at to tell text from something else


class Record(NamedTuple):
    """One document of a file of records; key is None where no key column was asked for."""

    key: str | None
    text: str
    tags: tuple[Any, ...] = ()  # or the values of the fields that were asked for


class Columns(NamedTuple):
    """Which columns of a record are what; without a name the text is looked for."""

    text: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All that are named, once each."""
        return list(dict.fromkeys(name for name in (self.text, self.key, *self.tags, *self.fields) if name))


def find_files(pattern: str | os.PathLike[str]) -> list[Path]:
    """The files a path or glob names, in order."""
    path = Path(pattern).expanduser()
    if path.is_dir():
        raise FirthError(
            "wrong_input",
            "{path} is a folder; name files in it, such as '{path_2}' (in quotes).",
            path=path,
            path_2=path / "**" / "*.txt",
        )
    if path.exists():
        return [path]
    if not any(sign in str(path) for sign in "*?["):
        text = " A text itself goes to standard input (-), or in Python into a list." if " " in str(path) else ""
        raise FirthError("not_found", "There is no file {path}.{text}", path=path, text=text)
    matches = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]  # noqa: PTH207
    if not matches:
        raise FirthError("not_found", "No file matches {path}.", path=path)
    return matches


def text_files_in(folder: Path) -> list[Path]:
    """The files of text or records in a folder and the folders in it, in order; hidden ones left out."""
    files = []
    for path in sorted(folder.rglob("*")):
        form, compression = format_and_compression(path)
        is_text_file = path.name.lower().removesuffix(compression).endswith(TEXTS)
        is_hidden = any(part.startswith(".") for part in path.relative_to(folder).parts)
        if (form or is_text_file) and not is_hidden and path.is_file():
            files.append(path)
    return files


def format_and_compression(path: Path) -> tuple[str, str]:
    """Format ("" = text) and compression ("" = none) by suffix: wiki.jsonl.gz -> .jsonl, .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes and suffixes[-1] in RECORDS else ""), compression


@contextlib.contextmanager
def open_decompressed(path: Path) -> Iterator[tuple[IO[bytes], Any]]:
    """The raw file (whose position tells how far reading is) and its decompressed bytes; damage is told in one line."""
    _, compression = format_and_compression(path)
    try:
        with path.open("rb", buffering=0) as raw, decompressed(raw, compression) as stream:
            yield raw, stream
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FirthError(
            "malformed_data",
            "{path} is damaged or not {compression}: {reason}.",
            path=path,
            compression=compression[1:],
            reason=str(error),
        ) from None
    except OSError as error:
        reason = error.strerror or f"damaged or not {compression[1:]} ({error})"
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=reason) from None


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


def separator_of(form: str, first_line: str) -> str:
    """A tab in tsv; in csv a comma, or the semicolon that spreadsheets write where the comma is the decimal sign."""
    if form == ".tsv":
        return "\t"
    return ";" if ";" in first_line and "," not in first_line else ","


def is_number(text: str) -> bool:
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_head(head: bytes, name: str) -> bytes:
    """The head without a UTF-8 byte order mark; refuses what is no UTF-8 text at all."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FirthError(
            "invalid_encoding",
            "{name} is UTF-16; convert it first: iconv -f UTF-16 -t UTF-8 {quote} > NEW.",
            name=name,
            quote=shlex.quote(name),
        )
    if b"\0" in head:
        raise FirthError(
            "malformed_data", "{name} looks binary: it has NUL bytes; give text, jsonl, csv, tsv or Parquet.", name=name
        )
    return head.removeprefix(b"\xef\xbb\xbf")


def is_utf8(path: Path) -> bool:
    """Whether a file is text in UTF-8 to its end."""
    decoder = codecs.getincrementaldecoder("utf-8")()
    try:
        with open_decompressed(path) as (_, stream):
            while piece := stream.read(1 << 20):
                decoder.decode(piece)
            decoder.decode(b"", final=True)
    except UnicodeDecodeError:
        return False
    return True


def copy_to_temporary(stream: Any) -> Any:
    """A named temporary file with all that `stream` holds; it disappears with the object."""
    with saying_where(Path(tempfile.gettempdir())):
        file = tempfile.NamedTemporaryFile(prefix="firth-")  # noqa: SIM115
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
    return file


def read_records(path: Path, stream: Any, columns: Columns) -> Iterator[Record]:
    """The records of a decompressed stream, by the file's format."""
    form, compression = format_and_compression(path)
    if form == ".parquet":
        yield from parquet_records(path, stream, compression, columns)
    elif form in (".csv", ".tsv"):
        yield from separated_records(text_lines(stream, path), path, form, columns)
    else:
        yield from json_records(text_lines(stream, path), path, columns)


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


def json_records(lines: Iterable[str], path: Path, columns: Columns) -> Iterator[Record]:
    for number, line in enumerate(lines, 1):
        if not line.strip():
            continue
        try:
            record = json.loads(line)
        except (ValueError, RecursionError) as error:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: not valid JSON ({reason}).",
                path=path,
                number=number,
                reason=str(error),
            ) from None
        if not isinstance(record, dict):
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a record must be an object; got {got}.",
                path=path,
                number=number,
                got=line.strip()[:40],
            )
        where = f"{path}, line {number}"
        if not columns.text:
            texts = [name for name, value in record.items() if isinstance(value, str)]
            columns = select_text_column(columns, list(record), texts, where)
        yield record_of(record, columns, where)


def record_of(fields: dict[str, Any], columns: Columns, where: str) -> Record:
    assert columns.text is not None
    key = key_of(fields, columns.key, where) if columns.key else None
    if columns.fields:
        for name in columns.fields:
            text_field(fields, name, where)  # is there, and no list or object
        return Record(key, text_field(fields, columns.text, where), tuple(fields[name] for name in columns.fields))
    lists = [
        fields[name] if isinstance(fields.get(name), list) else text_field(fields, name, where) for name in columns.tags
    ]
    return Record(key, text_field(fields, columns.text, where), tags_of(lists, where))


def tags_of(values: Iterable[Any], where: str) -> tuple[str, ...]:
    """Each value is a tag or a list of tags; null, NaN and empty texts are none; one that stands twice counts once."""
    tags = [tag for value in values for tag in (value if isinstance(value, (list, tuple)) else [value])]
    if any(isinstance(tag, (dict, list, tuple)) for tag in tags):
        raise FirthError(
            "malformed_data",
            "{where}: a tag is a text, or there is a list of them; got {got!r:.60}.",
            where=where,
            got=tags,
        )
    return tuple(dict.fromkeys(tag_text(tag) for tag in tags if tag not in (None, "") and tag == tag))


def tag_text(tag: Any) -> str:
    """5.0 is 5: data frames turn whole numbers into floats where one is missing."""
    return str(int(tag)) if isinstance(tag, float) and tag.is_integer() else str(tag)


def text_field(record: dict[str, Any], name: str, where: str) -> str:
    """The text of a record's field; null is an empty text."""
    if name not in record:
        raise unknown_column_error(name, record, where)
    value = record[name]
    if isinstance(value, (dict, list)):
        raise FirthError(
            "malformed_data",
            "{where}: column {name!r} holds no text but a {value_type}.",
            where=where,
            name=name,
            value_type=type(value).__name__,
        )
    return "" if value is None else str(value)


def key_of(record: dict[str, Any], name: str, where: str) -> str:
    """A record's key, by which others find its row again: it must be there, and readable."""
    key = text_field(record, name, where)
    if not key:
        raise empty_key_error(name, where)
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        shown = to_bytes(key).decode("utf-8", "backslashreplace")
        raise FirthError(
            "invalid_encoding",
            "{where}: the key {got} is not valid UTF-8. Convert the file: {iconv}",
            where=where,
            got=shown,
            iconv=ICONV,
        ) from None
    return key


def empty_key_error(name: str, where: str) -> FirthError:
    rule = "{where}: the key column {name!r} is empty; fill it, or leave the key out: rows are then numbered."
    return FirthError("malformed_data", rule, where=where, name=name)


def unknown_column_error(name: str, names: Iterable[str], where: str) -> FirthError:
    rule = "{where}: no column {name!r}; there are {available}.{hint}"
    hint = column_hint(name) if name != "text" else ""  # which is guessed unless it was named
    available = ", ".join(names) or "none"
    return FirthError("unknown_column", rule, where=where, name=name, available=available, hint=hint)


def column_hint(name: str) -> str:
    """How to name another column in the place of one that is looked for by default."""
    return f" Which one is the {name}? Pass {name}=… ({DEFAULT_COLUMNS[name]})." if name in DEFAULT_COLUMNS else ""


def select_text_column(columns: Columns, names: Sequence[str], texts: Sequence[str], where: str) -> Columns:
    """The same with a column for the text: "text" if there is one, else the only one of strings not named yet."""
    if columns.text:
        return columns
    if "text" in names:
        return columns._replace(text="text")
    others = [name for name in texts if name not in columns.names]
    if len(others) == 1:
        return columns._replace(text=others[0])
    raise FirthError(
        "unknown_column",
        "{where}: which column is the text? Pass column=… (--column); there are {available}.",
        where=where,
        available=", ".join(names) or "none",
    )


def separated_records(lines: Iterator[str], path: Path, form: str, columns: Columns) -> Iterator[Record]:
    csv.field_size_limit(sys.maxsize)  # a field may be a whole book
    first = next(lines, "")
    rows = csv.reader(itertools.chain([first], lines), delimiter=separator_of(form, first), strict=True)
    try:
        header = next(rows, [])
        columns = select_text_column(columns, header, header, f"{path}, line 1")
        for name in columns.names:
            if name not in header:
                raise unknown_column_error(name, header, f"{path}, line 1")
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                fields = f"{len(row)} field{'s' * (len(row) != 1)}"
                raise FirthError(
                    "malformed_data",
                    "{path}, line {line_num}: {fields} where the header has {n_header}; mend the line or take it "
                    'out (a text with a separator or a line break in it stands in "quotes").',
                    path=path,
                    line_num=rows.line_num,
                    fields=fields,
                    n_header=len(header),
                )
            yield record_of(dict(zip(header, row, strict=True)), columns, f"{path}, line {rows.line_num}")
    except csv.Error as error:
        raise csv_row_error(error, f"{path}, line {rows.line_num}") from None


def csv_row_error(error: csv.Error, where: str) -> FirthError:
    """What to say of a line that Python's csv does not read."""
    is_lone_return = "new-line character" in str(
        error
    )  # outside of quotes, where it neither ends a line nor belongs to a field
    reason = (
        "a carriage return (\\r) without a line feed; put the field in quotes or take it out"
        if is_lone_return
        else str(error)
    )
    return FirthError("malformed_data", "{where}: {reason}.", where=where, reason=reason)


def parquet_records(path: Path, stream: Any, compression: str, columns: Columns) -> Iterator[Record]:
    import pyarrow
    import pyarrow.parquet

    file = copy_to_temporary(stream) if compression else stream  # Parquet is read from its end
    with reading_parquet(path):
        parquet = pyarrow.parquet.ParquetFile(file)
        if parquet.metadata.num_rows == 0:
            raise FirthError("empty_data", "{path} has no rows.", path=path)
        selected = text_columns(parquet.schema_arrow, columns, str(path))
        yield from table_records(parquet.iter_batches(batch_size=4096, columns=selected.names), selected, str(path))


@contextlib.contextmanager
def reading_parquet(path: Path) -> Iterator[None]:
    """A damaged file may make Arrow raise any of its errors, and Python those of bytes that are no text."""
    import pyarrow

    try:
        yield
    except FirthError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise FirthError(
            "malformed_data", "{path} is not Parquet, or damaged: {reason}.", path=path, reason=reason
        ) from None


def text_columns(schema: Any, columns: Columns, where: str) -> Columns:
    """The same with the text's column chosen; all that are named must exist."""
    import pyarrow.types as kinds

    def is_text(kind: Any) -> bool:
        inner = kind.value_type if kinds.is_dictionary(kind) else kind
        return bool(kinds.is_string(inner) or kinds.is_large_string(inner) or "string_view" in str(inner))

    texts = [item.name for item in schema if is_text(item.type)]
    selected = select_text_column(columns, schema.names, texts, where)
    for name in selected.names:
        if name not in schema.names:
            raise unknown_column_error(name, schema.names, where)
    if selected.text not in texts:
        raise FirthError(
            "malformed_data",
            "{where}: column {text!r} holds no text but {type}.",
            where=where,
            text=selected.text,
            type=schema.field(selected.text).type,
        )
    return selected


def table_records(batches: Iterable[Any], columns: Columns, where: str) -> Iterator[Record]:
    """Rows of pyarrow batches; a missing text is an empty one."""
    row = 0
    for batch in batches:
        texts = batch.column(columns.text).to_pylist()
        keys = batch.column(columns.key).to_pylist() if columns.key else [None] * len(texts)
        tags = [batch.column(name).to_pylist() for name in columns.tags or columns.fields]
        rows: Iterable[Sequence[Any]] = zip(*tags, strict=True) if tags else [()] * len(texts)
        for key, text, values in zip(keys, texts, rows, strict=True):
            row += 1
            if columns.key and key in (None, ""):
                raise empty_key_error(columns.key, f"{where}, row {row:,}")
            name = str(key) if columns.key else None
            yield Record(name, text or "", tuple(values) if columns.fields else tags_of(values, where))
