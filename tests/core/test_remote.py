"""Paths that are URLs: names, listings, globs, ranged reads, versions, errors; each with a real S3 server and with the
memory of fsspec."""

from __future__ import annotations

import bz2
import glob
import gzip
import lzma
import pickle
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from refusing import refuses
from samples import SAMPLES, write_samples
from stores import Request, Server, Store

import firth
from firth.core.remote import RemotePath, as_path, is_url
from firth.core.storage import check_writable, new_file, new_folder

TEXTS = ["the king sleeps", "", "zork gnusto", "naïve 日本語"]


def test_what_is_a_url() -> None:
    urls = ["s3://bucket/a", "memory://a", "gs://b/c.txt", "https://example.org/a?b=1"]
    assert all(map(is_url, urls))
    assert not any(map(is_url, ["a.txt", "c:/a", "s3", "a b: //c", "file:///tmp/a", Path("s3://a")]))
    assert as_path("file:///tmp/a%20b") == Path("/tmp/a b")


def test_file_urls_are_paths_of_this_machine(tmp_path: Path) -> None:
    (tmp_path / "a b.txt").write_text("text")
    corpus = firth.Corpus((tmp_path / "a b.txt").as_uri())
    assert [document.text for document in corpus] == ["text"]
    firth.SkipGram(dim=4, min_count=1).fit(["a b", "b c"], firth.Run(threads=1)).save((tmp_path / "model").as_uri())
    assert type(firth.load((tmp_path / "model").as_uri()).method) is firth.SkipGram


def test_names_are_those_of_a_path_and_it_can_be_pickled() -> None:
    path = as_path("s3://bucket/folder/wiki.jsonl.gz")
    assert isinstance(path, RemotePath)
    pure = Path("/bucket/folder/wiki.jsonl.gz")
    assert (path.name, path.suffix, path.suffixes, path.stem) == (pure.name, pure.suffix, pure.suffixes, pure.stem)
    assert str(path.parent / "b") == "s3://bucket/folder/b" and str(path.with_name("c")) == "s3://bucket/folder/c"
    assert str(RemotePath("s3://bucket").parent) == "s3://bucket" and str(as_path("s3://bucket/a/")) == "s3://bucket/a"
    assert pickle.loads(pickle.dumps(path)) == path


def test_files_folders_and_what_does_not_exist(store: Store) -> None:
    store.put("a/b/c.txt", "four")
    file, folder, nothing = (as_path(f"{store.url}/{name}") for name in ("a/b/c.txt", "a/b", "a/d"))
    assert (file.is_file(), file.is_dir(), file.exists(), file.stat().st_size) == (True, False, True, 4)
    assert (folder.is_file(), folder.is_dir(), folder.exists()) == (False, True, True)
    assert not nothing.exists() and list(nothing.iterdir()) == []
    assert [path.name for path in folder.iterdir()] == ["c.txt"]


NAMES = ["a.txt", "b.md", "sub/c.txt", "sub/deep/d.txt", "sub/.hidden/e.txt", "x[1].txt", "sub2/f.txt", "sub/.g.txt"]


@pytest.mark.parametrize(
    "pattern", ["*.txt", "**/*.txt", "sub/*", "sub/**/d.txt", "s*/?.txt", "[ab].*", "[!a].md", "**"]
)
def test_globs_match_as_on_this_machine(bucket: Store, tmp_path: Path, pattern: str) -> None:
    for name in NAMES:
        bucket.put(name, "x")
        path = tmp_path / "here" / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("x")
    here = glob.glob(str(tmp_path / "here" / pattern), recursive=True)  # noqa: PTH207
    expected = sorted(Path(name).relative_to(tmp_path / "here").as_posix() for name in here if Path(name).is_file())
    found = RemotePath(f"{bucket.url}/{pattern}").matches()
    assert sorted(str(path)[len(bucket.url) + 1 :] for path in found) == expected and expected


def compressed(data: bytes, suffix: str) -> bytes:
    ways: dict[str, Callable[[bytes], bytes]] = {
        "": bytes,
        ".gz": gzip.compress,
        ".xz": lzma.compress,
        ".bz2": bz2.compress,
        ".zst": lambda data: pyarrow.compress(data, "zstd", asbytes=True),
    }
    return ways[suffix](data)


@pytest.mark.parametrize("suffix", ["", ".gz", ".xz", ".bz2", ".zst"])
@pytest.mark.parametrize("form", [".txt", ".jsonl", ".csv", ".parquet"])
def test_a_corpus_reads_every_format_and_compression(store: Store, tmp_path: Path, form: str, suffix: str) -> None:
    table = pyarrow.table({"text": TEXTS, "number": [1, 2, 3, 4]})
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(table, sink)
    content = {
        ".txt": "\n".join(TEXTS).encode(),
        ".jsonl": "\n".join(f'{{"text": "{text}"}}' for text in TEXTS).encode(),
        ".csv": ("text,number\n" + "\n".join(f'"{text}",1' for text in TEXTS)).encode(),
        ".parquet": sink.getvalue().to_pybytes(),
    }[form]
    data = compressed(content, suffix)
    path = tmp_path / f"corpus{form}{suffix}"
    path.write_bytes(data)
    here, there = firth.Corpus(path), firth.Corpus(store.put(f"data/corpus{form}{suffix}", data))
    assert list(there) == list(here) and [document.text for document in there] == TEXTS
    assert there.size == len(data) and there.fingerprint() == here.fingerprint()


def test_a_corpus_of_a_folder_and_of_a_glob(store: Store) -> None:
    for name in ("a.txt", "sub/b.txt", "sub/c.bin", ".hidden/d.txt"):
        store.put(f"data/{name}", f"text {name}")
    folder = firth.Corpus(f"{store.url}/data")
    assert [document.text for document in folder] == ["text a.txt", "text sub/b.txt"]
    assert folder.sources[0].name == f"{store.url}/data/a.txt"
    assert [document.text for document in firth.Corpus(f"{store.url}/data/*.txt")] == ["text a.txt"]
    assert pickle.loads(pickle.dumps(folder.sources[1])).path == as_path(f"{store.url}/data/sub/b.txt")


def test_only_the_columns_that_are_read_are_requested(bucket: Store) -> None:
    rng = np.random.default_rng(0)
    columns = {"text": [f"text {n}" for n in range(2000)], "other": [rng.bytes(500).hex() for _ in range(2000)]}
    sink = pyarrow.BufferOutputStream()
    pyarrow.parquet.write_table(pyarrow.table(columns), sink, row_group_size=500)
    url = bucket.put("rows.parquet", sink.getvalue())
    assert bucket.server is not None
    bucket.server.requests.clear()
    assert [document.text for document in firth.Corpus(url)] == columns["text"]
    read = sum(request.bytes for request in bucket.server.requests if request.verb == "GET")
    assert 0 < read < sink.getvalue().size / 10


def test_the_stamp_follows_the_content(store: Store) -> None:
    url = store.put("a.txt", "one")
    first = firth.Corpus(url).stamp()
    assert firth.Corpus(url).stamp() == first
    store.put("a.txt", "two")  # as long, and within the same second
    assert firth.Corpus(url).stamp() != first


@pytest.fixture(scope="session")
def files(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_samples(tmp_path_factory.mktemp("samples"))


@pytest.mark.parametrize("kind", SAMPLES, ids=lambda kind: str(kind.__name__))
def test_every_type_of_data_reads_urls(bucket: Store, files: Path, kind: Any) -> None:
    path = files / SAMPLES[kind].file
    here, there = kind(str(path)), kind(bucket.put(path.name, path.read_bytes()))
    assert there.fingerprint() == here.fingerprint() is not None


def test_other_files_at_urls(bucket: Store, tmp_path: Path) -> None:
    """SQuAD, parallel files, tokenizers, evaluation files, vectors in every format."""
    squad = (
        '{"data": [{"paragraphs": [{"context": "the king", "qas": [{"id": "1", "question": "who?", "answers": []}]}]}]}'
    )
    assert [row.question for row in firth.Questions(bucket.put("squad.json", squad))] == ["who?"]
    sides = [bucket.put("a.de", "eins\nzwei"), bucket.put("a.en", "one\ntwo")]
    assert [tuple(pair) for pair in firth.TranslationPairs(*sides)] == [("eins", "one"), ("zwei", "two")]
    from firth.evaluate.analogy import read_questions
    from firth.evaluate.sentences import read_sentence_pairs

    assert read_questions(bucket.put("q.txt", ": a\nking man queen woman\n"))[0].name == "a"
    assert read_sentence_pairs(bucket.put("s.csv", "a b,c d,1\n"))[0].b == "c d"
    vectors = firth.Vectors(["a", "b"], np.array([[1, 2], [3, 4]], np.float32))
    for name in ("v.txt", "v.bin", "v.vec", "v.glove", "v.npy", "v.safetensors"):
        firth.write_vectors(vectors, f"{bucket.url}/out/{name}")
        again = firth.read_vectors(f"{bucket.url}/out/{name}")
        assert again.keys == vectors.keys and np.array_equal(again.matrix, vectors.matrix), name
        firth.write_vectors(vectors, tmp_path / name)
        assert bucket.get(f"out/{name}") == (tmp_path / name).read_bytes()


# ---- errors ----


def test_what_does_not_exist_is_refused_with_its_url(store: Store) -> None:
    url = f"{store.url}/no.txt"
    with refuses("not_found", path=url):
        firth.Corpus(url)
    with refuses("not_found", pattern=f"{store.url}/*.txt"):
        firth.Corpus(f"{store.url}/*.txt")
    with refuses("not_found", url=f"{store.url}/model"):
        firth.load(f"{store.url}/model")


def test_a_bucket_that_does_not_exist(bucket: Store) -> None:
    with refuses("not_found", path="s3://no-such-bucket/a.txt"):
        firth.Corpus("s3://no-such-bucket/a.txt")
    with (
        refuses("unwritable_file", path="s3://no-such-bucket/a") as caught,
        new_file(as_path("s3://no-such-bucket/a")),
    ):
        raise AssertionError("the work must not start")
    assert caught.value.values["reason"]


def test_a_bucket_that_denies_writing_is_noticed_before_the_work(bucket: Store, s3_server: Server) -> None:
    bucket.put("a/old.txt", "old")
    with s3_server.denying(lambda request: request.verb in ("PUT", "POST", "DELETE")):
        for make in (new_file, new_folder):
            with refuses("unwritable_file"), make(as_path(f"{bucket.url}/a/new")):
                raise AssertionError("the work must not start")
    assert bucket.names() == ["a/old.txt"]


def test_an_object_that_cannot_be_read(bucket: Store, s3_server: Server) -> None:
    url = bucket.put("a.txt", "text")
    corpus = firth.Corpus(url)
    with s3_server.denying(lambda request: request.verb in ("GET", "HEAD")), refuses("unreadable_file", path=url):
        list(corpus)
    with s3_server.denying(lambda request: request.verb == "GET"), refuses("unreadable_file", path=url):
        list(corpus)


def test_missing_credentials_are_named(
    bucket: Store, s3_server: Server, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    url = bucket.put("a.txt", "text")
    monkeypatch.delenv("AWS_ACCESS_KEY_ID")
    monkeypatch.delenv("AWS_SECRET_ACCESS_KEY")
    monkeypatch.setenv("HOME", str(tmp_path))

    def unsigned(request: Request) -> bool:
        return not request.signed

    with s3_server.denying(unsigned), refuses("unreadable_file", path=url) as caught:
        firth.Corpus(url)
    assert "AWS_ACCESS_KEY_ID" in caught.value.values["reason"]


def test_no_server_at_the_endpoint(bucket: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("AWS_ENDPOINT_URL", "http://127.0.0.1:9")
    with refuses("unreadable_file", path=f"{bucket.url}/a.txt") as caught:
        firth.Corpus(f"{bucket.url}/a.txt")
    assert "127.0.0.1:9" in caught.value.values["reason"]


def test_schemes(monkeypatch: pytest.MonkeyPatch) -> None:
    with refuses("wrong_input", url="nonsense://a/b.txt"):
        firth.Corpus("nonsense://a/b.txt")
    monkeypatch.setitem(__import__("sys").modules, "gcsfs", None)
    with refuses("missing_package", package="gcsfs", what="gs://a/b.txt needs"):
        firth.Corpus("gs://a/b.txt")
    monkeypatch.setitem(__import__("sys").modules, "fsspec.core", None)
    with refuses("missing_package", package="fsspec", what="memory://a/b.txt needs"):
        firth.Corpus("memory://a/b.txt")


def test_no_folder_is_named_as_a_url(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    path = Path("s3://bucket/a")
    for make in (new_file, new_folder):
        with refuses("unsafe_output", url="s3://bucket/a"), make(path):
            pass
    with refuses("unsafe_output", url="s3://bucket/a"):
        check_writable(path)
    assert list(tmp_path.iterdir()) == []
