"""Where progress, loss and speed go: a terminal bar, JSON lines, or nowhere."""

from __future__ import annotations

import json
import math
import sys
import time
import warnings
from typing import Any, Protocol, TextIO

from firth.core.errors import FirthWarning


class Report(Protocol):
    """What long work tells while it runs. It serves one run at a time."""

    def begin(self, task: str, total: float, unit: str) -> None:
        """`task` starts: `total` units to do (0 when unknown)."""

    def step(self, done: float, **figures: float) -> None:
        """`done` units are done in all; `figures` such as loss."""

    def end(self) -> None:
        """The task that began last is over."""

    def note(self, text: str, code: str = "note") -> None:
        """Something the user should know: dropped words, bad bytes, a cut. `code` names it for programs."""


class Silence:
    """No progress; notes become Python warnings, so that nothing is dropped unsaid."""

    def begin(self, task: str, total: float, unit: str) -> None:
        pass

    def step(self, done: float, **figures: float) -> None:
        pass

    def end(self) -> None:
        pass

    def note(self, text: str, code: str = "note") -> None:
        warnings.warn(FirthWarning(text, code), stacklevel=3)


class Nothing(Silence):
    """No notes either: for all processes but the first."""

    def note(self, text: str, code: str = "note") -> None:
        pass


class TerminalBar:
    """One line that rewrites itself: task, share done, speed, figures, time left."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.task, self.total, self.unit = "", 0.0, ""
        self.started = self.drawn = 0.0
        self.first = 0.0  # where a resumed task began, so that its speed is this run's own

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task, self.total, self.unit = task, total, unit
        self.started, self.drawn, self.first = time.monotonic(), 0.0, -1.0

    def step(self, done: float, **figures: float) -> None:
        now = time.monotonic()
        if self.first < 0:
            self.first = done if done < self.total else 0.0
        if now - self.drawn < 0.1 and done < self.total:
            return
        self.drawn = now
        self.stream.write("\r\x1b[2K" + self._line(done, now - self.started, figures))
        self.stream.flush()

    def _line(self, done: float, seconds: float, figures: dict[str, float]) -> str:
        speed = (done - self.first) / seconds if seconds > 0 else 0.0
        parts = [self.task]
        if self.total:
            parts.append(f"{done / self.total:4.0%}")
        parts.append(f"{human(speed)} {self.unit}/s")
        parts += [f"{name} {value:.4g}" for name, value in figures.items()]
        if self.total and speed > 0:
            parts.append(f"{clock((self.total - done) / speed)} left")
        return "  ".join(parts)

    def end(self) -> None:
        self.stream.write("\r\x1b[2K")
        self.stream.flush()

    def note(self, text: str, code: str = "note") -> None:
        self.stream.write(f"\r\x1b[2Knote: {text}\n")
        self.stream.flush()


class PlainNotes(Silence):
    """No progress; notes as lines. What the command line uses when stderr is not a terminal."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr

    def note(self, text: str, code: str = "note") -> None:
        self.stream.write(f"note: {text}\n")


class JsonLines:
    """Each event as one JSON object a line, for programs that watch."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self.stream = stream or sys.stderr
        self.task = ""

    def _write(self, **event: Any) -> None:
        finite = {  # JSON has no NaN: a loss that ran away is null
            name: None if isinstance(value, float) and not math.isfinite(value) else value
            for name, value in event.items()
        }
        self.stream.write(json.dumps(finite) + "\n")
        self.stream.flush()

    def begin(self, task: str, total: float, unit: str) -> None:
        self.task = task
        self._write(event="begin", task=task, total=total, unit=unit)

    def step(self, done: float, **figures: float) -> None:
        self._write(event="step", task=self.task, done=done, **figures)

    def end(self) -> None:
        self._write(event="end", task=self.task)

    def note(self, text: str, code: str = "note") -> None:
        self._write(event="note", code=code, text=text)


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
