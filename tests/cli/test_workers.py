"""`firth train … --workers 2`: one result, one error, one progress display; lost and interrupted runs resume."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest
import torch
from refusing import refuses

import firth
from firth.cli import train_workers
from firth.data.world import World

SMALL = ["--layers", 1, "--dim", 16, "--heads", 2, "--context-length", 16, "--device", "cpu", "--dropout", 0]
LONG = ["train", "gpt", "text.txt", "-o", "long", *SMALL, "--epochs", 60, "--checkpoint-every", 0.1, "--json"]


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    (tmp_path / "text.txt").write_text("\n".join(World(seed=5).sentences(300)))
    monkeypatch.chdir(tmp_path)
    return tmp_path


def error_of(result: Any) -> dict[str, Any]:
    """The only error."""
    errors = [json.loads(line) for line in result.stderr.splitlines() if line.startswith('{"error"')]
    assert len(errors) == 1 and result.exit_code == 1 and result.stdout == "", result.output
    return dict(errors[0]["error"])


@pytest.mark.parametrize("method", ["gpt", "bert"])
def test_two_processes_train_one_model(call, folder, method):
    """With all options: the same result as one process, printed once, and notes once."""
    train = ["train", method, "text.txt", *SMALL, "--epochs", 3, "--json", "-o"]
    options = ["--workers", 2, "--shard-weights", "--accumulation", 2]
    results = [call(*train, name, *more) for name, more in (("one", []), ("two", options))]
    assert [result.exit_code for result in results] == [0, 0], results[1].output
    one, two = (json.loads(result.stdout) for result in results)
    assert two["status"] == "trained" and two["steps"] == one["steps"]
    assert [epoch["loss"] for epoch in two["epochs"]] == pytest.approx([e["loss"] for e in one["epochs"]], rel=1e-3)
    events = [[json.loads(line) for line in result.stderr.splitlines()] for result in results]
    codes = [[event["code"] for event in each if event["event"] == "note"] for each in events]
    assert codes[0] == codes[1] and len(codes[1]) == len(set(codes[1])) > 0
    assert not (folder / "two" / ".unfinished").exists()
    assert call(*train, "two", *options).exit_code == 0  # already finished


def test_an_error_is_reported_once(call, folder):
    values = error_of(call("train", "gpt", "missing.txt", "-o", "model", *SMALL, "--workers", 2, "--json"))
    assert values["code"] == "not_found" and "missing.txt" in values["message"]
    assert not (folder / "model").exists()


def test_interrupted_and_lost_processes_resume(folder, call):
    """Ctrl-C, then kill -9 of one process, then another number of processes."""
    for number, code in ((1, "interrupted"), (2, "lost_process")):
        process = started(*LONG, "--workers", 2)
        wait_for_checkpoint(folder / "long", process, before=number > 1)
        if code == "interrupted":
            process.send_signal(signal.SIGINT)
        else:
            os.kill(children(process)[1], signal.SIGKILL)
        out, err = process.communicate(timeout=60)
        errors = [json.loads(line)["error"] for line in err.splitlines() if line.startswith('{"error"')]
        assert [error["code"] for error in errors] == [code] and out == "", err
        assert process.returncode == (130 if code == "interrupted" else 1)
    assert errors[0]["values"]["rank"] == 1 and "SIGKILL" in errors[0]["values"]["reason"]
    assert not (folder / "long" / "config.json").exists()
    result = call(*LONG)
    assert result.exit_code == 0 and json.loads(result.stdout)["status"] == "resumed"
    assert firth.load(folder / "long").training["finished_epochs"] == 60


def started(*words: Any) -> subprocess.Popen[str]:
    paths = os.pathsep.join([str(Path(firth.__file__).parents[1]), os.environ.get("PYTHONPATH", "")])
    command = [sys.executable, "-m", "firth", *map(str, words)]
    environment = {**os.environ, "PYTHONPATH": paths, "OMP_NUM_THREADS": "1"}
    pipes: dict[str, Any] = {"stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    return subprocess.Popen(command, env=environment, text=True, preexec_fn=answer_interrupts, **pipes)


def answer_interrupts() -> None:
    """Tests that are started in the background ignore Ctrl-C, and so would the processes that they start."""
    signal.signal(signal.SIGINT, signal.default_int_handler)


def children(process: subprocess.Popen[str]) -> list[int]:
    """The processes of the ranks in order; threads start them one after the other."""
    tasks = Path(f"/proc/{process.pid}/task").glob("*/children")
    return sorted(int(child) for task in tasks for child in task.read_text().split())


def wait_for_checkpoint(model: Path, process: subprocess.Popen[str], before: bool) -> None:
    """Wait for a checkpoint that is newer than the one `before`."""
    path, end = model / ".unfinished" / "checkpoint.json", time.monotonic() + 120
    old = path.read_bytes() if before else None
    while not path.exists() or path.read_bytes() == old:
        assert process.poll() is None and time.monotonic() < end, process.communicate()
        time.sleep(0.01)


def test_settings_are_checked_before_processes_start(call, folder, monkeypatch):
    assert error_of(call("train", "gpt", "-", "-o", "m", "--workers", 2, "--json"))["code"] == "conflicting_options"
    values = error_of(call("train", "gpt", "text.txt", "-o", "m", "--cluster", "moon", "--json"))
    assert values["code"] == "invalid_value" and values["values"]["got"] == "moon"
    values = error_of(call("train", "tfidf", "text.txt", "-o", "m", "--workers", 2, "--json"))
    assert values["code"] == "missing_option" and values["values"]["missing"] == "cluster"
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    assert train_workers.processes_of(firth.Run()) == 2
    assert train_workers.processes_of(firth.Run(device="cpu", workers=3)) == 3
    with refuses("no_gpu", available=2, got=3):
        train_workers.processes_of(firth.Run(workers=3))
    monkeypatch.setenv("WORLD_SIZE", "2")
    assert error_of(call("train", "gpt", "text.txt", "-o", "m", "--workers", 2, "--json"))["values"]["processes"] == 2


def test_each_gpu_has_a_process(call, folder, monkeypatch):
    """Logical GPUs: the processes train with gloo, and each sees one of those that the command may use."""
    monkeypatch.setenv("CUDA_VISIBLE_DEVICES", "4,7")
    small = [word for word in SMALL if word not in ("--device", "cpu")]
    train = ["train", "gpt", "text.txt", *small, "--json", "-o"]
    error = error_of(call(*train, "m", "--gpus", 3))
    assert error["code"] == "no_gpu" and error["values"]["available"] == 2 and error["values"]["got"] == 3
    for more in (("--workers", 2), ("--device", "cpu"), ("--cluster", "ray")):
        assert error_of(call(*train, "m", "--gpus", 2, *more))["code"] == "conflicting_options"
    with refuses("conflicting_options", option="gpus"):
        firth.GPT().fit(["a b"], firth.Run(gpus=2))
    with refuses("conflicting_options", options="gpus"):
        firth.TfIdf().fit(["a b"], firth.Run(gpus=2))
    if not torch.cuda.is_available():  # the CPU does not take the place of a GPU that was asked for
        assert error_of(call(*train, "m", "--gpus", 2))["code"] == "no_gpu"
    real, seen = train_workers.LocalProcesses.start, list[str]()

    def visible(process: Any) -> list[str]:
        environment = Path(f"/proc/{process.pid}/environ").read_text().split("\0")
        return [text for text in environment if text.startswith("CUDA_VISIBLE_DEVICES=")]

    def on_cpu(self: Any, rank: int, port: int) -> Any:
        command = json.loads(self.command)
        self.command = json.dumps({**command, "values": {**command["values"], "device": "cpu"}}) + "\n"
        process = real(self, rank, port)
        while not (found := visible(process)):  # just after the start it is empty
            assert process.poll() is None
        seen.append(found[0])
        return process

    monkeypatch.setattr(train_workers.LocalProcesses, "start", on_cpu)
    result = call(*train, "two", "--gpus", 2, "--epochs", 2)
    assert result.exit_code == 0, result.output
    two = json.loads(result.stdout)
    assert seen == ["CUDA_VISIBLE_DEVICES=4", "CUDA_VISIBLE_DEVICES=7"]
    one = json.loads(call(*train, "one", "--device", "cpu", "--epochs", 2).stdout)
    assert two["steps"] == one["steps"] and two["loss"] == pytest.approx(one["loss"], rel=2e-2)


def test_ray_is_optional(call, folder, monkeypatch):
    monkeypatch.setitem(sys.modules, "ray", None)
    monkeypatch.delitem(sys.modules, "firth.cli.train_on_ray", raising=False)
    values = error_of(call("train", "gpt", "text.txt", "-o", "m", "--cluster", "ray", "--json"))
    assert values["code"] == "missing_package" and "[ray]" in values["message"]
