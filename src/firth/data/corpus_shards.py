"""Shards of a corpus for counting: parts of files, which do not depend on the number of workers.

Text and JSON lines are cut at the ends of documents, Parquet between row groups; compressed files, csv and files that
are one document are whole. Small files share a shard. A worker opens its shard as a `Corpus`.
"""

from __future__ import annotations

import io
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from firth.core.errors import FirthError
from firth.core.remote import AnyPath, as_path
from firth.data import readers
from firth.data.blocks import Block, BlockBuilder
from firth.data.corpus import Corpus, FileSource, refuse_columns
from firth.kernels.text import as_bytes, paragraph_ends
from firth.work.job import Shard

SHARDS = 64  # of a corpus, as far as the sizes allow: each has words of its own, which take time to merge
LEAST_BYTES, MOST_BYTES = 1 << 26, 1 << 29  # of a shard
PROBE = 1 << 16  # bytes read at a time to find where a document ends
PARAGRAPH = 2  # state of `paragraph_ends` within a paragraph, at the start of a line


def corpus_files(corpus: Corpus) -> list[FileSource]:
    """Return the files of a corpus, or raise unsupported_cluster if it has texts in memory."""
    files = [source for source in corpus.sources if isinstance(source, FileSource)]
    if len(files) < len(corpus.sources):
        other = next(source for source in corpus.sources if not isinstance(source, FileSource))
        raise FirthError(
            "unsupported_cluster",
            "Workers of a cluster read files, but {source} is in the memory of this process. Write it to a file, or "
            "leave out cluster.",
            source=other.name or other.title,
        )
    return files


def shards_of(corpus: Corpus) -> list[Shard]:
    """Return the shards of a corpus of files; their names sort in the order of the text."""
    files = corpus_files(corpus)
    size = min(max(corpus.size // SHARDS, LEAST_BYTES), MOST_BYTES)
    shards: list[Shard] = []
    parts: list[tuple[int, str, int, int]] = []
    filled = 0.0
    for number, source in enumerate(files):
        for begin, end, weight in ranges_of(source, corpus, size):
            parts.append((number, str(source.path.absolute()), begin, end))
            filled += weight
            if filled >= size:
                shards.append(shard_of(len(shards), parts, filled))
                parts, filled = [], 0.0
    return [*shards, shard_of(len(shards), parts, filled)] if parts else shards


def shard_of(number: int, parts: Sequence[tuple[int, str, int, int]], size: float) -> Shard:
    """Return the shard with these parts."""
    return Shard(f"{number:06}", {"name": f"{number:06}", "parts": parts}, size)


def ranges_of(source: FileSource, corpus: Corpus, size: int) -> Iterator[tuple[int, int, float]]:
    """Yield the parts of a file: begin, end (0, 0: all of it) and size in bytes.

    Parts of text are in bytes, those of Parquet in row groups.
    """
    form, compression = readers.format_and_compression(source.path)
    whole = compression or form in (".csv", ".tsv") or (not form and corpus.unit == "file")
    if whole or source.size <= size:
        yield 0, 0, source.size
    elif form == ".parquet":
        yield from row_group_ranges(source.path, size)
    else:
        begin = 0
        while begin < source.size:
            end = source.size
            if begin + size < source.size:
                end = document_end(source.path, begin + size, paragraphs=not form and corpus.unit == "block")
            yield begin, end, end - begin
            begin = end


def row_group_ranges(path: AnyPath, size: int) -> Iterator[tuple[int, int, float]]:
    """Yield ranges of row groups of about `size` bytes."""
    import pyarrow.parquet

    with readers.reading_parquet(path):
        with path.open("rb") as file:
            metadata = pyarrow.parquet.ParquetFile(file).metadata
        sizes = [metadata.row_group(number).total_byte_size for number in range(metadata.num_row_groups)]
    if not sizes:
        yield 0, 0, path.stat().st_size
    begin, filled, share = 0, 0, path.stat().st_size / max(1, sum(sizes))  # of compressed in decompressed bytes
    for number, bytes in enumerate(sizes, 1):
        filled += bytes
        if filled * share >= size or number == len(sizes):
            yield begin, number, filled * share
            begin, filled = number, 0


def document_end(path: AnyPath, position: int, paragraphs: bool) -> int:
    """Return the first end of a line or paragraph at `position` or later; the size of the file if there is none."""
    with path.open("rb") as file:
        file.seek(position - 1)
        state, at_line = PARAGRAPH, False
        position -= 1
        while chunk := file.read(PROBE):
            begin = 0
            if not at_line:
                begin = chunk.find(b"\n") + 1
                at_line = begin > 0
            if at_line and not paragraphs:
                return position + begin
            if at_line:
                ends, state = paragraph_ends(as_bytes(chunk[begin:]), state)
                if len(ends):
                    return position + begin + int(ends[0])
            position += len(chunk)
        return position


def corpus_settings(corpus: Corpus) -> dict[str, Any]:
    """Return how a corpus reads its files, for `shard_corpus`."""
    return {"unit": corpus.unit, "column": corpus.column, "key": corpus.key, "tags": corpus.tags}


def shard_corpus(settings: Mapping[str, Any], parts: Sequence[tuple[int, str, int, int]]) -> Corpus:
    """Return the corpus of a shard."""
    corpus = Corpus((), **settings)
    corpus.sources = [FilePart(as_path(path), begin, end) for _, path, begin, end in parts]
    return corpus


class FilePart(FileSource):
    """A part of a file, as `ranges_of` gives it."""

    def __init__(self, path: AnyPath, begin: int, end: int) -> None:
        super().__init__(path)
        self.begin, self.end = begin, end
        self.documents = 0  # read so far

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        yield from self.fill_part(builder, corpus)
        self.documents = builder.number

    def fill_part(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        """Pass the documents of this part to `builder`."""
        if not self.end:
            yield from super().fill(builder, corpus)
            return
        form = readers.format_and_compression(self.path)[0]
        with readers.open_decompressed(self.path) as (raw, _):
            if form == ".parquet":
                yield from builder.records(self.row_groups(raw, corpus.columns))
            elif form:
                yield from builder.records(self.lines(raw, corpus.columns))
            else:
                refuse_columns(corpus, self.name)
                yield from builder.text(raw, Beginning(raw, self.end), self.name, self.begin)

    def row_groups(self, raw: Any, columns: readers.Columns) -> Iterator[readers.Record]:
        """Return the records of a range of row groups."""
        with readers.reading_parquet(self.path):
            metadata = readers.open_parquet(self.path, self.path).metadata
            rows = [metadata.row_group(number).num_rows for number in range(self.end)]
        start = readers.Start(row=sum(rows[: self.begin]), offset=self.begin)
        return islice(readers.read_records(self.path, raw, columns, start), sum(rows[self.begin :]))

    def lines(self, raw: Any, columns: readers.Columns) -> Iterator[readers.Record]:
        """Yield the records of a range of JSON lines."""

        def records(line: int = 0) -> Iterator[readers.Record]:
            raw.seek(0)
            start = readers.Start(line=line, offset=self.begin)
            return readers.read_records(self.path, Beginning(raw, self.end), columns, start)

        try:
            yield from records()
        except FirthError:  # again, with the number of the line in the file
            raw.seek(0)
            before = Beginning(raw, self.begin)
            for _ in records(sum(chunk.count(b"\n") for chunk in iter(lambda: before.read(1 << 20), b""))):
                pass
            raise


class Beginning(io.RawIOBase):
    """An open file up to a position."""

    def __init__(self, raw: Any, end: int) -> None:
        self.raw, self.end = raw, end

    def readable(self) -> bool:
        return True

    def seek(self, offset: int, whence: int = 0) -> int:
        position: int = self.raw.seek(offset, whence)
        return position

    def readinto(self, buffer: Any) -> int:
        """Read into a buffer, at most up to the end."""
        view = memoryview(buffer)[: max(0, self.end - self.raw.tell())]
        count: int = self.raw.readinto(view) if len(view) else 0
        return count


def numbered(source: FileSource, corpus: Corpus) -> bool:
    """Whether the documents of a file have numbers as keys."""
    form = readers.format_and_compression(source.path)[0]
    return not corpus.key if form else corpus.unit != "file"


def document_keys(corpus: Corpus, documents: Sequence[int], keys: Mapping[int, Sequence[str]]) -> list[str]:
    """Return the keys of the documents as `Corpus.walk` gives them, from the number of documents of each file and the
    keys of those that have a key column."""
    names: list[str] = []
    for number, source in enumerate(corpus.sources):
        assert isinstance(source, FileSource)
        prefix = "" if len(corpus.sources) == 1 else f"{source.name}:"
        if numbered(source, corpus):
            names += [f"{prefix}{each}" for each in range(1, documents[number] + 1)]
        elif readers.format_and_compression(source.path)[0]:
            names += keys[number]
        else:
            names += [source.name] * documents[number]
    return names
