"""An index on disk: a folder of segments that are written once, and one file that says which of them count.

index.json (the manifest) names every file with its size and sha256. A commit writes and syncs the new files under names
not used yet, then replaces the manifest in one step: whoever is killed before that has changed nothing, and what was
written is removed by the next writer. Readers map the files; a writer holds the lock.
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
from firth.core.storage import fingerprint, new_file, read_json, saying_where, write_json
from firth.core.vectors import METRICS
from firth.index.segment import NUMBERS, WIDEST_ROW
from firth.version import __version__

FORMAT = 1
MANIFEST, LOCK = "index.json", "lock"
OURS = re.compile(r"(segment|deleted|graph)-\d+(-words)?\.(safetensors|arrow|usearch)|\.index\.json-.*")
LISTED = re.compile(r"(segment-\d{1,18}(-words)?\.arrow|(segment|deleted)-\d{1,18}\.safetensors)")
LARGEST = 1 << 62  # of a count or a number of bytes


def is_index(folder: str | os.PathLike[str]) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def read_manifest(folder: Path, check: bool = True) -> dict[str, Any]:
    """The manifest, checked for what opening relies on; with `check`, its files too."""
    if not is_index(folder):
        if not folder.exists():
            raise FirthError("not_found", "There is no index at {folder}.", folder=folder)
        raise FirthError(
            "not_found",
            "{folder} is no index: it has no {manifest}. `firth index build MODEL DATA` makes one.",
            folder=folder,
            manifest=MANIFEST,
        )
    with as_damaged_index():
        found = read_json(folder / MANIFEST)
    if not isinstance(found, dict) or "format" not in found:
        raise FirthError("damaged_index", "{path} does not describe a Firth index.", path=folder / MANIFEST)
    if found["format"] != FORMAT:
        raise FirthError(
            "unsupported_format",
            "{folder} has format {format!r:.80}, this Firth ({version__}) reads format {format_2}; open it with the "
            "version that wrote it or a newer one.",
            folder=folder,
            format=found["format"],
            version__=__version__,
            format_2=FORMAT,
        )
    wrong = [name for name, right in RULES.items() if not right(found.get(name))]
    if wrong:
        raise FirthError(
            "damaged_index", "{path} does not give a proper {names}.", path=folder / MANIFEST, names=", ".join(wrong)
        )
    files = manifest_files(found, folder)
    listed = sum(len(record["files"]) for record in records(found))
    if listed != len(files):
        raise FirthError("damaged_index", "{path} names a file twice.", path=folder / MANIFEST)
    later = [name for name in files if int(name.split("-")[1].split(".")[0]) > found["commit"]]
    if later:  # the next commits would write it again, while it is mapped
        raise FirthError(
            "damaged_index",
            "{path} is of commit {commit}, before its file {name}.",
            path=folder / MANIFEST,
            commit=found["commit"],
            name=later[0],
        )
    if check:
        check_files(folder, found)
    return found


def is_count(value: Any, low: int = 0) -> bool:
    return type(value) is int and low <= value < LARGEST


def is_text_or_none(value: Any) -> bool:
    return value is None or isinstance(value, str)


def is_record(value: Any) -> bool:
    """Of a segment, or of the deleted rows."""
    return isinstance(value, dict) and is_count(value.get("rows")) and isinstance(value.get("files"), dict)


#: Of every name in the manifest that is relied on, whether a value is right. The rest of the graph's record is sealed.
RULES: dict[str, Callable[[Any], bool]] = {
    "id": lambda value: isinstance(value, str),
    "firth": lambda value: isinstance(value, str),
    "dim": lambda value: is_count(value, 1) and value <= WIDEST_ROW,
    "metric": lambda value: isinstance(value, str) and value in METRICS,
    "numbers": lambda value: isinstance(value, str) and value in NUMBERS,
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
    """Of the segments, and of the deleted rows where there are some."""
    return [*manifest["segments"], *([manifest["deleted"]] if manifest.get("deleted") else [])]


def check_files(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Every file is there and as long as it was."""
    for name, facts in manifest_files(manifest, folder).items():
        if not (folder / name).is_file():
            raise FirthError("damaged_index", "{folder} is incomplete: {name} is missing.", folder=folder, name=name)
        size = (folder / name).stat().st_size
        if size != facts["bytes"]:
            raise FirthError(
                "damaged_index",
                "{path} has {size:,} bytes where {manifest} says {bytes:,}.",
                path=folder / name,
                size=size,
                manifest=MANIFEST,
                bytes=facts["bytes"],
            )


def manifest_files(manifest: Mapping[str, Any], folder: Path) -> dict[str, dict[str, Any]]:
    """The files that an index is made of, with their sizes and hashes; the approximate part is none of them."""
    files: dict[str, dict[str, Any]] = {}
    for record in records(manifest):
        files |= record["files"]
    for name, facts in files.items():
        known = isinstance(facts, dict) and is_count(facts.get("bytes")) and isinstance(facts.get("sha256"), str)
        if not LISTED.fullmatch(name) or not known:
            raise FirthError(
                "damaged_index",
                "{path} does not give the bytes and sha256 of {name!r:.80}.",
                path=folder / MANIFEST,
                name=name,
            )
    return files


@contextlib.contextmanager
def as_damaged_index() -> Iterator[None]:
    """What storage says of a model's files, said of an index's."""
    try:
        yield
    except FirthError as error:
        if error.code != "damaged_model":
            raise
        raise FirthError("damaged_index", error.template, **error.values) from None


def verify_index(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Checks the sha256 of every file of an index; the hashes by file name."""
    path = Path(folder)
    files = manifest_files(read_manifest(path), path)
    for name, facts in files.items():
        try:
            found = fingerprint(path / name)["sha256"]
        except OSError as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=path / name, reason=error.strerror
            ) from None
        if found != facts["sha256"]:
            raise FirthError(
                "hash_mismatch",
                "{path} was changed: its sha256 is {got}…, not {sha256}….",
                path=path / name,
                got=found[:12],
                sha256=facts["sha256"][:12],
            )
    return {name: facts["sha256"] for name, facts in files.items()}


class Lock:
    """Held by the one writer of a folder; the system lets go of it when its process ends, however that happens."""

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
                    "{folder} is being written by {holder}; wait until it is done.",
                    folder=folder,
                    holder=holder,
                ) from None
            with saying_where(folder):
                if os.path.samestat(os.fstat(self.file.fileno()), (folder / LOCK).stat()):
                    break
            self.file.close()  # the index was removed and made anew meanwhile
        self.file.truncate(0)
        self.file.write(f"process {self.process}")
        self.file.flush()

    def release(self) -> None:
        self.file.close()


def write_manifest(folder: Path, manifest: Mapping[str, Any]) -> None:
    """The moment a commit counts."""
    with new_file(folder / MANIFEST) as work:
        write_json(work, manifest, indent=1)


def remove_index(folder: Path) -> None:
    """Removes an index that nobody writes; a folder that holds other files too is refused."""
    lock = Lock(folder)
    names = {path.name for path in folder.iterdir()}
    others = sorted(name for name in names if name not in (MANIFEST, LOCK) and not OURS.fullmatch(name))
    if others:
        lock.release()
        some = ", ".join(others[:3])
        raise FirthError(
            "unsafe_output",
            "{folder} holds other files ({examples}), which Firth does not remove; choose another folder.",
            folder=folder,
            examples=some,
        )
    with saying_where(folder):
        for name in sorted(names, key=lambda name: name != MANIFEST):  # without it the rest is no index any more
            (folder / name).unlink()
        folder.rmdir()
    lock.release()


def sweep(folder: Path, manifest: Mapping[str, Any]) -> None:
    """Removes files of commits that did not come to their end, and of segments that were merged."""
    known = {*manifest_files(manifest, folder), str((manifest.get("graph") or {}).get("file"))}
    with contextlib.suppress(OSError):  # the commit stands all the same, and the next one sweeps
        for path in folder.iterdir():
            if OURS.fullmatch(path.name) and path.name not in known:
                path.unlink(missing_ok=True)
