"""Runs that are watched or broken off: what was noted, Ctrl-C after some slices, a stop after some checkpoints."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import pytest

from firth.core.checkpoint import Checkpoints
from firth.core.report import Silence


class Notes(Silence):
    """Keeps what was noted."""

    def __init__(self) -> None:
        self.notes: list[str] = []
        self.codes: list[str] = []

    def note(self, text: str, code: str = "note") -> None:
        self.notes.append(text)
        self.codes.append(code)


class Breaks(Notes):
    """Ctrl-C after some slices."""

    def __init__(self, after: int) -> None:
        super().__init__()
        self.left = after

    def step(self, done: float, **figures: float) -> None:
        self.left -= 1
        if not self.left:
            raise KeyboardInterrupt


class StopHereError(Exception):
    pass


def break_off(fit: Callable[[], Any], times: int, every: int = 3) -> None:
    """Calls `fit` some times, and each time stops it when it has written `every` checkpoints."""
    save, saved = Checkpoints.save, 0

    def save_and_stop(self: Checkpoints, arrays: Mapping[str, Any], state: dict[str, Any]) -> None:
        nonlocal saved
        save(self, arrays, state)
        saved += 1
        if saved % every == 0:
            raise StopHereError

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Checkpoints, "save", save_and_stop)
        for _ in range(times):
            with pytest.raises(StopHereError):
                fit()
