"""Threads and processes that share an index: no acknowledged row is lost, and a search sees one commit."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest
from refusing import refuses

import firth
from firth import FirthError
from firth.index import Index, verify_index
from firth.index.folder import remove_index

SCRIPT = Path(__file__).parent / "threads.py"
DIM = 8


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    Index.create(tmp_path / "index", dim=DIM).close()
    return tmp_path / "index"


def started(folder: Path, how: str, prefix: str) -> subprocess.Popen[str]:
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(SCRIPT), str(folder), how, prefix]
    return subprocess.Popen(command, env=environment, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def acknowledged(child: subprocess.Popen[str]) -> set[str]:
    out, err = child.communicate()
    assert child.returncode == 0, err  # −7 is SIGBUS
    return set(json.loads(out))


@pytest.mark.parametrize("how", ["one", "each"])
def test_threads_that_add_update_delete_optimize_and_search(folder, how):
    """The threads share one `Index`, or each opens its own of the same folder."""
    keys = acknowledged(started(folder, how, "a"))
    index = Index.open(folder)
    verify_index(folder)
    assert {hit.key for hit in index.search(np.ones(DIM), 1000, exact=True)} == keys and len(index) == len(keys)


def test_processes_with_threads_that_write(folder):
    children = [started(folder, "each", prefix) for prefix in ("a", "b")]
    keys = set.union(*map(acknowledged, children))
    verify_index(folder)
    assert {hit.key for hit in Index.open(folder).search(np.ones(DIM), 1000, exact=True)} == keys


@pytest.fixture
def eager() -> Iterator[None]:
    """Switch threads so often that they interleave within a commit."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)


@pytest.mark.usefixtures("eager")
def test_an_index_in_memory_loses_no_row():
    index = Index.create(dim=2, metric="dot")

    def add(number: int) -> None:
        for turn in range(20):
            index.add([f"{number}-{turn}"], [[number, turn]])
            index.add_metadata(**{f"{number}-{turn}": 1})

    threads = [threading.Thread(target=add, args=(number,)) for number in range(6)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(index) == len(index.metadata) == 120
    assert sorted(hit.key for hit in index.search([1, 1], 200)) == sorted(
        f"{a}-{b}" for a in range(6) for b in range(20)
    )


def test_a_forked_process_does_not_inherit_the_lock(folder):
    """A file lock is inherited by fork: both processes would write the same files."""
    index = Index.open(folder)
    index.add(["a"], np.ones((1, DIM)))
    read, write = os.pipe()
    child = os.fork()
    if not child:
        code = "none"
        try:
            index.add(["b"], np.ones((1, DIM)))
        except FirthError as error:
            code = error.code
        os.write(write, code.encode())
        os._exit(0)
    os.waitpid(child, 0)
    assert os.read(read, 100) == b"locked"
    index.add(["c"], np.ones((1, DIM)))
    assert len(Index.open(folder)) == 2


def test_a_commit_that_fails_at_its_last_step_is_seen_by_the_next_writer(folder, monkeypatch):
    """The manifest is in place but the folder cannot be synced: the files that it names must not be overwritten,
    because readers have mapped them."""
    index = Index.open(folder)
    index.add(["a"], np.ones((1, DIM)))
    real = firth.core.storage.sync

    def fail(path: Path) -> None:
        if path.is_dir():  # after the rename
            raise OSError(5, "Input/output error")
        real(path)

    with monkeypatch.context() as patch:
        patch.setattr("firth.core.storage.sync", fail)
        with refuses("unwritable_file"):
            index.add(["b"], np.ones((1, DIM)))
    reader = Index.open(folder)
    assert len(reader) == 2
    index.update(["b"], 2 * np.ones((1, DIM)))
    index.add(["c"], np.ones((1, DIM)))
    assert np.array_equal(reader["b"], np.ones(DIM))
    assert {hit.key for hit in Index.open(folder).search(np.ones(DIM), 9)} == {"a", "b", "c"}


def test_an_index_that_was_replaced_since_it_was_opened_is_not_written(folder):
    index = Index.open(folder)
    remove_index(folder)
    Index.create(folder, dim=3).close()
    with refuses("other_run", folder=folder):
        index.add(["a"], np.ones((1, DIM)))
