"""`firth index build --cluster`: the index that one process builds."""

from __future__ import annotations

import json
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import firth
from firth.cli.index import cluster as index_cluster
from firth.cli.main import cli
from firth.data.world import World
from firth.index.folder import read_manifest, verify_index

SENTENCES = list(World(seed=4).sentences(800))
PROCESSES = ("--cluster", "processes", "--workers", 2)


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Two files, a model of words, and the index that one process builds."""
    made = tmp_path_factory.mktemp("index")
    rows = [{"id": f"t{n}", "text": text, "year": 1900 + n % 7} for n, text in enumerate([*SENTENCES, "", "unheard"])]
    for name, part in (("a.jsonl", rows[:300]), ("b.jsonl", rows[300:])):
        (made / name).write_text("".join(json.dumps(row) + "\n" for row in part))
    firth.SkipGram(dim=64, epochs=1, min_count=1).fit(firth.Corpus(SENTENCES)).save(made / "model")
    result = build(made, "alone")
    assert result.exit_code == 0, result.output
    return made


@pytest.fixture(autouse=True)
def small_segments(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(index_cluster, "SEGMENT_ROWS", 90)


def build(folder: Path, output: str, *flags: Any) -> Any:
    data = (folder / "a.jsonl", folder / "b.jsonl")
    words = ["index", "build", folder / "model", *data, "--key", "id", "--attributes", "year", "-o", folder / output]
    return CliRunner().invoke(cli, [str(word) for word in [*words, "--json", *flags]])


def content(folder: Path) -> dict[str, Any]:
    """The bytes of the arrays of the only segment, and its columns; a merged segment orders them differently."""
    verify_index(folder)
    [segment] = firth.Index.open(folder).store.state.segments
    assert segment.terms is not None
    arrays = {name: (segment.array(name).dtype, segment.array(name).tobytes()) for name in segment.arrays}
    return {**arrays, **segment.table.to_pydict(), "words": segment.terms.to_pylist()}


def counts(result: Any) -> dict[str, Any]:
    assert result.exit_code == 0, result.output
    return {
        name: value for name, value in json.loads(result.stdout).items() if name in ("rows", "unknown", "zero_rows")
    }


def test_workers_build_the_same_index(folder):
    result = build(folder, "two", *PROCESSES)
    assert counts(result) == {"rows": 802, "unknown": 1, "zero_rows": 2}
    assert content(folder / "two") == content(folder / "alone")
    assert sorted(path.name for path in (folder / "two").iterdir() if "segment" not in path.name) == [
        "index.json",
        "lock",
    ]
    ours, theirs = (firth.Index.open(folder / name, firth.load(folder / "model")) for name in ("two", "alone"))
    assert ours.search("the king", 5, where="year > 1903") == theirs.search("the king", 5, where="year > 1903")
    assert "already finished" in build(folder, "two").stdout
    ours.add(["new"], np.ones((1, 64)), {"text": ["x"], "year": [2000]})
    assert len(firth.Index.open(folder / "two")) == 803


@pytest.mark.parametrize("flags", [PROCESSES, ()], ids=["with-workers", "in-this-process"])
def test_an_interrupted_build_resumes(folder, monkeypatch, flags):
    """Stopped before the commit: with workers finished segments are kept, and without them the build begins anew."""
    from firth.index.store import Store

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    output = folder / f"stopped-{len(flags)}"
    with monkeypatch.context() as patch:
        patch.setattr(Store, "adopt", stop)
        assert build(folder, output.name, *PROCESSES).exit_code == 130
    segments = output / ".shards" / "segments"
    times = {path.name: path.stat().st_mtime_ns for path in segments.glob("*.safetensors")}
    assert len(times) == 9 and len(firth.Index.open(output)) == 0
    with monkeypatch.context() as patch:
        patch.setattr("firth.work.job.compute", lambda *_: pytest.fail("nothing is missing"))
        assert counts(build(folder, output.name, *flags))["rows"] == 802
    assert content(output) == content(folder / "alone") and not (output / ".shards").exists()


def test_a_build_that_one_process_began_continues_with_workers(folder, monkeypatch):
    from firth.cli.index import build as module

    def first_three(*some: Any) -> Any:
        yield from list(islice(real(*some), 3))
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(module, "COMMIT", 100)
        patch.setattr(module, "BATCH", 100)
        real = module.batches
        patch.setattr(module, "batches", first_three)
        assert build(folder, "begun").exit_code == 130
    assert len(firth.Index.open(folder / "begun")) == 300
    assert counts(build(folder, "begun", *PROCESSES))["rows"] == 802
    assert content(folder / "begun") == content(folder / "alone")
    assert len(read_manifest(folder / "begun")["segments"]) == 1


def test_repeated_keys_are_refused(folder, tmp_path):
    """In different segments, where no worker sees both."""
    (folder / "twice.jsonl").write_text((folder / "a.jsonl").read_text() * 2)
    words = ["index", "build", folder / "model", folder / "twice.jsonl", "--key", "id", "-o", tmp_path / "index"]
    result = CliRunner().invoke(cli, [str(word) for word in [*words, *PROCESSES, "--json"]])
    error = json.loads(result.stderr.splitlines()[-1])["error"]
    assert error["code"] == "duplicate_name" and error["values"]["count"] == 300


def test_an_unfinished_build_is_replaced(folder, monkeypatch):
    """With other options, or with --overwrite, nothing of it is left."""
    from firth.index.store import Store

    def stop(*_: Any) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(Store, "adopt", stop)
        assert build(folder, "replaced", *PROCESSES).exit_code == 130
    assert counts(build(folder, "replaced", *PROCESSES, "--metric", "dot"))["rows"] == 802
    assert not (folder / "replaced" / ".shards").exists()
    assert firth.Index.open(folder / "replaced").space.metric == "dot"


def test_the_model_may_be_at_a_url(folder, bucket):
    bucket.put_folder(folder / "model", "model")
    data = (str(folder / "a.jsonl"), str(folder / "b.jsonl"))
    words = ["index", "build", f"{bucket.url}/model", *data, "--key", "id", "--attributes", "year", "--json"]
    result = CliRunner().invoke(cli, [*words, "-o", str(folder / "remote"), *map(str, PROCESSES)])
    assert counts(result) == {"rows": 802, "unknown": 1, "zero_rows": 2}
    assert content(folder / "remote") == content(folder / "alone")
