"""An index on disk: a folder of immutable segments and a manifest that lists the current ones.

The manifest (index.json) names every file with its size and SHA-256. A commit writes and syncs new files under unused
names, then replaces the manifest atomically. A process that is killed before that has changed nothing, and the next
writer removes its files. Readers memory-map the files; a writer holds the lock.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
from collections.abc import Callable, Iterator, Mapping
from pathlib import Path
from typing import Any

from firth.core.errors import FirthError
from firth.core.remote import as_path
from firth.core.remote_folders import local_copy
from firth.core.storage import fingerprint, new_file, read_json, remove, saying_where, write_json
from firth.core.vectors import METRICS
from firth.index.segment import DTYPES, MAX_DIM
from firth.version import __version__
from firth.work.worker import RECORDS

FORMAT = 1
MANIFEST, LOCK = "index.json", "lock"
OWN_FILE = re.compile(r"(segment|deleted|graph)-\d+(-words)?\.(safetensors|arrow|usearch)|\.index\.json-.*")
LISTED_FILE = re.compile(r"(segment-\d{1,18}(-words)?\.arrow|(segment|deleted)-\d{1,18}\.safetensors)")
LARGEST_COUNT = 1 << 62  # limit of row counts and file sizes in a manifest


def is_index(folder: str | os.PathLike[str]) -> bool:
    """Return whether a folder holds an index."""
    return (as_path(folder) / MANIFEST).is_file()


def read_manifest(folder: Path, check: bool = True) -> dict[str, Any]:
    """Read and validate the manifest; with `check`, also check that its files exist and have the right size."""
    if not is_index(folder):
        if not folder.exists():
            raise FirthError("not_found", "There is no index at {folder}.", folder=folder)
        raise FirthError(
            "not_found",
            "{folder} is not an index: it has no {manifest}. `firth index build MODEL DATA` creates one.",
            folder=folder,
            manifest=MANIFEST,
        )
    with as_damaged_index():
        manifest = read_json(folder / MANIFEST)
    if not isinstance(manifest, dict) or "format" not in manifest:
        raise FirthError("damaged_index", "{path} does not describe a Firth index.", path=folder / MANIFEST)
    if manifest["format"] != FORMAT:
        raise FirthError(
            "unsupported_format",
            "{folder} has format {format!r:.80}, but this version of Firth ({version}) reads format {expected}. Open "
            "it with the version that wrote it, or a newer one.",
            folder=folder,
            format=manifest["format"],
            version=__version__,
            expected=FORMAT,
        )
    invalid_names = [name for name, is_valid in RULES.items() if not is_valid(manifest.get(name))]
    if invalid_names:
        raise FirthError(
            "damaged_index",
            "{path} has missing or invalid values: {names}.",
            path=folder / MANIFEST,
            names=", ".join(invalid_names),
        )
    files = manifest_files(manifest, folder)
    listed = sum(len(record["files"]) for record in records(manifest))
    if listed != len(files):
        raise FirthError("damaged_index", "{path} lists a file twice.", path=folder / MANIFEST)
    later_files = [name for name in files if int(name.split("-")[1].split(".")[0]) > manifest["commit"]]
    if later_files:  # a later commit would overwrite this file while it is mapped
        raise FirthError(
            "damaged_index",
            "{path} has commit number {commit}, which is lower than that of its file {name}.",
            path=folder / MANIFEST,
            commit=manifest["commit"],
            name=later_files[0],
        )
    if check:
        check_files(folder, manifest)
    return manifest


def is_count(value: Any, low: int = 0) -> bool:
    """Return whether a value is an integer from `low` to the largest that a manifest may have."""
    return type(value) is int and low <= value < LARGEST_COUNT


def is_text_or_none(value: Any) -> bool:
    """Return whether a value is a text or None."""
    return value is None or isinstance(value, str)


def is_record(value: Any) -> bool:
    """Return whether a value has the form of the record of a segment, or of the deleted rows."""
    return isinstance(value, dict) and is_count(value.get("rows")) and isinstance(value.get("files"), dict)


#: A check for every manifest entry that the code relies on. The rest of the graph's record is covered by its seal.
RULES: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str),
    "firth": lambda value: isinstance(value, str),
    "dim": lambda value: is_count(value, 1) and value <= MAX_DIM,
    "metric": lambda value: isinstance(value, str) and value in METRICS,
    "numbers": lambda value: isinstance(value, str) and value in DTYPES,
    "commit": is_count,
    "epoch": is_count,
    "model": lambda value: (
        value is None
        or (
            isinstance(value, dict)
            and all(isinstance(value.get(name), str) for name in ("method", "fingerprint"))
            and is_text_or_none(value.get("path"))
        )
    ),
    "about": lambda value: value is None or isinstance(value, dict),
    "segments": lambda value: isinstance(value, list) and all(map(is_record, value)),
    "deleted": lambda value: value is None or (is_record(value) and len(value["files"]) == 1),
    "graph": lambda value: (
        value is None or (isinstance(value, dict) and is_count(value.get("rows")) and is_count(value.get("epoch")))
    ),
}


def records(manifest: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Return the records of the segments and, if rows were deleted, of the deleted rows."""
    return [*manifest["segments"], *([manifest["deleted"]] if manifest.get("deleted") else [])]


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Check that every file exists and has the size that the manifest states."""
    for name, entry in manifest_files(manifest, folder).items():
        if not (folder / name).is_file():
            raise FirthError("damaged_index", "{folder} is incomplete: {name} is missing.", folder=folder, name=name)
        size = (folder / name).stat().st_size
        if size != entry["bytes"]:
            raise FirthError(
                "damaged_index",
                "{path} has {got:,} bytes; {manifest} states {expected:,}.",
                path=folder / name,
                got=size,
                manifest=MANIFEST,
                expected=entry["bytes"],
            )


def manifest_files(manifest: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """Return the files of an index with their sizes and hashes, without the HNSW graph, which is only a cache."""
    files: dict[str, dict[str, Any]] = {}
    for record in records(manifest):
        files |= record["files"]
    for name, entry in files.items():
        is_complete = isinstance(entry, dict) and is_count(entry.get("bytes")) and isinstance(entry.get("sha256"), str)
        if not LISTED_FILE.fullmatch(name) or not is_complete:
            raise FirthError(
                "damaged_index",
                "{path} does not state the size and SHA-256 of {name!r:.80}.",
                path=folder / MANIFEST,
                name=name,
            )
    return files


@contextlib.contextmanager
def as_damaged_index() -> Iterator[None]:
    """Turn the code damaged_model of the storage functions into damaged_index."""
    try:
        yield
    except FirthError as error:
        if error.code != "damaged_model":
            raise
        raise FirthError("damaged_index", error.template, **error.values) from None


def verify_index(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Verify the SHA-256 of every file of an index and return the hashes by file name."""
    with local_copy(folder) as path:
        return verify_local(path)


def verify_local(path: Path) -> dict[str, str]:
    """See `verify_index`."""
    files = manifest_files(read_manifest(path), path)
    for name, entry in files.items():
        try:
            sha256 = fingerprint(path / name)["sha256"]
        except OSError as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=path / name, reason=error.strerror
            ) from None
        if sha256 != entry["sha256"]:
            raise FirthError(
                "hash_mismatch",
                "{path} was modified: its SHA-256 is {got}…; expected {expected}….",
                path=path / name,
                got=sha256[:12],
                expected=entry["sha256"][:12],
            )
    return {name: entry["sha256"] for name, entry in files.items()}


class Lock:
    """The lock of a folder's only writer. The operating system releases it when the process ends."""

    def __init__(self, folder: Path) -> None:
        self.process = os.getpid()
        while True:
            with saying_where(folder):
                self.file = (folder / LOCK).open("a+")
            try:
                fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            except OSError:
                self.file.seek(0)
                holder = self.file.read().strip() or "another process"
                self.file.close()
                raise FirthError(
                    "locked",
                    "{folder} is being written by {holder}. Wait until it has finished.",
                    folder=folder,
                    holder=holder,
                ) from None
            with saying_where(folder):
                if os.path.samestat(os.fstat(self.file.fileno()), (folder / LOCK).stat()):
                    break
            self.file.close()  # the index was removed and created again in the meantime
        self.file.truncate(0)
        self.file.write(f"process {self.process}")
        self.file.flush()

    def release(self) -> None:
        """Let another process write."""
        self.file.close()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Replace the manifest atomically, which makes a commit take effect."""
    with new_file(folder / MANIFEST) as work:
        write_json(work, manifest, indent=1)


def remove_index(folder: Path) -> None:
    """Remove an index that is not being written. A folder that also holds other files is refused."""
    lock = Lock(folder)
    names = {path.name for path in folder.iterdir()}
    own_names = (MANIFEST, LOCK, RECORDS)
    other_files = sorted(name for name in names if name not in own_names and not OWN_FILE.fullmatch(name))
    if other_files:
        lock.release()
        examples = ", ".join(other_files[:3])
        raise FirthError(
            "unsafe_output",
            "{folder} also holds files that Firth did not write ({examples}) and will not delete. Choose another "
            "folder.",
            folder=folder,
            examples=examples,
        )
    with saying_where(folder):
        for name in sorted(
            names, key=lambda name: name != MANIFEST
        ):  # the manifest first: without it there is no index
            remove(folder / name)
        folder.rmdir()
    lock.release()


def sweep(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Remove the files of unfinished commits and of merged segments."""
    referenced = {*manifest_files(manifest, folder), str((manifest.get("graph") or {}).get("file"))}
    with contextlib.suppress(OSError):  # the commit is valid anyway, and the next one tries again
        for path in folder.iterdir():
            if OWN_FILE.fullmatch(path.name) and path.name not in referenced:
                path.unlink(missing_ok=True)
