"""Long work of the workbench: commands of `firth`, each in a process of its own, watched through its JSON lines.

What a person starts here is a command line that can be shown, stopped like one (a checkpoint is kept), and begun again
like one (it goes on).
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

AT_ONCE = 4  # the others wait: processes that share the cores gain nothing by being many
POINTS = 600  # of a curve: twice as many are thinned to these
ACTIVE = ("waiting", "running", "stopping")
STOPPED = 130  # the exit status of a command that was interrupted

Done = Callable[[Any], Mapping[str, Any]]  # given the command's result; what it says is added to the job


@dataclass
class Job:
    """One command and how far it is."""

    number: int
    verb: str
    title: str
    arguments: Sequence[str] = ()  # behind `firth`; none: of an earlier start, and can't go on here
    about: dict[str, Any] = field(default_factory=dict)  # what the page wants to know again
    done_by: Done = dict
    output: Path | None = None  # what it writes
    status: str = "waiting"  # running, stopping, stopped, finished, failed
    task: str = ""
    unit: str = ""
    total: float = 0.0
    done: float = 0.0
    first: float | None = None  # where this session began, so that its speed is its own
    begun: float = 0.0
    seconds: float = 0.0  # of the task that runs, or of the one that ran last
    figures: dict[str, float] = field(default_factory=dict)
    curve: list[tuple[float, float]] = field(default_factory=list)  # units done, loss
    notes: list[str] = field(default_factory=list)
    error: str = ""
    result: Any = None
    process: subprocess.Popen[str] | None = None

    def told(self, event: Mapping[str, Any]) -> None:
        """One event of `firth.core.report.JsonLines`."""
        kind = event.get("event")
        if kind == "begin":
            self.task, self.unit, self.total = str(event["task"]), str(event["unit"]), float(event["total"])
            self.done, self.first, self.begun, self.figures = 0.0, None, time.monotonic(), {}
        elif kind == "step":
            self.done = float(event["done"])
            self.first = self.done if self.first is None else self.first
            self.seconds = time.monotonic() - self.begun
            self.figures = {
                name: value
                for name, value in event.items()
                if name not in ("event", "task", "done") and isinstance(value, (int, float))
            }
            if "loss" in self.figures:
                self.curve = [
                    point for point in self.curve if point[0] < self.done
                ]  # a resumed run goes over old ground
                self.curve.append((self.done, self.figures["loss"]))
                if len(self.curve) > 2 * POINTS:
                    self.curve = self.curve[1::2]
        elif kind == "note":
            self.notes.append(str(event["text"]))

    def to_json(self) -> dict[str, Any]:
        here = self.done - (self.first or 0.0)
        speed = here / self.seconds if self.seconds > 0 and here > 0 else None
        left = (self.total - self.done) / speed if speed and self.total and self.status == "running" else None
        return {
            "id": self.number,
            "verb": self.verb,
            "title": self.title,
            "command": shlex.join(["firth", *self.arguments]) if self.arguments else "",
            "resumes": self.status in ("stopped", "failed") and bool(self.arguments),
            "about": self.about,
            "status": self.status,
            "task": self.task,
            "unit": self.unit,
            "share": min(1.0, self.done / self.total) if self.total else None,
            "speed": speed,
            "left": left,
            "seconds": self.seconds,
            "figures": self.figures,
            "curve": {"x": [x for x, _ in self.curve], "y": [y for _, y in self.curve]},
            "notes": self.notes,
            "error": self.error,
            "result": self.result,
        }


class Jobs:
    """Safe to ask from any thread. The commands end with the server."""

    def __init__(self) -> None:
        self._jobs: dict[int, Job] = {}
        self._numbers = itertools.count(1)
        self._lock = threading.Lock()
        self._free = threading.Semaphore(AT_ONCE)
        weakref.finalize(self, end_all, self._jobs)

    def all(self) -> list[Job]:
        with self._lock:
            return list(self._jobs.values())

    def get(self, number: int) -> Job:
        with self._lock:
            found = self._jobs.get(number)
        if found is None:
            raise RequestError(404, f"There is no job {number}.")
        return found

    def start(
        self, arguments: Sequence[str], title: str, about: Mapping[str, Any], done: Done, output: Path | None = None
    ) -> Job:
        """`firth ARGUMENTS…` as a process; `done` is called with what it printed, once it has ended well."""
        with self._lock:
            verb = "train" if arguments[0] == "finetune" else arguments[0]  # one view shows both
            job = Job(next(self._numbers), verb, title, list(arguments), dict(about), done, output)
            if output and any(other.output == output and other.status in ACTIVE for other in self._jobs.values()):
                raise RequestError(409, f"{output.name} is being made; give another name.", code="output_exists")
            self._jobs[job.number] = job
        self._run(job)
        return job

    def remember(self, **facts: Any) -> None:
        """A run of an earlier start; `facts` are fields of `Job`."""
        with self._lock:
            job = Job(next(self._numbers), **facts)
            self._jobs[job.number] = job

    def resume(self, number: int) -> Job:
        """The same command again, which goes on from its checkpoint."""
        job = self.get(number)
        if not job.arguments:
            raise RequestError(403, f"{job.title} was not started from here; see its note.", kind="forbidden")
        with self._lock:
            if job.status not in ("stopped", "failed"):
                raise RequestError(409, f"{job.title} is {job.status}; only what was stopped or failed can go on.")
            job.status, job.error, job.notes = "waiting", "", []
        self._run(job)
        return job

    def stop(self, number: int) -> Job:
        """Asks it to stop, which leaves a checkpoint; asked again, it is ended at once."""
        job = self.get(number)
        with self._lock:
            if job.status == "waiting":
                job.status = "stopped"
            elif job.status in ("running", "stopping") and job.process is not None:
                job.process.send_signal(signal.SIGTERM if job.status == "running" else signal.SIGKILL)
                job.status = "stopping"
        return job

    def forget(self, number: int) -> None:
        job = self.get(number)
        with self._lock:
            if job.status in ("running", "stopping"):
                raise RequestError(409, f"{job.title} is {job.status}; stop it first.")
            job.status = "stopped"  # it may be waiting
            del self._jobs[number]

    def _run(self, job: Job) -> None:
        threading.Thread(target=watch, args=(job, self._free, self._lock), daemon=True).start()


def watch(job: Job, free: threading.Semaphore, lock: threading.Lock) -> None:
    """The life of a job's process, from waiting for its turn to its end."""
    with free, tempfile.TemporaryFile("w+", encoding="utf-8") as printed:
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
            job.status, job.task, job.begun = "running", "starting", time.monotonic()
        said = read_events(job)
        status = job.process.wait()
        printed.seek(0)
        output = printed.read()
    finish(job, status, output, said)


def read_events(job: Job) -> list[str]:
    """Follows the process's standard error to its end; the lines that are no events."""
    assert job.process is not None and job.process.stderr is not None
    said: list[str] = []
    for line in job.process.stderr:
        try:
            event = json.loads(line) if line.startswith("{") else None
        except ValueError:
            event = None
        if event is not None and "error" in event:
            said = [str(event["error"]["message"])]
        elif event is not None:
            job.told(event)
        elif line.startswith("note: "):
            job.notes.append(line[6:].strip())
        elif line.strip():
            said = [*said, line.strip()][-20:]
    return said


def finish(job: Job, status: int, output: str, said: Sequence[str]) -> None:
    if status == 0:
        with contextlib.suppress(ValueError):
            job.result = json.loads(output)
        try:
            job.about |= job.done_by(job.result)
        except Exception as error:  # whatever it is, a person has to see it
            job.error, job.status = str(error), "failed"
            return
        job.status = "finished"
    elif status == STOPPED or job.status == "stopping":
        job.status = "stopped"
    else:
        job.error = (
            said[-1].removeprefix("firth: ").removeprefix("Error: ") if said else f"It ended with status {status}."
        )
        job.status = "failed"


def end_all(jobs: Mapping[int, Job]) -> None:
    """When the server ends: what trains leaves a checkpoint."""
    running = [job.process for job in jobs.values() if job.process is not None and job.process.poll() is None]
    for process in running:
        process.terminate()
    until = time.monotonic() + 10
    while time.monotonic() < until and any(process.poll() is None for process in running):
        time.sleep(0.05)
    for process in running:
        process.kill()
