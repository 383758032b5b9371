"""ALS on a cluster: workers solve ranges of rows, with the vectors of the other side in a file that they memory-map.

A row depends on the other side only, so the rows are those of one process, bit by bit. Each half of an epoch is a job.
"""

from __future__ import annotations

import json
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.report import Nothing
from firth.core.run import Run
from firth.data import cache
from firth.data.shard_jobs import ranges, read_array, run_shards, same_workers, write_array
from firth.kernels import als as kernel
from firth.kernels.predict import Table, new_table
from firth.kernels.sparse import CSRMatrix
from firth.recommenders.als_training import Training
from firth.training.epoch_loop import SliceResult
from firth.training.replicas import RoundReport
from firth.work.job import Job, Shard

SHARDS = 64  # of a side, as far as the sizes allow
LEAST_ENTRIES = 1 << 18  # of a shard
SETTINGS = ("alpha", "mean", "bias_column", "steps")  # of `kernel.Side`
ARRAYS = {"starts": np.int64, "columns": np.int32, "values": np.float32}


# ---- in a worker ----


def solve_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Solve a range of rows; a job's function."""
    job, first, last, name = Path(common["folder"]), parameters["first"], parameters["last"], common["side"]
    starts = read_array(job / f"{name}.starts", np.int64)[first : last + 1]
    part = slice(int(starts[0]), int(starts[-1]))
    columns, values = (
        np.array(read_array(job / f"{name}.{kind}", ARRAYS[kind])[part]) for kind in ("columns", "values")
    )
    rows = new_table(last - first, common["stride"])
    rows[:] = read_rows(job / f"{name}.rows", common["stride"])[first:last]
    others = read_rows(job / f"{common['other']}.rows", common["stride"])
    gram = read_rows(job / f"{name}.gram", common["stride"]) if common["implicit"] else None
    side = kernel.Side(
        CSRMatrix(np.asarray(starts - starts[0]), columns, values),
        rows,
        others,
        np.array(read_array(job / f"{name}.ridge", np.float32)[first:last]),
        **common["settings"],
    )
    loss = kernel.native_solver(side).solve(gram, 0, len(rows), Run(report=Nothing()).cores)
    (folder / f"{name}-{first}.solved").write_bytes(rows.data)
    (folder / f"{name}-{first}.json").write_text(json.dumps(loss))


def read_rows(path: Path, stride: int) -> Table:
    """Memory-map rows; pages that are written are copied."""
    size = path.stat().st_size // (4 * stride)
    return np.memmap(path, np.float32, "c", shape=(size, stride)) if size else new_table(0, stride)


# ---- in the driver ----


class ClusterTraining(Training):
    """The training loop whose halves of an epoch are jobs."""

    names = ("users", "items")

    def go(self) -> dict[str, Any]:
        """Train with the workers of the run's cluster."""
        with cache.job_folder("") as self.folder, same_workers(self.run):
            for name, side in zip(self.names, self.sides, strict=True):
                for kind, array in zip(ARRAYS, side.entries, strict=True):
                    write_array(self.folder / f"{name}.{kind}", array.astype(ARRAYS[kind], copy=False))
                write_array(self.folder / f"{name}.ridge", side.ridge)
            return super().go()

    def before_slice(self) -> None:
        """Solve the rest of the rows of one side."""
        began = time.perf_counter()
        number = int(self.progress.position >= len(self.sides[0].rows))
        side, name = self.sides[number], self.names[number]
        first_row = self.progress.position - number * len(self.sides[0].rows)
        for table, other in zip(self.names, self.sides, strict=True):
            write_array(self.folder / f"{table}.rows", other.rows)
        gram = self.gram(number)
        if gram is not None:
            write_array(self.folder / f"{name}.gram", gram)
        common = {
            "folder": str(self.folder),
            "side": name,
            "other": self.names[1 - number],
            "stride": side.rows.shape[1],
            "implicit": self.implicit,
            "settings": {setting: getattr(side, setting) for setting in SETTINGS},
        }
        size = max(LEAST_ENTRIES, (int(side.entries.starts[-1]) + len(side.rows)) // SHARDS)
        work = side.entries.starts[first_row:] + np.arange(len(side.rows) + 1 - first_row)  # entries and rows
        divided = [(first_row + first, first_row + last) for first, last in ranges(work, size)]
        shards = [Shard(f"{name}-{first}", {"first": first, "last": last}, last - first) for first, last in divided]
        job = Job("solving", self.unit, solve_shard, common, shards, self.folder, durable=False)
        run_shards(job, replace(self.run, report=RoundReport(self.run.report, self.done(), self.progress_metrics)))
        self.solved = [(first, last, self.folder / f"{name}-{first}") for first, last in divided]
        self.side_seconds = time.perf_counter() - began

    def train(self, units: float, seed: int) -> SliceResult:
        """Take over the rows that `before_slice` solved."""
        progress, users = self.progress, len(self.sides[0].rows)
        number = int(progress.position >= users)
        side, loss = self.sides[number], 0.0
        for first, last, path in self.solved:
            side.rows[first:last] = read_rows(path.with_suffix(".solved"), side.rows.shape[1])
            loss += json.loads(path.with_suffix(".json").read_text())
        first, last = self.solved[0][0], len(side.rows)
        progress.seconds += self.side_seconds
        return self.advanced(number, first, last, loss)
