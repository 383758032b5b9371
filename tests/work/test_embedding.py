"""`firth embed` by several workers: the same bytes, whatever the cluster and what happens to it."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pyarrow
import pyarrow.parquet
import pytest
from click.testing import CliRunner
from losing import Losing
from tiny import tiny_bert

import firth
from firth.cli import embed_job
from firth.cli.main import cli
from firth.data.world import World

SENTENCES = list(World(seed=4).sentences(3000))
PROCESSES = ("--cluster", "processes", "--workers", 2)
SHARDS = [f"part-{number:05d}.parquet" for number in range(91)]  # of 100 rows


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Three files with odd lines, a model of words, and the shards that one process makes of them."""
    made = tmp_path_factory.mktemp("embedding")
    (made / "a.txt").write_bytes("\n".join([*SENTENCES, "", "unheard-of"]).encode() + b"\ncaf\xe9 \xff\n")
    (made / "b.jsonl").write_text("".join(json.dumps({"text": text}) + "\n\n" for text in SENTENCES))
    table = pyarrow.table({"text": [text.upper() for text in SENTENCES]})
    pyarrow.parquet.write_table(table, made / "c.parquet", row_group_size=333)
    firth.SkipGram(dim=20, epochs=1, min_count=1).fit(firth.Corpus(SENTENCES)).save(made / "model")
    result = embed(made, "alone", "--json")
    assert result.exit_code == 0, result.output
    (made / "counts.json").write_text(result.stdout)
    assert sorted(files(made / "alone")) == ["embedding.json", *SHARDS]
    return made


def command(folder: Path, output: str, *flags: Any) -> list[str]:
    data = [folder / name for name in ("a.txt", "b.jsonl", "c.parquet")]
    words = ["embed", folder / "model", *data, "-o", folder / output, "--shard-rows", 100, *flags]
    return [str(word) for word in words]


def embed(folder: Path, output: str, *flags: Any) -> Any:
    return CliRunner().invoke(cli, command(folder, output, *flags))


def started(folder: Path, output: str, *flags: Any, **settings: Any) -> subprocess.Popen[str]:
    """The command in a process of its own."""
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE, "text": True, "start_new_session": True}
    environment = {**os.environ, "PYTHONPATH": paths}
    words = [sys.executable, "-m", "firth", *command(folder, output, *flags)]
    return subprocess.Popen(words, env=environment, **{**pipes, **settings})


def files(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in folder.iterdir() if path.is_file()}


def error_of(result: Any) -> dict[str, Any]:
    assert result.exit_code == 1 and result.stdout == "", result.output
    return dict(json.loads(result.stderr.splitlines()[-1])["error"])


def same_as_alone(folder: Path, output: str) -> bool:
    return files(folder / output) == files(folder / "alone") and not (folder / output / ".shards").exists()


def test_two_processes_write_the_same_bytes(folder):
    result = embed(folder, "two", *PROCESSES, "--json")
    assert result.exit_code == 0, result.output
    counts = json.loads((folder / "counts.json").read_text())
    assert json.loads(result.stdout) == {**counts, "output": str(folder / "two")} and counts["rows"] == 9003
    assert same_as_alone(folder, "two")
    codes = [json.loads(line)["code"] for line in result.stderr.splitlines() if '"note"' in line]
    assert sorted(codes) == ["invalid_utf8", "unknown_words"]


def test_parts_of_an_array_write_the_same_bytes(folder):
    """Two of three parts, then the command without a part, which computes the rest and finishes."""
    rows = 0
    for part in ("3/3", "1/3"):
        result = embed(folder, "array", "--shard", part, "--json")
        assert result.exit_code == 0, result.output
        rows += json.loads(result.stdout)["rows"]
    records = [path.stem for path in (folder / "array" / ".shards").glob("*.json")]
    assert sorted(records) == [f"{n:05d}" for n in range(91) if n % 3 != 1]
    assert rows == 100 * 60 + 3
    result = embed(folder, "array")
    assert result.exit_code == 0 and "61 shards are already finished" in result.stderr
    assert same_as_alone(folder, "array")


def test_parts_share_the_folder_and_other_jobs_do_not(folder, tmp_path):
    from firth.cli.shards import locked

    output = folder / "shared"
    with locked(output, shared=True):
        assert error_of(embed(folder, "shared", "--json"))["code"] == "locked"
        assert embed(folder, "shared", "--shard", "1/2").exit_code == 0
    with locked(output, shared=False):
        for flags in ((), ("--shard", "1/2")):
            assert error_of(embed(folder, "shared", *flags, "--json"))["code"] == "locked"


def test_a_killed_driver_resumes_with_another_cluster(folder):
    """Killed with two processes, resumed in this one: finished shards stay, and workers stop with their driver."""
    process = started(folder, "killed", *PROCESSES)
    records = folder / "killed" / ".shards"
    while len(list(records.glob("*.json"))) < 2:
        assert process.poll() is None, process.communicate()
        time.sleep(0.001)
    workers = children(process.pid)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    while any(command_line(worker) for worker in workers):  # they finish their shard and see that the driver is gone
        time.sleep(0.01)
    kept = {path.stem: path.stat().st_mtime_ns for path in (folder / "killed").glob("part-*")}
    done = [f"part-{path.stem}" for path in records.glob("*.json")]
    assert 2 <= len(done) < 91
    result = embed(folder, "killed")
    assert result.exit_code == 0 and f"{len(done)} shards are already finished" in result.stderr
    times = {path.stem: path.stat().st_mtime_ns for path in (folder / "killed").glob("part-*")}
    assert all(times[name] == kept[name] for name in done) and same_as_alone(folder, "killed")


def test_killed_workers_are_replaced(folder):
    """Three workers are killed while they have a shard half written, each time another one."""
    process = started(folder, "workers", *PROCESSES)
    killed = set[str]()
    while process.poll() is None and len(killed) < 3:
        for path in (folder / "workers" / ".shards").glob(".0*-tmp-*/*"):
            shard = path.parent.name.split("-")[0]
            workers = [child for child in children(process.pid) if "firth.work.worker" in command_line(child)]
            if workers and shard not in killed:
                killed.add(shard)
                os.kill(workers[0], signal.SIGKILL)
                break
        time.sleep(0.001)
    _, err = process.communicate(timeout=120)
    assert process.returncode == 0, err
    assert len(killed) == 3 and same_as_alone(folder, "workers")


def children(process: int) -> list[int]:
    tasks = Path(f"/proc/{process}/task")
    lists = [path.read_text().split() for path in tasks.glob("*/children")] if tasks.exists() else []
    return [int(child) for each in lists for child in each]


def command_line(process: int) -> str:
    path = Path(f"/proc/{process}/cmdline")
    return path.read_text().replace("\0", " ") if path.exists() else ""


def test_a_shard_that_cannot_be_read_is_reported_with_its_file(folder, tmp_path):
    """The finished shards stay, and the command continues with the repaired file."""
    lines = [json.dumps({"text": text}) for text in SENTENCES]
    (tmp_path / "b.jsonl").write_text("\n".join([*lines[:1000], '{"text": ', *lines[1001:]]) + "\n")
    flags = ["embed", folder / "model", tmp_path / "b.jsonl", "--shard-rows", 400, "-o", tmp_path / "out", *PROCESSES]
    result = CliRunner().invoke(cli, [str(each) for each in [*flags, "--json"]])
    error = error_of(result)
    assert error["code"] == "malformed_data", error
    values = {"path": str(tmp_path / "b.jsonl"), "number": 1001, "shard": "00002"}
    assert values.items() <= error["values"].items()


def test_a_full_disk_in_a_worker_is_reported(folder):
    """Files are limited to 4 kB, as if the disk was full after that."""
    import resource

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (4000, 4000))

    process = started(folder, "full", *PROCESSES, "--shard-rows", 3000, "--json", preexec_fn=limit)
    out, err = process.communicate(timeout=120)
    assert process.returncode == 1 and out == ""
    error = json.loads(err.splitlines()[-1])["error"]
    assert error["code"] == "unwritable_file" and "File too large" in error["message"], error
    assert "part-0000" in error["values"]["path"] and error["values"]["shard"] in ("00000", "00001", "00002", "00003")
    assert not list((folder / "full").glob("part-*"))
    assert embed(folder, "full", "--shard-rows", 3000).exit_code == 0
    assert len(list((folder / "full").glob("part-*"))) == 4


def test_a_bert(folder):
    """A network in another process gives the vectors that it gives in this one."""
    tiny_bert().save(folder / "bert")
    (folder / "some.txt").write_text("\n".join([*SENTENCES[:99], "king " * 300]))
    words = ["embed", folder / "bert", folder / "some.txt", "--pooling", "cls", "--device", "cpu", "--shard-rows", 40]
    for output, flags in (("there", ("--cluster", "processes", "--workers", 1)), ("here", ())):
        result = CliRunner().invoke(cli, [str(word) for word in [*words, "-o", folder / output, *flags]])
        assert result.exit_code == 0 and "1 of 100 texts have more than" in result.stderr, result.output
    assert files(folder / "there") == files(folder / "here")


@pytest.mark.parametrize(
    ("flags", "code", "values"),
    [
        (("--workers", 2), "missing_option", {"option": "--workers", "missing": "--cluster"}),
        (("--cluster", "spark"), "invalid_value", {"option": "cluster", "got": "spark"}),
        (("--shard", "4/3"), "invalid_value", {"option": "--shard", "got": "4/3"}),
        (("--cluster", "processes", "-o", "x.npy"), "conflicting_options", {"option": "--cluster"}),
    ],
)
def test_flags_that_do_not_fit(folder, tmp_path, monkeypatch, flags, code, values):
    monkeypatch.chdir(tmp_path)
    error = error_of(embed(folder, "refused", *flags, "--json"))
    assert error["code"] == code and values.items() <= error["values"].items()
    assert not list(tmp_path.iterdir())


def test_ray_writes_the_same_bytes_though_a_node_is_lost(ray_cluster, folder, monkeypatch):
    """A node is killed while shards are computed, and another one added."""
    report = Losing(ray_cluster)
    monkeypatch.setattr(embed_job, "choose_report", lambda: report)
    result = embed(folder, "ray", "--cluster", "ray")
    assert result.exit_code == 0, result.output
    assert same_as_alone(folder, "ray") and report.lost


def test_a_path_that_workers_do_not_see_is_refused(ray_cluster, folder, monkeypatch):
    """The driver's view of a file differs from that of the workers."""
    from firth.work import job

    real = job.size_of
    monkeypatch.setattr(job, "size_of", lambda path: real(path) + (path.name == "a.txt"))
    error = error_of(embed(folder, "unseen", "--cluster", "ray", "--json"))
    assert error["code"] == "not_shared" and error["values"]["path"] == str(folder / "a.txt")
