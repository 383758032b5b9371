"""Encoded corpora kept between runs, in the user's cache folder.

FIRTH_CACHE names the folder, FIRTH_CACHE_SIZE the most it may hold ("20GB"); the entries used longest ago go first.
An entry is a folder that is written under another name and renamed when whole.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.run import parse_bytes
from firth.core.storage import saying_where, temporary

ENTRY = "entry.json"  # written last: sizes of the other files, and what the entry holds


def cache_folder() -> Path:
    if os.environ.get("FIRTH_CACHE"):
        return Path(os.environ["FIRTH_CACHE"]).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "firth"


def cache_size() -> int:
    requested = os.environ.get("FIRTH_CACHE_SIZE") or "20GB"
    try:
        return parse_bytes(requested)
    except FirthError:
        raise FirthError(
            "invalid_value",
            "{option} must be a size such as 20GB; got {got!r}.",
            option="FIRTH_CACHE_SIZE",
            got=requested,
        ) from None


def entry_name(*identity: Any) -> str:
    """Names what an entry is made from: equal facts, equal name."""
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def find_entry(name: str) -> tuple[Path, dict[str, Any]] | None:
    """An entry that is there and whole: its folder and what `write_entry` was told; marks it as used."""
    folder = cache_folder() / name
    try:
        entry = json.loads((folder / ENTRY).read_bytes())
        if any((folder / file).stat().st_size != size for file, size in entry["sizes"].items()):
            return None
        os.utime(folder / ENTRY)
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        return None
    return folder, entry["facts"]


@contextlib.contextmanager
def working_folder() -> Iterator[tuple[Path, bool]]:
    """A folder to work in, and whether it lies in the cache; what is still there at the end is removed, and what killed
    processes left at the beginning."""
    with contextlib.ExitStack() as stack:
        try:
            with saying_where(cache_folder()):
                cache_folder().mkdir(parents=True, exist_ok=True)
            folder, cached = stack.enter_context(temporary(cache_folder() / "work", tempfile.mkdtemp)), True
        except FirthError:
            folder, cached = (
                stack.enter_context(temporary(Path(tempfile.gettempdir(), "firth"), tempfile.mkdtemp)),
                False,
            )
        yield folder, cached


def write_entry(name: str, folder: Path, metadata: dict[str, Any]) -> None:
    """Makes a working folder the entry `name` (or leaves the one that another process put there meanwhile)."""
    entry = {"sizes": {path.name: path.stat().st_size for path in folder.iterdir()}, "facts": metadata}
    (folder / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
    target = cache_folder() / name
    if find_entry(name) is None:
        shutil.rmtree(target, ignore_errors=True)  # broken or cut short
        with contextlib.suppress(OSError):  # another process was first
            folder.rename(target)
    remove_old_entries(keep=target)


def remove_old_entries(keep: Path) -> None:
    """Removes the entries used longest ago until the cache is within its size."""
    entries = []
    for folder in cache_folder().iterdir():
        with contextlib.suppress(OSError):  # another process tidies too
            if folder != keep and not folder.name.startswith(".") and (folder / ENTRY).is_file():
                entries.append(((folder / ENTRY).stat().st_mtime, folder_size(folder), folder))
    left = cache_size() - folder_size(keep)
    for _, size, folder in sorted(entries, reverse=True):
        left -= size
        if left < 0:
            shutil.rmtree(folder, ignore_errors=True)


def folder_size(folder: Path) -> int:
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0
