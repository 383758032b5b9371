"""`Cooccurrence`: word co-occurrence counts, as a sparse matrix on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.notebook import ShowsRows
from firth.core.remote import as_path
from firth.core.remote_folders import local_copy
from firth.core.report import human
from firth.core.run import Run
from firth.core.storage import new_file, saying_where
from firth.data import cache, shard_pairs
from firth.data.shard_jobs import token_job
from firth.data.tokens import Tokens, content_hash
from firth.data.vocabulary import Vocabulary
from firth.kernels import cooccur as kernel
from firth.kernels.predict import keep_thresholds

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MEMORY = 2_000_000_000  # bytes for counting if Run.memory is not set
LARGE_BLOCK = 1 << 20  # records that a thread holds before it writes them
MANY_BLOCKS = 256  # blocks of words, so that the threads share the work evenly
LEAST_SHARD = 4096  # tokens
LEAST_BUFFER = 64  # records read from a sorted run at a time
TOKEN = 12  # bytes per token of a shard: its id, its position, possibly a document end
# The record of Stanford's cooccurrence.bin, with ids from 1.
RECORD = np.dtype([("word", "<i4"), ("context", "<i4"), ("weight", "<f8")])
CHUNK = 1 << 18  # records or tokens processed at a time


class Cooccurrence(ShowsRows):
    """Co-occurrence counts of word pairs in compressed sparse row format.

    Row w has the contexts `indices[indptr[w]:indptr[w + 1]]` of word w, in ascending order, and their `weights`. The
    arrays may be memory-mapped and are never written to, so threads can share the object.
    """

    def __init__(
        self,
        indptr: NDArray[np.int64],
        indices: NDArray[np.int32],
        weights: NDArray[np.float64],
        vocabulary: Vocabulary,
    ) -> None:
        self.indptr = np.ascontiguousarray(indptr, dtype=np.int64)
        self.indices = np.ascontiguousarray(indices, dtype=np.int32)
        self.weights = np.ascontiguousarray(weights, dtype=np.float64)
        self.vocabulary = vocabulary
        self._check()
        halves = [content_hash(array, self.indptr, vocabulary) for array in (self.indices, self.weights.view(np.int32))]
        self.fingerprint = hashlib.sha256("".join(halves).encode()).hexdigest()

    def _check(self) -> None:
        words, records = len(self.vocabulary), len(self.indices)
        ends = self.indptr[[0, -1]].tolist() if len(self.indptr) == words + 1 else None
        if ends != [0, records] or (np.diff(self.indptr) < 0).any() or len(self.weights) != records:
            raise FirthError(
                "damaged_file",
                "indptr must rise from 0 to the number of records ({records:,}) in {words:,} steps, one per word.",
                records=records,
                words=words,
            )
        if records and not 0 <= self.indices.min() <= self.indices.max() < words:
            invalid = min(self.indices.min(), 0) or self.indices.max()
            raise FirthError(
                "damaged_file",
                "Context ids must be between 0 and {last_id:,}; got {got:,}.",
                last_id=words - 1,
                got=int(invalid),
            )
        if records and not 0 < self.weights.min() <= self.weights.max() < np.inf:  # NaN fails each comparison
            raise FirthError(
                "damaged_file",
                "Weights must be finite and above 0, but some are not: the smallest is {lowest:g}. Leave out pairs "
                "that never co-occur.",
                lowest=float(self.weights.min()),
            )

    def __len__(self) -> int:
        """Return the number of pairs."""
        return len(self.indices)

    def _rows_shown(self) -> tuple[list[str], Iterator[list[Any]]]:
        tokens = self.vocabulary.tokens

        def row(word: int) -> list[Any]:
            part = slice(self.indptr[word], self.indptr[word + 1])
            best = np.argsort(-self.weights[part], kind="stable")[:5]
            contexts = ", ".join(f"{tokens[self.indices[part][each]]} {self.weights[part][each]:.4g}" for each in best)
            return [tokens[word], contexts]

        return ["word", "most frequent contexts"], map(row, range(len(self.vocabulary)))

    def __repr__(self) -> str:
        return f"Cooccurrence({len(self):,} pairs of {len(self.vocabulary):,} words)"

    @property
    def matrix(self) -> csr_matrix:
        """The words × contexts matrix as a `scipy.sparse.csr_matrix` that shares the memory."""
        from scipy.sparse import csr_matrix

        words = len(self.vocabulary)
        return csr_matrix((self.weights, self.indices, self.indptr), shape=(words, words))

    @classmethod
    def count(
        cls,
        tokens: Tokens,
        *,
        window: int = 10,
        side: str = "both",
        weighting: str = "harmonic",
        subsample: float = 0.0,
        run: Run = Run(),
    ) -> Cooccurrence:
        """Count the pairs of words that are at most `window` positions apart in the same document.

        A context at distance d has the weight 1 (`flat`), 1/d (`harmonic`) or (window − d + 1)/window (`dynamic`).
        `side` selects the contexts on the left, on the right or on both sides. `subsample` drops occurrences of
        frequent words before counting, as word2vec does, which widens the effective window. The sums are exact: they
        do not depend on the number of threads, the memory limit or the shards.
        """
        check_choice("side", side, kernel.SIDES)
        check_choice("weighting", weighting, kernel.WEIGHTINGS)
        if not 1 <= window <= kernel.MAX_WINDOW:
            raise FirthError(
                "invalid_value",
                "{option} must be between 1 and {maximum}; got {got}.",
                option="window",
                maximum=kernel.MAX_WINDOW,
                got=window,
            )
        sides = 2 if side == "both" else 1
        plan = make_plan(tokens, window * sides, run)
        weights = kernel.weights(weighting, window, len(tokens.ids))
        keep = keep_thresholds(tokens.vocabulary.counts, subsample) if subsample else np.zeros(0, np.uint32)
        sums = kernel.PairSums(
            np.ascontiguousarray(tokens.ids),
            np.ascontiguousarray(tokens.starts),
            len(tokens.vocabulary),
            keep,
            run.seed,
            weights.integers,
            float(weights.scale),
            side != "right",
            side != "left",
            plan.bounds,
            plan.most_pairs,
            plan.threads,
        )
        settings = {"window": window, "side": side, "weighting": weighting, "seed": run.seed}
        name = token_job(tokens, settings, subsample) if run.cluster else None
        with counting_folder(name) as folder, saying_where(folder):
            if run.cluster and len(tokens.ids):
                files, offsets = shard_pairs.count_runs(tokens, settings, keep, plan, folder, run)
                with create_file(folder / "contexts") as contexts, create_file(folder / "weights") as totals:
                    lengths = shard_pairs.merge_runs(sums, files, offsets, plan, (contexts, totals))
            else:
                lengths = count_shards(sums, len(tokens.ids), plan, folder, run)
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            arrays = map_array(folder / "contexts", np.int32), map_array(folder / "weights", np.float64)
            return cls(indptr, *arrays, tokens.vocabulary)  # the mappings stay valid after the files are removed

    def write(self, path: str | os.PathLike[str]) -> None:
        """Write Stanford's cooccurrence.bin for the original GloVe programs: sorted (word, context, weight) records.

        Ids start at 1.
        """
        with new_file(as_path(path)) as work, work.open("wb") as file:
            for begin in range(0, len(self), CHUNK):
                end = min(begin + CHUNK, len(self))
                records = np.empty(end - begin, dtype=RECORD)
                records["word"] = np.searchsorted(self.indptr, np.arange(begin, end), side="right")
                records["context"] = self.indices[begin:end] + 1
                records["weight"] = self.weights[begin:end]
                file.write(records.tobytes())

    @classmethod
    def read(cls, path: str | os.PathLike[str], vocabulary: Vocabulary) -> Cooccurrence:
        """Read Stanford's cooccurrence.bin, shuffled or not; `read_vocabulary` reads the vocabulary of its ids."""
        with local_copy(path) as local:
            records = open_records(local)
        for begin in range(0, len(records), CHUNK):
            check_records(Path(path), records[begin : begin + CHUNK], begin, len(vocabulary))
        words = len(vocabulary)
        keys = records["word"].astype(np.int64) * (words + 1) + records["context"]
        weights = np.ascontiguousarray(records["weight"])
        if (np.diff(keys) <= 0).any():  # shuffled, or with repeated pairs: sort, and add up in file order
            order = np.argsort(keys, kind="stable")
            keys, first = np.unique(keys[order], return_index=True)
            weights = np.add.reduceat(weights[order], first)
        word, context = np.divmod(keys, words + 1)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(word - 1, minlength=words))]).astype(np.int64)
        return cls(indptr, (context - 1).astype(np.int32), weights, vocabulary)


def read_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """Read Stanford's vocab.txt: one word and its count per line; the first line has id 1."""
    try:
        lines = as_path(path).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    pairs = [line.rpartition(" ") for line in lines if line]
    for number, (word, _, count) in enumerate(pairs, 1):
        if not word or not (count.isascii() and count.isdigit()) or int(count) >= 2**63:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: expected a word, a space and its count; got {got!r}.",
                path=path,
                number=number,
                got=lines[number - 1],
            )
    document = {"tokens": [word for word, _, _ in pairs], "counts": [int(count) for _, _, count in pairs]}
    return Vocabulary.from_json(document)  # refuses repeated words


def open_records(path: Path) -> NDArray[Any]:
    """Memory-map the records of a cooccurrence.bin file."""
    try:
        size = path.stat().st_size
        if size % RECORD.itemsize:
            raise FirthError(
                "malformed_data",
                "{path} has {size:,} bytes, which is not a multiple of the record size {itemsize} ({records:,} records "
                "and {rest} bytes). It is truncated or not a cooccurrence.bin file.",
                path=path,
                size=size,
                itemsize=RECORD.itemsize,
                records=size // RECORD.itemsize,
                rest=size % RECORD.itemsize,
            )
        return np.memmap(path, dtype=RECORD, mode="r") if size else np.zeros(0, dtype=RECORD)
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def check_records(path: Path, records: NDArray[Any], begin: int, words: int) -> None:
    """Refuse the first invalid record; `begin` is the number of records before these."""
    for name in ("word", "context"):
        invalid = np.flatnonzero((records[name] < 1) | (records[name] > words))
        if len(invalid):
            raise FirthError(
                "malformed_data",
                "{path}, record {record:,}: the {field} id must be between 1 and {words:,}, the vocabulary size; got "
                "{got:,}.",
                path=path,
                record=int(begin + invalid[0] + 1),
                field=name,
                words=words,
                got=int(records[name][invalid[0]]),
            )
    invalid = np.flatnonzero(~((records["weight"] > 0) & (records["weight"] < np.inf)))
    if len(invalid):
        raise FirthError(
            "malformed_data",
            "{path}, record {record:,}: the {field} must be finite and above 0; got {got:g}.",
            path=path,
            record=int(begin + invalid[0] + 1),
            field="weight",
            got=float(records["weight"][invalid[0]]),
        )


# ---- counting within a memory limit ----


class CountingPlan(NamedTuple):
    """How the work is divided so that it stays within the memory limit."""

    bounds: NDArray[np.int32]  # first word of each block of words; threads process whole blocks
    most_pairs: int  # maximum number of records per block
    threads: int
    shard: int  # tokens counted at a time
    spare: int  # bytes for a shard, or for the buffers of sorted runs


def make_plan(tokens: Tokens, contexts: int, run: Run) -> CountingPlan:
    """Choose shards, blocks and threads that fit Run.memory; `contexts` is the maximum number per position."""
    memory = run.memory_bytes or MEMORY
    words, size = len(tokens.vocabulary), len(tokens.ids)
    counts = np.zeros(words, dtype=np.int64)
    for first in range(0, size, CHUNK):
        counts += np.bincount(tokens.ids[first : first + CHUNK], minlength=words)
    for threads in range(run.cores, 0, -1):
        if plan := plan_within(memory, counts, contexts, threads):
            return plan
    enough = memory
    while plan_within(enough, counts, contexts, 1) is None:
        enough += enough // 8 + 1
    raise FirthError(
        "out_of_memory",
        "memory={memory} is too small to count the pairs of {words:,} words in {tokens:,} tokens; about {enough}B is "
        "enough. A smaller vocabulary (max_vocabulary) needs less.",
        memory=run.memory,
        words=words,
        tokens=size,
        enough=human(enough),
    )


def plan_within(memory: int, counts: NDArray[np.int64], contexts: int, threads: int) -> CountingPlan | None:
    """Return the plan for this number of threads, or None if the memory is too small."""
    words, size = len(counts), int(counts.sum())
    most_pairs = max(min(LARGE_BLOCK, memory // (64 * threads)), words)  # one row may have this many
    spare = memory - 8 * CHUNK - 64 * words - threads * (13 * words + 16 * most_pairs)
    shard = min(spare // TOKEN, 1 << 30)
    if shard < LEAST_SHARD:
        return None
    bounds = block_bounds(counts, np.minimum(counts * contexts, words), most_pairs)
    runs = -(-size // shard)
    if runs > 1 and spare < runs * (threads * LEAST_BUFFER * 16 + 8 * len(bounds)):
        return None
    return CountingPlan(bounds, most_pairs, threads, shard, spare)


def block_bounds(counts: NDArray[np.int64], records: NDArray[np.int64], most_pairs: int) -> NDArray[np.int32]:
    """Divide the words into blocks, none with too many records or more than its share of the work."""
    share = max(1, int(counts.sum()) // MANY_BLOCKS)
    limits = [(np.cumsum(values), most) for values, most in ((records, most_pairs), (counts, share))]
    bounds = [0]
    while bounds[-1] < len(counts):
        here = bounds[-1]
        ends = [int(np.searchsorted(sums, most + (sums[here - 1] if here else 0), "right")) for sums, most in limits]
        bounds.append(max(here + 1, min(ends)))
    return np.array(bounds, dtype=np.int32)


@contextmanager
def counting_folder(name: str | None) -> Iterator[Path]:
    """Yield a working folder: that of a job on a cluster, or a temporary one for None."""
    if name is None:
        with cache.working_folder() as (folder, _):
            yield folder
        return
    with cache.job_folder(name) as folder:
        for result in ("contexts", "weights"):  # of an interrupted merge
            (folder / result).unlink(missing_ok=True)
        yield folder


def count_shards(sums: kernel.PairSums, size: int, plan: CountingPlan, folder: Path, run: Run) -> NDArray[np.int64]:
    """Write the files `contexts` and `weights`; return the number of contexts of each word.

    Several shards are first written as sorted runs, which are then merged.
    """
    lengths = np.zeros(plan.bounds[-1], dtype=np.int64)
    starts = range(0, size, plan.shard)
    run.report.begin("counting pairs", size, "words")
    try:
        with create_file(folder / "contexts") as contexts, create_file(folder / "weights") as weights:
            if len(starts) == 1:
                sums.rows(0, size, contexts, weights, lengths)
            elif size:
                with create_file(folder / "runs") as runs:
                    offsets = np.zeros((len(starts), len(plan.bounds)), dtype=np.int64)
                    for number, first in enumerate(starts):
                        last = min(first + plan.shard, size)
                        sums.run(first, last, runs, offsets[number - 1, -1] if number else 0, offsets[number])
                        run.report.step(last)
                    buffer = max(LEAST_BUFFER, (plan.spare - offsets.nbytes) // (plan.threads * len(starts) * 16))
                    files = np.full(len(starts), runs, dtype=np.int32)
                    sums.merge(files, offsets, buffer, contexts, weights, lengths)
        run.report.step(size)
    finally:
        run.report.end()
    (folder / "runs").unlink(missing_ok=True)
    return lengths


@contextmanager
def create_file(path: Path) -> Iterator[int]:
    """Create a new file, and yield its descriptor, open for reading and writing."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def map_array(path: Path, dtype: Any) -> NDArray[Any]:
    """Memory-map a file as an array; an empty file gives an empty array."""
    return np.memmap(path, dtype=dtype, mode="r") if path.stat().st_size else np.zeros(0, dtype=dtype)
