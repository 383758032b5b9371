"""Readers of document files: plain text, JSON lines, CSV, TSV and Parquet, optionally compressed."""

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
from firth.core.remote import MAGIC, AnyPath, RemotePath, as_path
from firth.core.storage import saying_where

COMPRESSIONS = (".gz", ".xz", ".bz2", ".zst")
TEXTS = (".txt", ".text", ".md")
RECORDS = (".jsonl", ".ndjson", ".csv", ".tsv", ".parquet")
#: Default column names, and the command-line flag that sets another name.
DEFAULT_COLUMNS = {name: f"--{name}" for name in ("label", "tags", "source", "target")}
DEFAULT_COLUMNS |= {"text": "--column"} | {name: f"--{name}-column" for name in ("question", "passage", "answer")}
ICONV = "iconv -f LATIN1 -t UTF-8 OLD > NEW."
HEAD = 1 << 16  # bytes inspected to distinguish text from binary data


class Record(NamedTuple):
    """One document of a file of records; the key is None if no key column was requested."""

    key: str | None
    text: str
    tags: tuple[Any, ...] = ()  # or the values of the requested fields


class Start(NamedTuple):
    """Where reading a file begins: behind `row` documents and `line` lines, at a byte, in Parquet at a row group."""

    row: int = 0
    line: int = 0
    offset: int = 0


BEGINNING = Start()


class Columns(NamedTuple):
    """The names of the columns to read; the text column is detected if it is None."""

    text: str | None = None
    key: str | None = None
    tags: tuple[str, ...] = ()
    fields: tuple[str, ...] = ()

    @property
    def names(self) -> list[str]:
        """All given names, without repetition."""
        return list(dict.fromkeys(name for name in (self.text, self.key, *self.tags, *self.fields) if name))


def find_files(pattern: str | os.PathLike[str] | RemotePath) -> Sequence[AnyPath]:
    """Return the files that a path, URL or glob names, in sorted order."""
    path = as_path(pattern).expanduser()
    if path.is_dir():
        raise FirthError(
            "wrong_input",
            "{path} is a folder. Name the files in it, for example '{pattern}' (in quotes).",
            path=path,
            pattern=path / "**" / "*.txt",
        )
    if path.exists():
        return [path]
    is_web = isinstance(path, RemotePath) and path.scheme.startswith("http")  # ? is no pattern in their addresses
    if is_web or not any(sign in str(path) for sign in MAGIC):
        hint = " To pass a text itself, use standard input (-), or a list in Python." if " " in str(path) else ""
        raise FirthError("not_found", "There is no file {path}.{hint}", path=path, hint=hint)
    if isinstance(path, RemotePath):
        matches: Sequence[AnyPath] = path.matches()
    else:
        matches = [Path(name) for name in sorted(glob.glob(str(path), recursive=True)) if Path(name).is_file()]  # noqa: PTH207
    if not matches:
        raise FirthError("not_found", "No file matches {pattern}.", pattern=path)
    return matches


def text_files_in(folder: AnyPath) -> Sequence[AnyPath]:
    """Return the text and record files in a folder and its subfolders in sorted order, without hidden ones."""
    files: list[AnyPath] = []
    below: Iterable[AnyPath] = folder.rglob("*") if isinstance(folder, RemotePath) else sorted(folder.rglob("*"))
    for path in below:
        form, compression = format_and_compression(path)
        is_text_file = path.name.lower().removesuffix(compression).endswith(TEXTS)
        is_hidden = any(part.startswith(".") for part in relative_parts(path, folder))
        if (form or is_text_file) and not is_hidden and path.is_file():
            files.append(path)
    return files


def relative_parts(path: AnyPath, folder: AnyPath) -> Sequence[str]:
    """Return the names of a path below a folder."""
    pure = path.pure if isinstance(path, RemotePath) else path
    return pure.relative_to(folder.pure if isinstance(folder, RemotePath) else folder).parts


def format_and_compression(path: AnyPath) -> tuple[str, str]:
    """Return the format ("" for text) and the compression ("" for none) by suffix: wiki.jsonl.gz -> .jsonl, .gz."""
    suffixes = [suffix.lower() for suffix in path.suffixes[-2:]]
    compression = suffixes.pop() if suffixes and suffixes[-1] in COMPRESSIONS else ""
    return (suffixes[-1] if suffixes and suffixes[-1] in RECORDS else ""), compression


@contextlib.contextmanager
def open_decompressed(path: AnyPath) -> Iterator[tuple[IO[bytes], Any]]:
    """Yield the raw file, whose position shows the progress, and the stream of its decompressed bytes.

    A file at a URL is read ahead, except Parquet, of which only the columns that are used are read.
    """
    form, compression = format_and_compression(path)
    ahead = isinstance(path, RemotePath) and (form != ".parquet" or bool(compression))
    try:
        with path.open("rb", buffering=-1 if ahead else 0) as raw, decompressed(raw, compression) as stream:
            yield raw, stream
    except (EOFError, zlib.error, lzma.LZMAError, gzip.BadGzipFile) as error:
        raise FirthError(
            "malformed_data",
            "{path} is damaged or not a {compression} file: {reason}.",
            path=path,
            compression=compression[1:],
            reason=str(error),
        ) from None
    except OSError as error:
        reason = error.strerror or f"damaged or not a {compression[1:]} file ({error})"
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=reason) from None


def decompressed(raw: Any, compression: str) -> Any:
    """Return a context manager that gives the decompressed stream of a file."""
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
    """Return a tab for tsv, and for csv a comma, or a semicolon if the first line has no commas.

    Spreadsheets separate by semicolons in locales where the comma is the decimal sign.
    """
    if form == ".tsv":
        return "\t"
    return ";" if ";" in first_line and "," not in first_line else ","


def is_number(text: str) -> bool:
    """Whether a text is a number."""
    try:
        float(text)
    except ValueError:
        return False
    return True


def check_head(head: bytes, name: str) -> bytes:
    """Return the start of a file without a UTF-8 byte order mark; refuse UTF-16 and binary data."""
    if head.startswith((b"\xff\xfe", b"\xfe\xff")):
        raise FirthError(
            "invalid_encoding",
            "{path} is encoded in {encoding}. Convert it first: {command}",
            path=name,
            encoding="UTF-16",
            command=f"iconv -f UTF-16 -t UTF-8 {shlex.quote(name)} > NEW.",
        )
    if b"\0" in head:
        raise FirthError(
            "malformed_data",
            "{path} is a binary file: it has {found}. Expected text, jsonl, csv, tsv or Parquet.",
            path=name,
            found="NUL bytes",
        )
    return head.removeprefix(b"\xef\xbb\xbf")


def is_utf8(path: AnyPath) -> bool:
    """Whether the whole file is valid UTF-8."""
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
    """Copy a stream to a named temporary file, which is deleted with the returned object."""
    with saying_where(Path(tempfile.gettempdir())):
        file = tempfile.NamedTemporaryFile(prefix="firth-")  # noqa: SIM115
        shutil.copyfileobj(stream, file, 1 << 20)
        file.flush()
    return file


def read_records(path: AnyPath, stream: Any, columns: Columns, start: Start = BEGINNING) -> Iterator[Record]:
    """Yield the records of a decompressed stream in the file's format, from `start` on."""
    form, compression = format_and_compression(path)
    if form == ".parquet":
        yield from parquet_records(path, stream, compression, columns, start)
    elif form in (".csv", ".tsv"):
        lines = text_lines(stream, path)
        yield from separated_records(lines, path, form, columns, start, seek_lines(stream, start))
    else:
        yield from json_records(text_lines(stream, path), path, columns, start, seek_lines(stream, start))


def text_lines(stream: Any, path: AnyPath) -> Iterator[str]:
    """Yield lines with their line ends. Invalid UTF-8 becomes lone surrogates, which `to_bytes` restores."""
    return lines_of(check_head(stream.read(HEAD), str(path)), stream)


def seek_lines(stream: Any, start: Start) -> Iterator[str]:
    """Yield the lines from `start` on; the stream is moved when the first one is requested."""
    stream.seek(start.offset)
    yield from lines_of(b"", stream)


def lines_of(rest: bytes, stream: Any) -> Iterator[str]:
    """Yield the lines of `rest` and of the stream after it."""
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
    """Encode as UTF-8, restoring the invalid bytes that `text_lines` escaped, so that they are counted later."""
    try:
        return text.encode("utf-8")
    except UnicodeEncodeError:
        pass
    try:
        return text.encode("utf-8", "surrogateescape")
    except UnicodeEncodeError:
        return text.encode("utf-8", "surrogatepass")


def json_records(
    lines: Iterable[str], path: AnyPath, columns: Columns, start: Start = BEGINNING, later: Iterator[str] = iter(())
) -> Iterator[Record]:
    """Yield the records of JSON lines; with a `start`, those of the lines `later`, which are there."""
    if start.offset and not columns.text:  # the first record of the file determines the text column
        number, line = next((number, line) for number, line in enumerate(lines, 1) if line.strip())
        columns = select_json_column(json_object(line, path, number), columns, f"{path}, line {number}")
    for number, line in enumerate(later if start.offset else lines, start.line + 1):
        if not line.strip():
            continue
        record = json_object(line, path, number)
        where = f"{path}, line {number}"
        if not columns.text:
            columns = select_json_column(record, columns, where)
        yield record_of(record, columns, where)


def select_json_column(record: dict[str, Any], columns: Columns, where: str) -> Columns:
    """Return `columns` with a text column, which is detected from a record if it is not given."""
    texts = [name for name, value in record.items() if isinstance(value, str)]
    return select_text_column(columns, list(record), texts, where)


def json_object(line: str, path: AnyPath, number: int) -> dict[str, Any]:
    """Return the object of a line."""
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
            "{path}, line {number}: a record must be a JSON object; got {got}.",
            path=path,
            number=number,
            got=line.strip()[:40],
        )
    return record


def record_of(fields: dict[str, Any], columns: Columns, where: str) -> Record:
    """Return the record for a dictionary of fields."""
    assert columns.text is not None
    key = key_of(fields, columns.key, where) if columns.key else None
    if columns.fields:
        for name in columns.fields:
            text_field(fields, name, where)  # checks that it exists and is not a list or object
        return Record(key, text_field(fields, columns.text, where), tuple(fields[name] for name in columns.fields))
    lists = [
        fields[name] if isinstance(fields.get(name), list) else text_field(fields, name, where) for name in columns.tags
    ]
    return Record(key, text_field(fields, columns.text, where), tags_of(lists, where))


def tags_of(values: Iterable[Any], where: str) -> tuple[str, ...]:
    """Return the distinct tags in values that are a tag or a list of tags, without null, NaN and empty ones."""
    tags = [tag for value in values for tag in (value if isinstance(value, (list, tuple)) else [value])]
    if any(isinstance(tag, (dict, list, tuple)) for tag in tags):
        raise FirthError(
            "malformed_data",
            "{where}: {field} must be text or a list of texts; got {got!r:.60}.",
            where=where,
            field="tags",
            got=tags,
        )
    return tuple(dict.fromkeys(tag_text(tag) for tag in tags if tag not in (None, "") and tag == tag))


def tag_text(tag: Any) -> str:
    """Return a tag as text; 5.0 becomes 5, because data frames store integers with missing values as floats."""
    return str(int(tag)) if isinstance(tag, float) and tag.is_integer() else str(tag)


def text_field(record: dict[str, Any], name: str, where: str) -> str:
    """Return a field of a record as text; null becomes an empty text."""
    if name not in record:
        raise unknown_column_error(name, record, where)
    value = record[name]
    if isinstance(value, (dict, list)):
        raise FirthError(
            "malformed_data",
            "{where}: column {name!r} must have text; got {got}.",
            where=where,
            name=name,
            got=type(value).__name__,
        )
    return "" if value is None else str(value)


def key_of(record: dict[str, Any], name: str, where: str) -> str:
    """Return the key of a record, which must not be empty and must be valid UTF-8."""
    key = text_field(record, name, where)
    if not key:
        raise empty_key_error(name, where)
    try:
        key.encode("utf-8")
    except UnicodeEncodeError:
        shown = to_bytes(key).decode("utf-8", "backslashreplace")
        raise FirthError(
            "invalid_encoding",
            "{where}: the key {got} is not valid UTF-8. Convert the file first: {iconv}",
            where=where,
            got=shown,
            iconv=ICONV,
        ) from None
    return key


def empty_key_error(name: str, where: str) -> FirthError:
    """Return the error for a record without a key."""
    rule = "{where}: the key column {name!r} is empty. Fill it in, or name no key column; rows are then numbered."
    return FirthError("malformed_data", rule, where=where, name=name)


def unknown_column_error(name: str, names: Iterable[str], where: str) -> FirthError:
    """Return the error for a column that does not exist."""
    rule = "{where}: no column {name!r}; the columns are {available}.{hint}"
    hint = column_hint(name) if name != "text" else ""  # the text column is detected unless it is named
    available = ", ".join(names) or "none"
    return FirthError("unknown_column", rule, where=where, name=name, available=available, hint=hint)


def column_hint(name: str) -> str:
    """Return how to name another column instead of a default one."""
    return f" Pass {name}=… ({DEFAULT_COLUMNS[name]}) to name the {name} column." if name in DEFAULT_COLUMNS else ""


def select_text_column(columns: Columns, names: Sequence[str], texts: Sequence[str], where: str) -> Columns:
    """Return `columns` with a text column: "text" if it exists, else the only text column not used otherwise."""
    if columns.text:
        return columns
    if "text" in names:
        return columns._replace(text="text")
    others = [name for name in texts if name not in columns.names]
    if len(others) == 1:
        return columns._replace(text=others[0])
    raise FirthError(
        "unknown_column",
        "{where}: the {missing} column is not known. Pass column=… (--column); the columns are {available}.",
        where=where,
        missing="text",
        available=", ".join(names) or "none",
    )


def separated_records(
    lines: Iterator[str],
    path: AnyPath,
    form: str,
    columns: Columns,
    start: Start = BEGINNING,
    later: Iterator[str] = iter(()),
) -> Iterator[Record]:
    """Yield the records of csv or tsv lines; with a `start`, those of the lines `later`, which are there."""
    csv.field_size_limit(sys.maxsize)  # a field may be a whole document
    first = next(lines, "")
    separator = separator_of(form, first)
    rows = csv.reader(itertools.chain([first], lines), delimiter=separator, strict=True)
    try:
        header = next(rows, [])
        columns = select_text_column(columns, header, header, f"{path}, line 1")
        for name in columns.names:
            if name not in header:
                raise unknown_column_error(name, header, f"{path}, line 1")
        if start.offset:
            rows = csv.reader(later, delimiter=separator, strict=True)
        for row in rows:
            if not row:
                continue
            if len(row) != len(header):
                raise FirthError(
                    "malformed_data",
                    "{path}, line {number}: expected {expected} fields as in the header; got {got}. Fix or remove the "
                    'line (put texts that contain a separator or line break in "quotes").',
                    path=path,
                    number=start.line + rows.line_num,
                    expected=len(header),
                    got=len(row),
                )
            yield record_of(dict(zip(header, row, strict=True)), columns, f"{path}, line {start.line + rows.line_num}")
    except csv.Error as error:
        raise csv_row_error(error, f"{path}, line {start.line + rows.line_num}") from None


def csv_row_error(error: csv.Error, where: str) -> FirthError:
    """Return the error for a line that Python's csv module cannot parse."""
    is_lone_return = "new-line character" in str(error)  # a carriage return outside of quotes
    reason = (
        "a carriage return (\\r) without a line feed; put the field in quotes or remove the character"
        if is_lone_return
        else str(error)
    )
    return FirthError("malformed_data", "{where}: {reason}.", where=where, reason=reason)


def parquet_records(
    path: AnyPath, stream: Any, compression: str, columns: Columns, start: Start = BEGINNING
) -> Iterator[Record]:
    """Yield the records of a Parquet file."""
    file = copy_to_temporary(stream) if compression else stream  # Parquet needs random access
    with reading_parquet(path):
        parquet = open_parquet(path, file)
        selected = text_columns(parquet.schema_arrow, columns, str(path))
        groups = range(start.offset, parquet.num_row_groups)
        batches = parquet.iter_batches(batch_size=4096, row_groups=groups, columns=selected.names)
        yield from table_records(batches, selected, str(path), start.row)


def open_parquet(path: AnyPath, file: Any) -> Any:
    """Open a Parquet file, which must have rows."""
    import pyarrow.parquet

    parquet = pyarrow.parquet.ParquetFile(file)
    if parquet.metadata.num_rows == 0:
        raise FirthError("empty_data", "{path} has no rows.", path=path)
    return parquet


@contextlib.contextmanager
def reading_parquet(path: AnyPath) -> Iterator[None]:
    """Turn the errors that a damaged Parquet file causes in Arrow and Python into a FirthError."""
    import pyarrow

    try:
        yield
    except FirthError:
        raise
    except (pyarrow.ArrowException, OSError, UnicodeDecodeError, MemoryError) as error:
        reason = str(error).partition("\n")[0]
        raise FirthError(
            "malformed_data", "{path} is not a Parquet file, or is damaged: {reason}.", path=path, reason=reason
        ) from None


def text_columns(schema: Any, columns: Columns, where: str) -> Columns:
    """Return `columns` with the text column selected; refuse columns that do not exist."""
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
            "{where}: column {name!r} must have text; got {got}.",
            where=where,
            name=selected.text,
            got=schema.field(selected.text).type,
        )
    return selected


def table_records(batches: Iterable[Any], columns: Columns, where: str, row: int = 0) -> Iterator[Record]:
    """Yield the rows of pyarrow batches as records; a missing text is empty. `row` rows are before them."""
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
