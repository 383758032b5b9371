"""Overwriting of vector files: a kill at any moment, or a full disk, leaves the old or the new vectors."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from refusing import refuses

import firth
from firth import Vectors

SCRIPT = Path(__file__).parent / "overwriting.py"
spec = importlib.util.spec_from_file_location("overwriting", SCRIPT)
overwriting: Any = importlib.util.module_from_spec(spec)  # type: ignore[arg-type]
spec.loader.exec_module(overwriting)  # type: ignore[union-attr]

CASES = [("v.npy", ""), ("v.safetensors", ""), ("v.vec", ""), ("v.bin", ""), ("v.npy", "embed"), ("v.jsonl", "embed")]


@pytest.mark.parametrize(("name", "how"), CASES, ids=["npy", "safetensors", "vec", "bin", "embed npy", "embed jsonl"])
def test_fault_at_any_file_system_operation(tmp_path, name, how):
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}
    command = [sys.executable, str(SCRIPT), str(tmp_path), name, how]
    done = subprocess.run(command, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 50  # faults


def test_readers_never_get_the_keys_of_another_matrix(tmp_path):
    """The files are overwritten repeatedly, and keys are read later than the matrix is mapped."""
    path, done = tmp_path / "v.npy", threading.Event()
    firth.write_vectors(overwriting.OLD, path)

    def write() -> None:
        for turn in range(60):
            firth.write_vectors(overwriting.NEW if turn % 2 else overwriting.OLD, path)
        done.set()

    thread = threading.Thread(target=write)
    thread.start()
    expected, rounds = [overwriting.both(each) for each in (overwriting.OLD, overwriting.NEW)], 0
    while not done.is_set():
        tables = [firth.read_vectors(path) for _ in range(3)]
        assert all(overwriting.both(each) in expected for each in tables)
        rounds += 1
    thread.join()
    assert rounds > 3 and sorted(each.name for each in tmp_path.iterdir()) == ["v.keys.json", "v.npy"]


def test_keys_belong_to_the_matrix_that_was_opened(tmp_path):
    """Keys are read at their first use, when the files may have been replaced."""
    path = tmp_path / "v.npy"
    firth.write_vectors(overwriting.OLD, path)
    old = firth.read_vectors(path)
    firth.write_vectors(overwriting.NEW, path)
    assert overwriting.both(old) == overwriting.both(overwriting.OLD)


def test_keys_without_a_matrix_and_a_matrix_without_keys(tmp_path):
    path = tmp_path / "v.npy"
    (tmp_path / "v.keys.json").write_text('["nobody\'s"]')
    firth.write_vectors(overwriting.NEW, path)
    assert overwriting.contents(path) == overwriting.both(overwriting.NEW)
    (tmp_path / "v.keys.json").unlink()
    np.save(path, np.ones((3, 2), dtype=np.float32))
    with refuses("damaged_file", name="v.keys.json"):
        firth.read_vectors(path)
    firth.write_vectors(Vectors(["a"], [[1]]), path)
    assert overwriting.contents(path) == (["a"], [[1.0]])


def test_symbolic_links_are_kept(tmp_path):
    (tmp_path / "data").mkdir()
    target = tmp_path / "data" / "real.npy"
    firth.write_vectors(overwriting.OLD, target)
    for name in ("v.npy", "v.keys.json"):
        (tmp_path / name).symlink_to(target.with_name(name.replace("v.", "real.")))
    firth.write_vectors(overwriting.NEW, tmp_path / "v.npy")
    for path in (tmp_path / "v.npy", target):
        assert overwriting.contents(path) == overwriting.both(overwriting.NEW)
    assert (tmp_path / "v.npy").is_symlink() and (tmp_path / "v.keys.json").is_symlink()
