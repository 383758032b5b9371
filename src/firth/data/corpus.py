"""`Corpus`: documents from files, standard input, iterables and data frames, streamed and re-iterable."""

from __future__ import annotations

import hashlib
import json
import os
import shlex
import struct
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Sequence, Sized
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.arguments import check_choice
from firth.core.data import Data
from firth.core.errors import FirthError
from firth.core.remote import AnyPath, RemotePath, as_path, is_url
from firth.core.storage import fingerprint, saying_where
from firth.data import readers
from firth.data.blocks import Block, BlockBuilder, Tags
from firth.data.shared_options import TEXT_OPTIONS, UNITS

SAMPLES, SAMPLE = 64, 4096  # number and size in bytes of the samples that a file's stamp reads


class Note(NamedTuple):
    """A message for `Report.note`, with its code."""

    text: str
    code: str


class Document(NamedTuple):
    """A key and a text."""

    key: str
    text: str


class Corpus(Data):
    """Documents that are streamed and can be iterated over repeatedly.

    `sources` are paths, globs, "-" (standard input), iterables of str or Document, and pandas, polars or pyarrow
    columns and tables. A document may also be a tuple (key, text, tags), where tags is a list.

    `unit` defines a document of a text file: a "line", a "block" (a paragraph between blank lines) or the whole
    "file". In records (jsonl, csv, tsv, Parquet, data frames) each record is a document: `column` is the column of
    the text, `key` the column of the key, and `tags` the columns of the tags, each with one tag or a list of tags.
    `walk` also yields the values of the columns `fields`.

    Documents without a key are numbered from 1 ("wiki.txt:3" if there are several files); with unit="file" the key is
    the path. Lists of tokens can be passed to the methods for words and documents directly, without a Corpus.

    Threads can share a corpus unless it reads an iterator or standard input.
    """

    noun = "corpus"
    file_options = TEXT_OPTIONS
    has_texts = True

    def __init__(
        self,
        *sources: Any,
        unit: str = "line",
        column: str | None = None,
        key: str | None = None,
        tags: str | Sequence[str] = (),
        fields: Sequence[str] = (),
    ) -> None:
        check_choice("Corpus.unit", unit, UNITS)
        if not sources:
            raise FirthError(
                "missing_option",
                'Corpus needs at least one {option}: a path, a glob, "-" or an iterable of texts.',
                option="source",
            )
        self.unit, self.column, self.key = unit, column, key
        self.tags = (tags,) if isinstance(tags, str) else tuple(tags)
        self.fields = tuple(fields)
        if self.tags and self.fields:
            raise FirthError("conflicting_options", "Corpus takes {options}, not both.", options="tags or fields")
        self.sources: list[Source] = [part for source in sources for part in self._sources_of(source)]
        self.replaced = 0  # invalid UTF-8 sequences replaced so far

    def _sources_of(self, source: Any) -> Sequence[Source]:
        if isinstance(source, (str, os.PathLike, RemotePath)):
            if source == "-":
                return [StreamSource(lambda: sys.stdin.buffer, "standard input")]
            folder = as_path(source).expanduser()
            files = readers.text_files_in(folder) if folder.is_dir() and not (folder / "config.json").exists() else []
            return [open_source(path) for path in files or readers.find_files(source)]
        if isinstance(source, Corpus):
            return source.sources
        if isinstance(source, Source):
            return [source]
        if is_table_like(source):
            return [TableSource(source, self.columns)]
        if isinstance(source, Iterable) and not isinstance(source, (bytes, bytearray, dict)):
            return [IterableSource(source)]
        raise FirthError(
            "invalid_type",
            "A Corpus source must be a path, an iterable of str or a data frame; got {got}.",
            got=type(source).__name__,
        )

    @property
    def columns(self) -> readers.Columns:
        """The names of the columns that are read from records."""
        return readers.Columns(self.column, self.key, self.tags, self.fields)

    def __iter__(self) -> Iterator[Document]:
        for document, _, _ in self.walk():
            yield document

    def __repr__(self) -> str:
        names = [source.name or source.title for source in self.sources]
        shown = ", ".join(names[:3]) + (", …" if len(names) > 3 else "")
        return f"Corpus({shown}; unit {self.unit})"

    def _rows_shown(self) -> tuple[list[str], Iterable[Document]]:
        return ["key", "text"], Corpus(self, **self._settings()) if self.rereadable else ()

    @property
    def rereadable(self) -> bool:
        """Whether all sources are files, lists or tables, which can be read at any time."""
        return all(source.rereadable for source in self.sources)

    def _settings(self) -> dict[str, Any]:
        """The arguments of a corpus that reads its sources in the same way."""
        return {name: getattr(self, name) for name in ("unit", "column", "key", "tags", "fields")}

    def walk(self) -> Iterator[tuple[Document, Tags, int]]:
        """Yield (document, tags or field values, bytes of the sources read so far)."""
        replaced = 0
        parts: list[bytes] = []
        for block in self.blocks(1 << 20, keys=True):
            start = 0
            for end, key, tags in zip(block.ends.tolist(), block.keys, block.tags, strict=True):
                data = b"".join([*parts, block.data[start:end]])
                text = self._text(data)
                if "\ufffd" in text:  # the source itself may contain U+FFFD, which is not counted
                    replaced += text.count("\ufffd") - data.count("\ufffd".encode())
                    self.replaced = max(self.replaced, replaced)
                yield Document(key, text), tags, block.done
                parts.clear()
                start = end
            parts.append(bytes(block.data[start:]))

    def _text(self, data: bytes) -> str:
        text = data.removesuffix(b"\n").decode("utf-8", "replace")
        if self.unit == "line":
            return text.removesuffix("\r")
        return text.strip() if self.unit == "block" else text

    def blocks(self, size: int = 1 << 26, split: str = "whitespace", keys: bool = False) -> Iterator[Block]:
        """Yield the corpus in blocks of at most `size` bytes, cut between tokens of the tokenizer `split`.

        A block is larger than `size` only if a single token is longer.
        """
        builder = BlockBuilder(size, split, self.unit, keys)
        for source in self.sources:
            builder.source = "" if len(self.sources) == 1 else source.name
            builder.number = builder.number if source.name == "" else 0
            yield from source.fill(builder, self)
            builder.before += source.size
        yield from builder.rest()

    @property
    def size(self) -> int:
        """Total size of the sources in bytes; 0 if it is unknown."""
        sizes = [source.size for source in self.sources]
        return sum(sizes) if all(sizes) else 0

    def fingerprint(self) -> str | None:
        """Return a hash of the content, for which files are read completely; None if a source is not a file."""
        return self._combined_hash([source.fingerprint() for source in self.sources])

    def stamp(self) -> str | None:
        """Return a quick hash of sizes, modification times and samples, for caches; None if a source is not a file."""
        return self._combined_hash([source.stamp() for source in self.sources])

    def _combined_hash(self, source_hashes: list[str | None]) -> str | None:
        if None in source_hashes:
            return None
        identity = (
            self.unit,
            self.column,
            self.key,
            source_hashes,
            *self.tags,
            *([self.fields] if self.fields else []),
        )
        return hashlib.sha256(repr(identity).encode()).hexdigest()


class Source:
    """A source of documents. `size` is in bytes, 0 if unknown."""

    name = ""
    title = "a stream"  # how a source without a name is shown
    size = 0
    rereadable = True  # whether it can be read now and once more, without a copy

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        """Pass the documents to `builder`, and yield the blocks that it completes."""
        raise NotImplementedError

    def fingerprint(self) -> str | None:
        """Return a hash of the content; None if it cannot be read twice."""
        return None

    def stamp(self) -> str | None:
        """Return a cheap identification of the content; None if there is none."""
        return None


class FileSource(Source):
    """A file of text or records."""

    start = readers.BEGINNING
    limit: int | None = None  # records that are read, after the start

    def __init__(self, path: AnyPath) -> None:
        self.path, self.name, self.size = path, str(path), path.stat().st_size

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        with readers.open_decompressed(self.path) as (raw, stream):
            if not readers.format_and_compression(self.path)[0]:
                refuse_columns(corpus, self.name)
                yield from builder.text(raw, stream, self.name, self.start.offset)
                return
            for record in islice(readers.read_records(self.path, stream, corpus.columns, self.start), self.limit):
                yield from builder.records([record])
                builder.done = builder.before + raw.tell()

    def fingerprint(self) -> str:
        """Return a hash of the whole content.

        A run is resumed only if it matches: a copied or touched file is the same data, an edited one is not.
        """
        return f"{readers.format_and_compression(self.path)} {fingerprint(self.path)['sha256']}"

    def stamp(self) -> str:
        """Return the size, the modification time and a hash of samples of the content; of an object, its ETag."""
        form = readers.format_and_compression(self.path)
        if isinstance(self.path, RemotePath):
            return f"{form} {self.path.version()}"
        status = self.path.stat()
        return f"{form} {status.st_size} {status.st_mtime_ns} {sample_hash(self.path)}"


class StreamSource(Source):
    """A text stream that can be read only once. It is copied to a temporary file, so it can be read again."""

    def __init__(self, open: Callable[[], Any], title: str) -> None:
        self.open, self.title = open, title
        self.copy: Any = None
        self.rereadable = False

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        refuse_columns(corpus, self.title, corpus.column, corpus.key)  # otherwise JSON lines would be read as text
        if self.copy is None:
            self.copy = readers.copy_to_temporary(self.open())
        with Path(self.copy.name).open("rb", buffering=0) as raw:
            yield from builder.text(raw, raw, self.title)


def refuse_columns(corpus: Corpus, title: str, *more: str | None) -> None:
    """Refuse column names for a plain text source."""
    for name in (*corpus.tags, *corpus.fields, *filter(None, more)):
        raise FirthError(
            "unknown_column",
            "{source} is plain text and has no column {name!r}. Columns need jsonl, csv, tsv or Parquet.",
            source=title,
            name=name,
        )


def open_source(path: AnyPath) -> Source:
    """Return the source for a path: a file, or a named pipe."""
    if path.name.lower().removesuffix(readers.format_and_compression(path)[1]).endswith(".json"):
        raise FirthError(
            "malformed_data",
            "{path} is a JSON document. Records are read from JSON lines, with one object per line, in a .jsonl file. "
            "A list of objects is converted by: {command}",
            path=path,
            command=f"jq -c '.[]' {shlex.quote(str(path))} > NEW.jsonl",
        )
    return FileSource(path) if path.is_file() else StreamSource(lambda: path.open("rb"), str(path))


class IterableSource(Source):
    """An iterable of texts or documents. An iterator is spilled to a temporary file, so it can be read again."""

    def __init__(self, items: Iterable[Any]) -> None:
        self.items = Spilled(items) if isinstance(items, Iterator) else items
        self.rereadable = not isinstance(items, Iterator)
        if self.rereadable:
            self.title = f"{len(items):,} documents" if isinstance(items, Sized) else "an iterable"
        if isinstance(items, (list, tuple)) and items and is_file_name(items[0]):
            raise FirthError(
                "wrong_input",
                "{item!r} is a file name, not a text. Pass file names as separate arguments: Corpus(*names).",
                item=items[0],
            )

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        yield from builder.records(check_documents(self.items))


class TableSource(Source):
    """A column of a data frame: pandas, polars or pyarrow."""

    def __init__(self, table: Any, columns: readers.Columns) -> None:
        self.table = as_arrow(table)
        self.title = f"{self.table.num_rows:,} records"
        self.columns = readers.text_columns(self.table.schema, columns, "the table")

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        batches = self.table.to_batches(max_chunksize=4096)
        yield from builder.records(readers.table_records(batches, self.columns, "the table"))


@dataclass
class Spilled:
    """An iterator that can be iterated over again, because its items are kept in a temporary file."""

    iterator: Iterator[Any]
    file: Any = field(default_factory=tempfile.TemporaryFile)
    size: int = 0

    def __iter__(self) -> Iterator[readers.Record]:
        position = 0
        while True:
            if position == self.size:
                item = next(check_documents(self.iterator), None)
                if item is None:
                    return
                parts = [readers.to_bytes(part) for part in (item.key or "", item.text, json.dumps(item.tags))]
                head = struct.pack("<?qqq", item.key is not None, *map(len, parts))
                record = head + b"".join(parts)
                with saying_where(Path(tempfile.gettempdir())):
                    self.file.seek(self.size)
                    self.file.write(record)
                self.size += len(record)
            self.file.seek(position)
            has_key, *lengths = struct.unpack("<?qqq", self.file.read(25))
            key, text, tags = (self.file.read(length).decode("utf-8", "surrogateescape") for length in lengths)
            position = self.file.tell()
            yield readers.Record(key if has_key else None, text, tuple(json.loads(tags)))


def check_documents(items: Iterable[Any]) -> Iterator[readers.Record]:
    """Yield texts and documents as records, and refuse anything else."""
    for item in items:
        if isinstance(item, str):
            yield readers.Record(None, item)
        elif is_document(item):
            yield readers.Record(item[0], item[1], readers.tags_of(item[2:], f"document {item[0]!r}"))
        elif isinstance(item, (list, tuple)):
            raise FirthError(
                "wrong_input",
                "A text is required here; got a list of {n_tokens:,} tokens. Methods for words and documents accept "
                "lists of tokens: SkipGram().fit(lists), or Tokens.from_lists(lists).",
                n_tokens=len(item),
            )
        else:
            raise FirthError(
                "invalid_type",
                "The documents of a corpus must be str or Document; got {got}: {item!r:.40}.",
                got=type(item).__name__,
                item=item,
            )


def is_document(item: Any) -> bool:
    """Whether an item is (key, text) or (key, text, tags) with a list of tags; three strings are three tokens."""
    if not isinstance(item, tuple) or len(item) not in (2, 3) or not isinstance(item[1], str):
        return False
    return len(item) == 2 or isinstance(item[2], (list, tuple))


def is_file_name(item: Any) -> bool:
    """Whether an item is a path, or a string that names an existing file."""
    if isinstance(item, (os.PathLike, RemotePath)):
        return True
    return (
        isinstance(item, str) and not is_url(item) and 0 < len(item) < 256 and "\0" not in item and Path(item).is_file()
    )


def is_table_like(source: Any) -> bool:
    """Whether a source is a data frame or a column: it has the Arrow interface, or is a pandas Series."""
    arrow = any(hasattr(source, name) for name in ("__arrow_c_stream__", "__arrow_c_array__"))
    return arrow or (type(source).__module__.startswith("pandas.") and hasattr(source, "to_numpy"))


def as_arrow(source: Any) -> Any:
    """Convert a data frame or a column to a pyarrow Table; a single column is named "text"."""
    import pyarrow

    if hasattr(source, "columns") or hasattr(source, "schema"):
        return pyarrow.table(source)
    if type(source).__module__.startswith("pandas."):
        return pyarrow.table({"text": pyarrow.array(source.to_numpy(dtype=object), from_pandas=True)})
    column = source if isinstance(source, (pyarrow.Array, pyarrow.ChunkedArray)) else pyarrow.chunked_array(source)
    return pyarrow.table({"text": column})


def invalid_utf8_note(count: int, corpus: Corpus | None) -> str:
    """Return the note about replaced bytes. If the corpus has several files, it names the first affected one."""
    sources = corpus.sources if corpus else []
    files = [source.path for source in sources if isinstance(source, FileSource)] if len(sources) > 1 else []
    texts = (path for path in files if readers.format_and_compression(path)[0] != ".parquet")
    first = next((path for path in texts if not readers.is_utf8(path)), None)
    where = f", first in {first}" if first else ""
    hint = f"Convert text in another encoding with iconv: {readers.ICONV}"
    return f"{count:,} byte sequences were not valid UTF-8 and were replaced by �{where}. {hint}"


def sample_hash(path: Path) -> str:
    """Return a hash of a file's size and of samples spread evenly over it, including its start and end."""
    digest = hashlib.sha256()
    with path.open("rb") as file:
        size = os.fstat(file.fileno()).st_size
        digest.update(str(size).encode())
        for number in range(SAMPLES) if size > SAMPLES * SAMPLE else ():
            file.seek((size - SAMPLE) * number // (SAMPLES - 1))
            digest.update(file.read(SAMPLE))
        if size <= SAMPLES * SAMPLE:
            digest.update(file.read())
    return digest.hexdigest()
