"""The memory of the machine, so that what does not fit is refused before it is loaded."""

from __future__ import annotations

import contextlib
import os
from pathlib import Path

from firth.core.errors import FirthError

MEMINFO = Path("/proc/meminfo")
CGROUP_LIMITS = (Path("/sys/fs/cgroup/memory.max"), Path("/sys/fs/cgroup/memory/memory.limit_in_bytes"))


def available_memory() -> int | None:
    """Return the bytes that can be allocated without swapping; None if the system does not say.

    A container's limit counts too.
    """
    limits = [number for number in map(number_in, CGROUP_LIMITS) if number is not None]
    try:
        fields = dict(line.split(":", 1) for line in MEMINFO.read_text(encoding="ascii").splitlines())
        limits.append(int(fields["MemAvailable"].split()[0]) * 1024)
    except (OSError, ValueError, KeyError):
        with contextlib.suppress(OSError, ValueError):
            limits.append(os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES"))
    return min(limits, default=None)


def number_in(path: Path) -> int | None:
    """Return the number in a file; None if it has none, such as "max"."""
    try:
        return int(path.read_text(encoding="ascii"))
    except (OSError, ValueError):
        return None


def check_memory(needed: int, what: object) -> None:
    """Raise out_of_memory if `what` needs more bytes than are available."""
    available = available_memory()
    if available is not None and needed > available:
        raise FirthError(
            "out_of_memory",
            "{what} needs {needed:,.1f} GB of memory, but {available:,.1f} GB are available. Use a smaller model or "
            "a quantized one (GGUF), or a machine with more memory.",
            what=what,
            needed=needed / 1e9,
            available=available / 1e9,
        )
