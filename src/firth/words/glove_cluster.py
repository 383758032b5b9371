"""GloVe on a cluster: workers train the blocks of a diagonal, which share no row (Gemulla et al. 2011), so the tables
are those of one process, bit by bit.

A worker owns a range of the parts of the words for a whole round, which is an epoch. The parts of the contexts that it
needs change with the diagonal: after each one, the workers exchange them through files.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data.shard_jobs import read_array, write_array
from firth.kernels import glove as kernel
from firth.training.epoch_loop import Loop
from firth.training.replicas import (
    Exchange,
    ReplicaLoop,
    Step,
    bounds,
    copy_blocks,
    new_tables,
    stored_tables,
)
from firth.words.glove_training import Training
from firth.work.worker import tell

EMPTY = np.zeros(0, np.float32)
WORDS, CONTEXTS = ("words", "word_biases"), ("contexts", "context_biases")


# ---- in a worker ----


class Blocks:
    """A worker's blocks of records, and its copy of the tables."""

    def __init__(self, common: Mapping[str, Any], worker: int) -> None:
        job, self.parts = Path(common["folder"]), common["parts"]
        first, last = bounds(self.parts, common["workers"])[worker : worker + 2]
        self.own = range(first, last)
        starts = read_array(job / "starts", np.int64)
        begin, end = int(starts[first * self.parts]), int(starts[last * self.parts])
        records = read_array(job / "records", kernel.RECORD)[begin:end]
        # Blocks of other workers are empty.
        strata = kernel.Strata(records, np.clip(starts, begin, end) - begin, self.parts)
        self.pairs = len(records)
        self.tables = new_tables(common["tables"])
        self.trainer = kernel.native_trainer(strata, kernel.Tables(**self.tables))

    def rows(self, names: tuple[str, str], parts: list[int]) -> NDArray[np.float32]:
        """Return the rows of some parts, with their biases."""
        return np.concatenate([np.hstack([self.tables[name][part :: self.parts] for name in names]) for part in parts])

    def put(self, names: tuple[str, str], parts: list[int], rows: NDArray[np.float32]) -> None:
        """Replace the rows of some parts, with their biases."""
        first, width = 0, self.tables[names[0]].shape[1]
        for part in parts:
            count = len(range(part, len(self.tables[names[0]]), self.parts))
            self.tables[names[0]][part :: self.parts] = rows[first : first + count, :width]
            self.tables[names[1]][part :: self.parts] = rows[first : first + count, width:]
            first += count


_blocks: dict[tuple[str, int], Blocks] = {}  # of the current job


def train_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Train a worker's blocks of an epoch; a job's function."""
    number, worker, workers = parameters["round"], parameters["worker"], common["workers"]
    key = (common["folder"], worker)
    if key not in _blocks:
        _blocks.clear()
        _blocks[key] = Blocks(common, worker)
    blocks, parts, chunks = _blocks[key], common["parts"], common["chunks"]
    for name, stored in stored_tables(Path(common["folder"]), number, workers, blocks.tables).items():
        copy_blocks(stored, blocks.tables[name])
    owners = [range(*pair) for pair in itertools.pairwise(bounds(parts, workers))]
    exchange = Exchange(Path(common["folder"]) / f"exchange-{number:06}", worker, workers)
    order = np.random.default_rng(parameters["seed"]).permutation(parts).tolist()

    def exchanged(name: str, names: tuple[str, str], parts_of: list[list[int]]) -> None:
        """Publish the rows of the parts that this worker has trained, and take those of the others."""
        paths = exchange.publish(name, blocks.rows(names, parts_of[worker]) if parts_of[worker] else EMPTY)
        width = sum(blocks.tables[each].shape[1] for each in names)
        for other, path in enumerate(paths):
            if other != worker and parts_of[other]:
                blocks.put(names, parts_of[other], np.memmap(path, np.float32, "r").reshape(-1, width))

    def trained_contexts(diagonal: int) -> list[list[int]]:
        return [[(part + order[diagonal]) % parts for part in owner] for owner in owners]

    loss, [step] = 0.0, [Step(first, last, tuple(rates)) for first, last, rates in parameters["steps"]]
    for position in range(step.first, step.last):
        diagonal, chunk = divmod(position, chunks)
        if chunk == 0 and position > step.first:
            exchanged(f"{diagonal:06}", CONTEXTS, trained_contexts(diagonal - 1))
        loss += blocks.trainer.diagonal(order[diagonal], chunk, chunks, step.rates[0], Run().cores)
        tell((position + 1 - step.first) / (step.last - step.first))
    exchanged("contexts", CONTEXTS, trained_contexts((step.last - 1) // chunks))
    exchanged("words", WORDS, [list(owner) for owner in owners])
    for name, table in blocks.tables.items():
        begin, end = bounds(len(table), workers)[worker : worker + 2]
        (folder / f"{number + 1:06}-{worker}.{name}").write_bytes(np.ascontiguousarray(table[begin:end]).data)
    pairs = blocks.pairs * (step.last - step.first) // (parts * chunks)
    (folder / f"{number + 1:06}-{worker}.json").write_text(json.dumps([loss, pairs, pairs]))


# ---- in the driver ----


class ClusterTraining(ReplicaLoop, Training):
    """The training loop whose epochs are jobs."""

    function: ClassVar[Any] = staticmethod(train_shard)
    round_steps = 1

    @property
    def part_units(self) -> int:  # type: ignore[override]
        """A round is an epoch."""
        return self.last_part()

    def write_task(self, folder: Path) -> dict[str, Any]:
        """Write the records."""
        write_array(folder / "records", self.strata.records)
        write_array(folder / "starts", self.strata.starts)
        shapes = {name: table.shape for name, table in self.arrays.items()}
        return {"parts": self.strata.parts, "chunks": self.chunks_per_diagonal, "tables": shapes}

    def frequencies(self) -> dict[str, NDArray[np.float64]]:
        """Return nothing: rows are exchanged when another worker needs them."""
        return {}

    def steps(self, first: int, last: int) -> list[list[Step]]:
        """Return the diagonals of the round, which all workers train together."""
        rate = self.method.learning_rate
        return [[Step(first, last, (rate, rate))] * self.workers]

    def units_between(self, first: int, last: int) -> float:
        """Return the pairs of chunks of diagonals."""
        return self.size * (last - first) / self.last_part()

    def next_part(self) -> int:
        """Return the next chunk of a diagonal."""
        return self.progress.step

    def last_part(self) -> int:
        """Return the number of chunks of all diagonals."""
        return self.strata.parts * self.chunks_per_diagonal

    def move_to(self, part: int) -> None:
        """Record the position."""
        self.progress.step = part

    def identity(self) -> dict[str, Any]:
        """Return what a checkpoint must agree on, which is that of one process."""
        return Loop.identity(self)
