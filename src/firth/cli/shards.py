"""A folder of files with rows of vectors, of which those that are done stay done; several processes may fill it."""

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

from firth.cli.rows import Write, writer
from firth.core.errors import FirthError
from firth.core.processes import is_first_process, rank, world_size

RECORD = "embedding.json"  # what the shards are of, which are done, how many rows once all are

HALF = re.compile(r"\.(part|embedding)-|\.embedding\.json-")  # what a killed process was writing


class Shards:
    """A folder of files with `rows` rows each: part-00000.parquet, part-00001.parquet, …

    `identity` says what is embedded by what and how. A folder of something else is refused; of the same, the shards
    that were done are kept: `done` has what the record tells of each, by its number. `lost` names those that are not
    there any more, or not of the size they had. Under torchrun the first process opens the folder, and each process
    keeps a record of its own until the first one finishes: whatever ends them, the next command, in as many processes
    as it likes, knows what is done.
    """

    def __init__(self, folder: Path, kind: str, rows: int, identity: Mapping[str, Any]) -> None:
        from firth.core.storage import saying_where

        if rows < 1:
            raise FirthError("too_few", "A shard needs at least 1 row; got {got}.", got=rows)
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
        from firth.core.storage import read_json

        check_folder(self.folder)
        record = read_json(self.folder / RECORD) if (self.folder / RECORD).exists() else None
        if record is not None and record.get("identity") != self.identity:
            known = record.get("identity") or {}
            other = [name for name, value in self.identity.items() if known.get(name) != value]
            raise FirthError(
                "other_run",
                "{folder} holds shards of something else (another {other}); choose another folder, or remove it.",
                folder=self.folder,
                other=", ".join(other),
            )
        beside = self.records_beside()
        records = [record or {}, *(each for each in map(read_json, beside) if each.get("identity") == self.identity)]
        told = {int(number): figures for each in records for number, figures in each.get("shards", {}).items()}
        self.done = {number: figures for number, figures in told.items() if self.size(number) == figures["bytes"]}
        self.lost = [self.files(number)[0].name for number in sorted(told) if number not in self.done]
        self.finished = bool(record and record["finished"]) and not self.lost
        whole = {path for number in self.done for path in self.files(number)}
        for path in self.folder.iterdir():  # what a killed run was writing
            if path not in whole and (HALF.match(path.name) or re.match(r"part-\d{5,}\.", path.name)):
                path.unlink()
        self.before = sorted(self.done)
        if record is None or beside:
            self.tell()
        for path in beside:
            path.unlink()

    def close(self) -> None:
        """Lets other commands write into the folder."""
        if self.handle is not None:
            os.close(self.handle)
        self.handle = None

    def __getstate__(self) -> dict[str, Any]:
        """As other processes get it: the lock stays with the first one."""
        return {**self.__dict__, "handle": None}

    def records_beside(self) -> list[Path]:
        """Of processes other than the first, until it finishes or the next command begins."""
        return sorted(self.folder.glob(RECORD.replace(".", "-*.")))

    def files(self, number: int) -> list[Path]:
        from firth.formats.arrays import keys_path

        path = self.folder / f"part-{number:05d}.{self.kind}"
        return [path, keys_path(path)] if self.kind == "npy" else [path]

    def size(self, number: int) -> int:
        """Bytes of a shard."""
        return sum(path.stat().st_size for path in self.files(number) if path.is_file())

    @contextlib.contextmanager
    def writing(self, number: int, figures: dict[str, int]) -> Iterator[Write]:
        """Writes a shard; it is done, with what `figures` then says, when the block ends well."""
        with writer(str(self.files(number)[0])) as write:
            yield write
        self.done[number] = {"bytes": self.size(number), **figures}
        self.tell()

    def mine(self, number: int) -> bool:
        """Whether this process writes the shard: what was missing at the start is dealt to the processes in turn."""
        place = bisect.bisect_left(self.before, number)
        missing = number not in self.before[place : place + 1]
        return missing and (number - place) % world_size() == rank()

    def finish(self, others: Iterable[Mapping[int, dict[str, int]]] = ()) -> None:
        """All shards are written, also those that `others` wrote."""
        for done in others:
            self.done |= done
        self.finished = True
        self.tell()
        for path in self.records_beside():
            path.unlink()

    def tell(self) -> None:
        """Writes what the folder is."""
        from firth.core.storage import new_file

        rows = self.figures()["rows"] if self.finished else 0
        record = {"identity": self.identity, "finished": rows, "shards": dict(sorted(self.done.items()))}
        with new_file(self.folder / (RECORD.replace(".", f"-{rank()}.") if rank() else RECORD)) as work:
            work.write_text(json.dumps(record, indent=2) + "\n")

    def figures(self) -> Counter[str]:
        """Of all shards that are done."""
        total = Counter[str]()
        for each in self.done.values():
            total.update(each)
        del total["bytes"]
        return total


def check_folder(folder: Path) -> None:
    """Refuses a folder with files that are no shards."""
    from firth.core.storage import check_writable, saying_where

    with saying_where(folder):
        check_writable(folder)
        there = sorted(path.name for path in folder.iterdir() if not HALF.match(path.name)) if folder.exists() else []
    if there and RECORD not in there:
        raise FirthError(
            "unsafe_output",
            "{folder} holds other files ({available}); shards need a folder of their own.",
            folder=folder,
            available=there[0],
        )


def lock(folder: Path) -> int:
    """The folder, opened for one command alone; free again when the process ends, however it does."""
    handle = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise FirthError(
            "locked", "Another process is embedding into {folder}; wait for it, or choose another one.", folder=folder
        ) from None
    except OSError:  # a file system without locks
        pass
    return handle


def open_for_all(path: str, texts: Any, folder: Path, settings: dict[str, Any], values: dict[str, Any]) -> Shards:
    """The folder of shards. Of several processes the first one opens it; what goes wrong there, it alone tells."""
    if world_size() == 1:
        return open_shards(path, texts, folder, settings, values)
    from firth.training.network_options import torch_module

    device = torch_module("training.device")
    opened: Shards | FirthError | None = None
    device.join()
    if is_first_process():
        try:
            opened = open_shards(path, texts, folder, settings, values)
        except FirthError as error:
            opened = error
    shared: Shards | FirthError = device.broadcast(opened)
    if isinstance(shared, FirthError):
        raise shared if is_first_process() else click.exceptions.Exit(1)
    if "pooling" in settings:  # all by the same precision, also where some have another device
        settings["precision"] = shared.identity["options"]["precision"]
    return shared


def open_shards(path: str, texts: Any, folder: Path, settings: dict[str, Any], values: dict[str, Any]) -> Shards:
    check_folder(folder)
    source = texts.fingerprint()
    if source is None:
        raise FirthError(
            "conflicting_options",
            "Shards can be gone on with only where the texts can be read again: give files, not -.",
        )
    options = {name: value for name, value in settings.items() if name != "device"}
    if "pooling" in settings:
        from firth.transformers.text_encoder import resolve_engine

        precision = resolve_engine(values["device"] or "auto", values["precision"] or "auto")[1]
        options |= {"pooling": asdict(settings["pooling"]), "precision": precision}
        options["pooling"]["layers"] = list(options["pooling"]["layers"])  # as JSON gives it back
    identity = {"model": model_print(Path(path)), "data": source, "options": options}
    return Shards(folder, values["shards"], values["shard_rows"], identity)


def model_print(path: Path) -> str:
    """Of all files of a model; maps that were drawn of it are no part of it."""
    from firth.core.storage import MAPS, fingerprint

    files = [path] if path.is_file() else sorted(file for file in path.rglob("*") if file.is_file())
    files = [file for file in files if path / MAPS not in file.parents]
    facts = [(file.name, fingerprint(file)["sha256"]) for file in files]
    return hashlib.sha256(repr(facts).encode()).hexdigest()


def written_by_all(shards: Shards) -> list[dict[int, dict[str, int]]]:
    """What each process wrote, on the first one, which waits for the others."""
    if world_size() == 1:
        return [shards.done]
    from firth.training.network_options import torch_module

    found: list[dict[int, dict[str, int]]] = torch_module("training.device").gathered(shards.done)
    return found
