"""`firth embed` from and to an object store: files without a rename, which the record at the end makes one output."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from stores import Server, Store

import firth
from firth.cli import shards
from firth.cli.main import cli
from firth.core.report import Nothing
from firth.data.corpus_parts import PieceReader, find_parts
from firth.data.world import World
from firth.work.executors import Cluster

SENTENCES = list(World(seed=4).sentences(600))
PROCESSES = ("--cluster", "processes", "--workers", "2")


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A model of words, and two Parquet files with a column that is not read."""
    made = tmp_path_factory.mktemp("local")
    firth.SkipGram(dim=8, epochs=1, min_count=1).fit(firth.Corpus(SENTENCES)).save(made / "model")
    (made / "docs").mkdir()
    for name, texts in (("a", SENTENCES), ("b", SENTENCES[::-1])):
        table = pyarrow.table({"id": [f"{name}{n}" for n in range(len(texts))], "text": texts, "other": texts})
        pyarrow.parquet.write_table(table, made / "docs" / f"{name}.parquet", row_group_size=200)
    return made


def embed(root: Any, *flags: str, output: str = "vectors") -> Any:
    words = ["embed", f"{root}/model", f"{root}/docs/*.parquet", "-o", f"{root}/{output}"]
    return CliRunner().invoke(cli, [*words, "--key", "id", "--shard-rows", "500", "--json", *flags])


def code_of(result: Any) -> str:
    assert result.exit_code == 1, result.output
    return str(json.loads(result.stderr.splitlines()[-1])["error"]["code"])


@pytest.fixture
def copied(bucket: Store, folder: Path) -> Store:
    bucket.put_folder(folder / "model", "model")
    bucket.put_folder(folder / "docs", "docs")
    return bucket


def vectors(store: Store) -> dict[str, bytes]:
    return {name: store.get(name) for name in store.names() if name.startswith("vectors/")}


@pytest.mark.parametrize("kind", ["parquet", "npy"])
def test_workers_read_and_write_urls(copied: Store, folder: Path, kind: str) -> None:
    """Two processes write to a bucket what one process writes to this machine, and nothing else is left there."""
    assert embed(folder, "--shards", kind, output=f"here-{kind}").exit_code == 0
    here = {f"vectors/{path.name}": path.read_bytes() for path in (folder / f"here-{kind}").iterdir()}
    result = embed(copied.url, "--shards", kind, *PROCESSES)
    assert result.exit_code == 0 and json.loads(result.stdout)["rows"] == 2 * len(SENTENCES), result.output
    assert vectors(copied) == here
    again = embed(copied.url, "--shards", kind)
    assert again.exit_code == 0 and "already_finished" in again.stderr


def test_an_interrupted_command_resumes_from_the_objects(copied: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    """The shards are there, but the record does not say that the output is finished."""
    with monkeypatch.context() as patch:
        patch.setattr(shards, "finish", lambda *_: (_ for _ in ()).throw(KeyboardInterrupt))
        assert embed(copied.url, *PROCESSES).exit_code == 130
    assert json.loads(copied.get("vectors/embedding.json"))["finished"] == 0
    parts = {name: content for name, content in vectors(copied).items() if "part-" in name}
    assert len(parts) == 3 and code_of(embed(copied.url, "--shards", "npy")) == "other_run"
    copied.put("vectors/part-00001.parquet", b"half")
    requests = copied.server.requests if copied.server else []
    requests.clear()
    result = embed(copied.url)
    assert result.exit_code == 0 and '"resumed"' in result.stderr, result.output
    names = [each.path.rpartition("/")[2] for each in requests if each.verb in ("PUT", "POST")]
    written = [name for name in names if name]  # without lists of objects to be deleted
    assert {name for name in written if name.endswith(".parquet")} == {"part-00001.parquet"}
    assert written[-1] == "embedding.json"
    finished = vectors(copied)
    assert finished.items() >= parts.items() and set(finished) == {*parts, "vectors/embedding.json"}


def test_workers_request_ranges_of_their_shard(bucket: Store, tmp_path: Path) -> None:
    """Of a Parquet file, the columns that are read in the row groups of the shard, and the metadata."""
    rng, sink = np.random.default_rng(0), pyarrow.BufferOutputStream()
    table = pyarrow.table({"text": SENTENCES[:600], "other": [rng.bytes(500).hex() for _ in range(600)]})
    pyarrow.parquet.write_table(table, sink, row_group_size=200)
    corpus = firth.Corpus(bucket.put("a.parquet", sink.getvalue()))
    parts = find_parts(corpus, tmp_path / "out", Cluster(), Nothing())
    *_, last = parts.parts(200)
    assert bucket.server is not None
    bucket.server.requests.clear()
    texts = [document.text for document, _ in PieceReader(parts.settings, last).walk()]
    assert texts == SENTENCES[400:600]
    reads = [each for each in bucket.server.requests if each.verb == "GET"]
    assert 0 < sum(each.bytes for each in reads) < sink.getvalue().size / 3


def test_a_bucket_that_denies_writing_is_refused_before_the_work(copied: Store, s3_server: Server) -> None:
    with s3_server.denying(lambda request: request.verb in ("PUT", "POST") and "vectors" in request.path):
        assert code_of(embed(copied.url, *PROCESSES)) == "unwritable_file"
    assert not vectors(copied)


def test_a_folder_with_other_objects_is_refused(copied: Store) -> None:
    copied.put("vectors/notes.txt", "mine")
    assert code_of(embed(copied.url)) == "unsafe_output"
    assert vectors(copied) == {"vectors/notes.txt": b"mine"}
