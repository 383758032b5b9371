"""Encoding on a cluster: the same bytes as in one process, for every kind of file, tokenizer and setting."""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import time
from collections.abc import Iterator, Mapping
from itertools import chain
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from refusing import refuses

from firth.core.report import Nothing
from firth.core.run import Run
from firth.data import cache, corpus_shards, shard_encoding, tokens
from firth.data.corpus import Corpus
from firth.data.streams import write_final
from firth.data.subword_tokens import encode_corpus
from firth.data.subwords import BPE, WordPiece
from firth.data.tokens import Tokens, read_tokens

WORDS = ["the", "river", "King's", "sleeps", "Größe", "naïve", "3.14", "e\u0301t\u00e9", "中文字", "x"]
ONE = Run(report=Nothing())
TWO = Run(cluster="processes", workers=2, report=Nothing())


@pytest.fixture(autouse=True)
def small_shards(monkeypatch, tmp_path) -> Iterator[None]:
    """Small files have several shards, and workers can import this module."""
    monkeypatch.setattr(corpus_shards, "LEAST_BYTES", 700)
    monkeypatch.setattr(corpus_shards, "PROBE", 16)
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(sys.modules, "test_shard_encoding", sys.modules[__name__])
    for function in (shouts, dies_once):
        monkeypatch.setattr(function, "__module__", "test_shard_encoding")
    yield


def shouts(text: str) -> list[str]:
    """A tokenizer that workers import."""
    return [word.upper() + "!" for word in text.split()]


def dies_once(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Encode a shard, but the first worker of the second one dies."""
    died = Path(common["stamp"])
    if parameters["name"] == "000001" and not died.exists():
        died.touch()
        os.kill(os.getpid(), signal.SIGKILL)
    return shard_encoding.encode_shard(common, parameters, folder)


def text(seed: int, lines: int = 120) -> str:
    """Lines with repeated words, empty lines, phrases and few words that occur once."""
    rng = random.Random(seed)

    def line() -> str:
        words = rng.choices(WORDS, weights=range(len(WORDS), 0, -1), k=rng.randrange(12))
        return " ".join([*words, *(["new york"] if rng.random() < 0.3 else []), *([f"w{rng.randrange(200)}"] * 2)])

    return "\n".join("" if rng.random() < 0.15 else line() for _ in range(lines))


def write_files(folder: Path) -> dict[str, list[Path]]:
    """Files of every format, by name; large ones have several shards."""
    texts = [text(seed) for seed in range(3)]
    records = [{"id": f"k{n}", "text": line, "tag": ["a", "b"][: n % 3]} for n, line in enumerate(texts[0].split("\n"))]
    files = {name: folder / name for name in ("a.txt", "b.txt", "c.txt", "d.jsonl", "e.parquet", "f.csv", "g.txt.gz")}
    files["a.txt"].write_bytes(b"\xef\xbb\xbf" + texts[0].encode() + b"\n\n \n\nend")
    files["b.txt"].write_bytes(texts[1].encode() + b" \xff\xfe\n\xef\xbb\xbflate mark\n")
    files["c.txt"].write_text("tiny")
    files["d.jsonl"].write_text("\n".join(json.dumps(record) for record in records))
    table = pa.table({"id": [r["id"] for r in records], "text": [r["text"] for r in records]})
    pq.write_table(table, files["e.parquet"], row_group_size=17, compression="none", use_dictionary=False)
    files["f.csv"].write_text(
        "id,text\n" + "".join(f'{n},"{line}\n second"\n' for n, line in enumerate(texts[2].split("\n")))
    )
    import gzip

    files["g.txt.gz"].write_bytes(gzip.compress(texts[2].encode()))
    return {
        "texts": [files[n] for n in ("a.txt", "b.txt", "c.txt")],
        **{n: [path] for n, path in files.items()},
        "all": [*list(files.values())[:3], files["g.txt.gz"]],
    }


def entry(run: Run, corpus: Corpus, folder: Path, monkeypatch: Any, **settings: Any) -> tuple[dict[str, Any], Tokens]:
    """The files and metadata of the cache entry of a corpus, in an empty cache."""
    monkeypatch.setenv("FIRTH_CACHE", str(folder))
    found = read_tokens(corpus, run=run, **settings)
    [path] = [path for path in folder.iterdir() if (path / cache.ENTRY).exists()]
    assert not [path for path in folder.iterdir() if path.name.startswith(cache.JOB)]
    contents: dict[str, Any] = {each.name: each.read_bytes() for each in path.iterdir() if each.name != cache.ENTRY}
    metadata = json.loads((path / cache.ENTRY).read_bytes())
    return {**contents, "entry": metadata, "name": path.name}, found


def same(tmp_path: Path, monkeypatch: Any, make: Any, run: Run = TWO, **settings: Any) -> Tokens:
    """Check that a cluster gives the cache entry of one process; return the tokens."""
    expected, one = entry(ONE, make(), tmp_path / "one", monkeypatch, **settings)
    got, two = entry(run, make(), tmp_path / "two", monkeypatch, **settings)
    assert got == expected
    assert (two.keys, two.tags, two.fingerprint) == (one.keys, one.tags, one.fingerprint)
    assert len(corpus_shards.shards_of(make())) > 1
    return two


@pytest.mark.parametrize("unit", ["line", "block", "file"])
@pytest.mark.parametrize("keys", [False, True])
def test_text_files(tmp_path, monkeypatch, unit, keys):
    files = write_files(tmp_path)["all"]
    tokens = same(tmp_path, monkeypatch, lambda: Corpus(*files, unit=unit), min_count=2, keys=keys)
    assert len(tokens) > 3 and len(tokens.vocabulary) > 10


@pytest.mark.parametrize("name", ["d.jsonl", "e.parquet", "f.csv"])
def test_records_with_keys_and_tags(tmp_path, monkeypatch, name):
    [path] = write_files(tmp_path)[name]
    tags = "tag" if name == "d.jsonl" else ()

    def make() -> Corpus:
        return Corpus(path, tmp_path / "b.jsonl", key="id", tags=tags, column="text")

    (tmp_path / "b.jsonl").write_text(json.dumps({"text": "another river", "id": "last", "tag": None}))
    tokens = same(tmp_path, monkeypatch, make, min_count=1, keys=True)
    assert tokens.keys[-1] == "last" and len(tokens) == 121 and bool(tokens.tags) == bool(tags)


@pytest.mark.parametrize("tokenizer", ["whitespace", "characters", pytest.param(shouts, id="function")])
def test_tokenizers(tmp_path, monkeypatch, tokenizer):
    files = write_files(tmp_path)["texts"]
    if isinstance(tokenizer, str):
        same(tmp_path, monkeypatch, lambda: Corpus(*files), min_count=1, tokenizer=tokenizer, lowercase=False)
        return
    one, two = (read_tokens(Corpus(*files), min_count=1, tokenizer=shouts, run=run) for run in (ONE, TWO))
    assert one.fingerprint == two.fingerprint and "THE!" in two.vocabulary


def test_settings_of_the_vocabulary(tmp_path, monkeypatch):
    files = write_files(tmp_path)["texts"]
    start = Tokens.from_lists([["sleeps", "unseen", "x"]]).vocabulary
    make = lambda: Corpus(*files)  # noqa: E731
    assert same(tmp_path / "1", monkeypatch, make, min_count=None).vocabulary.min_count == 1
    assert len(same(tmp_path / "2", monkeypatch, make, min_count=2, max_size=5).vocabulary) == 5
    continued = same(tmp_path / "3", monkeypatch, make, min_count=3, start_vocabulary=start)
    assert list(continued.vocabulary.tokens[:3]) == list(start.tokens)


def test_phrases(tmp_path, monkeypatch):
    files = write_files(tmp_path)["texts"]
    tokens = same(tmp_path / "1", monkeypatch, lambda: Corpus(*files), min_count=2, phrases=2)
    assert "new_york" in tokens.vocabulary
    start: dict[str, Any] = {"start_vocabulary": tokens.vocabulary, "start_phrases": tokens.phrases}
    more = same(tmp_path / "2", monkeypatch, lambda: Corpus(*files), min_count=2, phrases=1, **start)
    assert list(more.vocabulary.tokens[: len(tokens.vocabulary)]) == list(tokens.vocabulary.tokens)


def test_a_killed_worker_changes_nothing(tmp_path, monkeypatch):
    files = write_files(tmp_path)["texts"]
    died = tmp_path / "died"
    monkeypatch.setattr(tokens, "ShardEncoder", dying(died))
    same(tmp_path, monkeypatch, lambda: Corpus(*files), min_count=2)
    assert died.exists()


def dying(died: Path) -> type[shard_encoding.ShardEncoder]:
    """An encoder whose function dies once."""

    class Dying(shard_encoding.ShardEncoder):
        def __init__(self, *args: Any) -> None:
            super().__init__(*args)
            self.common["stamp"] = str(died)
            self.function = dies_once

    return Dying


def test_a_failed_job_continues(tmp_path, monkeypatch):
    """Finished shards are kept in the cache; the job's folder disappears when it is finished."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    files = write_files(tmp_path)["texts"]

    def fail(*args: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as broken:
        broken.setattr(tokens, "write_final", fail)
        with pytest.raises(KeyboardInterrupt):
            read_tokens(Corpus(*files), run=TWO)
    [left] = (tmp_path / "cache").glob(f"{cache.JOB}*")
    written = {path.name: path.stat().st_mtime_ns for path in (left / "scratch").glob("*.ids")}
    assert len(written) > 2

    def keep_times(pieces: Any, folder: Path, threads: int) -> None:
        assert {path.name: path.stat().st_mtime_ns for path in (folder / "scratch").glob("*.ids")} == written
        write_final(pieces, folder, threads)

    monkeypatch.setattr(tokens, "write_final", keep_times)
    again = read_tokens(Corpus(*files), run=TWO)
    assert again.fingerprint == read_tokens(Corpus(*files, unit="line"), run=ONE).fingerprint
    assert not list((tmp_path / "cache").glob(f"{cache.JOB}*"))


def test_an_error_names_the_line_in_the_file(tmp_path):
    path = tmp_path / "bad.jsonl"
    lines = [json.dumps({"text": f"line {number} of the file"}) for number in range(100)]
    lines[77] = '{"text": '
    path.write_text("\n".join(lines))
    for run in (ONE, TWO):
        with pytest.raises(ValueError) as caught:
            read_tokens(Corpus(path), run=run)
        assert caught.value.code == "malformed_data" and caught.value.values["number"] == 78  # type: ignore[attr-defined]


def test_the_first_record_selects_the_text_column_of_all_shards(tmp_path, monkeypatch):
    path = tmp_path / "a.jsonl"
    records = [{"body": "the river sleeps", "n": 1}] + [{"title": "no", "body": f"word {n}"} for n in range(100)]
    path.write_text("\n".join(map(json.dumps, records)))
    assert "no" not in same(tmp_path, monkeypatch, lambda: Corpus(path), min_count=1).vocabulary


def test_shards_do_not_depend_on_the_workers_and_end_with_documents(tmp_path):
    files = write_files(tmp_path)["texts"]
    corpus = Corpus(*files, unit="block")
    shards = corpus_shards.shards_of(corpus)
    texts = [
        [
            document.text
            for document in corpus_shards.shard_corpus(corpus_shards.corpus_settings(corpus), shard.parameters["parts"])
        ]
        for shard in shards
    ]
    assert list(chain(*texts)) == [document.text for document in corpus]
    assert sum(shard.size for shard in shards) == corpus.size


@pytest.mark.parametrize("unit", ["line", "block", "file"])
@pytest.mark.parametrize("end", ["", "<|endoftext|>"])
def test_subword_ids(tmp_path, monkeypatch, unit, end):
    files = write_files(tmp_path)["all"]
    tokenizer = BPE(size=300).train(Corpus(*files), ONE)
    entries = []
    for name, run in (("one", ONE), ("two", TWO)):
        monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / name))
        encoded = encode_corpus(tokenizer, Corpus(*files, unit=unit), run, end)
        [path] = (tmp_path / name).glob(f"*/{cache.ENTRY}")
        entries.append(
            {file.name: file.read_bytes() for file in path.parent.iterdir()} | {"": path.parent.name.encode()}
        )
        assert len(encoded) > 3
    assert entries[0] == entries[1]


def local(text: str) -> list[str]:
    return text.split()


def test_what_workers_cannot_read_is_refused(tmp_path, monkeypatch):
    path = write_files(tmp_path)["texts"][0]
    with refuses("unsupported_cluster", source="2 documents"):
        read_tokens(["a text", "another"], run=TWO)
    with refuses("unsupported_cluster", source="a list of tokens"):
        read_tokens([["a", "text"]], run=TWO)
    monkeypatch.setattr(local, "__module__", "__main__")
    with refuses("unsupported_cluster", name="__main__.local"):
        read_tokens(Corpus(path), tokenizer=local, run=TWO)
    with refuses("conflicting_options", options="memory and cluster"):
        read_tokens(Corpus(path), run=Run(cluster="processes", memory="1GB"))


def test_a_cache_that_is_not_shared_is_explained(tmp_path, monkeypatch):
    from firth.data import shard_jobs

    def not_shared(*args: Any) -> None:
        from firth.core.errors import FirthError

        path = str(cache.cache_folder() / "job" / "scratch")
        raise FirthError("not_shared", "{path} is not the same.", path=path, host="node", expected="a", got="b")

    monkeypatch.setattr(shard_jobs, "run_job", not_shared)
    with pytest.raises(ValueError, match="set FIRTH_CACHE to a folder that all machines share"):
        read_tokens(Corpus(write_files(tmp_path)["texts"][0]), run=TWO)


@pytest.mark.parametrize("settings", [BPE(size=300), WordPiece(size=120), BPE(size=100, level="characters")], ids=str)
@pytest.mark.parametrize("unit", ["line", "block"])
def test_subword_tokenizers_are_the_same(tmp_path, settings, unit):
    corpus = Corpus(*write_files(tmp_path)["texts"], unit=unit)
    one, two = (settings.train(corpus, run) for run in (ONE, TWO))
    assert one.to_json() == two.to_json() and (one.merges or one.kind == "wordpiece")


def test_folders_of_jobs(tmp_path, monkeypatch):
    """A job that runs already gets another folder; those that nobody continued are removed after a week."""
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path))
    with cache.job_folder("a") as first, cache.job_folder("a") as second:
        assert first != second and first.is_dir() and second.is_dir()
        os.utime(first, (0, 0))
    assert not list(tmp_path.iterdir())
    for name, age in (("new", cache.JOB_SECONDS - 60), ("old", cache.JOB_SECONDS + 60)):
        folder = tmp_path / f"{cache.JOB}{name}"
        folder.mkdir()
        os.utime(folder, (time.time() - age,) * 2)
    with cache.job_folder("a"):
        assert sorted(path.name for path in tmp_path.iterdir()) == [f"{cache.JOB}a", f"{cache.JOB}new"]
