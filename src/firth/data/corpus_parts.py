"""Parts of a corpus: which documents they have, and where each part begins in its files, found by several workers.

The parts follow from the documents only, not from the number of workers. A part is read from the last known start of a
document before it: row groups of Parquet files, and a line after every few megabytes of uncompressed text, jsonl, csv
and tsv. Compressed files, and files whose documents are paragraphs, are read from their beginning for every part.
"""

from __future__ import annotations

import bisect
import codecs
import hashlib
import json
from collections import deque
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from io import BufferedReader
from itertools import accumulate, islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.remote import AnyPath, RemotePath, as_path
from firth.core.report import Report
from firth.data import readers
from firth.data.blocks import Block, BlockBuilder, Tags
from firth.data.corpus import Corpus, Document, FileSource
from firth.data.readers import Start
from firth.kernels.text import as_bytes, line_ends
from firth.work.executors import Cluster
from firth.work.job import Job, Shard, run_job
from firth.work.worker import RECORDS

RANGE = 256 << 20  # bytes that are scanned as one shard: a range of a file, or several files
FILES = 1000  # that are scanned as one shard, at most
BETWEEN_STARTS = 4 << 20  # bytes between two known starts
FOLDER = "corpus"  # in the records of the output: what was found


class Piece(NamedTuple):
    """Consecutive documents of one file: `rows` documents, beginning `skipped` documents after `start`."""

    path: str
    name: str  # as the user gave it, for keys
    bytes: int
    start: Start
    skipped: int
    rows: int


@dataclass(frozen=True)
class CorpusParts:
    """The documents of each file of a corpus, with known starts."""

    corpus: Corpus
    files: Sequence[FileSource]
    rows: Sequence[int]  # documents per file
    starts: Sequence[Sequence[Start]]  # per file, in order; the first is the beginning
    fingerprint: str  # of the content and of how it is read

    def parts(self, rows: int, skip: int = 0) -> Iterator[list[Piece]]:
        """Yield the pieces of each part of `rows` documents, without the first `skip`; the last part may have fewer."""
        pieces: list[Piece] = []
        room = rows
        for file, total, starts in zip(self.files, self.rows, self.starts, strict=True):
            path, first = str(file.path.absolute()), min(skip, total)
            skip -= first
            first_rows = [start.row for start in starts]
            while first < total:
                count = min(room, total - first)
                start = starts[bisect.bisect_right(first_rows, first) - 1]
                pieces.append(Piece(path, file.name, file.size, start, first - start.row, count))
                first, room = first + count, room - count
                if not room:
                    yield pieces
                    pieces, room = [], rows
        if pieces:
            yield pieces

    @property
    def settings(self) -> dict[str, Any]:
        """How `PieceReader` has to read the pieces, as JSON."""
        return {**reading_of(self.corpus), "several": len(self.files) > 1}


def reading_of(corpus: Corpus) -> dict[str, Any]:
    """Return the arguments of a corpus that reads files in the same way, as JSON."""
    return {
        "unit": corpus.unit,
        "column": corpus.column,
        "key": corpus.key,
        "tags": list(corpus.tags),
        "fields": list(corpus.fields),
    }


class PieceSource(FileSource):
    """A file, read from the start of a piece. Documents keep their numbers in the whole corpus."""

    def __init__(self, piece: Piece, several: bool) -> None:
        super().__init__(as_path(piece.path))
        self.name, self.start, self.prefix = piece.name, piece.start, piece.name if several else ""
        self.limit = piece.skipped + piece.rows
        if self.size != piece.bytes:
            raise changed(piece, f"{piece.bytes:,} bytes", f"{self.size:,}")

    def fill(self, builder: BlockBuilder, corpus: Corpus) -> Iterator[Block]:
        builder.source, builder.number = self.prefix, self.start.row
        return super().fill(builder, corpus)


class PieceReader:
    """Reads the documents of pieces. `replaced` counts their invalid UTF-8 sequences so far."""

    def __init__(self, settings: Mapping[str, Any], pieces: Sequence[Sequence[Any]]) -> None:
        self.settings = {name: value for name, value in settings.items() if name != "several"}
        self.several = bool(settings["several"])
        self.pieces = [Piece(path, name, bytes, Start(*start), *counts) for path, name, bytes, start, *counts in pieces]
        self.replaced = 0

    def walk(self) -> Iterator[tuple[Document, Tags]]:
        """Yield the documents with their field values."""
        for piece in self.pieces:
            corpus = Corpus(PieceSource(piece, self.several), **self.settings)
            documents = corpus.walk()
            deque(islice(documents, piece.skipped), maxlen=0)
            skipped, before, number = corpus.replaced, self.replaced, 0
            for number, (document, tags, _) in enumerate(islice(documents, piece.rows), 1):  # noqa: B007
                self.replaced = before + corpus.replaced - skipped
                yield document, tags
            if number < piece.rows:
                first = piece.start.row + piece.skipped
                raise changed(piece, f"{piece.rows:,} documents after the first {first:,}", f"{number:,}")


def changed(piece: Piece, expected: str, got: str) -> FirthError:
    """Return the error for a file that does not have the documents that were counted."""
    return FirthError(
        "malformed_data",
        "{path} changed while it was being read: expected {expected}; got {got}. Run the command again.",
        path=piece.path,
        expected=expected,
        got=got,
    )


# ---- finding the starts ----


def find_parts(corpus: Corpus, folder: AnyPath, cluster: Cluster, report: Report) -> CorpusParts:
    """Count and hash the documents of a corpus of files. The result is kept below `folder` until the output is
    finished. The tasks of a job array share this work; each one completes what is still missing."""
    files = [source for source in corpus.sources if isinstance(source, FileSource)]
    if len(files) < len(corpus.sources):
        raise FirthError(
            "conflicting_options",
            "Sharded output can only be resumed when the input is a file, not standard input (-).",
        )
    ranges = [(file, each) for file in files for each in ranges_of(file)]
    shards = [
        Shard(
            f"{number:05d}",
            {"file": f"{number:05d}.json", "ranges": [each for _, each in some]},
            sum(each[3] - each[2] for _, each in some),
        )
        for number, some in enumerate(grouped(ranges))
    ]
    folder = folder / RECORDS / FOLDER
    job = Job("reading", "B", scan_shard, reading_of(corpus), shards, folder, [file.path.absolute() for file in files])
    if cluster.part:
        run_job(job, cluster, report)
    run_job(job, replace(cluster, part=None), report)
    scanned = [each for shard in shards for each in json.loads((folder / f"{shard.name}.json").read_bytes())]
    return assembled(corpus, files, [file for file, _ in ranges], scanned)


def ranges_of(file: FileSource) -> list[tuple[str, str, int, int]]:
    """Return the byte ranges of a file: its path, a stamp of its state, and the first and last byte."""
    path = str(file.path.absolute())
    remote = file.path if isinstance(file.path, RemotePath) else None
    stamp = remote.version() if remote else f"{file.size} {Path(path).stat().st_mtime_ns}"
    return [(path, stamp, first, min(first + RANGE, file.size)) for first in range(0, max(file.size, 1), RANGE)]


def grouped(ranges: Iterable[tuple[FileSource, tuple[str, str, int, int]]]) -> Iterator[list[Any]]:
    """Yield lists of ranges of about `RANGE` bytes together."""
    some: list[Any] = []
    size = 0
    for each in ranges:
        bytes = each[1][3] - each[1][2]
        if some and (size + bytes > RANGE or len(some) == FILES):
            yield some
            some, size = [], 0
        some.append(each)
        size += bytes
    if some:
        yield some


def assembled(
    corpus: Corpus, files: Sequence[FileSource], owners: Sequence[FileSource], scanned: Sequence[Mapping[str, Any]]
) -> CorpusParts:
    """Join what was found in the ranges of each file, whose counts are relative to their range."""
    rows, starts, hashes = dict.fromkeys(files, 0), {file: list[Start]() for file in files}, list[Any]()
    lines = dict.fromkeys(files, 0)
    for file, each in zip(owners, scanned, strict=True):
        starts[file] += [Start(row + rows[file], line + lines[file], at) for row, line, at in each["starts"]]
        rows[file] += each["rows"]
        lines[file] += each["lines"]
        hashes.append((readers.format_and_compression(file.path), each["sha256"]))
    identity = (sorted(reading_of(corpus).items()), hashes)
    fingerprint = hashlib.sha256(repr(identity).encode()).hexdigest()
    known = [starts[file] or [readers.BEGINNING] for file in files]
    return CorpusParts(corpus, files, [rows[file] for file in files], known, fingerprint)


# ---- scanning ranges of files ----


def scan_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Scan ranges of files; the function of the job."""
    scanned = [scan(as_path(path), begin, end, common) for path, _, begin, end in parameters["ranges"]]
    (folder / parameters["file"]).write_text(json.dumps(scanned))


def scan(path: AnyPath, begin: int, end: int, reading: Mapping[str, Any]) -> dict[str, Any]:
    """Return the documents, lines and known starts (document, line, offset) in a range of a file, and its hash.

    Lines belong to the range in which they begin. Other files are counted with their first range.
    """
    form, compression = readers.format_and_compression(path)
    is_text = not form and reading["unit"] == "line"
    with readers.open_decompressed(path) as (raw, _):
        if not compression and (is_text or form in (".jsonl", ".ndjson")):
            return scan_lines(BufferedReader(raw), path, begin, end, is_text)
        sha256, counted = hash_of(raw, begin, end), {"rows": 0, "lines": 0, "starts": list[Any]()}
        raw.seek(0)
        if not begin and not compression and form == ".parquet":
            counted |= scan_parquet(raw, path)
        elif not begin and not compression and form in (".csv", ".tsv"):
            counted |= scan_separated(BufferedReader(raw), path, form, Corpus([], **reading).columns)
        elif not begin:
            counted["rows"] = sum(len(block.ends) for block in Corpus(FileSource(path), **reading).blocks())
        return {**counted, "sha256": sha256}


def hash_of(raw: Any, begin: int, end: int) -> str:
    """Return the hash of a range of bytes."""
    digest = hashlib.sha256()
    raw.seek(begin)
    while begin < end and (block := raw.read(min(1 << 20, end - begin))):
        digest.update(block)
        begin += len(block)
    return digest.hexdigest()


def scan_lines(file: Any, path: AnyPath, begin: int, end: int, is_text: bool) -> dict[str, Any]:
    """Scan the lines that begin in a range. Every line of a text is a document; blank lines of jsonl are none."""
    digest, starts, rows, lines = hashlib.sha256(), list[Start](), 0, 0
    if begin:
        file.seek(begin - 1)
        file.readline()
    else:
        readers.check_head(file.read(readers.HEAD), str(path))
        file.seek(0)
    while (position := file.tell()) < end and (block := file.read(min(BETWEEN_STARTS, end - position))):
        if not block.endswith(b"\n"):
            block += file.readline()
        digest.update(block)
        starts.append(Start(rows, lines, position))
        content = block if position else block.removeprefix(codecs.BOM_UTF8)
        count = content.count(b"\n") + (content[-1:] not in (b"", b"\n"))
        lines += count
        rows += count if is_text else count - blank_lines(content)
    return {"rows": rows, "lines": lines, "starts": starts, "sha256": digest.hexdigest()}


def blank_lines(block: bytes) -> int:
    """Return the number of blank lines. Only lines that do not begin with a brace are looked at."""
    data = as_bytes(block)
    starts = np.append(0, line_ends(data))
    starts = starts[starts < len(data)]
    others = starts[data[starts] != ord("{")].tolist()
    ends = [block.find(b"\n", start) for start in others]
    lines = (block[start : end if end >= 0 else None] for start, end in zip(others, ends, strict=True))
    return sum(not line.decode("utf-8", "surrogateescape").strip() for line in lines)


def scan_separated(file: Any, path: AnyPath, form: str, columns: readers.Columns) -> dict[str, Any]:
    """Scan the rows of csv or tsv, which may have quoted line breaks."""
    starts, rows, lines, position = [readers.BEGINNING], 0, 0, 0

    def counted() -> Iterator[str]:
        nonlocal lines, position
        for line in file:
            lines, position = lines + 1, position + len(line)
            yield (line if lines > 1 else line.removeprefix(codecs.BOM_UTF8)).decode("utf-8", "surrogateescape")

    readers.check_head(file.read(readers.HEAD), str(path))
    file.seek(0)
    for _ in readers.separated_records(counted(), path, form, columns):
        rows += 1
        if position - starts[-1].offset >= BETWEEN_STARTS:
            starts.append(Start(rows, lines, position))
    return {"rows": rows, "lines": lines, "starts": starts}


def scan_parquet(raw: Any, path: AnyPath) -> dict[str, Any]:
    """Return the row groups of a Parquet file as starts; their numbers of rows are in its metadata."""
    with readers.reading_parquet(path):
        metadata = readers.open_parquet(path, raw).metadata
        counts = [metadata.row_group(number).num_rows for number in range(metadata.num_row_groups)]
    rows = accumulate(counts, initial=0)
    starts = [Start(row, 0, number) for number, row in zip(range(len(counts)), rows, strict=False)]
    return {"rows": sum(counts), "lines": 0, "starts": starts}
