"""What goes wrong with clusters: another token, other versions, credentials that a machine lacks, memory.

In test_ray.py: Ray is missing, or there is no cluster. In test_embedding.py: paths, full disks, unreadable shards,
killed drivers, two commands with one output.
"""

from __future__ import annotations

import json
import os
import secrets
import subprocess
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from refusing import refuses

from firth.core.errors import FirthError
from firth.core.report import Nothing
from firth.work.executors import Cluster
from firth.work.job import Job, Shard, run_job

ONE = Cluster("processes", workers=1)
GIB = 2**30

HEAD = """
import sys
from ray.cluster_utils import Cluster
head = {"num_cpus": 1, "object_store_memory": 80_000_000, "include_dashboard": False}
cluster = Cluster(initialize_head=True, head_node_args=head)
print(cluster.address, flush=True)
sys.stdin.read()
cluster.shutdown()
"""
DRIVER = """
from firth.core.errors import FirthError
from firth.work.executors import Cluster, executor
try:
    with executor(Cluster("ray")) as workers:
        print("connected", workers.workers)
except FirthError as error:
    print(error.code, error.values["address"])
"""


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers import the functions of this module by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(sys.modules, "test_bad_clusters", sys.modules[__name__])
    for function in (writes, grows):
        monkeypatch.setattr(function, "__module__", "test_bad_clusters")


def writes(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    (folder / f"{parameters['number']}.txt").write_text("x")


def grows(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Shard 1 needs more memory than its process may have."""
    import resource

    if parameters["number"] == 1 and not Path(common["enough"]).exists():
        limit = resource.getrlimit(resource.RLIMIT_AS)
        resource.setrlimit(resource.RLIMIT_AS, (2 * GIB, limit[1]))
        bytearray(4 * GIB)
    writes(common, parameters, folder)


def job(folder: Path, function: Any = writes, **more: Any) -> Job:
    shards = [Shard(f"part-{number}", {"number": number}) for number in range(3)]
    return Job("writing", "files", function, {"enough": str(folder.with_name("enough"))}, shards, folder, **more)


def environment(**more: str) -> dict[str, str]:
    paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109
    outside = {name: value for name, value in os.environ.items() if not name.startswith(("AWS_", "RAY_"))}
    return {**outside, "PYTHONPATH": paths, "RAY_USAGE_STATS_ENABLED": "0", **more}


def test_another_token_is_named_and_no_other_cluster_is_started(tmp_path):
    pytest.importorskip("ray")
    ours, theirs = (secrets.token_hex(32) for _ in range(2))
    protected = environment(RAY_AUTH_MODE="token", RAY_AUTH_TOKEN=ours)
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with subprocess.Popen([sys.executable, "-c", HEAD], env=protected, **pipes) as head:
        assert head.stdout and head.stdin
        address = head.stdout.readline().strip()
        for token, expected in ((ours, "connected 1"), (theirs, f"wrong_token {address}")):
            settings = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": token, "RAY_NUM_REDIS_GET_RETRIES": "2"}
            driver = environment(RAY_ADDRESS=address, **settings)
            command = [sys.executable, "-c", DRIVER]
            done = subprocess.run(command, env=driver, capture_output=True, text=True, check=True)
            assert done.stdout.strip() == expected
            assert token == ours or "gcs_client" not in done.stderr  # what Ray prints is in the error
        head.stdin.close()


def test_a_ray_cluster_with_another_python(ray_cluster, tmp_path, monkeypatch):
    """Ray compares the versions of the driver and of the cluster: both are named."""
    import ray._private.utils as utils

    ours = utils.compute_version_info()
    monkeypatch.setattr(utils, "compute_version_info", lambda: (ours[0], "3.8.1", *ours[2:]))
    with pytest.raises(FirthError) as caught:
        run_job(job(tmp_path / "out"), Cluster("ray"), Nothing())
    assert caught.value.code == "version_mismatch"
    assert "3.8.1" in str(caught.value) and ours[1] in str(caught.value)


def test_workers_with_another_python_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("firth.work.job.python_version", lambda: "2.7")
    with refuses("version_mismatch", name="Python", expected="2.7", version=f"3.{sys.version_info.minor}"):
        run_job(job(tmp_path / "out"), ONE, Nothing())


def test_an_output_that_other_machines_do_not_see(ray_cluster, tmp_path, monkeypatch):
    """They see a folder of this name without what the driver wrote into it."""
    monkeypatch.setattr(Path, "write_text", lambda path, text: len(text))  # what the driver writes stays with it
    with refuses("not_shared", path=tmp_path / "out"):
        run_job(job(tmp_path / "out"), Cluster("ray"), Nothing())
    assert not list((tmp_path / "out").glob("*.txt"))


def test_a_machine_without_credentials(bucket, tmp_path):
    """A worker that has the server's address, but no key, and a bucket that needs one: noticed before the work."""
    name = bucket.url.removeprefix("s3://").partition("/")[0]
    address = os.environ["AWS_ENDPOINT_URL"]
    request: dict[str, Any] = {"probe": str(tmp_path / "probe"), "token": "x", "inputs": {f"{bucket.url}/a.txt": 3}}
    versions = job(tmp_path / "out").request(Shard("a", {}))
    request = {"check": request, **{each: versions[each] for each in ("firth", "python")}}
    settings = environment(AWS_ENDPOINT_URL=address, HOME=str(tmp_path), AWS_EC2_METADATA_DISABLED="true")
    pipes: dict[str, Any] = {"stdin": subprocess.PIPE, "stdout": subprocess.PIPE, "text": True}
    with (
        bucket.server.denying(lambda each: not each.signed),
        subprocess.Popen([sys.executable, "-m", "firth.work.worker"], env=settings, **pipes) as worker,
    ):
        assert worker.stdin and worker.stdout
        worker.stdin.write(json.dumps(request) + "\n")
        worker.stdin.flush()
        error = json.loads(worker.stdout.readline())["error"]
        worker.stdin.close()
    assert error["code"] == "unreadable_file" and name in error["message"], error
    assert "AWS_ACCESS_KEY_ID" in error["message"] or "credentials" in error["message"]


def test_a_worker_out_of_memory_is_named_and_finished_shards_are_kept(tmp_path):
    work = job(tmp_path / "out", grows)
    with refuses("out_of_memory", shard="part-1"):
        run_job(work, ONE, Nothing())
    assert "part-0" in work.finished() and "part-1" not in work.finished()
    (tmp_path / "enough").touch()
    assert len(run_job(work, ONE, Nothing())) == 3
