"""Jobs: the same files from every executor, finished shards are kept, dead workers are replaced, errors arrive once."""

from __future__ import annotations

import os
import signal
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from refusing import refuses

from firth.core.errors import FirthError
from firth.core.report import Nothing
from firth.work import executors
from firth.work.executors import Cluster, executor, parse_part
from firth.work.job import Job, Shard, WorkerError, run_job
from firth.work.worker import RECORDS, tell

SHARDS = [Shard(f"part-{number}", {"number": number}, size=number + 1) for number in range(6)]
HERE = [Cluster(), Cluster("processes", workers=2)]


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """Workers import the functions of this module by its name."""
    monkeypatch.syspath_prepend(str(Path(__file__).parent))
    monkeypatch.setitem(sys.modules, "test_job", sys.modules[__name__])
    for function in (squares, dies_once, dies, fails, breaks, tells, devices):
        monkeypatch.setattr(function, "__module__", "test_job")


def squares(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Write the square, and note in another file that this shard was computed."""
    number = parameters["number"]
    (folder / f"square-{number}.txt").write_text(f"{number**2} {common['unit']}")
    with Path(common["log"]).open("a") as log:
        log.write(f"{number} {os.getpid()}\n")
    return {"rows": number}


def dies_once(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    """Die while the first file of shard 3 is there but incomplete, unless that happened before."""
    died = Path(common["log"]).with_name("died")
    if parameters["number"] == 3 and not died.exists():
        died.touch()
        (folder / "square-3.txt").write_text("hal")
        os.kill(os.getpid(), signal.SIGKILL)
    return squares(common, parameters, folder)


def dies(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    os.kill(os.getpid(), signal.SIGKILL)


def fails(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    if parameters["number"] == 4:
        raise FirthError("malformed_data", "line {number} is wrong.", number=7)
    return squares(common, parameters, folder)


def breaks(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    raise ZeroDivisionError("no such number")


def job(folder: Path, function: Any = squares, unit: str = "m²") -> Job:
    common = {"unit": unit, "log": str(folder.with_name("log"))}
    return Job("squaring", "rows", function, common, SHARDS, folder)


def computed(folder: Path) -> list[int]:
    """The numbers of the shards that were computed so far, in order."""
    log = folder.with_name("log")
    return sorted(int(line.split()[0]) for line in log.read_text().splitlines()) if log.exists() else []


def results(folder: Path) -> dict[str, str]:
    return {path.name: path.read_text() for path in folder.iterdir() if path.name != RECORDS}


EXPECTED = {f"square-{number}.txt": f"{number**2} m²" for number in range(6)}
COUNTS = {f"part-{number}": {"rows": number} for number in range(6)}


@pytest.mark.parametrize("cluster", HERE, ids=str)
def test_results_do_not_depend_on_where_they_are_computed(tmp_path, cluster):
    work = job(tmp_path / "out")
    assert run_job(work, cluster, Nothing()) == COUNTS
    assert results(tmp_path / "out") == EXPECTED
    assert computed(tmp_path / "out") == [0, 1, 2, 3, 4, 5]
    assert run_job(work, cluster, Nothing()) == COUNTS  # nothing is computed again
    assert computed(tmp_path / "out") == [0, 1, 2, 3, 4, 5]
    work.clear()
    assert results(tmp_path / "out") == EXPECTED and not (tmp_path / "out" / RECORDS).exists()


def test_what_is_missing_damaged_or_of_another_job_is_computed_again(tmp_path):
    work = job(tmp_path / "out")
    run_job(work, Cluster(), Nothing())
    (tmp_path / "out" / "square-1.txt").write_text("longer than before")
    (tmp_path / "out" / "square-2.txt").unlink()
    (tmp_path / "out" / RECORDS / "part-3.json").write_text("{")
    assert run_job(work, Cluster(), Nothing()) == COUNTS
    assert computed(tmp_path / "out") == [0, 1, 1, 2, 2, 3, 3, 4, 5]
    other = job(tmp_path / "out", unit="km²")
    run_job(other, Cluster(), Nothing())
    assert results(tmp_path / "out")["square-5.txt"] == "25 km²" and len(computed(tmp_path / "out")) == 15


def test_parts_of_an_array_of_jobs_add_up(tmp_path):
    work = job(tmp_path / "out")
    assert list(run_job(work, Cluster(part=(2, 4)), Nothing())) == ["part-1", "part-5"]
    assert list(run_job(work, Cluster(part=(1, 4)), Nothing())) == ["part-0", "part-1", "part-4", "part-5"]
    assert run_job(work, Cluster(), Nothing()) == COUNTS
    assert computed(tmp_path / "out") == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("text", ["0/3", "4/3", "3", "a/b", "1/0", ""])
def test_parts_that_do_not_exist_are_refused(text):
    with refuses("invalid_value", option="--shard", got=text):
        parse_part(text)


def test_a_dead_worker_is_replaced(tmp_path):
    work = job(tmp_path / "out", dies_once)
    assert run_job(work, Cluster("processes", workers=2), Nothing()) == COUNTS
    assert results(tmp_path / "out") == EXPECTED and (tmp_path / "died").exists()


def test_a_shard_that_kills_its_workers_is_named(tmp_path):
    with pytest.raises(FirthError) as caught:
        run_job(job(tmp_path / "out", dies), Cluster("processes", workers=1), Nothing())
    assert caught.value.code == "worker_died" and caught.value.values["shard"] == "part-0"
    assert "SIGKILL" in caught.value.values["reason"]


@pytest.mark.parametrize("cluster", HERE, ids=str)
def test_an_error_arrives_once_with_its_shard_and_finished_shards_are_kept(tmp_path, cluster):
    with pytest.raises(FirthError) as caught:
        run_job(job(tmp_path / "out", fails), cluster, Nothing())
    assert caught.value.code == "malformed_data" and caught.value.values == {"number": 7, "shard": "part-4"}
    kept = job(tmp_path / "out", fails).finished()
    assert kept and "part-4" not in kept and kept.items() <= COUNTS.items()


@pytest.mark.parametrize("cluster", HERE, ids=str)
def test_a_defect_shows_the_traceback_of_the_worker(tmp_path, cluster):
    with pytest.raises(WorkerError, match=r"part-\d: ZeroDivisionError") as caught:
        run_job(job(tmp_path / "out", breaks), cluster, Nothing())
    assert "in breaks" in str(caught.value.__cause__)


def test_workers_of_another_version_are_refused(tmp_path, monkeypatch):
    monkeypatch.setattr("firth.work.job.__version__", "0.0.1")
    with refuses("version_mismatch", name="Firth", expected="0.0.1"):
        run_job(job(tmp_path / "out"), Cluster("processes", workers=1), Nothing())


def test_workers_stop_with_their_driver(tmp_path):
    """A driver that is killed leaves no worker behind."""
    program = tmp_path / "driver.py"
    program.write_text(
        "import subprocess\nfrom firth.work.executors import LocalProcesses\n"
        "workers = LocalProcesses(2, 0)\n"
        "import tempfile\nerrors = tempfile.TemporaryFile()\n"
        "print(workers.start(0, errors).pid, workers.start(1, errors).pid, flush=True)\n"
        "import time; time.sleep(600)\n"
    )
    import subprocess

    with subprocess.Popen([sys.executable, str(program)], stdout=subprocess.PIPE, text=True) as driver:
        assert driver.stdout
        workers = [int(pid) for pid in driver.stdout.readline().split()]
        driver.kill()
    end = time.monotonic() + 60
    while any(alive(pid) for pid in workers) and time.monotonic() < end:
        time.sleep(0.01)
    assert len(workers) == 2 and not any(alive(pid) for pid in workers)


def alive(pid: int) -> bool:
    """Whether a process runs; one that ended but was not waited for does not."""
    try:
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except FileNotFoundError:
        return False


@pytest.mark.parametrize("where", ["spark", "ray:/host", "RAY"])
def test_an_unknown_cluster_is_refused(where):
    with refuses("invalid_value", option="cluster", got=where):
        Cluster(where)


def tells(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> dict[str, int]:
    tell(0.5)
    return squares(common, parameters, folder)


class Steps(Nothing):
    """Keeps what was reported."""

    def __init__(self) -> None:
        self.done = list[float]()

    def step(self, done: float, **metrics: float) -> None:
        self.done.append(done)


@pytest.mark.parametrize("cluster", [Cluster(), Cluster("processes", workers=1)], ids=str)
def test_progress_counts_parts_of_shards(tmp_path, cluster):
    """The shards have the sizes 1 to 6: half of one is reported before the whole of it."""
    steps = Steps()
    run_job(job(tmp_path / "out", tells), cluster, steps)
    assert steps.done == [0, 0.5, 1, 2, 3, 4.5, 6, 8, 10, 12.5, 15, 18, 21]


def test_one_executor_serves_several_jobs(tmp_path):
    cluster = Cluster("processes", workers=2)
    with executor(cluster):
        for name in ("a", "b"):
            (tmp_path / name).mkdir()
            assert run_job(job(tmp_path / name / "out"), cluster, Nothing()) == COUNTS
    workers = {name: {line.split()[1] for line in (tmp_path / name / "log").read_text().splitlines()} for name in "ab"}
    assert workers["b"] <= workers["a"] and len(workers["a"]) <= 2


def test_what_a_killed_worker_left_is_removed(tmp_path):
    """A folder without a lock, of a shard that is computed again."""
    work = job(tmp_path / "out")
    left = (tmp_path / "out") / RECORDS / ".part-2-tmp-abcdefgh"
    left.mkdir(parents=True)
    run_job(work, Cluster(), Nothing())
    records = tmp_path / "out" / RECORDS
    assert sorted(path.name for path in records.iterdir()) == [f"part-{n}.json" for n in range(6)]


def devices(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    (folder / f"devices-{parameters['number']}").write_text(os.environ.get("CUDA_VISIBLE_DEVICES", "all"))


@pytest.mark.parametrize(
    ("workers", "each", "expected"), [(2, 1, {"4", "7"}), (1, 2, {"4,7"}), (0, 1, {"4", "7"}), (3, 0.5, {"4", "7"})]
)
def test_each_worker_sees_its_gpus(tmp_path, monkeypatch, workers, each, expected):
    """Of those that this process may use."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    work = job(tmp_path / "out", devices)
    run_job(work, Cluster("processes", workers=workers, gpus_per_worker=each), Nothing())
    assert {path.read_text() for path in (tmp_path / "out").glob("devices-*")} <= expected
    gpus = [executors.gpus_of(worker, each, ["4", "7"]) for worker in range(workers or 2)]
    assert {",".join(some) for some in gpus} == expected


def test_more_gpus_than_there_are_are_refused(tmp_path, monkeypatch):
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    with refuses("no_gpu", available=2, workers=3, required=1):
        run_job(job(tmp_path / "out"), Cluster("processes", workers=3, gpus_per_worker=1), Nothing())
