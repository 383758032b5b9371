"""An index on disk: a folder of segments that are written once, and one file that says which of them count.

index.json (the manifest) names every file with its size and sha256. A commit writes and syncs the new files under names
not used yet, then replaces the manifest in one step: whoever is killed before that has changed nothing, and what was
written is removed by the next writer. Readers map the files; a writer holds the lock.
"""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import (
    fingerprint,
    new_file,
    read_arrays,
    read_json,
    saying_where,
    sync,
    write_arrays,
    write_json,
)
from firth.core.vectors import METRICS
from firth.index.segment import BLOCK, KEY, NUMBERS, Segment, Space
from firth.index.where import is_text
from firth.version import __version__

FORMAT = 1
MANIFEST, LOCK = "index.json", "lock"
OURS = re.compile(r"(segment|deleted|graph)-\d+(-words)?\.(safetensors|arrow|usearch)|\.index\.json-.*")


def is_index(folder: str | os.PathLike[str]) -> bool:
    return (Path(folder) / MANIFEST).is_file()


def read_manifest(folder: Path, check: bool = True) -> dict[str, Any]:
    """The manifest, checked for what opening relies on; with `check`, its files too."""
    if not is_index(folder):
        if not folder.exists():
            raise FirthError("not_found", "There is no index at {folder}.", folder=folder)
        raise FirthError(
            "not_found",
            "{folder} is no index: it has no {manifest}. `firth index MODEL DATA` makes one.",
            folder=folder,
            manifest=MANIFEST,
        )
    found = read_json(folder / MANIFEST)
    if not isinstance(found, dict) or "format" not in found:
        raise FirthError("damaged_index", "{path} does not describe a Firth index.", path=folder / MANIFEST)
    if found["format"] != FORMAT:
        raise FirthError(
            "unsupported_format",
            "{folder} has format {format!r}, this Firth ({version__}) reads format {format_2}; open it with the "
            "version that wrote it or a newer one.",
            folder=folder,
            format=found["format"],
            version__=__version__,
            format_2=FORMAT,
        )
    space = [found.get(name) for name in Space._fields]
    right = type(space[0]) is int and space[0] >= 1 and space[1] in METRICS and space[2] in NUMBERS
    counts = all(type(found.get(name)) is int for name in ("commit", "epoch"))
    graph = found.get("graph") or {"rows": 0, "epoch": 0}
    counts = counts and isinstance(graph, dict) and all(type(graph.get(name)) is int for name in ("rows", "epoch"))
    counts = counts and isinstance(found.get("id"), str)
    if not right or not counts or not isinstance(found.get("segments"), list):
        raise FirthError(
            "damaged_index",
            "{path} does not give id, dim, metric, numbers, commit, epoch and segments.",
            path=folder / MANIFEST,
        )
    if check:
        check_files(folder, found)
    return found


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
    for record in [*manifest["segments"], *([manifest["deleted"]] if manifest.get("deleted") else [])]:
        listed = record.get("files") if isinstance(record, dict) else None
        if not isinstance(listed, dict) or type(record.get("rows")) is not int:
            raise FirthError(
                "damaged_index", "{path} does not give the files and rows of every segment.", path=folder / MANIFEST
            )
        files |= listed
    for name, facts in files.items():
        known = isinstance(facts, dict) and isinstance(facts.get("bytes"), int) and isinstance(facts.get("sha256"), str)
        if Path(name).name != name or not known:
            raise FirthError(
                "damaged_index",
                "{path} does not give the bytes and sha256 of {name}.",
                path=folder / MANIFEST,
                name=name,
            )
    return files


def verify_index(folder: str | os.PathLike[str]) -> dict[str, str]:
    """Checks the sha256 of every file of an index; the hashes by file name."""
    path = Path(folder)
    files = manifest_files(read_manifest(path), path)
    for name, facts in files.items():
        found = fingerprint(path / name)["sha256"]
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
        with saying_where(folder):
            self.file = (folder / LOCK).open("a+")
        try:
            fcntl.flock(self.file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except OSError:
            self.file.seek(0)
            holder = self.file.read().strip() or "another process"
            self.file.close()
            raise FirthError(
                "locked", "{folder} is being written by {holder}; wait until it is done.", folder=folder, holder=holder
            ) from None
        self.file.truncate(0)
        self.file.write(f"process {os.getpid()}")
        self.file.flush()

    def release(self) -> None:
        self.file.close()


def write_segment(folder: Path, number: int, segment: Segment) -> Segment:
    """Writes and syncs the files of a segment and maps them."""
    name = f"segment-{number}"
    table = f"{name}.arrow"
    write_arrays(folder / f"{name}.safetensors", segment.arrays)
    write_table(folder / table, segment.table)
    files = [f"{name}.safetensors", table]
    if segment.terms is not None:
        files.append(f"{name}-words.arrow")
        write_table(folder / files[-1], pyarrow.table({"word": segment.terms}))
    record = {"name": name, "rows": len(segment), "files": {file: fingerprint(folder / file) for file in files}}
    return open_segment(folder, record)


def open_segment(folder: Path, record: Mapping[str, Any]) -> Segment:
    name, rows = str(record.get("name")), record["rows"]
    files = record["files"]
    if f"{name}.safetensors" not in files or f"{name}.arrow" not in files:
        raise FirthError(
            "damaged_index", "{path} does not name the files of the segment {name}.", path=folder / MANIFEST, name=name
        )
    arrays = read_arrays(folder / f"{name}.safetensors")
    table = read_table(folder / f"{name}.arrow")
    words = f"{name}-words.arrow"
    terms = read_table(folder / words).column(0).combine_chunks() if words in files else None
    if terms is not None and terms.type != pyarrow.large_string():
        raise FirthError("damaged_index", "{path} holds no words.", path=folder / words)
    needed = {"vectors", "hashes", "hash_rows"}
    if terms is not None:
        needed |= {"word_starts", "word_rows", "word_counts", "lengths"}
    lengths = [len(arrays[each]) for each in ("vectors", "hash_rows") if each in arrays]
    if "vectors" in arrays and (arrays["vectors"].ndim != 2 or arrays["vectors"].dtype not in (np.float32, np.float16)):
        raise FirthError(
            "damaged_index", "{path}.safetensors does not hold a matrix of float32 or float16.", path=folder / name
        )
    if needed - set(arrays) or set(lengths) != {rows} or table.num_rows != rows or KEY not in table.column_names:
        raise FirthError(
            "damaged_index",
            "{path}.safetensors and .arrow do not hold {rows:,} rows of vectors and keys.",
            path=folder / name,
            rows=rows,
        )
    return Segment(arrays, table, terms, dict(record))


def write_table(path: Path, table: Any) -> None:
    with saying_where(path):
        with pyarrow.OSFile(str(path), "wb") as sink, pyarrow.ipc.new_file(sink, table.schema) as writer:
            writer.write_table(table, max_chunksize=BLOCK)
        sync(path)


def read_table(path: Path) -> Any:
    """A table of an Arrow file, mapped. Where texts begin and end is checked: Arrow itself follows any number."""
    try:
        table = pyarrow.ipc.open_file(pyarrow.memory_map(str(path))).read_all()
        for column in table.columns:
            text = is_text(column.type)
            column.validate(full=not text and not pyarrow.types.is_primitive(column.type))
            if text and not all(map(offsets_rise, column.chunks)):
                raise pyarrow.ArrowInvalid("texts without an end")
    except (pyarrow.ArrowException, OSError) as error:
        raise FirthError(
            "damaged_index", "{path} is no Arrow file, or damaged: {reason}.", path=path, reason=str(error)
        ) from None
    return table


def offsets_rise(chunk: Any) -> bool:
    """Whether every text of a chunk lies inside its data. The texts themselves are not read."""
    kind = np.int64 if pyarrow.types.is_large_string(chunk.type) else np.int32
    _, offsets, data = chunk.buffers()
    if not len(chunk):
        return True
    found: NDArray[Any] = np.frombuffer(offsets, dtype=kind, count=chunk.offset + len(chunk) + 1)
    end = data.size if data is not None else 0
    return bool(found[0] >= 0 and (found[1:] >= found[:-1]).all() and found[-1] <= end)


def write_deleted(folder: Path, name: str, deleted: NDArray[np.int64]) -> dict[str, Any]:
    file = f"{name}.safetensors"
    write_arrays(folder / file, {"deleted": deleted})
    return {"rows": len(deleted), "files": {file: fingerprint(folder / file)}}


def read_deleted(folder: Path, record: Mapping[str, Any] | None) -> NDArray[np.int64]:
    if not record:
        return np.zeros(0, dtype=np.int64)
    path = folder / next(iter(record["files"]))
    found = read_arrays(path).get("deleted")
    if found is None or found.ndim != 1 or found.dtype != np.int64:
        raise FirthError("damaged_index", "{path} does not list deleted rows.", path=path)
    return np.array(found)


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
    known = {*manifest_files(manifest, folder), (manifest.get("graph") or {}).get("file")}
    for path in folder.iterdir():
        if OURS.fullmatch(path.name) and path.name not in known:
            path.unlink(missing_ok=True)
