"""Background jobs of the workbench: `firth` commands in separate processes, which report progress as JSON lines.

A job is a command line that can be shown, stopped (with a checkpoint) and resumed.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import os
import shlex
import signal
import subprocess
import sys
import tempfile
import threading
import time
import weakref
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from firth.server.errors import RequestError

MAX_RUNNING = 4  # further jobs wait, because they would compete for the cores
CURVE_POINTS = 600  # a curve of twice as many points is thinned to these
ACTIVE = ("waiting", "running", "stopping")
STOPPED = 130  # the exit status of a command that was interrupted

OnDone = Callable[[Any], Mapping[str, Any]]  # called with the command's result; returns further details of the job


@dataclass
class Job:
    """One command and its progress."""

    number: int
    verb: str
    title: str
    arguments: Sequence[
        str
    ] = ()  # after `firth`; empty for a run of an earlier server process that cannot be resumed here
    details: dict[str, Any] = field(default_factory=dict)  # shown by the page: method, model, data, …
    on_done: OnDone = dict
    output: Path | None = None  # file or folder that it writes
    status: str = "waiting"  # running, stopping, stopped, finished, failed
    task: str = ""
    unit: str = ""
    total: float = 0.0
    done: float = 0.0
    first: float | None = None  # units done when this process began, for the speed of a resumed run
    started: float = 0.0
    seconds: float = 0.0  # of the current or the last task
    metrics: dict[str, float] = field(default_factory=dict)
    curve: list[tuple[float, float]] = field(default_factory=list)  # units done, loss
    notes: list[str] = field(default_factory=list)
    error: str = ""
    result: Any = None
    process: subprocess.Popen[str] | None = None

    def handle_event(self, event: Mapping[str, Any]) -> None:
        """Update the progress from one event of `firth.core.report.JsonLines`."""
        kind = event.get("event")
        if kind == "begin":
            self.task, self.unit, self.total = str(event["task"]), str(event["unit"]), float(event["total"])
            self.done, self.first, self.started, self.metrics = 0.0, None, time.monotonic(), {}
        elif kind == "step":
            self.done = float(event["done"])
            self.first = self.done if self.first is None else self.first
            self.seconds = time.monotonic() - self.started
            self.metrics = {
                name: value
                for name, value in event.items()
                if name not in ("event", "task", "done") and isinstance(value, (int, float))
            }
            if "loss" in self.metrics:
                self.curve = [
                    point for point in self.curve if point[0] < self.done
                ]  # a resumed run goes over old ground
                self.curve.append((self.done, self.metrics["loss"]))
                if len(self.curve) > 2 * CURVE_POINTS:
                    self.curve = self.curve[1::2]
        elif kind == "note":
            self.notes.append(str(event["text"]))

    def to_json(self) -> dict[str, Any]:
        """Return the job as the page shows it."""
        done_here = self.done - (self.first or 0.0)
        speed = done_here / self.seconds if self.seconds > 0 and done_here > 0 else None
        seconds_left = (self.total - self.done) / speed if speed and self.total and self.status == "running" else None
        return {
            "id": self.number,
            "verb": self.verb,
            "title": self.title,
            "command": shlex.join(["firth", *self.arguments]) if self.arguments else "",
            "resumes": self.status in ("stopped", "failed") and bool(self.arguments),
            "details": self.details,
            "status": self.status,
            "task": self.task,
            "unit": self.unit,
            "share": min(1.0, self.done / self.total) if self.total else None,
            "speed": speed,
            "left": seconds_left,
            "seconds": self.seconds,
            "metrics": self.metrics,
            "curve": {"x": [x for x, _ in self.curve], "y": [y for _, y in self.curve]},
            "notes": self.notes,
            "error": self.error,
            "result": self.result,
        }


class Jobs:
    """All jobs of the server. Thread-safe. Running commands end with the server."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._slots = threading.Semaphore(MAX_RUNNING)
        weakref.finalize(self, end_all, self._jobs)

    def all(self) -> list[Job]:
        """Return all jobs in the order of their numbers."""
        with self._lock:
            return list(self._jobs.values())

    def get(self, number: int) -> Job:
        """Return the job with this number."""
        with self._lock:
            job = self._jobs.get(number)
        if job is None:
            raise RequestError(404, f"There is no job {number}.")
        return job

    def start(
        self,
        arguments: Sequence[str],
        title: str,
        details: Mapping[str, Any],
        on_done: OnDone,
        output: Path | None = None,
    ) -> Job:
        """Start `firth ARGUMENTS…` as a process; `on_done` is called with its result if it succeeds."""
        with self._lock:
            verb = "train" if arguments[0] == "finetune" else arguments[0]  # one view shows both
            job = Job(next(self._numbers), verb, title, list(arguments), dict(details), on_done, output)
            if output and any(other.output == output and other.status in ACTIVE for other in self._jobs.values()):
                raise RequestError(409, f"A job is writing {output.name}; choose another name.", code="output_exists")
            self._jobs[job.number] = job
        self._run(job)
        return job

    def remember(self, **fields: Any) -> None:
        """Add a run of an earlier server process; `fields` are those of `Job`."""
        with self._lock:
            job = Job(next(self._numbers), **fields)
            self._jobs[job.number] = job

    def resume(self, number: int) -> Job:
        """Run the command again; it resumes from its checkpoint."""
        job = self.get(number)
        if not job.arguments:
            raise RequestError(403, f"{job.title} cannot be resumed here; see its note.", kind="forbidden")
        with self._lock:
            if job.status not in ("stopped", "failed"):
                raise RequestError(409, f"{job.title} is {job.status}; only stopped or failed jobs can be resumed.")
            job.status, job.error, job.notes = "waiting", "", []
        self._run(job)
        return job

    def stop(self, number: int) -> Job:
        """Stop a job with a checkpoint; a second call kills it."""
        job = self.get(number)
        with self._lock:
            if job.status == "waiting":
                job.status = "stopped"
            elif job.status in ("running", "stopping") and job.process is not None:
                job.process.send_signal(signal.SIGTERM if job.status == "running" else signal.SIGKILL)
                job.status = "stopping"
        return job

    def forget(self, number: int) -> None:
        """Remove a job from the list."""
        job = self.get(number)
        with self._lock:
            if job.status in ("running", "stopping"):
                raise RequestError(409, f"{job.title} is {job.status}; stop it first.")
            job.status = "stopped"  # in case it was waiting
            del self._jobs[number]

    def _run(self, job: Job) -> None:
        threading.Thread(target=watch, args=(job, self._slots, self._lock), daemon=True).start()


def watch(job: Job, slots: threading.Semaphore, lock: threading.Lock) -> None:
    """Wait for a slot, run a job's process and follow it to its end."""
    with slots, tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
        with lock:
            if job.status != "waiting":
                return
            environment = {**os.environ, "FIRTH_PROGRESS": "json", "PYTHONUNBUFFERED": "1"}
            command = [sys.executable, "-m", "firth", *job.arguments]
            job.process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=printed,
                stderr=subprocess.PIPE,
                env=environment,
                text=True,
                encoding="utf-8",
                errors="replace",
            )
            job.status, job.task, job.started = "running", "starting", time.monotonic()
        messages = read_events(job)
        status = job.process.wait()
        printed.seek(0)
        output = printed.read()
    finish(job, status, output, messages)


def read_events(job: Job) -> list[str]:
    """Follow the process's standard error to its end, and return the lines that are not events."""
    assert job.process is not None and job.process.stderr is not None
    messages: list[str] = []
    for line in job.process.stderr:
        try:
            event = json.loads(line) if line.startswith("{") else None
        except ValueError:
            event = None
        if event is not None and "error" in event:
            messages = [str(event["error"]["message"])]
        elif event is not None:
            job.handle_event(event)
        elif line.startswith("note: "):
            job.notes.append(line[6:].strip())
        elif line.strip():
            messages = [*messages, line.strip()][-20:]
    return messages


def finish(job: Job, status: int, output: str, messages: Sequence[str]) -> None:
    """Record the result or the error of a job whose process has ended."""
    if status == 0:
        with contextlib.suppress(ValueError):
            job.result = json.loads(output)
        try:
            job.details |= job.on_done(job.result)
        except Exception as error:  # any error must be shown to the user
            job.error, job.status = str(error), "failed"
            return
        job.status = "finished"
    elif status == STOPPED or job.status == "stopping":
        job.status = "stopped"
    else:
        job.error = (
            messages[-1].removeprefix("firth: ").removeprefix("Error: ")
            if messages
            else f"The command failed with exit status {status}."
        )
        job.status = "failed"


def end_all(jobs: Mapping[int, Job]) -> None:
    """Terminate all running commands when the server ends; training leaves a checkpoint."""
    running = [job.process for job in jobs.values() if job.process is not None and job.process.poll() is None]
    for process in running:
        process.terminate()
    until = time.monotonic() + 10
    while time.monotonic() < until and any(process.poll() is None for process in running):
        time.sleep(0.05)
    for process in running:
        process.kill()
