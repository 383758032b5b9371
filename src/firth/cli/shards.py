"""A folder of files with vectors, each of as many rows: part-00000.parquet, part-00001.parquet, …

`embedding.json` has the identity of the model, the data and the options, and the shards with their counts when all are
finished. Until then the records of the job (`firth.work.job`) say which ones are.
"""

from __future__ import annotations

import contextlib
import fcntl
import hashlib
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.errors import FirthError
from firth.core.remote import AnyPath, RemotePath
from firth.core.storage import (
    MAPS,
    check_writable,
    fingerprint,
    new_file,
    read_json,
    saying_where,
    sizes_in,
    write_json,
)
from firth.work.worker import RECORDS

RECORD = "embedding.json"
OLD_NAMES = {"rows a shard": "rows per shard"}  # in records of earlier versions

SHARD = re.compile(r"part-\d{5,}\.")
TEMPORARY = re.compile(rf"\.(part|embedding)[-.]|{re.escape(RECORDS)}$")  # of an unfinished run

Counts = dict[str, int]


class Recorded(NamedTuple):
    """What the record of a folder says: the shards with the counts of each, and those that are missing or damaged."""

    shards: dict[int, Counts]
    lost: list[str]
    finished: bool


def shard_name(number: int, kind: str) -> str:
    """Return the name of the main file of a shard."""
    return f"part-{number:05d}.{kind}"


def shard_files(number: int, kind: str) -> list[str]:
    """Return the names of the files of a shard."""
    from firth.formats.arrays import keys_path

    name = shard_name(number, kind)
    return [name, keys_path(Path(name)).name] if kind == "npy" else [name]


def shard_bytes(sizes: Mapping[str, int], number: int, kind: str) -> int:
    """Return the size of a shard, from the sizes of the files of its folder."""
    return sum(sizes.get(name, 0) for name in shard_files(number, kind))


def read_record(folder: AnyPath, identity: Mapping[str, Any]) -> Recorded:
    """Read the record of a folder; shards of another identity are refused. A new folder gets a record."""
    if not (folder / RECORD).exists():
        write_record(folder, identity, {}, 0)
        return Recorded({}, [], False)
    record = read_json(folder / RECORD)
    recorded = {OLD_NAMES.get(name, name): value for name, value in (record.get("identity") or {}).items()}
    if recorded != identity:
        different = [name for name, value in identity.items() if recorded.get(name) != value]
        raise FirthError(
            "other_run",
            "{folder} contains shards of another run (different {different}). Choose another folder, or remove it.",
            folder=folder,
            different=", ".join(different),
        )
    kind = identity["kind"]
    listed = {int(number): counts for number, counts in record["shards"].items()}
    sizes = sizes_in(folder)
    shards = {number: each for number, each in listed.items() if shard_bytes(sizes, number, kind) == each["bytes"]}
    lost = [shard_name(number, kind) for number in sorted(listed) if number not in shards]
    return Recorded(shards, lost, bool(record["finished"]) and not lost)


def write_record(folder: AnyPath, identity: Mapping[str, Any], shards: Mapping[int, Counts], rows: int) -> None:
    """Write the record; `rows` is 0 until all shards are finished."""
    with new_file(folder / RECORD) as work:
        write_json(work, {"identity": identity, "finished": rows, "shards": dict(sorted(shards.items()))}, indent=2)


def finish(folder: AnyPath, identity: Mapping[str, Any], shards: Mapping[int, Counts]) -> None:
    """Record all shards as finished."""
    kind, sizes = identity["kind"], sizes_in(folder)
    complete = {number: {**counts, "bytes": shard_bytes(sizes, number, kind)} for number, counts in shards.items()}
    write_record(folder, identity, complete, total_counts(shards.values())["rows"])


def remove_leftovers(folder: AnyPath, kind: str, shards: Iterable[int]) -> None:
    """Remove what killed runs left beside the shards of a finished run."""
    files = {name for number in shards for name in shard_files(number, kind)}
    for path in folder.iterdir():
        name = path.name
        if name not in files and name != RECORDS and (TEMPORARY.match(name) or SHARD.match(name)):
            path.unlink()


def total_counts(shards: Iterable[Counts]) -> Counter[str]:
    """Return the summed counts of shards."""
    total = Counter[str](rows=0)
    for each in shards:
        total.update(each)
    del total["bytes"]
    return total


@contextlib.contextmanager
def locked(folder: AnyPath, shared: bool) -> Iterator[None]:
    """Create and lock a folder of shards; with `shared`, the other tasks of a job array may write to it too.

    The lock is released when the process ends. There are no locks at URLs, where commands with the same identity write
    the same files, and others are refused by the record.
    """
    check_folder(folder)
    if isinstance(folder, RemotePath):
        yield
        return
    with saying_where(folder):
        folder.mkdir(parents=True, exist_ok=True)
    handle = os.open(folder, os.O_RDONLY)
    try:
        try:
            fcntl.flock(handle, (fcntl.LOCK_SH if shared else fcntl.LOCK_EX) | fcntl.LOCK_NB)
        except BlockingIOError:
            raise FirthError(
                "locked",
                "Another process is writing to {folder}. Wait for it, or choose another folder.",
                folder=folder,
            ) from None
        except OSError:  # the file system has no locks
            pass
        check_folder(folder)
        yield
    finally:
        os.close(handle)


def check_folder(folder: AnyPath) -> None:
    """Refuse a folder with files that are not shards."""
    with saying_where(folder):
        check_writable(folder)
        files = folder.iterdir() if folder.exists() else iter(())
        names = sorted(path.name for path in files if not TEMPORARY.match(path.name))
    if names and RECORD not in names:
        raise FirthError(
            "unsafe_output",
            "{folder} contains other files (such as {file}). Shards need their own folder.",
            folder=folder,
            file=names[0],
        )


def model_files(path: AnyPath) -> list[Path]:
    """Return the files of a model, without its saved maps. A model at a URL has none: workers fetch it themselves."""
    if isinstance(path, RemotePath):
        return []
    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    return [file for file in files if path / MAPS not in file.parents]


def model_fingerprint(path: str) -> str:
    """Return the hash of all files of a model, without its saved maps."""
    from firth.core.remote_folders import local_path

    hashes = [(file.name, fingerprint(file)["sha256"]) for file in model_files(local_path(path))]
    return hashlib.sha256(repr(hashes).encode()).hexdigest()
