"""`firth train … --cluster ray`: Ray Train starts the loop, and starts it again when a worker is lost."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from firth.data.world import World

os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
ray = pytest.importorskip("ray")


@pytest.fixture
def cluster() -> Iterator[None]:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    environment = {"env_vars": {"PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}}
    ray.init(address="local", num_cpus=2, include_dashboard=False, runtime_env=environment, log_to_driver=False)
    yield
    ray.shutdown()


def kill_a_worker(checkpoint: Path, killed: list[int]) -> None:
    """Kill a worker of Ray Train after the first checkpoint."""
    end = time.monotonic() + 200
    while not checkpoint.exists() and time.monotonic() < end:
        time.sleep(0.02)
    for path in Path("/proc").glob("[0-9]*/cmdline"):
        if b"ray::" in (name := path.read_bytes()) and b"TrainWorker" in name and not killed:
            killed.append(int(path.parent.name))
            os.kill(killed[0], signal.SIGKILL)


def test_a_run_survives_a_lost_worker(call, tmp_path, monkeypatch, cluster):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    small = ["--layers", 1, "--dim", 16, "--heads", 2, "--context-length", 16, "--device", "cpu", "--dropout", 0]
    train = ["train", "gpt", "text.txt", *small, "--epochs", 30, "--checkpoint-every", 0.1, "--json"]
    killed: list[int] = []
    checkpoint = tmp_path / "two" / ".unfinished" / "checkpoint.json"
    thread = threading.Thread(target=kill_a_worker, args=(checkpoint, killed), daemon=True)
    thread.start()
    result = call(*train, "-o", "two", "--cluster", "ray", "--workers", 2)
    thread.join(timeout=10)
    assert result.exit_code == 0, result.output
    two, one = json.loads(result.stdout), json.loads(call(*train, "-o", "one").stdout)
    assert killed and two["status"] == "resumed" and two["steps"] == one["steps"]
    assert two["loss"] == pytest.approx(one["loss"], rel=2e-2)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["one", "text.txt", "two"]
    over = call(*train, "-o", "three", "--cluster", "ray", "--workers", 5)
    assert json.loads(over.stderr.splitlines()[-1])["error"]["values"]["limit"] == 2
