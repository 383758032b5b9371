"""Documents from every kind of source, and errors."""

from __future__ import annotations

import bz2
import gzip
import io
import json
import lzma
import os
import tempfile
import threading
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pandas
import polars
import pyarrow
import pyarrow.parquet
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from refusing import refuses

from firth import Corpus, FirthError, Run
from firth.core.report import Silence
from firth.data.corpus import Document
from firth.data.tokens import read_tokens

TEXTS = ["Grüße aus Köln", "", "two  words", "一行中文"]


def zstd(data: bytes) -> bytes:
    sink = pyarrow.BufferOutputStream()
    with pyarrow.CompressedOutputStream(sink, "zstd") as stream:
        stream.write(data)
    content: bytes = sink.getvalue().to_pybytes()
    return content


PACK: dict[str, Callable[[bytes], bytes]] = {
    "": bytes, ".gz": gzip.compress, ".xz": lzma.compress, ".bz2": bz2.compress, ".zst": zstd,
}  # fmt: skip


def as_txt(texts: list[str]) -> bytes:
    return "".join(text + "\n" for text in texts).encode()


def as_jsonl(texts: list[str]) -> bytes:
    return "".join(json.dumps({"id": i, "text": text}) + "\n" for i, text in enumerate(texts)).encode()


def as_csv(texts: list[str], delimiter: str = ",") -> bytes:
    frame = pandas.DataFrame({"n": range(len(texts)), "text": texts})
    return str(frame.to_csv(index=False, sep=delimiter)).encode()


def as_parquet(texts: list[str]) -> bytes:
    sink = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": texts, "n": list(range(len(texts)))}), sink)
    return sink.getvalue()


FORMS = {
    ".txt": as_txt, ".jsonl": as_jsonl, ".ndjson": as_jsonl, ".csv": as_csv,
    ";.csv": lambda texts: as_csv(texts, ";"), ".tsv": lambda texts: as_csv(texts, "\t"), ".parquet": as_parquet,
}  # fmt: skip


def texts_of(corpus: Corpus) -> list[str]:
    return [document.text for document in corpus]


@pytest.mark.parametrize("pack", PACK)
@pytest.mark.parametrize("form", FORMS)
def test_every_format_and_compression(tmp_path: Path, form: str, pack: str) -> None:
    path = tmp_path / f"data{form}{pack}"
    path.write_bytes(PACK[pack](FORMS[form](TEXTS)))
    corpus = Corpus(path)
    assert list(corpus) == [Document(str(i), text) for i, text in enumerate(TEXTS, 1)]
    assert texts_of(corpus) == TEXTS  # a second time


def test_concatenated_compressed_streams(tmp_path: Path) -> None:
    for suffix, pack in PACK.items():
        path = tmp_path / f"parts.txt{suffix}"
        path.write_bytes(pack(b"one\n") + pack(b"two\n"))
        assert texts_of(Corpus(path)) == ["one", "two"], suffix


@given(st.lists(st.text(alphabet="ab \n\r\té中", max_size=30), max_size=8), st.integers(16, 64))
def test_records_survive_any_block_size(texts: list[str], size: int) -> None:
    corpus = Corpus(texts, unit="file")
    data, ends, keys = b"", [], []
    for block in corpus.blocks(size, keys=True):
        ends += [len(data) + end for end in block.ends.tolist()]
        keys += block.keys
        data += bytes(block.data)
    starts = [0, *ends][: len(ends)]
    assert [data[a:b].decode() for a, b in zip(starts, ends, strict=True)] == [text + "\n" for text in texts]
    assert keys == [str(number) for number in range(1, len(texts) + 1)]
    assert texts_of(corpus) == texts


@pytest.mark.parametrize(
    ("unit", "expected"),
    [
        ("line", ["a b", "c", "", "  ", "d", "", "e"]),
        ("block", ["a b\nc", "d", "e"]),
        ("file", ["a b\nc\n\n  \nd\n\ne"]),
    ],
)
@pytest.mark.parametrize("newline", ["\n", "\r\n"])
def test_units(tmp_path: Path, unit: str, expected: list[str], newline: str) -> None:
    path = tmp_path / "text.txt"
    path.write_bytes("a b\nc\n\n  \nd\n\ne".replace("\n", newline).encode())
    texts = [text.replace("\r\n", "\n") for text in texts_of(Corpus(path, unit=unit))]
    assert texts == expected


@given(st.text(alphabet="ab \n", max_size=60), st.integers(16, 40))
def test_paragraphs_do_not_depend_on_the_block_size(
    tmp_path_factory: pytest.TempPathFactory, text: str, size: int
) -> None:
    path = tmp_path_factory.mktemp("p") / "t.txt"
    path.write_text(text)
    paragraphs: list[list[str]] = [[]]
    for line in text.split("\n"):
        paragraphs[-1] += line.split()
        if not line.strip():
            paragraphs.append([])
    read_paragraphs, open_text = [], b""
    for block in Corpus(path, unit="block").blocks(size):
        start = 0
        for end in block.ends.tolist():
            read_paragraphs.append((open_text + bytes(block.data[start:end])).split())
            open_text, start = b"", end
        open_text += bytes(block.data[start:])
    decoded = [[word.decode() for word in words] for words in read_paragraphs]
    assert decoded == [words for words in paragraphs if words]
    assert open_text.strip() == b""


def test_keys(tmp_path: Path) -> None:
    for name in ("a.txt", "b.txt"):
        (tmp_path / name).write_text("x\ny\n")
    pattern = str(tmp_path / "*.txt")
    names = ["a.txt:1", "a.txt:2", "b.txt:1", "b.txt:2"]
    assert [key for key, _ in Corpus(pattern)] == [f"{tmp_path}/{name}" for name in names]
    assert [key for key, _ in Corpus(pattern, unit="file")] == [f"{tmp_path}/a.txt", f"{tmp_path}/b.txt"]
    (tmp_path / "c.jsonl").write_bytes(as_jsonl(TEXTS))
    assert [key for key, _ in Corpus(tmp_path / "c.jsonl", key="id")] == ["0", "1", "2", "3"]
    assert [key for key, _ in Corpus([Document("k", "v"), "w"])] == ["k", "2"]


def test_invalid_utf8_in_records_is_replaced(tmp_path: Path) -> None:
    (tmp_path / "a.jsonl").write_bytes(b'{"text": "caf\xe9 \\ud800"}\n')
    (tmp_path / "a.csv").write_bytes(b"text,n\ncaf\xe9,1\n")
    (tmp_path / "a.txt").write_bytes(b"caf\xe9\n")
    assert texts_of(Corpus(tmp_path / "a.csv")) == texts_of(Corpus(tmp_path / "a.txt")) == ["caf�"]
    assert texts_of(Corpus(tmp_path / "a.jsonl"))[0].startswith("caf�")


def test_byte_order_mark(tmp_path: Path) -> None:
    for form in (".txt", ".csv"):
        path = tmp_path / f"bom{form}"
        path.write_bytes(b"\xef\xbb\xbf" + FORMS[form](["hello"]).replace(b"n,", b"x,"))
        assert texts_of(Corpus(path, column="text")) == ["hello"]


def test_data_frames() -> None:
    frame = pandas.DataFrame({"text": TEXTS, "id": ["a", "b", "c", "d"]})
    table = pyarrow.Table.from_pandas(frame)
    for source in (frame, polars.DataFrame(frame.to_dict("list")), table):
        documents = [tuple(document) for document in Corpus(source, column="text", key="id")]
        assert documents == list(zip("abcd", TEXTS, strict=True))
    for column in (frame["text"], polars.Series(TEXTS), table["text"], pyarrow.array(TEXTS)):
        assert texts_of(Corpus(column)) == TEXTS
    assert texts_of(Corpus(pandas.Series(["a", None]))) == ["a", ""]
    assert texts_of(Corpus(pandas.Series(TEXTS, dtype="category"))) == TEXTS


def test_iterators_are_spilled() -> None:
    drawn = []

    def generate() -> Iterator[str]:
        for text in TEXTS:
            drawn.append(text)
            yield text

    corpus = Corpus(generate())
    first = iter(corpus.sources[0].items)  # type: ignore[attr-defined]
    assert next(first)[1] == TEXTS[0]  # an interrupted iteration loses nothing
    assert drawn == TEXTS[:1]
    assert texts_of(corpus) == texts_of(corpus) == TEXTS
    assert drawn == TEXTS


def test_standard_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(as_txt(TEXTS))))
    corpus = Corpus("-")
    assert texts_of(corpus) == texts_of(corpus) == TEXTS
    assert corpus.fingerprint() is None
    for columns in ({"column": "text"}, {"key": "id"}):  # JSON lines would be read as text
        with refuses("unknown_column", source="standard input", name=next(iter(columns.values()))):
            texts_of(Corpus("-", **columns))


def test_named_pipe(tmp_path: Path) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    writer = threading.Thread(target=lambda: pipe.write_bytes(as_txt(TEXTS)))
    writer.start()
    corpus = Corpus(pipe)
    assert corpus.fingerprint() is None
    assert texts_of(corpus) == texts_of(corpus) == TEXTS
    writer.join()


def test_fingerprint_depends_on_content_not_name(tmp_path: Path) -> None:
    a, b = tmp_path / "a.txt", tmp_path / "b.txt"
    a.write_text("hello")
    a.rename(b)
    a.write_text("other")
    assert Corpus(b).fingerprint() != Corpus(a).fingerprint()
    before = Corpus(b).fingerprint()
    assert before == Corpus(b).fingerprint() != Corpus(b, unit="file").fingerprint()
    b.rename(tmp_path / "c.txt")
    assert Corpus(tmp_path / "c.txt").fingerprint() == before
    assert Corpus(["hello"]).fingerprint() is None


def test_fingerprint_depends_on_content_not_time(tmp_path: Path) -> None:
    path = tmp_path / "a.txt"
    path.write_bytes(b"a" * 1_000_000)
    first, stamp = Corpus(path).fingerprint(), Corpus(path).stamp()
    os.utime(path, (1, 1))
    assert Corpus(path).fingerprint() == first and Corpus(path).stamp() != stamp
    with path.open("r+b") as file:  # one byte in the middle
        file.seek(500_001)
        file.write(b"b")
    assert Corpus(path).fingerprint() != first and Corpus(path).stamp() != stamp


@settings(deadline=None)
@given(st.lists(st.sampled_from([b"a", b" ", b"\xe9", b"\xff", b"\xc3", b"\xa9", b"\xf0\x9f", b"\xef\xbf\xbd", b"\n"])))
def test_invalid_utf8_is_counted_in_the_same_way_as_for_training(parts: list[bytes]) -> None:
    class Notes(Silence):
        def note(self, text: str, code: str = "note") -> None:
            notes.append((code, text.split()[0]))

    notes: list[tuple[str, str]] = []
    with tempfile.NamedTemporaryFile(suffix=".txt") as file:
        Path(file.name).write_bytes(b"".join(parts) + b" word\n")
        corpus = Corpus(file.name)
        for _ in range(2):  # a second iteration adds nothing
            list(corpus)
        read_tokens(corpus, min_count=1, run=Run(report=Notes()))
    assert notes == ([("invalid_utf8", str(corpus.replaced))] if corpus.replaced else [])


def check_refused(make: Callable[[], object], code: str, **values: object) -> None:
    with refuses(code, **values) as error:
        result = make()
        list(result) if isinstance(result, Corpus) else None
    assert "\n" not in str(error.value)


def test_invalid_sources_are_refused(tmp_path: Path) -> None:
    path = tmp_path / "x"
    check_refused(lambda: Corpus(tmp_path / "none.txt"), "not_found", path=tmp_path / "none.txt")
    check_refused(lambda: Corpus(str(tmp_path / "*.none")), "not_found", pattern=tmp_path / "*.none")
    check_refused(lambda: Corpus(tmp_path), "wrong_input", path=tmp_path, pattern=tmp_path / "**" / "*.txt")
    check_refused(lambda: Corpus(), "missing_option", option="source")
    check_refused(lambda: Corpus(5), "invalid_type", got="int")
    check_refused(lambda: Corpus("x", unit="word"), "invalid_value", choices="line, block, file", got="word")
    check_refused(lambda: Corpus([["a", "b"]]), "wrong_input", n_tokens=2)
    check_refused(lambda: Corpus([1]), "invalid_type", got="int", item=1)
    path.write_bytes(b"MZ\0\0rest")
    check_refused(lambda: Corpus([str(path)]), "wrong_input", item=str(path))
    check_refused(lambda: Corpus(path), "malformed_data", path=path, found="NUL bytes")
    path.write_bytes("text".encode("utf-16"))
    check_refused(lambda: Corpus(path), "invalid_encoding", path=path, encoding="UTF-16")


def test_invalid_records_are_refused(tmp_path: Path) -> None:
    def file(name: str, data: bytes) -> Path:
        (tmp_path / name).write_bytes(data)
        return tmp_path / name

    broken = file("a.jsonl", b'{"text": "a"}\n{"text": \n')
    check_refused(lambda: Corpus(broken), "malformed_data", path=broken, number=2)
    check_refused(lambda: Corpus(file("b.jsonl", b"[1]\n")), "malformed_data", number=1, got="[1]")
    other = file("c.jsonl", b'{"text": "a"}\n{"body": "b", "n": 1}\n')
    check_refused(lambda: Corpus(other), "unknown_column", where=f"{other}, line 2", name="text", available="body, n")
    check_refused(lambda: Corpus(file("d.jsonl", b'{"text": ["a"]}\n')), "malformed_data", name="text", got="list")
    for name, data in (("a.json", b'[{"text": "a"}]'), ("b.JSON.gz", gzip.compress(b"{}"))):
        path = file(name, data)
        command = f"jq -c '.[]' {path} > NEW.jsonl"
        check_refused(partial(Corpus, path), "malformed_data", path=path, command=command)
    assert [document.text for document in Corpus(file("a.json.txt", b"plain"))] == ["plain"]
    two = file("a.csv", b"title,body\nx,y\n")
    check_refused(lambda: Corpus(two), "unknown_column", missing="text", available="title, body")
    check_refused(lambda: Corpus(file("b.csv", b"text,n\na\n")), "malformed_data", number=2, got=1, expected=2)
    unclosed = file("c.csv", b'text,n\n"a,1\n')
    check_refused(lambda: Corpus(unclosed), "malformed_data", where=f"{unclosed}, line 2")
    utf16 = file("a b.txt", "x".encode("utf-16"))
    command = f"iconv -f UTF-16 -t UTF-8 '{utf16}' > NEW."
    check_refused(lambda: Corpus(utf16), "invalid_encoding", path=utf16, command=command)
    empty_csv = file("empty.csv", b"")
    check_refused(lambda: Corpus(empty_csv, column="text"), "unknown_column", name="text", available="none")
    check_refused(lambda: Corpus(two, column="text"), "unknown_column", name="text", available="title, body")
    not_parquet = file("a.parquet", b"PAR1 not")
    check_refused(lambda: Corpus(not_parquet), "malformed_data", path=not_parquet)
    empty = io.BytesIO()
    pyarrow.parquet.write_table(pyarrow.table({"text": pyarrow.array([], pyarrow.string())}), empty)
    no_rows = file("b.parquet", empty.getvalue())
    check_refused(lambda: Corpus(no_rows), "empty_data", path=no_rows)
    parquet = file("c.parquet", as_parquet(TEXTS))
    check_refused(lambda: Corpus(parquet, column="n"), "malformed_data", name="n", got="int64")
    check_refused(lambda: Corpus(parquet, column="body"), "unknown_column", name="body", available="text, n")
    frame = pandas.DataFrame({"a": ["x"], "b": ["y"]})
    check_refused(lambda: Corpus(frame), "unknown_column", missing="text", available="a, b")


@pytest.mark.parametrize("suffix", [".gz", ".xz", ".bz2", ".zst"])
def test_damaged_compression_is_refused(tmp_path: Path, suffix: str) -> None:
    path = tmp_path / f"a.txt{suffix}"
    complete = PACK[suffix](b"some text that is long enough to be cut " * 50)
    for content in (complete[: len(complete) // 2], b"this is no such thing"):
        path.write_bytes(content)
        with pytest.raises(FirthError) as error:
            list(Corpus(path))
        assert error.value.code in ("malformed_data", "unreadable_file") and error.value.values["path"] == path
        assert "\n" not in str(error.value)


def tags_of(corpus: Corpus) -> list[tuple[str, ...]]:
    return [tags for _, tags, _ in corpus.walk()]


RECORDS: list[dict[str, Any]] = [
    {"text": "a", "author": "x", "topics": ["p", "q", "p"]},
    {"text": "b", "author": None, "topics": []},
    {"text": "c", "author": "", "topics": None},
    {"text": "d", "author": 7, "topics": ["x", None, ""]},
]
TAGS = [("x", "p", "q"), (), (), ("7", "x")]  # repeated tags count once; null and "" are not tags


def test_tags_of_json_lines(tmp_path: Path) -> None:
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(record) + "\n" for record in RECORDS))
    assert tags_of(Corpus(path, column="text", tags=["author", "topics"])) == TAGS
    assert tags_of(Corpus(path, column="text", tags="author")) == [("x",), (), (), ("7",)]
    assert tags_of(Corpus(path, column="text")) == [()] * 4
    names = {Corpus(path, column="text", tags=tags).fingerprint() for tags in ((), "author", ("author", "topics"))}
    assert len(names) == 3
    with refuses("unknown_column", where=f"{path}, line 1", name="genre"):
        tags_of(Corpus(path, column="text", tags="genre"))
    path.write_text('{"text": "a", "topics": [["p"]]}\n')
    with refuses("malformed_data", where=f"{path}, line 1", field="tags"):
        tags_of(Corpus(path, tags="topics"))


def test_tags_of_tables(tmp_path: Path) -> None:
    import pyarrow
    import pyarrow.parquet

    table = pyarrow.Table.from_pylist(
        [{**record, "author": record["author"] and str(record["author"])} for record in RECORDS]
    )
    pyarrow.parquet.write_table(table, tmp_path / "records.parquet")
    for source in (table, tmp_path / "records.parquet"):
        assert tags_of(Corpus(source, column="text", tags=("author", "topics"))) == TAGS
    with refuses("unknown_column", name="genre"):
        tags_of(Corpus(table, column="text", tags="genre"))
    (tmp_path / "records.csv").write_text('text,author,place\na,x,"p,q"\nb,,\n')
    assert tags_of(Corpus(tmp_path / "records.csv", column="text", tags=("author", "place"))) == [("x", "p,q"), ()]


def test_tags_of_tuples() -> None:
    items = [("k", "a", ["x", "y"]), (None, "b", ()), "c", Document("d", "e")]
    for source in (items, iter(items)):
        corpus = Corpus(source)
        for _ in range(2):  # an iterator is spilled to a file
            assert tags_of(corpus) == [("x", "y"), (), (), ()]
        assert [key for key, _ in corpus] == ["k", "2", "3", "d"]
    with refuses("wrong_input", n_tokens=3):
        list(Corpus([("three", "tokens", "here")]))


def test_plain_text_has_no_tags(tmp_path: Path) -> None:
    (tmp_path / "plain.txt").write_text("a\n")
    with refuses("unknown_column", source=tmp_path / "plain.txt", name="author"):
        list(Corpus(tmp_path / "plain.txt", tags="author"))


def test_field_values_are_returned_unchanged(tmp_path: Path) -> None:
    import pyarrow

    rows = [{"text": "a", "year": 2020, "place": None}, {"text": "b", "year": 2021.5, "place": ""}]
    path = tmp_path / "records.jsonl"
    path.write_text("".join(json.dumps(row) + "\n" for row in rows))
    expected: list[Any] = [(2020, None), (2021.5, "")]
    for source in (path, pyarrow.Table.from_pylist(rows)):
        assert tags_of(Corpus(source, column="text", fields=("year", "place"))) == expected
    assert Corpus(path, fields=["year"]).fingerprint() != Corpus(path).fingerprint()
    with refuses("unknown_column", where=f"{path}, line 1", name="month"):
        tags_of(Corpus(path, column="text", fields=["month"]))
    with refuses("conflicting_options", options="tags or fields"):
        Corpus(path, fields=["year"], tags="place")
    (tmp_path / "plain.txt").write_text("a\n")
    with refuses("unknown_column", source=tmp_path / "plain.txt", name="year"):
        list(Corpus(tmp_path / "plain.txt", fields=["year"]))
