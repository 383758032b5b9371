"""Jobs of counting: they run on the cluster of a `Run`, and their files are in the cache, which all workers share."""

from __future__ import annotations

import contextlib
import hashlib
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.report import Report
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data import cache
from firth.work.executors import Cluster, executor
from firth.work.job import Job, run_job
from firth.work.worker import Counts

if TYPE_CHECKING:
    from firth.data.tokens import Tokens


def cluster_of(run: Run) -> Cluster:
    """Return the cluster of a run."""
    return Cluster(run.cluster, run.workers)


@contextlib.contextmanager
def same_workers(run: Run) -> Iterator[None]:
    """Keep the workers of a run's cluster for all jobs of the block."""
    with executor(cluster_of(run)) if run.cluster else contextlib.nullcontext():
        yield


def run_shards(job: Job, run: Run) -> list[Counts]:
    """Compute the shards of a job on the run's cluster; return their counts in order."""
    return run_cached(job, cluster_of(run), run.report)


def run_cached(job: Job, cluster: Cluster, report: Report) -> list[Counts]:
    """Compute the shards of a job whose folder is in the cache; return their counts in order."""
    try:
        counts = run_job(job, cluster, report)
    except FirthError as error:
        if error.code != "not_shared" or not str(error.values["path"]).startswith(str(cache.cache_folder())):
            raise
        raise FirthError(
            "not_shared",
            "{reason} The files of the job are in the cache: set FIRTH_CACHE to a folder that all machines share.",
            reason=str(error),
        ) from None
    return [counts[shard.name] for shard in job.shards]


def refuse_memory(run: Run) -> None:
    """Refuse a memory limit, which drops words depending on how the text is divided."""
    if run.cluster and run.memory:
        raise FirthError(
            "conflicting_options",
            "{options} cannot be combined: a memory limit drops rare words, and which ones depends on how the text is "
            "divided among workers. Leave out memory, or raise min_count.",
            options="memory and cluster",
        )


def write_array(path: Path, values: NDArray[Any]) -> Path:
    """Write an array for the workers."""
    with saying_where(path):
        path.write_bytes(np.ascontiguousarray(values).data)
    return path


def read_array(path: Path, dtype: Any) -> NDArray[Any]:
    """Memory-map what `write_array` or a worker wrote."""
    return np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.zeros(0, dtype=dtype)


def array_hash(values: NDArray[Any]) -> str:
    """Return a hash of an array, for the content of a job."""
    return hashlib.sha256(values.tobytes()).hexdigest()


def cached_file(values: NDArray[Any]) -> Path | None:
    """Return the file of an array in an entry of the cache; None if it is elsewhere."""
    path = Path(getattr(values, "filename", None) or "")
    is_whole = path.is_file() and path.stat().st_size == values.nbytes
    return path if is_whole and path.parent.parent == cache.cache_folder() else None


def token_files(tokens: Tokens, folder: Path) -> tuple[Path, Path]:
    """Return the files of ids and document starts, which are written to `folder` if they are not in the cache."""
    ids, starts = cached_file(tokens.ids), cached_file(tokens.starts)
    return ids or write_array(folder / "ids", tokens.ids), starts or write_array(folder / "starts", tokens.starts)


def token_job(tokens: Tokens, *settings: Any) -> str:
    """Return a name for a job over tokens, which continues if it was interrupted; empty if they are not in the cache,
    whose entries are named by the content of the text."""
    path = cached_file(tokens.ids)
    return cache.entry_name(path.parent.name, *settings) if path else ""


def ranges(starts: NDArray[np.int64], size: int) -> Sequence[tuple[int, int]]:
    """Divide rows, which begin at `starts`, into ranges (first, last) of about `size` entries each."""
    divided, first, rows = [], 0, len(starts) - 1
    while first < rows:
        last = int(np.searchsorted(starts, starts[first] + size, side="right")) - 1
        last = min(max(first + 1, last), rows)
        divided.append((first, last))
        first = last
    return divided
