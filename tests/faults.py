"""Faults at any touch of the file system: the n-th open, write, sync, rename, removal, … fails, or the process ends.

`every_fault(begin, act, check)` runs `act` in forked processes, once for each touch and way of failing, each time from
what `begin` leaves, and calls `check` on what is there afterwards. It forks: call it in a process without threads.
"""

from __future__ import annotations

import builtins
import io
import os
import shutil
from collections.abc import Callable
from typing import Any

WATCHED = (
    "open",
    "fsync",
    "replace",
    "rename",
    "unlink",
    "remove",
    "link",
    "chmod",
    "mkdir",
    "rmdir",
    "truncate",
    "close",
)
ENDED, RAISED, THROUGH = 3, 4, 0  # how a process says what came of it


class Faults:
    """Counts touches; at the n-th the process ends, or the call fails as on a full disk."""

    def __init__(self, at: int, how: str) -> None:
        self.left, self.how = at, how

    def touch(self) -> None:
        self.left -= 1
        if self.left == 0:
            if self.how == "exit":
                os._exit(ENDED)
            raise OSError(28, "No space left on device")

    def install(self) -> None:
        """For good: the process is a fork that ends soon."""
        for name in WATCHED:
            setattr(os, name, self.watched(getattr(os, name)))
        opened = io.open
        io.open = builtins.open = self.watched(lambda *given, **named: File(opened(*given, **named), self))
        shutil.copyfile = self.copy  # type: ignore[assignment]

    def watched(self, real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*given: Any, **named: Any) -> Any:
            self.touch()
            return real(*given, **named)

        return call

    def copy(self, source: Any, target: Any) -> None:
        """In Python, so that a half-written copy can be left."""
        with open(source, "rb") as file, open(target, "wb") as made:  # noqa: PTH123
            data = file.read()
            made.write(data[: len(data) // 2])
            made.flush()
            made.write(data[len(data) // 2 :])


class File:
    """A file whose writes are touches; a process that ends in one leaves half of it."""

    def __init__(self, file: Any, faults: Faults) -> None:
        self._file, self._faults = file, faults

    def write(self, data: Any) -> int:
        faults = self._faults
        if faults.left == 1 and faults.how == "exit":
            half = len(data) // 2 if isinstance(data, (str, bytes)) else 0
            self._file.write(data[:half] if half else b"" if "b" in self._file.mode else "")
            self._file.flush()
        faults.touch()
        return int(self._file.write(data))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._file, name)

    def __enter__(self) -> File:
        return self

    def __exit__(self, *_: object) -> None:
        self._file.close()

    def __iter__(self) -> Any:
        return iter(self._file)


def every_fault(
    begin: Callable[[], None],
    act: Callable[[], None],
    check: Callable[[bool], None],
    ways: tuple[str, ...] = ("exit", "raise"),
) -> int:
    """`check` is told whether `act` came to its end. How many faults there were."""
    faults = 0
    for how in ways:
        at, outcome = 0, ENDED
        while outcome != THROUGH:
            at += 1
            begin()
            outcome = fork(act, at, how)
            assert outcome in (ENDED, RAISED, THROUGH), f"fault {at} ({how}) ended the process with {outcome}"
            try:
                check(outcome == THROUGH)
            except BaseException as error:
                raise AssertionError(f"after fault {at} ({how}): {error!r}") from error
            faults += 1
    return faults - len(ways)


def fork(act: Callable[[], None], at: int, how: str) -> int:
    child = os.fork()
    if not child:
        end = os._exit
        try:
            faults = Faults(at, how)
            faults.install()
            act()
            end(THROUGH if faults.left > 0 else RAISED)
        except (ValueError, OSError):  # the fault was reported: FirthError is a ValueError
            end(RAISED)
        except BaseException:
            import traceback

            traceback.print_exc()
            end(1)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
