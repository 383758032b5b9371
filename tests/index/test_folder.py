"""An index on disk: atomic commits, a single writer, validated files."""

from __future__ import annotations

import importlib.util
import json
import os
import random
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

import firth
from firth.index import Index, verify_index

spec = importlib.util.spec_from_file_location("writer", Path(__file__).parent / "writer.py")
writer: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
spec.loader.exec_module(writer)  # type: ignore[union-attr]

DIM = writer.DIM


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    return tmp_path / "index"


def some_rows(count: int, prefix: str = "k", seed: int = 0) -> tuple[list[str], np.ndarray]:
    return [f"{prefix}{i}" for i in range(count)], np.random.default_rng(seed).normal(size=(count, DIM))


def started(folder: Path, *arguments: object) -> subprocess.Popen[str]:
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, writer.__file__, str(folder), *map(str, arguments)]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def check(folder: Path, states: dict[int, dict[str, bytes]], acknowledged: int) -> int:
    """After a kill, check that the files match the manifest and contain exactly the rows of that commit."""
    index = Index.open(folder)
    commit = int(index.store.manifest["commit"])
    assert acknowledged <= commit
    verify_index(folder)
    assert writer.contents(index) == states[commit]
    if len(index):
        hit = index.search(np.ones(DIM), 1, exact=True)[0]
        assert hit.key in states[commit] and hit.attributes["text"]
    return commit


def test_a_kill_at_any_disk_operation_leaves_the_last_commit(folder):
    """The process kills itself just before its 1st, 2nd, … sync, rename or removal, and the next one continues."""
    states, ends = writer.replayed(writer.STEPS)
    Index.create(folder, dim=DIM)
    commits = []
    for touch in (1, 2, 3, 5, 8, 13, 90, 4, 9):
        child = started(folder, ends, touch)
        out, err = child.communicate()
        assert child.returncode == -9, err
        commits.append(check(folder, states, int(out.split()[-1]) if out else 0))
    assert commits[-1] > 7 and commits == sorted(commits)


def test_kills_at_any_time_leave_the_last_commit(folder):
    states, ends = writer.replayed(writer.STEPS)
    Index.create(folder, dim=DIM)
    rng = random.Random(1)
    for _ in range(4):
        child = started(folder, ends)
        assert child.stdout is not None
        for _ in range(rng.randint(1, 6)):
            acknowledged = int(child.stdout.readline() or 0)  # it is writing the next commit
        child.kill()
        rest = child.stdout.read().split()
        child.wait()
        commit = check(folder, states, int(rest[-1]) if rest and rest[-1].isdigit() else acknowledged)
        if commit >= writer.STEPS - 5:
            break


def test_files_of_an_unfinished_commit_are_removed_by_the_next_writer(folder):
    with Index.create(folder, dim=DIM) as index:
        index.add(*some_rows(3))
    (folder / "segment-9.safetensors").write_bytes(b"half")
    (folder / "notes.safetensors").write_bytes(b"not ours")
    Index.open(folder)
    assert (folder / "segment-9.safetensors").exists()  # readers remove nothing
    with Index.open(folder) as index:
        index.delete(["k0"])
    names = {path.name for path in folder.iterdir()}
    assert names == {
        "index.json", "lock", "notes.safetensors", "segment-1.safetensors", "segment-1.arrow", "deleted-2.safetensors",
    }  # fmt: skip


def test_a_second_writer_is_refused_and_the_first_is_named(folder):
    first = Index.create(folder, dim=DIM)
    second = Index.open(folder)
    first.add(*some_rows(3))
    with refuses("locked", folder=folder, holder=f"process {os.getpid()}"):
        second.add(*some_rows(3, "other"))
    assert len(second) == 0 and len(Index.open(folder)) == 3
    first.close()
    second.add(*some_rows(2, "other"))  # starts from the commit of the first
    assert len(second) == 5 and "k2" in second


def test_a_writer_in_another_process_is_refused(folder):
    index = Index.create(folder, dim=DIM)
    index.add(["0-0"], np.ones((1, DIM)), {"step": [0], "text": ["x"]})
    child = started(folder, [1, 2, 3])
    _, err = child.communicate()
    assert child.returncode == 1 and f"is being written by process {os.getpid()}" in err


def test_readers_keep_the_commit_that_they_opened(folder):
    with Index.create(folder, dim=DIM) as index:
        keys, matrix = some_rows(20)
        index.add(keys, matrix)
        reader = Index.open(folder)
        index.delete(keys[:10])
        index.optimize()
        assert len(reader) == 20 and np.allclose(reader["k3"], matrix[3])
        assert len(Index.open(folder)) == 10


def test_readers_open_while_a_writer_replaces_files(folder):
    """A reader always sees one complete commit: the rows of one round, or of two during an update."""
    done = threading.Event()
    with Index.create(folder, dim=DIM) as index:
        index.add(*some_rows(50, "0-"))

        def write() -> None:
            for number in range(1, 25):
                keys = [f"{number}-{i}" for i in range(50)]
                index.update(keys, np.full((50, DIM), number))
                index.delete([f"{number - 1}-{i}" for i in range(50)])
                index.optimize()
            done.set()

        thread = threading.Thread(target=write)
        thread.start()
        opened = 0
        while not done.is_set():
            reader = Index.open(folder)
            assert len(reader) in (50, 100)
            assert len({key.partition("-")[0] for key in writer.contents(reader)}) == len(reader) // 50
            opened += 1
        thread.join()
    assert opened > 3


def test_opening_maps_files_into_memory(folder):
    with Index.create(folder, dim=DIM, dtype="int8") as index:
        index.add(*some_rows(100))
    opened = Index.open(folder).store.state.segments[0]
    assert all(isinstance(opened.array(name), np.memmap) for name in ("vectors", "codes", "hashes"))


@pytest.mark.parametrize("suffix", [".safetensors", ".arrow", "-words.arrow"])
def test_truncated_files_are_named_when_opened(folder, suffix):
    with Index.create(folder, dim=DIM) as index:
        keys, matrix = some_rows(10)
        index.add(keys, matrix, {"text": keys})
    path = folder / f"segment-1{suffix}"
    path.write_bytes(path.read_bytes()[:-3])
    size = path.stat().st_size
    with refuses("damaged_index", path=path, got=size, expected=size + 3):
        Index.open(folder)
    path.unlink()
    with refuses("damaged_index", folder=folder, name=f"segment-1{suffix}"):
        Index.open(folder)


@pytest.mark.parametrize("suffix", ["segment-1.safetensors", "segment-1.arrow", "deleted-2.safetensors"])
def test_modified_files_are_named_by_verify(folder, suffix):
    with Index.create(folder, dim=DIM) as index:
        index.add(*some_rows(10))
        index.delete(["k0"])
    assert set(verify_index(folder)) == {"segment-1.safetensors", "segment-1.arrow", "deleted-2.safetensors"}
    data = bytearray((folder / suffix).read_bytes())
    data[len(data) // 2] ^= 1
    (folder / suffix).write_bytes(data)
    with refuses("hash_mismatch", path=folder / suffix) as caught:
        verify_index(folder)
    assert caught.value.values["got"] != caught.value.values["expected"]


def test_invalid_string_offsets_are_refused(folder):
    """A modified string offset would make Arrow read outside the file."""
    with Index.create(folder, dim=DIM) as index:
        keys, matrix = some_rows(10)
        index.add(keys, matrix, {"text": ["some text"] * 10})
    path = folder / "segment-1.arrow"
    data = path.read_bytes()
    ends = np.arange(0, 99, 9, dtype="<i8").tobytes()  # where the ten texts of nine letters begin and end
    assert data.count(ends) == 1
    for position, value in ((5, 10**12), (10, 91), (3, -1)):
        changed = np.arange(0, 99, 9, dtype="<i8")
        changed[position] = value
        path.write_bytes(data.replace(ends, changed.tobytes()))
        with refuses("damaged_index", path=path):
            Index.open(folder)


RECORD = {"bytes": 1, "sha256": ""}


@pytest.mark.parametrize(
    ("change", "code", "values"),
    [
        (lambda manifest: [], "damaged_index", {}),
        (lambda manifest: {**manifest, "format": 9}, "unsupported_format", {"format": 9}),
        (lambda manifest: {**manifest, "metric": "angle", "dim": 0}, "damaged_index", {"names": "dim, metric"}),
        (lambda manifest: {**manifest, "dim": 1 << 40}, "damaged_index", {"names": "dim"}),
        (lambda manifest: {**manifest, "commit": -1}, "damaged_index", {"names": "commit"}),
        (lambda manifest: {**manifest, "commit": 0}, "damaged_index", {"name": "segment-1.safetensors"}),
        (lambda manifest: {**manifest, "about": 3}, "damaged_index", {"names": "about"}),
        (lambda manifest: {**manifest, "model": {"method": "lsa"}}, "damaged_index", {"names": "model"}),
        (lambda manifest: {**manifest, "graph": {"rows": "all"}}, "damaged_index", {"names": "graph"}),
        (lambda manifest: {**manifest, "segments": [{"rows": 3}]}, "damaged_index", {"names": "segments"}),
        (lambda manifest: {**manifest, "segments": manifest["segments"] * 2}, "damaged_index", {}),
        (lambda manifest: {**manifest, "segments": [{**manifest["segments"][0], "rows": 5}]}, "damaged_index", {}),
        (
            lambda manifest: {**manifest, "segments": [{"rows": 1, "files": {"../x": RECORD}}]},
            "damaged_index",
            {"name": "../x"},
        ),
    ],
)
def test_invalid_manifests_are_refused(folder, change, code, values):
    with Index.create(folder, dim=DIM) as index:
        index.add(*some_rows(3))
    path = folder / "index.json"
    path.write_text(json.dumps(change(json.loads(path.read_text()))))
    with refuses(code, **values):
        Index.open(folder)


def test_folders_without_an_index_are_refused(folder, tmp_path):
    with refuses("not_found", folder=tmp_path, manifest="index.json"):
        Index.open(tmp_path)
    (tmp_path / "file").write_text("x")
    (tmp_path / "full").mkdir()
    (tmp_path / "full" / "file").write_text("x")
    for name in ("file", "full"):
        with refuses("output_exists", folder=tmp_path / name, hint=""):
            Index.create(tmp_path / name, dim=3)
    Index.create(tmp_path / "index", dim=3)
    with refuses("output_exists", folder=tmp_path / "index") as caught:
        Index.create(tmp_path / "index", dim=3)
    assert "Index.open" in caught.value.values["hint"]


def test_segments_are_merged_and_positions_do_not_change(folder):
    """Small additions are merged in order: the 400 rows keep their positions."""
    with Index.create(folder, dim=DIM) as index:
        keys, matrix = some_rows(400)
        for first in range(0, 400, 10):
            index.add(keys[first : first + 10], matrix[first : first + 10])
        assert len(index.store.state.segments) < 20
        assert [index.store.state.row(position)[0] for position in range(400)] == keys
        index.optimize()
        assert len(index.store.state.segments) == 1
        assert [index.store.state.row(position)[0] for position in range(400)] == keys
        assert np.allclose(index.store.state.vectors(np.arange(400)), matrix)
