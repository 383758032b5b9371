"""Products of a sparse matrix with dense blocks: in this process, or by rows on a cluster, where the workers read the
matrix from the cache. A row of a product does not depend on the others, so both give the same bytes."""

from __future__ import annotations

import contextlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from firth.core.report import Nothing
from firth.core.run import Run
from firth.core.storage import remove
from firth.core.vectors import Matrix
from firth.data import cache
from firth.data.shard_jobs import ranges, read_array, run_shards, same_workers, write_array
from firth.kernels.sparse import CSRMatrix, multiply
from firth.work.job import Job, Shard

SHARDS = 64  # of a matrix, as far as the sizes allow
LEAST_ENTRIES = 1 << 21  # of a shard


class Multiplies(Protocol):
    """A sparse matrix."""

    def times(self, dense: Matrix) -> Matrix:
        """Return its product with a dense matrix."""


class LocalMatrix:
    """A sparse matrix in this process."""

    def __init__(self, rows: CSRMatrix, threads: int) -> None:
        self.rows, self.threads = rows, threads

    def times(self, dense: Matrix) -> Matrix:
        """Return its product with a dense matrix."""
        return multiply(self.rows, dense, self.threads)


class ShardedMatrix:
    """A sparse matrix in the files of a folder, which workers multiply by rows."""

    def __init__(self, rows: CSRMatrix, folder: Path, run: Run) -> None:
        self.folder, self.rows = folder, len(rows.starts) - 1
        self.run = Run(cluster=run.cluster, workers=run.workers, report=Nothing())  # the solver reports progress
        folder.mkdir()
        for name, array in rows._asdict().items():
            write_array(folder / name, array)
        self.ranges = ranges(rows.starts, max(int(rows.starts[-1]) // SHARDS, LEAST_ENTRIES))

    def times(self, dense: Matrix) -> Matrix:
        """Return its product with a dense matrix."""
        work = self.folder / "product"
        work.mkdir()
        write_array(work / "dense", dense)
        common = {"matrix": str(self.folder), "dense": str(work / "dense"), "columns": dense.shape[1]}
        shards = [Shard(f"{first:012}", {"first": first, "last": last}, last - first) for first, last in self.ranges]
        run_shards(Job("multiplying", "rows", multiply_shard, common, shards, work, durable=False), self.run)
        out = np.empty((self.rows, dense.shape[1]), dtype=np.float32)
        for first, last in self.ranges:
            out[first:last] = read_array(work / f"{first}.rows", np.float32).reshape(last - first, dense.shape[1])
        remove(work)
        return out


def multiply_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Write the product of some rows; a job's function."""
    first, last = parameters["first"], parameters["last"]
    starts = read_array(Path(common["matrix"]) / "starts", np.int64)[first : last + 1]
    columns, values = (
        read_array(Path(common["matrix"]) / name, kind)[starts[0] : starts[-1]]
        for name, kind in (("columns", np.int32), ("values", np.float32))
    )
    dense = read_array(Path(common["dense"]), np.float32).reshape(-1, common["columns"])
    product = multiply(CSRMatrix(starts - starts[0], columns, values), dense, Run().cores)
    (folder / f"{first}.rows").write_bytes(product.data)


@contextlib.contextmanager
def multipliers(rows: CSRMatrix, columns: CSRMatrix, run: Run) -> Iterator[tuple[Multiplies, Multiplies]]:
    """Yield a matrix and its transpose, given as rows and as columns, for products where `run` says."""
    if not run.cluster:
        yield LocalMatrix(rows, run.cores), LocalMatrix(columns, run.cores)
        return
    with cache.job_folder("") as folder, same_workers(run):
        yield ShardedMatrix(rows, folder / "rows", run), ShardedMatrix(columns, folder / "columns", run)
