"""Parts of a corpus: together they are the corpus, whatever its formats, and wherever the parts begin."""

from __future__ import annotations

import bz2
import csv
import gzip
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth.core.report import Nothing
from firth.data import corpus_parts
from firth.data.corpus import Corpus
from firth.data.corpus_parts import PieceReader, find_parts
from firth.work.executors import Cluster

TEXTS = ["", " ", "a", "caf\u00e9", "x" * 50, 'a "quoted" text, with\nline\r\nbreaks', "\u2028", "b\tc;d"] * 9
LINES = [text.replace("\n", " ").replace("\r", " ") for text in TEXTS]


@pytest.fixture(autouse=True)
def small(monkeypatch: pytest.MonkeyPatch) -> None:
    """Files of a few kilobytes have several ranges, with several starts each."""
    monkeypatch.setattr(corpus_parts, "RANGE", 300)
    monkeypatch.setattr(corpus_parts, "BETWEEN_STARTS", 100)
    monkeypatch.setattr(corpus_parts, "FILES", 2)


def table(path: Path, **settings: Any) -> None:
    rows = pyarrow.table({"id": [f"t{n}" for n in range(len(TEXTS))], "text": TEXTS, "n": range(len(TEXTS))})
    pyarrow.parquet.write_table(rows, path, **settings)


def zipped_table(path: Path) -> None:
    table(path)
    path.write_bytes(gzip.compress(path.read_bytes()))


def separated(path: Path, delimiter: str = ",", bom: str = "") -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        file.write(bom)
        writer = csv.writer(file, delimiter=delimiter)
        writer.writerow(["id", "text", "n"])
        writer.writerows([f"t{n}", text, n] for n, text in enumerate(TEXTS))
        file.write("\r\n")


def json_lines(texts: list[Any], last: str = "\n") -> str:
    lines = [json.dumps({"id": f"t{n}", "text": text, "n": n}) for n, text in enumerate(texts)]
    return "\n\n \u00a0\n".join(lines) + last


#: Files by name, with a function that writes them.
FILES: dict[str, Callable[[Path], Any]] = {
    "lines.txt": lambda path: path.write_text("\n".join(LINES) + "\n"),
    "open.txt": lambda path: path.write_text("\r\n".join(LINES) + "\r\nlast", newline=""),
    "bom.txt": lambda path: path.write_text("\ufeff" + "\n".join(LINES)),
    "only-bom.txt": lambda path: path.write_text("\ufeff"),
    "empty.txt": lambda path: path.touch(),
    "latin.txt": lambda path: path.write_bytes(b"\n".join([b"caf\xe9 \xff", b"a", "\ufffd".encode()] * 60)),
    "small.txt.gz": lambda path: path.write_bytes(gzip.compress("\n".join(LINES).encode())),
    "records.jsonl": lambda path: path.write_text(json_lines(TEXTS)),
    "bom.jsonl": lambda path: path.write_text("\ufeff" + json_lines(TEXTS, last="")),
    "records.jsonl.bz2": lambda path: path.write_bytes(bz2.compress(json_lines(TEXTS).encode())),
    "rows.csv": separated,
    "bom.csv": lambda path: separated(path, ";", "\ufeff"),
    "rows.tsv": lambda path: separated(path, "\t"),
    "groups.parquet": lambda path: table(path, row_group_size=7),
    "whole.parquet": table,
    "table.parquet.gz": lambda path: zipped_table(path),
}
GROUPS = {
    "texts": [name for name in FILES if ".txt" in name],
    "records": [name for name in FILES if ".txt" not in name],
    "mixed": list(FILES),
    **{name: [name] for name in FILES if name not in ("empty.txt", "only-bom.txt")},
}


def read(parts: corpus_parts.CorpusParts, rows: int) -> tuple[list[Any], int]:
    """The documents of all parts, which have `rows` documents each, and the count of invalid sequences."""
    documents, replaced, sizes = list[Any](), 0, list[int]()
    for pieces in parts.parts(rows):
        reader = PieceReader(json.loads(json.dumps(parts.settings)), json.loads(json.dumps(pieces)))
        some = list(reader.walk())
        documents += some
        sizes.append(len(some))
        replaced += reader.replaced
    assert set(sizes[:-1]) <= {rows} and all(0 < size <= rows for size in sizes)
    return documents, replaced


@pytest.mark.parametrize("group", GROUPS)
def test_parts_together_are_the_corpus(tmp_path, group):
    for name in GROUPS[group]:
        FILES[name](tmp_path / name)
    is_records = not any(".txt" in name for name in GROUPS[group])
    reading = [{}, {"key": "id", "fields": ("n",)}] if is_records else [{}, {"unit": "block"}, {"unit": "file"}]
    for how in reading:
        corpus = Corpus(*(tmp_path / name for name in GROUPS[group]), column="text", **how)
        expected = [(document, tags) for document, tags, _ in corpus.walk()]
        found = find_parts(corpus, tmp_path / "out", Cluster(), Nothing())
        assert sum(found.rows) == len(expected)
        for rows in (1, 5, 64, 100_000):
            assert read(found, rows) == (expected, corpus.replaced)


def test_starts_are_used(tmp_path):
    """A part begins at most one block, or one row group, before its first document."""
    for name in ("lines.txt", "records.jsonl", "rows.csv", "groups.parquet"):
        FILES[name](tmp_path / name)
        found = find_parts(Corpus(tmp_path / name), tmp_path / "out", Cluster(), Nothing())
        skipped = [piece.skipped for pieces in found.parts(10) for piece in pieces]
        assert len(skipped) == 8 and max(skipped) < 10 and len(found.starts[0]) > 5, name


def test_the_text_column_is_that_of_the_first_record(tmp_path):
    """Later records, whose own fields would select another column, follow it."""
    lines = [{"title": "a", "body": None}, *({"title": f"a{n}", "body": None} for n in range(40))]
    (tmp_path / "a.jsonl").write_text("\n".join(map(json.dumps, [*lines, {"title": None, "body": "b"}] * 3)))
    corpus = Corpus(tmp_path / "a.jsonl")
    expected = [(document, tags) for document, tags, _ in corpus.walk()]
    assert read(find_parts(corpus, tmp_path / "out", Cluster(), Nothing()), 4) == (expected, 0)


@given(content=st.binary(max_size=400) | st.text(alphabet="a\n\r \u00e9", max_size=300).map(str.encode))
@settings(max_examples=60, deadline=None)
def test_lines_of_any_bytes(tmp_path_factory, content):
    folder = tmp_path_factory.mktemp("bytes")
    (folder / "a.txt").write_bytes(content.replace(b"\0", b"").removeprefix(b"\xff\xfe").removeprefix(b"\xfe\xff"))
    corpus = Corpus(folder / "a.txt")
    expected = [(document, tags) for document, tags, _ in corpus.walk()]
    assert read(find_parts(corpus, folder / "out", Cluster(), Nothing()), 3) == (expected, corpus.replaced)


def test_the_fingerprint_follows_the_content(tmp_path):
    def fingerprint(name: str, **settings: Any) -> str:
        return find_parts(Corpus(tmp_path / name, **settings), tmp_path / "out", Cluster(), Nothing()).fingerprint

    FILES["lines.txt"](tmp_path / "a.txt")
    FILES["lines.txt"](tmp_path / "b.txt")
    first = fingerprint("a.txt")
    assert fingerprint("b.txt") == first and fingerprint("a.txt", unit="block") != first
    text = (tmp_path / "a.txt").read_text()
    (tmp_path / "b.txt").write_text(text[:-3] + "X" + text[-2:])
    assert fingerprint("b.txt") != first


@pytest.mark.parametrize("name", ["rows.csv", "records.jsonl", "groups.parquet", "lines.txt"])
def test_a_file_that_changes_is_refused(tmp_path, name):
    FILES[name](tmp_path / name)
    parts = find_parts(Corpus(tmp_path / name), tmp_path / "out", Cluster(), Nothing())
    data = (tmp_path / name).read_bytes()
    (tmp_path / name).write_bytes(data[:-1])
    with refuses("malformed_data", path=str(tmp_path / name), expected=f"{len(data):,} bytes"):
        read(parts, 10)
    if name == "lines.txt":
        (tmp_path / name).write_bytes(data.replace(b"\n", b" "))
        with refuses("malformed_data", path=str(tmp_path / name)):
            read(parts, 10)


def test_workers_scan_the_files(tmp_path, monkeypatch):
    """With two processes, what is found is the same; in a job array, each task finds all in the end."""
    for name in FILES:
        FILES[name](tmp_path / name)
    corpus = Corpus(*(tmp_path / name for name in FILES), column="text")
    alone = find_parts(corpus, tmp_path / "alone", Cluster(), Nothing())
    for number, cluster in enumerate((Cluster("processes", workers=2), Cluster(part=(2, 3)))):
        found = find_parts(corpus, tmp_path / f"out{number}", cluster, Nothing())
        assert (found.rows, found.fingerprint) == (alone.rows, alone.fingerprint)
