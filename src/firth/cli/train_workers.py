"""`firth train … --workers N`: one command in several processes, on this machine or on Ray.

Every process runs the same command as under torchrun. Rank 0 sends its progress as lines of JSON to the process that
the user started, which shows them; all processes send how they ended. Data and models go through files.
"""

from __future__ import annotations

import json
import os
import queue
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import warnings
from collections.abc import Mapping
from pathlib import Path
from typing import IO, Any, NoReturn, TextIO

import click

from firth.core import registry
from firth.core.errors import FirthError, FirthWarning
from firth.core.processes import is_first_process, refuse_processes
from firth.core.report import JsonLines, Nothing, Report
from firth.core.run import Run, available_cores
from firth.work.executors import gpu_names

END_SECONDS = 15.0  # given to the other processes when one has ended with an error
CHECKPOINT_SECONDS = 120.0  # given to all processes to write a checkpoint after Ctrl-C
EVENT_SECONDS = 0.2  # between two events of progress
STEPS = {"begin": ("task", "total", "unit"), "end": (), "note": ("text", "code")}

Outcome = dict[str, Any]  # {"status": …} or {"error": {"code": …, "message": …, "values": …}}


class Events(JsonLines):
    """Every event as a line of JSON, but not every step."""

    last = 0.0

    def step(self, done: float, **metrics: float) -> None:
        if time.monotonic() - self.last >= EVENT_SECONDS:
            self.last = time.monotonic()
            super().step(done, **metrics)


def replay(event: dict[str, Any], report: Report) -> None:
    """Show an event of a worker."""
    name = event.pop("event")
    if name == "step":
        event.pop("task")
        report.step(event.pop("done"), **{key: value for key, value in event.items() if value is not None})
    elif name in STEPS:
        getattr(report, name)(*(event[key] for key in STEPS[name]))


# ---- in a worker ----


def work(command: Mapping[str, Any], stream: TextIO) -> Outcome:
    """Run the command in this process; write events to `stream` if it is the first one."""
    from firth.cli.main import Failure, cli, failures
    from firth.cli.train import train_here

    report: Report = Events(stream) if is_first_process() else Nothing()

    def show_note(message: Warning | str, category: type[Warning], *_: Any, **more: Any) -> None:
        if issubclass(category, FirthWarning):
            report.note(str(message), getattr(message, "code", "note"))

    try:
        with click.Context(cli) as context, warnings.catch_warnings():
            context.meta.update(json=True, debug=command["debug"])  # a traceback is part of the error
            warnings.simplefilter("always", FirthWarning)
            warnings.showwarning = show_note
            with failures():
                method = registry.method(command["method"])
                return {"status": train_here(method, command["values"], report, command["typed"]).status}
    except Failure as failure:
        return {"error": {"code": failure.code, "message": failure.message, "values": dict(failure.values)}}


def main() -> None:
    """Run the command that the parent writes to standard input, whose end means that the parent has ended."""
    command = json.loads(sys.stdin.readline())
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the parent sends SIGTERM once

    def stop_with_parent() -> None:
        sys.stdin.read()
        os.kill(os.getpid(), signal.SIGTERM)

    threading.Thread(target=stop_with_parent, daemon=True).start()
    stream = os.fdopen(os.dup(1), "w", encoding="utf-8")
    os.dup2(2, 1)  # what libraries print is no event
    outcome = work(command, stream)
    stream.write(json.dumps(outcome, default=str) + "\n")
    stream.flush()
    os._exit(0)  # without waiting for other processes that may have ended


# ---- in the process that the user started ----


def train_in_workers(command: Mapping[str, Any], run: Run) -> str:
    """Train in the processes of `run.cluster`, show their progress, and return the status; raise their error."""
    refuse_processes("--gpus" if run.gpus else "--workers")
    if run.gpus:
        check_gpus(run)
    if "-" in command["values"]["data"]:
        raise FirthError(
            "conflicting_options",
            "Several processes cannot read standard input (-). Give a file, or omit --workers and --cluster.",
        )
    if run.cluster.startswith("ray"):
        from firth.cli.train_on_ray import train_on_ray

        outcomes = train_on_ray(command, run)
    elif run.cluster in ("", "processes"):
        outcomes = LocalProcesses(command, run).outcomes()
    else:
        raise FirthError(
            "invalid_value",
            "{option} must be processes, ray or ray://HOST:PORT; got {got!r}.",
            option="cluster",
            got=run.cluster,
        )
    errors = [outcome["error"] for outcome in outcomes if "error" in outcome]
    if errors:
        fail(min(errors, key=consequence))
    return str(outcomes[0]["status"])


def consequence(error: Mapping[str, Any]) -> int:
    """Return 0 for an error that explains how the processes ended, more if it may follow from that of another one."""
    if error["code"] not in ("interrupted", "lost_process"):
        return 0
    return 1 if "last" in error["values"] else 2  # 1: the process was killed; 2: it has lost the connection


def fail(error: Mapping[str, Any]) -> NoReturn:
    """Raise the error of a worker as if it had occurred here."""
    from firth.cli.main import Failure, wants_json

    if error["code"] == "interrupted":
        raise KeyboardInterrupt
    if "trace" in error["values"] and not wants_json():
        click.echo("".join(error["values"]["trace"]), err=True)
    raise Failure(error["code"], error["message"], error["values"])


def processes_of(run: Run) -> int:
    """Return the number of processes: `gpus`, `workers`, or one per GPU or core."""
    from torch import cuda

    if run.gpus:
        check_gpus(run)
        return run.gpus
    gpus = 0 if run.device == "cpu" else cuda.device_count()
    if gpus and run.workers > gpus:
        raise FirthError(
            "no_gpu",
            "{option} must be at most the number of GPUs, {available}; got {got}. Use fewer, or device=cpu.",
            option="workers",
            available=gpus,
            got=run.workers,
        )
    return run.workers or gpus or available_cores()


def check_gpus(run: Run) -> None:
    """Refuse `gpus` that this machine does not have, or with settings that contradict it."""
    others = {"cluster": run.cluster, "workers": run.workers, "device=cpu": run.device == "cpu"}
    if given := [name for name, value in others.items() if value]:
        raise FirthError(
            "conflicting_options",
            "{options} cannot be combined: gpus are those of this machine, with one process each.",
            options=f"gpus and {given[0]}",
        )
    if run.gpus > (available := len(gpu_names())):
        raise FirthError(
            "no_gpu",
            "{option} must be at most the number of GPUs, {available}; got {got}. Use fewer, or device=cpu.",
            option="gpus",
            available=available,
            got=run.gpus,
        )


class LocalProcesses:
    """Processes of this machine that train together. If one ends, all end."""

    def __init__(self, command: Mapping[str, Any], run: Run) -> None:
        self.report, self.count = run.report, processes_of(run)
        self.gpus = gpu_names() if run.gpus else []
        self.command = json.dumps(command) + "\n"
        self.lines: queue.SimpleQueue[tuple[int, str]] = queue.SimpleQueue()  # rank and line; "" at the end
        self.ended: dict[int, Outcome] = {}
        self.deadline: float | None = None

    def outcomes(self) -> list[Outcome]:
        """Run the processes to their end and return how each ended."""
        with tempfile.TemporaryDirectory() as folder:
            self.logs = [Path(folder) / str(rank) for rank in range(self.count)]
            port = free_port()
            self.processes = [self.start(rank, port) for rank in range(self.count)]
            try:
                while len(self.ended) < self.count:
                    self.wait()
            finally:
                for process in self.processes:
                    process.kill()
                    process.wait()
        return [self.ended[rank] for rank in range(self.count)]

    def start(self, rank: int, port: int) -> subprocess.Popen[str]:
        """Start the process of a rank, with the variables that torchrun sets."""
        paths = os.pathsep.join(path or os.getcwd() for path in sys.path)  # noqa: PTH109 (as Python resolves "")
        environment = {
            **os.environ,
            "PYTHONPATH": paths,
            "RANK": str(rank),
            "LOCAL_RANK": str(rank),
            "WORLD_SIZE": str(self.count),
            "LOCAL_WORLD_SIZE": str(self.count),
            "MASTER_ADDR": "127.0.0.1",
            "MASTER_PORT": str(port),
        }
        if self.gpus:
            environment["CUDA_VISIBLE_DEVICES"] = self.gpus[rank]
        with self.logs[rank].open("w") as log:
            process = subprocess.Popen(
                [sys.executable, "-m", "firth.cli.train_workers"],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=log, env=environment, text=True,
                encoding="utf-8", start_new_session=True,
            )  # fmt: skip
        assert process.stdin is not None and process.stdout is not None
        process.stdin.write(self.command)
        process.stdin.flush()
        threading.Thread(target=self.read, args=(rank, process.stdout), daemon=True).start()
        return process

    def read(self, rank: int, stream: IO[str]) -> None:
        """Pass the lines of a process on, and its end."""
        for line in stream:
            self.lines.put((rank, line))
        self.lines.put((rank, ""))

    def wait(self) -> None:
        """Handle the next line. A deadline follows the first error; what then still runs is killed."""
        if self.deadline is not None and time.monotonic() > self.deadline:
            for process in self.processes:
                process.kill()
        try:
            rank, line = self.lines.get(timeout=0.5)
        except queue.Empty:
            return
        except KeyboardInterrupt:
            if self.deadline is not None:  # the second Ctrl-C
                raise
            self.deadline = time.monotonic() + CHECKPOINT_SECONDS
            self.terminate()
            return
        values = json.loads(line) if line.endswith("\n") else {}
        if "event" in values:
            replay(values, self.report)
        elif values:
            self.ended[rank] = values
        elif rank not in self.ended:  # it ended without an outcome
            self.ended[rank] = {"error": self.lost(rank)}
        if "error" in self.ended.get(rank, {}) and self.deadline is None:
            self.deadline = time.monotonic() + END_SECONDS

    def lost(self, rank: int) -> dict[str, Any]:
        """Return the error of a process that was killed."""
        status = self.processes[rank].wait()
        reason = signal.Signals(-status).name if status < 0 else f"exit status {status}"
        if status == -signal.SIGKILL:
            reason += ", as when memory runs out"
        last = self.logs[rank].read_text(errors="replace").strip().splitlines()[-1:]
        error = FirthError(
            "lost_process",
            "Process {rank} of {processes} ended ({reason}), and the others were stopped. The same command resumes "
            "from the last checkpoint.",
            rank=rank,
            processes=self.count,
            reason=reason,
        )
        return {"code": error.code, "message": str(error), "values": {**error.values, "last": "".join(last)[:400]}}

    def terminate(self) -> None:
        """Ask all processes to write a checkpoint and end."""
        for process in self.processes:
            if process.poll() is None:
                process.send_signal(signal.SIGTERM)


def free_port() -> int:
    """Return a TCP port of this machine that no program uses."""
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        return int(listener.getsockname()[1])


if __name__ == "__main__":
    main()
