"""Jobs: a list of shards, a function from a shard to files, and the folder of the results.

Each shard is written under a temporary name and then renamed (at a URL, uploaded), and a record of its files follows. A
shard with a valid record is not computed again, and computing it twice is harmless, because a function gives the same
files for the same parameters. Data go through files; only parameters and counts pass between processes.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import secrets
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from firth.core.errors import FirthError, rebuild_error
from firth.core.remote import AnyPath
from firth.core.report import Report
from firth.core.storage import new_file, remove_folder, saying_where, sizes_in
from firth.version import __version__
from firth.work.executors import Cluster, Executor, executor
from firth.work.worker import RECORDS, Counts, python_version, record_path

Function = Callable[[Mapping[str, Any], Mapping[str, Any], Path], Mapping[str, int] | None]

CHECKED_INPUTS = 16  # input files that every machine is asked for, before the work starts


class Shard(NamedTuple):
    """A part of a job. `parameters` must be JSON; `size` is its share of the progress, `title` its name in errors."""

    name: str
    parameters: Mapping[str, Any]
    size: float = 1
    title: str = ""


@dataclass(frozen=True)
class Job:
    """Shards and the function that computes one: function(common, parameters, folder) -> counts.

    The function writes any files into the temporary folder that it gets; they are then moved to `folder`. It must be a
    function of a module, because processes and machines import it by its name, and its files must depend on
    `common` and `parameters` only. `common` holds what all shards share, such as the model and its options, with
    fingerprints of files, so that results for other content are not taken for finished. `inputs` are files that every
    machine must see. `durable` results survive a crash of the machine and are recorded; those of a temporary folder
    need not be.
    """

    task: str  # shown with the progress, such as "embedding"
    unit: str  # of the shards' sizes
    function: Function
    common: Mapping[str, Any]
    shards: Sequence[Shard]
    folder: AnyPath
    inputs: Sequence[AnyPath] = ()
    durable: bool = True

    def request(self, shard: Shard, threads: int = 0) -> dict[str, Any]:
        """Return everything that a worker needs, as JSON."""
        what = {
            "function": f"{self.function.__module__}:{self.function.__qualname__}",
            "common": dict(self.common),
            "parameters": dict(shard.parameters),
        }
        key = hashlib.sha256(json.dumps(what, sort_keys=True).encode()).hexdigest()
        versions = {"firth": __version__, "python": python_version()}
        where = {"name": shard.name, "folder": str(self.folder), "durable": self.durable}
        return {**what, **versions, **where, "key": key, "threads": threads}

    def finished(self) -> dict[str, Counts]:
        """Return the counts of the shards that have a valid record."""
        records, sizes = sizes_in(self.folder / RECORDS), sizes_in(self.folder)
        counts = {}
        for shard in self.shards:
            record = read_record(self.folder, shard.name) if f"{shard.name}.json" in records else None
            if record and record.get("key") == self.request(shard)["key"] and complete(record, sizes):
                counts[shard.name] = dict(record["counts"])
        return counts

    def clear(self) -> None:
        """Remove the records, after the results were merged."""
        remove_folder(self.folder / RECORDS)


def read_record(folder: AnyPath, name: str) -> dict[str, Any] | None:
    """Return the record of a shard; None if there is none or it is damaged."""
    try:
        record = json.loads(record_path(folder, name).read_bytes())
    except (OSError, ValueError, FirthError):
        return None
    return record if isinstance(record, dict) else None


def complete(record: Mapping[str, Any], sizes: Mapping[str, int]) -> bool:
    """Return whether the files of a record have the recorded sizes."""
    try:
        return all(sizes.get(name) == size for name, size in record["files"].items())
    except (KeyError, AttributeError):
        return False


def run_job(job: Job, cluster: Cluster, report: Report) -> dict[str, Counts]:
    """Compute the missing shards of a job, and return the counts of all that are finished, in the job's order.

    With `Cluster.part` only every n-th shard is computed here, and others may still be missing at the end. The first
    error of a worker stops the job and names its shard; finished shards are kept.
    """
    if isinstance(job.folder, Path):  # at a URL, files need no folder
        with saying_where(job.folder):
            (job.folder / RECORDS).mkdir(parents=True, exist_ok=True)
    finished = job.finished()
    missing = [shard for shard in cluster.own(job.shards) if shard.name not in finished]
    if missing:
        with executor(cluster) as workers:
            check_machines(job, workers)
            finished |= compute(job, missing, workers, report, finished)
    return {shard.name: finished[shard.name] for shard in job.shards if shard.name in finished}


def compute(
    job: Job, missing: Sequence[Shard], workers: Executor, report: Report, finished: Mapping[str, Counts]
) -> dict[str, Counts]:
    """Compute shards, with progress over all workers."""
    counts: dict[str, Counts] = {}
    notes: set[tuple[str, str]] = set()
    done = sum(shard.size for shard in job.shards if shard.name in finished)
    shares: dict[int, float] = {}  # what is computed of the unfinished shards

    def tell(number: int, share: float) -> None:
        shares[number] = share * missing[number].size
        report.step(done + sum(shares.values()))

    report.begin(job.task, sum(shard.size for shard in job.shards), job.unit)
    try:
        report.step(done)
        requests = [json.dumps(job.request(shard, workers.threads)) for shard in missing]
        for number, result in workers.results(requests, tell):
            shard = missing[number]
            shares.pop(number, None)
            if "error" in result:
                raise rebuilt(result["error"], shard.title or shard.name)
            for code, text in result["notes"]:
                if (code, text) not in notes:
                    notes.add((code, text))
                    report.note(text, code)
            counts[shard.name] = result["counts"]
            done += shard.size
            report.step(done)
    finally:
        report.end()
    return counts


def check_machines(job: Job, workers: Executor) -> None:
    """Refuse to start if a machine does not see the inputs or the folder of the results."""
    token = secrets.token_hex(8)
    probe = job.folder / RECORDS / f"probe-{token}"
    step = max(1, len(job.inputs) // CHECKED_INPUTS)
    inputs = {str(path): size_of(path) for path in list(job.inputs)[::step]}
    parameters = {"probe": str(probe), "token": token, "inputs": inputs}
    versions = {"firth": __version__, "python": python_version()}
    try:
        with new_file(probe) as work:
            work.write_text(token)
        for result in workers.on_each_machine(json.dumps({"check": parameters, **versions})):
            if "error" in result:
                raise rebuilt(result["error"])
    finally:
        with contextlib.suppress(FirthError, FileNotFoundError):  # it could not be written
            probe.unlink()


def size_of(path: AnyPath) -> int:
    """Return the bytes of a file."""
    return path.stat().st_size


class WorkerError(RuntimeError):
    """An unexpected exception in a worker, with its traceback."""


def rebuilt(error: Mapping[str, Any], shard: str = "") -> Exception:
    """Return the exception that a worker reported, with the shard where it occurred."""
    where = f"{shard}: " if shard else ""
    if "code" not in error:
        fault = WorkerError(f"{where}{error['message']}")
        fault.__cause__ = RuntimeError("\n" + error["trace"])
        return fault
    values = {**error["values"], **({"shard": shard} if shard else {})}
    message = where + error["message"]
    return rebuild_error(FirthError, message, {"code": error["code"], "template": message, "values": values})
