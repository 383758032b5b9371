"""The cache of encoded corpora, in the user's cache folder.

FIRTH_CACHE sets the folder and FIRTH_CACHE_SIZE its maximum size ("20GB"). The least recently used entries are removed
first. An entry is a folder that is written under a temporary name and renamed when it is complete.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import os
import shutil
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.run import parse_bytes
from firth.core.storage import hold, remove, saying_where, temporary

JOB = ".job-"  # prefix of the folders of jobs
JOB_SECONDS = 7 * 86400
ENTRY = "entry.json"  # written last: sizes of the other files, and the metadata of the entry


def cache_folder() -> Path:
    """Return the cache folder: FIRTH_CACHE, or `firth` in the user's cache directory."""
    if os.environ.get("FIRTH_CACHE"):
        return Path(os.environ["FIRTH_CACHE"]).expanduser()
    home = os.environ.get("XDG_CACHE_HOME")
    return (Path(home) if home else Path.home() / ".cache") / "firth"


def cache_size() -> int:
    """Return the maximum size of the cache in bytes."""
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
    """Return the name of the entry for these inputs and settings: a hash of their JSON form."""
    return hashlib.sha256(json.dumps(identity).encode()).hexdigest()[:40]


def find_entry(name: str) -> tuple[Path, dict[str, Any]] | None:
    """Return the folder and metadata of a complete entry, or None; mark the entry as recently used."""
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
    """Yield a temporary folder, and whether it is inside the cache.

    The folder is removed at the end. Folders left by killed processes are removed at the beginning.
    """
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


@contextlib.contextmanager
def job_folder(name: str) -> Iterator[Path]:
    """Yield the folder of a job in the cache, which workers on other machines use too, so it must be shared.

    It is removed at the end but kept after an error or a kill, so that the same job continues with what is finished. A
    job that another process is running gets a folder of its own.
    """
    if not name:  # nothing identifies the job
        with working_folder() as (folder, _):
            yield folder
        return
    folder, handle = cache_folder() / f"{JOB}{name}", None
    with saying_where(folder):
        cache_folder().mkdir(parents=True, exist_ok=True)
        remove_old_jobs()
        folder.mkdir(exist_ok=True)
        try:
            handle = hold(folder)
        except (BlockingIOError, FileNotFoundError):
            folder = Path(tempfile.mkdtemp(prefix=JOB, dir=cache_folder()))
        except OSError:  # a file system without locks
            pass
    try:
        yield folder
        remove(folder)
    finally:
        if handle is not None:
            os.close(handle)


def remove_old_jobs() -> None:
    """Remove the folders of jobs that were not continued for a week."""
    for folder in cache_folder().glob(f"{JOB}*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_mtime < time.time() - JOB_SECONDS:
                handle = hold(folder)
                remove(folder)
                os.close(handle)


def write_entry(name: str, folder: Path, metadata: dict[str, Any]) -> None:
    """Turn a working folder into the entry `name`, unless another process wrote that entry in the meantime."""
    entry = {"sizes": {path.name: path.stat().st_size for path in folder.iterdir()}, "facts": metadata}
    (folder / ENTRY).write_text(json.dumps(entry), encoding="utf-8")
    target = cache_folder() / name
    if find_entry(name) is None:
        shutil.rmtree(target, ignore_errors=True)  # damaged or incomplete
        with contextlib.suppress(OSError):  # another process was faster
            folder.rename(target)
    remove_old_entries(keep=target)


def remove_old_entries(keep: Path) -> None:
    """Remove the least recently used entries until the cache is within its maximum size."""
    entries = []
    for folder in cache_folder().iterdir():
        with contextlib.suppress(OSError):  # another process may remove entries at the same time
            if folder != keep and not folder.name.startswith(".") and (folder / ENTRY).is_file():
                entries.append(((folder / ENTRY).stat().st_mtime, folder_size(folder), folder))
    left = cache_size() - folder_size(keep)
    for _, size, folder in sorted(entries, reverse=True):
        left -= size
        if left < 0:
            shutil.rmtree(folder, ignore_errors=True)


def unwritable_note() -> tuple[str, str]:
    """Return the note, with its code, for a cache folder that cannot be written."""
    return f"The cache folder {cache_folder()} can't be written; the encoded text is not cached.", "cache_unwritable"


def folder_size(folder: Path) -> int:
    """Return the total size of the files in a folder in bytes; 0 if it does not exist."""
    return sum(path.stat().st_size for path in folder.iterdir()) if folder.is_dir() else 0
