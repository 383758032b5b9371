"""Progress reports: a bar on a terminal, log lines, JSON lines, or nothing."""

from __future__ import annotations

import contextlib
import json
import math
import os
import sys
import time
import warnings
from collections.abc import Callable
from typing import Any, Protocol, TextIO

from firth.core.errors import FirthWarning


class Report(Protocol):
    """Receives the progress and the notes of one run."""

    def begin(self, task: str, total: float, unit: str) -> None:
        """A task of `total` units starts; 0 if their number is unknown."""

    def step(self, done: float, **metrics: float) -> None:
        """`done` units are finished; `metrics` are values such as the loss."""

    def end(self) -> None:
        """The current task ends."""

    def note(self, text: str, code: str = "note") -> None:
        """A note for the user, such as dropped words or truncated texts; `code` identifies it for programs."""


class Silence:
    """Shows no progress; notes become Python warnings."""

    def begin(self, task: str, total: float, unit: str) -> None:
        pass

    def step(self, done: float, **metrics: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, text: str, code: str = "note") -> None:
        warnings.warn(FirthWarning(text, code), stacklevel=3)


class Nothing(Silence):
    """Discards notes too: for all processes except rank 0."""

    def note(self, text: str, code: str = "note") -> None:
        pass


class Stream:
    """Writes lines to standard error or another stream. A closed pipe does not stop the work."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def write(self, text: str) -> None:
        """Write text; a closed pipe is ignored from then on."""
        try:
            self.stream.write(text)
            self.stream.flush()
        except BrokenPipeError:
            discard(self.stream)

    def write_json(self, **event: Any) -> None:
        """Write an event as one line of JSON."""
        finite = {  # JSON has no NaN: the loss of a diverged run is null
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in event.items()
        }
        self.write(json.dumps(finite) + "\n")


class Timed(Stream):
    """The state of the current task: progress, speed and remaining time."""

    def __init__(self, stream: TextIO | None = None, *, now: Callable[[], float] = time.monotonic) -> None:
        super().__init__(stream)
        self.now = now
        self.begin("", 0.0, "")

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task, self.total, self.unit = task, total, unit
        self.started = self.stepped = self.now()
        self.done = 0.0
        self.first: tuple[float, float] | None = None  # units done and time from which the speed is measured
        self.metrics: dict[str, float] = {}

    def step(self, done: float, **metrics: float) -> None:
        self.done, self.metrics, self.stepped = done, metrics, self.now()
        if self.first is None:  # a resumed task starts with some units done, which do not count for the speed
            self.first = (done, self.stepped) if done < self.total else (0.0, self.started)

    @property
    def seconds(self) -> float:
        """The time since the beginning of the task."""
        return self.now() - self.started

    @property
    def speed(self) -> float | None:
        """Units per second; None if unknown."""
        first, began = self.first or (0.0, self.started)
        return (self.done - first) / (self.stepped - began) if self.stepped > began else None

    @property
    def seconds_left(self) -> float | None:
        """Estimated remaining time; None if unknown."""
        return (self.total - self.done) / self.speed if self.total and self.speed else None

    def line(self, last: str) -> str:
        """Task, share done, speed and metrics, followed by `last`."""
        parts = [self.task]
        if self.total:
            parts.append(f"{self.done / self.total:4.0%}")
        if self.speed is not None:
            parts.append(f"{human(self.speed)} {self.unit}/s")
        parts += [f"{name} {value:.4g}" for name, value in self.metrics.items()]
        return "  ".join([*parts, last] if last else parts)

    def line_with_time_left(self) -> str:
        """Return the line of the current step, with the estimated time left."""
        left = self.seconds_left
        return self.line("" if left is None else f"{clock(left)} left")


class TerminalBar(Timed):
    """One line that is rewritten: task, share done, speed, metrics, remaining time."""

    drawn = -math.inf

    def begin(self, task: str, total: float, unit: str) -> None:
        super().begin(task, total, unit)
        self.drawn = -math.inf

    def step(self, done: float, **metrics: float) -> None:
        super().step(done, **metrics)
        now = self.now()
        if now - self.drawn >= 0.1 or done >= self.total:
            self.drawn = now
            self.write("\r\x1b[2K" + self.line_with_time_left())

    def end(self) -> None:
        self.write("\r\x1b[2K")

    def note(self, text: str, code: str = "note") -> None:
        self.write(f"\r\x1b[2Knote: {text}\n")


class LogLines(Timed):
    """Notes, and a line of progress at intervals: used where standard error is not a terminal.

    The first line comes after `FIRST` seconds, further ones every `EVERY` seconds, and one at the end of each task that
    took at least `FIRST`. With progress=False only notes are written.
    """

    FIRST, EVERY = 10.0, 30.0

    def __init__(
        self, stream: TextIO | None = None, progress: bool = True, *, now: Callable[[], float] = time.monotonic
    ) -> None:
        super().__init__(stream, now=now)
        self.progress = progress
        self.due = now() + self.FIRST

    def step(self, done: float, **metrics: float) -> None:
        super().step(done, **metrics)
        if self.progress and self.now() >= self.due:
            self.due = self.now() + self.EVERY
            self.write_step()

    def end(self) -> None:
        if self.progress and self.seconds >= self.FIRST:
            self.due = self.now() + self.EVERY
            self.write_end()

    def write_step(self) -> None:
        """Write the line of a step."""
        self.write(self.line_with_time_left() + "\n")

    def write_end(self) -> None:
        """Write the last line of a task."""
        self.write(self.line(f"after {clock(self.seconds)}") + "\n")

    def note(self, text: str, code: str = "note") -> None:
        self.write(f"note: {text}\n")


class JsonLog(LogLines):
    """LogLines as JSON, one object per line: what --json writes to standard error."""

    def write_step(self) -> None:
        self.write_event("step", seconds_left=self.seconds_left)

    def write_end(self) -> None:
        self.write_event("end")

    def write_event(self, event: str, **more: float | None) -> None:
        """Write an event; unknown values are omitted."""
        durations = {"seconds": self.seconds, "per_second": self.speed, **more}
        values = {name: round(value, 3) for name, value in durations.items() if value is not None}
        task = {"task": self.task, "done": self.done, "total": self.total, "unit": self.unit}
        self.write_json(event=event, **{**task, **values, **self.metrics})

    def note(self, text: str, code: str = "note") -> None:
        self.write_json(event="note", code=code, text=text)


class JsonLines(Stream):
    """Every event immediately as one JSON object per line, for programs that display progress themselves."""

    task = ""

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task = task
        self.write_json(event="begin", task=task, total=total, unit=unit)

    def step(self, done: float, **metrics: float) -> None:
        self.write_json(event="step", task=self.task, done=done, **metrics)

    def end(self) -> None:
        self.write_json(event="end", task=self.task)

    def note(self, text: str, code: str = "note") -> None:
        self.write_json(event="note", code=code, text=text)


def discard(stream: TextIO) -> None:
    """Redirect the stream to /dev/null, so that the interpreter's final flush does not fail again."""
    with contextlib.suppress(OSError, ValueError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def default_report() -> Report:
    """A bar on a terminal, silence elsewhere."""
    return TerminalBar() if sys.stderr.isatty() else Silence()


def human(number: float) -> str:
    """1234567 -> 1.23M."""
    for size, letter in ((1e12, "T"), (1e9, "G"), (1e6, "M"), (1e3, "k")):
        if abs(number) >= 0.9995 * size:  # 999.7 is 1k in three digits
            return f"{number / size:.3g}{letter}"
    return f"{number:.3g}"


def clock(seconds: float) -> str:
    """3725 -> 1:02:05."""
    minutes, rest = divmod(max(0, round(seconds)), 60)
    hours, minutes = divmod(minutes, 60)
    return f"{hours}:{minutes:02d}:{rest:02d}" if hours else f"{minutes}:{rest:02d}"
