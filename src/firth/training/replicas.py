"""Training by several workers, each with a copy of the tables: local SGD with adaptive summation.

An epoch is divided into rounds, a round into steps, and a step into one part per worker. A worker trains its part of a
step on its own copy. After a step the workers exchange the changes of some rows: of frequent ones after every step, of
others after 2, 4, 8, … steps, and of all rows at the end of the round (Ji et al. 2016, arXiv 1604.04661, synchronize
words by their frequency too). The changes d₁, d₂ of a row are combined by adaptive summation (Maleki et al. 2020, arXiv
2006.02924),

    (1 − d₁·d₂ / 2|d₁|²) d₁ + (1 − d₁·d₂ / 2|d₂|²) d₂,

which is their sum if they are orthogonal, as for rare rows, and their mean if they are equal, so that frequent rows,
which every worker moves in the same direction, do not overshoot.

A round is a job (`work.job`): its shards are the workers, which run at the same time and exchange changes through files
in the folder of the job. A worker that dies is started again: it reads the tables of the round's beginning and repeats
its steps; the others wait for it. What was published is not replaced, so all copies agree on it.
"""

from __future__ import annotations

import itertools
import json
import os
import socket
import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.memory import available_memory
from firth.core.report import Nothing, Report
from firth.core.run import Run, available_cores
from firth.core.storage import remove, saying_where
from firth.data import cache
from firth.data.shard_jobs import cluster_of, run_shards
from firth.kernels.predict import Table, Tally, Task, new_table, padded
from firth.training.epoch_loop import Loop, SliceResult
from firth.work.executors import executor
from firth.work.job import Function, Job, Shard
from firth.work.worker import tell

UPDATES = 1.0  # of a row by each worker until it is exchanged
WORKER_COPIES = 2  # of the tables in a worker: with its changes, and as of the last exchange
RATE_FACTOR = 1.26  # see `rate_factor`
BLOCK_ROWS = 1 << 10  # rows combined at a time
WAIT_SECONDS = 900.0  # a worker waits for the others


class Step(NamedTuple):
    """A part of the data, and the learning rates that `Replica.train` gets."""

    first: int
    last: int
    rates: tuple[float, float]


class Replica(Protocol):
    """The copy of the tables that a worker trains."""

    tables: dict[str, Table]

    def train(self, step: Step, seed: int, threads: int) -> Tally:
        """Train on a part of the data."""


# ---- in a worker ----


def new_tables(shapes: Mapping[str, Sequence[int]]) -> dict[str, Table]:
    """Allocate the copy of a worker, if the memory of its machine suffices."""
    rows, dim = sum(shape[0] for shape in shapes.values()), next(iter(shapes.values()))[1]
    check_room(rows, dim, WORKER_COPIES, 1)
    return {
        name: np.zeros(shape, np.float32) if shape[1] % 16 else new_table(*shape)  # biases are not padded
        for name, shape in shapes.items()
    }


def train_round(
    replica: Replica, common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path
) -> dict[str, int]:
    """Train a worker's part of a round, and write its block of the new tables; the body of a job's function."""
    number, worker, workers = parameters["round"], parameters["worker"], common["workers"]
    job = Path(common["folder"])
    tables, old = replica.tables, stored_tables(job, number, workers, replica.tables)
    for name, table in tables.items():
        copy_blocks(old[name], table)
    periods = {name: np.load(job / f"periods-{name}.npy") for name in tables}
    exchange = Exchange(job / f"exchange-{number:06}", worker, workers)
    base = {name: np.array(table) for name, table in tables.items()}  # as of the last exchange of each row
    threads = 1 if common["deterministic"] else Run().cores
    tally = Tally(0.0, 0, 0)
    steps = [Step(first, last, tuple(rates)) for first, last, rates in parameters["steps"]]
    for done, step in enumerate(steps, 1):
        if step.first < step.last:
            tally += replica.train(step, parameters["seed"], threads)
        for name, table in tables.items() if done < len(steps) else ():
            rows = np.flatnonzero(done % periods[name] == 0)
            change = table[rows] - base[name][rows]
            paths = exchange.publish(f"{done:06}.{name}", change)
            table[rows] = base[name][rows] = base[name][rows] + combined(paths, change.shape)
        tell(done / (len(steps) + 1))
    for name, table in tables.items():
        begin, end = bounds(len(table), workers)[worker : worker + 2]
        block = np.array(base[name][begin:end])
        np.subtract(table, base[name], out=base[name])
        block += combined(exchange.publish(f"all.{name}", base[name]), table.shape, begin, end)
        (folder / f"{number + 1:06}-{worker}.{name}").write_bytes(block.data)
    (folder / f"{number + 1:06}-{worker}.json").write_text(json.dumps(tally))
    return {"words": tally.words}


class Exchange:
    """Arrays that all workers of a round publish in a folder."""

    def __init__(self, folder: Path, worker: int, workers: int) -> None:
        self.folder, self.worker, self.workers = folder, worker, workers

    def publish(self, name: str, array: NDArray[np.float32]) -> list[Path]:
        """Write an array, unless it was written before, and return the files of all workers when they are there."""
        with saying_where(self.folder):
            self.folder.mkdir(exist_ok=True)
            paths = [self.folder / f"{name}-{worker}" for worker in range(self.workers)]
            if not paths[self.worker].exists():
                work = self.folder / f".{name}-{self.worker}-{os.getpid()}"
                work.write_bytes(array.data)
                work.replace(paths[self.worker])
        for worker, path in enumerate(paths):
            self.wait(path, worker)
        return paths

    def wait(self, path: Path, worker: int) -> None:
        """Wait for the file of a worker."""
        began, pause = time.monotonic(), 0.001
        while not path.exists():
            time.sleep(pause)
            pause = min(0.02, 1.5 * pause)
            if time.monotonic() - began > WAIT_SECONDS:
                raise FirthError(
                    "lost_process",
                    "Worker {worker} of {workers} was not started again within {seconds:.0f} s. The same command "
                    "resumes from the last checkpoint.",
                    worker=worker + 1,
                    workers=self.workers,
                    seconds=WAIT_SECONDS,
                )


def periods_of(updates: NDArray[np.float64]) -> NDArray[np.int64]:
    """Return after how many steps each row is exchanged: the power of two in which a worker is expected to update it
    `UPDATES` times."""
    steps = np.ceil(np.log2(UPDATES / np.maximum(updates, 1e-9)))
    return np.left_shift(1, np.clip(steps, 0, 40).astype(np.int64))


def combined(
    paths: Sequence[Path], shape: tuple[int, ...], begin: int = 0, end: int | None = None
) -> NDArray[np.float32]:
    """Return the combined changes of all workers to the rows from `begin` to `end`."""
    end = shape[0] if end is None else end
    total = np.zeros((end - begin, shape[1]), dtype=np.float32)
    changes = [np.memmap(path, np.float32, "r", shape=shape)[begin:end] for path in paths] if total.size else []
    for first in range(0, len(total), BLOCK_ROWS):  # blocks that fit into the cache
        block = slice(first, first + BLOCK_ROWS)
        total[block] = adaptive_sum([change[block] for change in changes])
    return total


def adaptive_sum(changes: Sequence[NDArray[np.float32]]) -> NDArray[np.float32]:
    """Combine the changes of rows, pair by pair."""
    while len(changes) > 1:
        pairs = [add_pair(*changes[i : i + 2]) for i in range(0, len(changes) - 1, 2)]
        changes = [*pairs, *changes[len(pairs) * 2 :]]
    return changes[0]


def add_pair(one: NDArray[np.float32], two: NDArray[np.float32]) -> NDArray[np.float32]:
    """Combine the changes of two workers."""
    product = np.einsum("ij,ij->i", one, two)
    shares = []
    for change in (one, two):
        squared = np.einsum("ij,ij->i", change, change)
        shares.append(1 - product / (2 * np.maximum(squared, np.float32(1e-30))))
    return np.asarray(shares[0][:, None] * one + shares[1][:, None] * two, dtype=np.float32)


# ---- the tables as files ----


def bounds(rows: int, blocks: int) -> list[int]:
    """Return where the blocks of a table begin, and its end."""
    return [rows * block // blocks for block in range(blocks + 1)]


def stored_tables(
    folder: Path, number: int, workers: int, like: Mapping[str, NDArray[np.float32]]
) -> dict[str, list[NDArray[np.float32]]]:
    """Memory-map the blocks of the tables before round `number`."""
    blocks: dict[str, list[NDArray[np.float32]]] = {}
    for name, table in like.items():
        ends = bounds(len(table), workers)
        blocks[name] = [
            np.memmap(folder / f"{number:06}-{worker}.{name}", np.float32, "r", shape=(last - first, table.shape[1]))
            if last > first
            else np.zeros((0, table.shape[1]), np.float32)
            for worker, (first, last) in enumerate(itertools.pairwise(ends))
        ]
    return blocks


def copy_blocks(blocks: Sequence[NDArray[np.float32]], table: Table) -> None:
    """Copy the blocks of a table into memory."""
    filled = 0
    for block in blocks:
        table[filled : filled + len(block)] = block
        filled += len(block)


def write_tables(folder: Path, number: int, workers: int, tables: Mapping[str, Table]) -> None:
    """Write the tables before round `number` as blocks."""
    with saying_where(folder):
        for name, table in tables.items():
            ends = bounds(len(table), workers)
            for worker, (first, last) in enumerate(itertools.pairwise(ends)):
                (folder / f"{number:06}-{worker}.{name}").write_bytes(np.ascontiguousarray(table[first:last]).data)


# ---- in the driver ----


class RoundReport(Nothing):
    """Adds the progress of a round to that of the run."""

    def __init__(self, report: Report, done: float, metrics: Callable[[], dict[str, float]]) -> None:
        self.report, self.done, self.metrics = report, done, metrics

    def step(self, done: float, **metrics: float) -> None:
        """Pass on the progress."""
        self.report.step(self.done + done, **self.metrics())

    def note(self, text: str, code: str = "note") -> None:
        """Pass on a note."""
        self.report.note(text, code)


class ReplicaLoop(Loop):
    """A training loop whose rounds are computed by workers; a mixin that precedes the training class of one process.

    The arrays in memory are as of the last `fetch`.
    """

    function: ClassVar[Function]
    part_units: int  # that a worker trains in a step
    round_steps: int

    def go(self) -> dict[str, Any]:
        """Train, with all workers at the same time."""
        cluster = cluster_of(self.run)
        with cache.job_folder("") as self.folder, executor(cluster) as executors:
            self.workers = executors.workers
            executors.check_simultaneous()
            self.arrays: Mapping[str, Table] = dict(super().tables)  # type: ignore[safe-super]
            self.number, self.fetched, self.sent = 0, True, False
            self.round: tuple[float, Tally, int] | None = None
            self.common = {
                "folder": str(self.folder),
                "workers": self.workers,
                "deterministic": self.run.deterministic,
                **self.write_task(self.folder),
            }
            for name, shares in self.frequencies().items():
                periods = periods_of(shares * self.units_between(0, self.part_units))
                np.save(self.folder / f"periods-{name}.npy", periods)
            metrics = super().go()
            return metrics | {"workers": self.workers}

    def check_room(self, rows: int, dim: int) -> None:
        """Refuse tables that do not fit into the memory of this machine."""
        local = self.run.cluster == "processes"
        workers = (self.run.workers or available_cores()) if local else 1
        check_room(rows, dim, 1 + WORKER_COPIES * workers if local else 1, workers)

    def write_task(self, folder: Path) -> dict[str, Any]:
        """Write what workers need; return what they get as JSON."""
        raise NotImplementedError

    def frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return in which share of units each row of the tables is updated."""
        raise NotImplementedError

    def steps(self, first: int, last: int) -> list[list[Step]]:
        """Divide a part of the epoch into steps, and each into a part per worker."""
        ends = [*range(first, last, self.part_units), last]
        parts = [Step(begin, end, self.rates_of(begin, end)) for begin, end in itertools.pairwise(ends)]
        parts += [Step(last, last, (0.0, 0.0))] * (-len(parts) % self.workers)
        return [parts[begin : begin + self.workers] for begin in range(0, len(parts), self.workers)]

    def rates_of(self, first: int, last: int) -> tuple[float, float]:
        """Return the learning rates that a worker gets with a part of the data."""
        raise NotImplementedError

    def next_part(self) -> int:
        """Return where the next round begins."""
        raise NotImplementedError

    def last_part(self) -> int:
        """Return where the epoch ends."""
        raise NotImplementedError

    def move_to(self, part: int) -> None:
        """Record that everything before `part` was trained."""
        raise NotImplementedError

    def before_slice(self) -> None:
        """Compute the next round."""
        if not self.sent:
            write_tables(self.folder, self.number, self.workers, self.arrays)
            self.sent = True
        began = time.perf_counter()
        first = self.next_part()
        last = min(self.last_part(), first + self.part_units * self.workers * self.round_steps)
        steps, seed = self.steps(first, last), self.epoch_seed()
        shards = [
            Shard(
                f"round-{self.number:06}-{worker}",
                {
                    "round": self.number,
                    "worker": worker,
                    "seed": seed,
                    "steps": [step[worker] for step in steps],
                },
                self.units_between(first, last) / self.workers,
            )
            for worker in range(self.workers)
        ]
        report = RoundReport(self.run.report, self.done(), self.progress_metrics)
        job = Job("training", self.unit, type(self).function, self.common, shards, self.folder, durable=False)
        run_shards(job, replace(self.run, report=report))
        tally = Tally(0.0, 0, 0)
        for worker in range(self.workers):
            tally += json.loads((self.folder / f"{self.number + 1:06}-{worker}.json").read_text())
        self.round = time.perf_counter() - began, tally, last

    def units_between(self, first: int, last: int) -> float:
        """Return the units of progress between two positions."""
        return last - first

    def train(self, units: float, seed: int) -> SliceResult:
        """Take over the tables of the round that `before_slice` computed."""
        assert self.round
        seconds, tally, last = self.round
        self.number, self.fetched, self.round = self.number + 1, False, None
        self.progress.seconds += seconds
        self.move_to(last)
        remove(self.folder / f"exchange-{self.number - 1:06}")
        for path in self.folder.glob(f"{self.number - 1:06}-*"):
            path.unlink()
        return SliceResult(tally.loss, tally.pairs, last == self.last_part())

    def fetch(self) -> None:
        """Copy the tables to memory."""
        if not self.fetched:
            for name, blocks in stored_tables(self.folder, self.number, self.workers, self.arrays).items():
                copy_blocks(blocks, self.arrays[name])
            self.fetched = True

    @property
    def tables(self) -> dict[str, Table]:
        """The tables, as of the last round."""
        self.fetch()
        return dict(super().tables)  # type: ignore[safe-super]

    def end_epoch(self) -> dict[str, float]:
        """Finish an epoch with the tables in memory."""
        self.fetch()
        return super().end_epoch()  # type: ignore[safe-super]

    def check_learned(self) -> dict[str, float]:
        """Compare the loss before and after training."""
        self.fetch()
        return super().check_learned()

    def identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on: with `deterministic`, the number of workers too."""
        workers = {"workers": self.workers} if self.run.deterministic else {}
        return super().identity() | workers


def row_frequencies(counts: NDArray[np.int64], task: Task) -> dict[str, NDArray[np.float64]]:
    """Return in which share of windows each row is updated: as a word, as a part of words, or as a node of paths."""
    sampled = counts * (task.keep / 2**32)
    shares = sampled / sampled.sum()

    def listed(starts: NDArray[np.int64], rows: NDArray[np.int32], size: int) -> NDArray[np.float64]:
        return np.asarray(np.bincount(rows, np.repeat(shares, np.diff(starts)), size), np.float64)

    subwords, paths = task.subwords, task.paths
    inputs = listed(subwords.starts, subwords.rows, len(task.inputs)) if len(subwords.starts) else shares
    if task.loss == "softmax":
        return {"inputs": inputs, "outputs": np.ones(len(shares))}
    outputs = listed(paths.starts, paths.nodes, len(task.outputs)) if len(paths.starts) > 1 else shares
    return {"inputs": inputs, "outputs": outputs}


def rate_factor(workers: int) -> float:
    """Return by how much workers raise the learning rate, because the combined change of frequent rows is closer to the
    mean than to the sum of theirs. A higher rate gains analogies and loses word similarity; see LOG.md."""
    return RATE_FACTOR if workers > 1 else 1.0


def check_replicas(run: Run) -> None:
    """Refuse settings that workers with copies of the tables cannot follow."""
    reasons = {
        "device=cuda and cluster": run.device == "cuda" and "Workers train on the CPU; leave out cluster to use a GPU.",
        "budget and cluster": run.budget and "Workers do not fit the learning rate to the time; set epochs instead.",
    }
    for options, reason in reasons.items():
        if reason:
            raise FirthError(
                "conflicting_options", "{options} cannot be combined. {reason}", options=options, reason=reason
            )


def check_room(rows: int, dim: int, copies: int, workers: int) -> None:
    """Refuse tables of which `copies` do not fit into the memory of this machine."""
    needed, available = 4 * rows * padded(dim) * copies, available_memory()
    if available is not None and needed > available:
        raise FirthError(
            "too_large",
            "The copies of the tables ({rows:,} rows of {dim} numbers, {workers} workers) need {needed:,.1f} GB of "
            "memory on {host}, but {available:,.1f} GB are available. Each worker has all rows: tables are not divided "
            "among machines. Use fewer workers per machine, a larger min_count or a smaller dim.",
            rows=rows,
            dim=dim,
            workers=workers,
            needed=needed / 1e9,
            host=socket.gethostname(),
            available=available / 1e9,
        )
