"""A folder of files with vectors. Finished files are kept on resume, and several processes may fill the folder."""

from __future__ import annotations

import bisect
import contextlib
import fcntl
import hashlib
import json
import os
import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

import click

from firth.cli.row_writers import Write, writer
from firth.core.errors import FirthError
from firth.core.processes import is_first_process, rank, world_size

RECORD = "embedding.json"  # model, data and options of the shards, and which of them are finished

TEMPORARY = re.compile(r"\.(part|embedding)-|\.embedding\.json-")  # left by a killed process


class Shards:
    """A folder of files with `rows` rows each: part-00000.parquet, part-00001.parquet, …

    `identity` describes the model, the data and the options. A folder with another identity is refused; with the same,
    finished shards are kept. `done` maps their numbers to their counts, and `lost` names recorded shards that are
    missing or have another size. Under torchrun the first process opens the folder, and each process keeps its own
    record until the first one finishes, so that the next command can resume with any number of processes.
    """

    def __init__(self, folder: Path, kind: str, rows: int, identity: Mapping[str, Any]) -> None:
        from firth.core.storage import saying_where

        if rows < 1:
            raise FirthError("too_few", "--shard-rows must be at least 1; got {got}.", got=rows)
        self.folder, self.kind, self.rows = folder, kind, rows
        self.identity = {**identity, "kind": kind, "rows a shard": rows}
        with saying_where(folder):
            folder.mkdir(parents=True, exist_ok=True)
        self.handle: int | None = lock(folder)
        try:
            self.open()
        except BaseException:
            self.close()
            raise

    def open(self) -> None:
        """Read the records of the folder, and remove incomplete files."""
        from firth.core.storage import read_json

        check_folder(self.folder)
        record = read_json(self.folder / RECORD) if (self.folder / RECORD).exists() else None
        if record is not None and record.get("identity") != self.identity:
            recorded = record.get("identity") or {}
            different = [name for name, value in self.identity.items() if recorded.get(name) != value]
            raise FirthError(
                "other_run",
                "{folder} contains shards of another run (different {different}). Choose another folder, or remove it.",
                folder=self.folder,
                different=", ".join(different),
            )
        other_records = self.other_records()
        records = [
            record or {},
            *(each for each in map(read_json, other_records) if each.get("identity") == self.identity),
        ]
        shards = {int(number): counts for each in records for number, counts in each.get("shards", {}).items()}
        self.done = {number: counts for number, counts in shards.items() if self.size(number) == counts["bytes"]}
        self.lost = [self.files(number)[0].name for number in sorted(shards) if number not in self.done]
        self.finished = bool(record and record["finished"]) and not self.lost
        complete = {path for number in self.done for path in self.files(number)}
        for path in self.folder.iterdir():  # left by a killed run
            if path not in complete and (TEMPORARY.match(path.name) or re.match(r"part-\d{5,}\.", path.name)):
                path.unlink()
        self.done_before = sorted(self.done)
        if record is None or other_records:
            self.write_record()
        for path in other_records:
            path.unlink()

    def close(self) -> None:
        """Release the lock of the folder."""
        if self.handle is not None:
            os.close(self.handle)
        self.handle = None

    def __getstate__(self) -> dict[str, Any]:
        """Leave out the lock, which stays with the first process."""
        return {**self.__dict__, "handle": None}

    def other_records(self) -> list[Path]:
        """Return the records of the other processes, which exist until the first one finishes or the next command."""
        return sorted(self.folder.glob(RECORD.replace(".", "-*.")))

    def files(self, number: int) -> list[Path]:
        """Return the files of a shard."""
        from firth.formats.arrays import keys_path

        path = self.folder / f"part-{number:05d}.{self.kind}"
        return [path, keys_path(path)] if self.kind == "npy" else [path]

    def size(self, number: int) -> int:
        """Return the bytes of a shard."""
        return sum(path.stat().st_size for path in self.files(number) if path.is_file())

    @contextlib.contextmanager
    def writing(self, number: int, counts: dict[str, int]) -> Iterator[Write]:
        """Write a shard. It is recorded, with the counts, when the block ends without an error."""
        with writer(str(self.files(number)[0])) as write:
            yield write
        self.done[number] = {"bytes": self.size(number), **counts}
        self.write_record()

    def mine(self, number: int) -> bool:
        """Return whether this process writes the shard: missing shards are assigned to the processes in turn."""
        position = bisect.bisect_left(self.done_before, number)
        missing = number not in self.done_before[position : position + 1]
        return missing and (number - position) % world_size() == rank()

    def finish(self, others: Iterable[Mapping[int, dict[str, int]]] = ()) -> None:
        """Mark the folder as finished; `others` are the shards of the other processes."""
        for done in others:
            self.done |= done
        self.finished = True
        self.write_record()
        for path in self.other_records():
            path.unlink()

    def write_record(self) -> None:
        """Write the record of this process."""
        from firth.core.storage import new_file

        rows = self.counts()["rows"] if self.finished else 0
        record = {"identity": self.identity, "finished": rows, "shards": dict(sorted(self.done.items()))}
        with new_file(self.folder / (RECORD.replace(".", f"-{rank()}.") if rank() else RECORD)) as work:
            work.write_text(json.dumps(record, indent=2) + "\n")

    def counts(self) -> Counter[str]:
        """Return the summed counts of all finished shards."""
        total = Counter[str]()
        for each in self.done.values():
            total.update(each)
        del total["bytes"]
        return total


def check_folder(folder: Path) -> None:
    """Refuse a folder with files that are not shards."""
    from firth.core.storage import check_writable, saying_where

    with saying_where(folder):
        check_writable(folder)
        names = (
            sorted(path.name for path in folder.iterdir() if not TEMPORARY.match(path.name)) if folder.exists() else []
        )
    if names and RECORD not in names:
        raise FirthError(
            "unsafe_output",
            "{folder} contains other files (such as {file}). Shards need their own folder.",
            folder=folder,
            file=names[0],
        )


def lock(folder: Path) -> int:
    """Lock the folder for this command; the lock is released when the process ends."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FirthError(
            "locked", "Another process is writing to {folder}. Wait for it, or choose another folder.", folder=folder
        ) from None
    except OSError:  # the file system has no locks
        pass
    return handle


def open_shards(path: str, texts: Any, folder: Path, settings: dict[str, Any], values: dict[str, Any]) -> Shards:
    """Open the folder of shards. Of several processes, the first one opens it and reports errors."""
    if world_size() == 1:
        return open_folder(path, texts, folder, settings, values)

    from firth.training.network_options import networks

    with networks():
        from firth.training.device import broadcast, join
    opened: Shards | FirthError | None = None
    join()
    if is_first_process():
        try:
            opened = open_folder(path, texts, folder, settings, values)
        except FirthError as error:
            opened = error
    shared: Shards | FirthError = broadcast(opened)
    if isinstance(shared, FirthError):
        raise shared if is_first_process() else click.exceptions.Exit(1)
    if "pooling" in settings:  # the same precision in all processes, even on different devices
        settings["precision"] = shared.identity["options"]["precision"]
    return shared


def open_folder(path: str, texts: Any, folder: Path, settings: dict[str, Any], values: dict[str, Any]) -> Shards:
    """Open the folder of shards in this process."""
    check_folder(folder)
    source = texts.fingerprint()
    if source is None:
        raise FirthError(
            "conflicting_options",
            "Sharded output can only be resumed when the input is a file, not standard input (-).",
        )
    options = {name: value for name, value in settings.items() if name != "device"}
    if "pooling" in settings:
        from firth.transformers.text_encoder import resolve_engine

        precision = resolve_engine(values["device"] or "auto", values["precision"] or "auto")[1]
        options |= {"pooling": asdict(settings["pooling"]), "precision": precision}
        options["pooling"]["layers"] = list(options["pooling"]["layers"])  # as it is read from JSON
    identity = {"model": model_fingerprint(Path(path)), "data": source, "options": options}
    return Shards(folder, values["shards"], values["shard_rows"], identity)


def model_fingerprint(path: Path) -> str:
    """Return the hash of all files of a model, without its saved maps."""
    from firth.core.storage import MAPS, fingerprint

    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    files = [file for file in files if path / MAPS not in file.parents]
    hashes = [(file.name, fingerprint(file)["sha256"]) for file in files]
    return hashlib.sha256(repr(hashes).encode()).hexdigest()


def gather_shards(shards: Shards) -> list[dict[int, dict[str, int]]]:
    """Return, in the first process, what each process wrote. It waits for the others."""
    if world_size() == 1:
        return [shards.done]

    from firth.training.network_options import networks

    with networks():
        from firth.training.device import gathered
    return gathered(shards.done)
