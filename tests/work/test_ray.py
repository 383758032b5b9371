"""Jobs on a Ray cluster of a head and two nodes of one CPU each."""

from __future__ import annotations

import json
import os
import sys
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from refusing import refuses

from firth.core.errors import FirthError
from firth.core.report import Nothing
from firth.work.executors import Cluster, executor
from firth.work.job import Job, Shard, run_job

ray = pytest.importorskip("ray")


def squares(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Write a square; `wait` holds the shards until the test lets them go on."""
    number = parameters["number"]
    started = Path(common["started"])
    (started / f"{number}-{os.getpid()}").touch()
    while common["wait"] and not Path(common["wait"]).exists():
        time.sleep(0.01)
    (folder / f"square-{number}.txt").write_text(f"{number**2}")
    return {"rows": number}


def job(folder: Path, wait: Path | None = None, shards: int = 6) -> Job:
    started = folder.with_name("started")
    started.mkdir(exist_ok=True)
    common = {"started": str(started), "wait": str(wait) if wait else ""}
    squares.__module__ = "test_ray"
    parts = [Shard(f"part-{number}", {"number": number}) for number in range(shards)]
    return Job("squaring", "rows", squares, common, parts, folder)


def devices(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    (folder / f"devices-{parameters['number']}").write_text(os.environ["CUDA_VISIBLE_DEVICES"])


def test_workers_share_a_gpu(ray_cluster, tmp_path):
    """Ray places them where the (logical) GPU is; more than there are is refused."""
    parts = [Shard(f"part-{number}", {"number": number}) for number in range(2)]
    devices.__module__ = "test_ray"
    work = Job("listing", "rows", devices, {}, parts, tmp_path / "out")
    with executor(Cluster("ray")):  # connected once
        assert len(run_job(work, Cluster("ray", gpus_per_worker=0.5), Nothing())) == 2
        with refuses("no_gpu", available=1, workers=1, required=2):
            run_job(replace(work, folder=tmp_path / "new"), Cluster("ray", gpus_per_worker=2), Nothing())
    assert {path.read_text() for path in (tmp_path / "out").glob("devices-*")} == {"0"}


def test_tasks_on_three_nodes_survive_the_loss_of_one(ray_cluster, tmp_path):
    """A node is killed while all three work, and another one joins: every shard is computed, none is missing."""
    go = tmp_path / "go"
    work = job(tmp_path / "out", wait=go)
    started = tmp_path / "started"
    counts: dict[str, Any] = {}
    thread = threading.Thread(target=lambda: counts.update(run_job(work, Cluster("ray"), Nothing())))
    thread.start()
    while len(list(started.iterdir())) < 3:
        assert thread.is_alive()
        time.sleep(0.05)
    lost = next(iter(ray_cluster.worker_nodes))
    ray_cluster.remove_node(lost, allow_graceful=False)
    ray_cluster.add_node(num_cpus=1, object_store_memory=80_000_000)
    go.touch()
    thread.join(120)
    assert counts == {f"part-{number}": {"rows": number} for number in range(6)}
    texts = {path.name: path.read_text() for path in (tmp_path / "out").glob("square-*")}
    assert texts == {f"square-{number}.txt": f"{number**2}" for number in range(6)}
    assert len(list(started.iterdir())) > 6  # the lost shard was started again


def fails(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    print("printed by a worker")
    if parameters["number"] == 2:
        raise FirthError("malformed_data", "{path} is wrong.", path="a.txt")
    (folder / f"part-{parameters['number']}").touch()


def test_an_error_arrives_once_with_its_shard(ray_cluster, tmp_path, capfd):
    """Ray prints neither the output of workers nor the errors of tasks; the shards that are finished stay."""
    fails.__module__ = "test_ray"
    work = replace(job(tmp_path / "out"), function=fails)
    with refuses("malformed_data", path="a.txt", shard="part-2"):
        run_job(work, Cluster("ray", workers=1), Nothing())
    assert set(work.finished()) == {"part-0", "part-1"}
    assert capfd.readouterr() == ("", "")


def fills(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Write 60 MB."""
    (folder / f"data-{parameters['number']}").write_bytes(bytes(60_000_000))
    return {"bytes": 60_000_000}


def test_data_are_larger_than_the_object_store(ray_cluster, tmp_path):
    """360 MB are written by nodes whose stores have 80 MB each; what Ray sees are a few hundred bytes per shard, which
    it passes on without its store."""
    fills.__module__ = "test_ray"
    work = replace(job(tmp_path / "out"), function=fills)
    with executor(Cluster("ray")):
        counts = run_job(work, Cluster("ray"), Nothing())
        store = ray.cluster_resources()["object_store_memory"]
    assert sum(each["bytes"] for each in counts.values()) > store
    assert max(len(json.dumps(work.request(shard))) for shard in work.shards) < 1000


def test_an_address_without_a_cluster_is_refused(ray_cluster, tmp_path):
    with refuses("no_cluster", address="ray://127.0.0.1:1"):
        run_job(job(tmp_path / "out"), Cluster("ray://127.0.0.1:1"), Nothing())
    assert len(run_job(job(tmp_path / "out"), Cluster("ray"), Nothing())) == 6  # another address works afterwards


def test_a_machine_without_ray(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "firth.work.ray_cluster", raising=False)
    with refuses("missing_package", package="ray"):
        run_job(job(tmp_path / "out"), Cluster("ray"), Nothing())
