"""Layouts that are computed in a thread, so that requests can return their progress."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable
from typing import Any

from firth.core.report import Nothing
from firth.core.run import Run
from firth.maps.layouts import Layout

WAIT_SECONDS = 1.0  # time that a request waits: most layouts are finished by then


class PendingLayout(Nothing):
    """A layout that is being computed; as the report of its run, it records the progress."""

    def __init__(self, compute: Callable[[Run], Layout]) -> None:
        self.compute, self.started = compute, time.monotonic()
        self.total = self.done = 0.0
        self.layout: Layout | None = None
        self.failure: Exception | None = None
        self.finished = threading.Event()
        threading.Thread(target=self.work, daemon=True, name="firth-map").start()

    def work(self) -> None:
        """Compute the layout; an error is raised by `result`."""
        try:
            self.layout = self.compute(Run(report=self))
        except Exception as error:  # raised by `result`
            self.failure = error
        finally:
            self.finished.set()

    def begin(self, task: str, total: float, unit: str) -> None:
        self.total = total

    def step(self, done: float, **metrics: float) -> None:
        self.done = done

    def result(self) -> Layout | None:
        """Return the layout if it is finished within WAIT_SECONDS, else None."""
        self.finished.wait(WAIT_SECONDS)
        if self.failure is not None:
            raise self.failure
        return self.layout

    def progress(self) -> dict[str, Any]:
        """Return the progress; `share` is null if the method does not report it."""
        share = min(1.0, self.done / self.total) if self.total else None
        return {"share": share, "seconds": round(time.monotonic() - self.started, 1)}
