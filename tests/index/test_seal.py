"""The key that seals graphs: written atomically, 32 bytes long, the same for all processes."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import stat
import subprocess
import sys
import warnings
from pathlib import Path

import numpy as np
import pytest
from refusing import warns_code

import firth
from firth.index import Index
from firth.index.graph import SEAL, create_key, seal_key

HERE = Path(__file__).parent


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("FIRTH_CACHE", str(tmp_path / "cache"))
    (tmp_path / "cache").mkdir()
    return tmp_path / "cache"


def environment() -> dict[str, str]:
    paths = [str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")]
    return {**os.environ, "PYTHONPATH": os.pathsep.join(paths)}


def indexed(folder: Path) -> np.ndarray:
    matrix = np.random.default_rng(0).normal(size=(300, 8)).astype(np.float32)
    with Index.create(folder, dim=8) as index:
        index.add([str(row) for row in range(300)], matrix)
        index.optimize(approximate=True, threads=1)
    return matrix


@pytest.mark.parametrize("key", [b"", b"x" * 31, b"x" * 33])
def test_a_graph_forged_with_a_short_key_is_not_opened(tmp_path, cache, key):
    """A kill could leave an empty key, with which anyone can forge a seal; usearch does not validate its files."""
    matrix = indexed(tmp_path / "index")
    (cache / SEAL).write_bytes(key)
    path = tmp_path / "index" / "index.json"
    manifest = json.loads(path.read_text())
    record = manifest["graph"]
    file = tmp_path / "index" / record["file"]
    forged = file.read_bytes()[:200] + b"\xff" * 5000
    file.write_bytes(forged)
    header = json.dumps([manifest["id"], *(record[name] for name in ("rows", "epoch", "reach", "kind"))])
    record |= {"bytes": len(forged), "seal": hmac.new(key, header.encode() + forged, hashlib.sha256).hexdigest()}
    path.write_text(json.dumps(manifest))
    index = Index.open(tmp_path / "index")
    with warns_code("exact_search"):
        assert index.search(matrix[7], 1)[0].key == "7"
    assert (cache / SEAL).read_bytes() == key  # a search does not create a key
    with index, warns_code("replaced_key"):
        index.optimize(approximate=True, threads=1)
    assert len((cache / SEAL).read_bytes()) == 32
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert Index.open(tmp_path / "index").search(matrix[7], 1)[0].key == "7"


def test_a_search_does_not_create_a_key(tmp_path, cache):
    matrix = indexed(tmp_path / "index")
    (cache / SEAL).unlink()
    with warns_code("exact_search"):
        Index.open(tmp_path / "index").search(matrix[7], 1)
    assert not (cache / SEAL).exists() and seal_key() is None


def test_only_the_user_can_read_the_key(cache):
    key = create_key()
    assert len(key) == 32 and create_key() == key == seal_key()
    assert stat.S_IMODE((cache / SEAL).stat().st_mode) == 0o600


def test_processes_that_create_a_key_at_the_same_time_get_the_same(cache):
    code = "from firth.index.graph import create_key; print(input() + create_key().hex())"
    children = [
        subprocess.Popen(
            [sys.executable, "-c", code], env=environment(), stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        for _ in range(6)
    ]
    for child in children:  # all have finished their imports and wait
        assert child.stdin is not None
        child.stdin.write("\n")
        child.stdin.flush()
    keys = {child.communicate()[0].strip() for child in children}
    assert keys == {(cache / SEAL).read_bytes().hex()}


def test_a_fault_at_any_disk_operation_leaves_no_key_or_a_complete_one(tmp_path):
    done = subprocess.run(
        [sys.executable, str(HERE / "sealing.py"), str(tmp_path)], env=environment(), capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert int(done.stdout) > 30
