"""`Cooccurrence`: how often words stand near each other, as a sparse matrix on disk."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.report import human
from firth.core.run import Run
from firth.core.storage import new_file, saying_where
from firth.data import cache
from firth.data.tokens import Tokens, content_hash
from firth.data.vocabulary import Vocabulary
from firth.kernels import cooccur as kernel
from firth.kernels.predict import keep_thresholds

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

MEMORY = 2_000_000_000  # for counting, where the run sets no bound
LARGE_BLOCK = 1 << 20  # records a thread holds before it writes them
MANY_BLOCKS = 256  # so that threads share the work evenly
LEAST_SHARD = 4096  # tokens
LEAST_BUFFER = 64  # records read of a run at a time
TOKEN = 12  # bytes for each token of a shard: itself, perhaps an end of document, its place
# Of Stanford's cooccurrence.bin, ids from 1.
RECORD = np.dtype([("word", "<i4"), ("context", "<i4"), ("weight", "<f8")])
CHUNK = 1 << 18  # of them, or of tokens, at a time


class Cooccurrence:
    """Row w of the matrix: the contexts `indices[indptr[w]:indptr[w + 1]]` of word w with their `weights`.

    Contexts stand in order. Arrays may be memory-mapped; nothing writes to them. Threads can share it.
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
                "indptr must lead from 0 to the {records:,} records in {words:,} steps, one a word.",
                records=records,
                words=words,
            )
        if records and not 0 <= self.indices.min() <= self.indices.max() < words:
            wrong = min(self.indices.min(), 0) or self.indices.max()
            raise FirthError(
                "damaged_file", "Contexts must be ids from 0 to {words:,}; got {got:,}.", words=words - 1, got=wrong
            )
        if records and not 0 < self.weights.min() <= self.weights.max() < np.inf:  # NaN fails each comparison
            raise FirthError("damaged_file", "Weights must be finite and above 0: a pair never met has no record.")

    def __len__(self) -> int:
        """How many pairs there are."""
        return len(self.indices)

    def __repr__(self) -> str:
        return f"Cooccurrence({len(self):,} pairs of {len(self.vocabulary):,} words)"

    @property
    def matrix(self) -> csr_matrix:
        """Words × contexts for scipy, over the same memory."""
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
        """Counts pairs of words at most `window` apart in one document.

        A neighbour at distance d counts 1 (`flat`), 1/d (`harmonic`) or (window − d + 1)/window (`dynamic`). `side` is
        where a word's contexts stand. `subsample` thins out frequent words first, as word2vec does, so that windows
        reach further. Sums are exact: the same for any threads, memory and shards.
        """
        check_choice("side", side, kernel.SIDES)
        check_choice("weighting", weighting, kernel.WEIGHTINGS)
        if not 1 <= window <= kernel.MAX_WINDOW:
            raise FirthError(
                "invalid_value",
                "{option} must be from 1 to {most_window}; got {got}.",
                option="window",
                most_window=kernel.MAX_WINDOW,
                got=window,
            )
        sides = 2 if side == "both" else 1
        plan = make_plan(tokens, window * sides, run)
        weights = kernel.weights(weighting, window, len(tokens.ids))
        sums = kernel.PairSums(
            np.ascontiguousarray(tokens.ids),
            np.ascontiguousarray(tokens.starts),
            len(tokens.vocabulary),
            keep_thresholds(tokens.vocabulary.counts, subsample) if subsample else np.zeros(0, np.uint32),
            run.seed,
            weights.integers,
            float(weights.scale),
            side != "right",
            side != "left",
            plan.bounds,
            plan.most_pairs,
            plan.threads,
        )
        with cache.working_folder() as (folder, _), saying_where(folder):
            lengths = count_shards(sums, len(tokens.ids), plan, folder, run)
            indptr = np.concatenate([[0], np.cumsum(lengths)])
            arrays = mapped(folder / "contexts", np.int32), mapped(folder / "weights", np.float64)
            return cls(indptr, *arrays, tokens.vocabulary)  # the maps stay valid when the files are removed

    def write(self, path: str | os.PathLike[str]) -> None:
        """Stanford's cooccurrence.bin, for GloVe's own programs: sorted records of word, context (from 1), weight."""
        with new_file(Path(path)) as work, work.open("wb") as file:
            for begin in range(0, len(self), CHUNK):
                end = min(begin + CHUNK, len(self))
                records = np.empty(end - begin, dtype=RECORD)
                records["word"] = np.searchsorted(self.indptr, np.arange(begin, end), side="right")
                records["context"] = self.indices[begin:end] + 1
                records["weight"] = self.weights[begin:end]
                file.write(records.tobytes())

    @classmethod
    def read(cls, path: str | os.PathLike[str], vocabulary: Vocabulary) -> Cooccurrence:
        """Stanford's cooccurrence.bin (shuffled or not), with the words its ids stand for: see `read_vocabulary`."""
        records = open_records(Path(path))
        for begin in range(0, len(records), CHUNK):
            check_records(Path(path), records[begin : begin + CHUNK], begin, len(vocabulary))
        words = len(vocabulary)
        keys = records["word"].astype(np.int64) * (words + 1) + records["context"]
        weights = np.ascontiguousarray(records["weight"])
        if (np.diff(keys) <= 0).any():  # shuffled, or a pair stands twice: sorted, sums in the order of the file
            order = np.argsort(keys, kind="stable")
            keys, first = np.unique(keys[order], return_index=True)
            weights = np.add.reduceat(weights[order], first)
        word, context = np.divmod(keys, words + 1)
        indptr = np.concatenate([[0], np.cumsum(np.bincount(word - 1, minlength=words))]).astype(np.int64)
        return cls(indptr, (context - 1).astype(np.int32), weights, vocabulary)


def read_vocabulary(path: str | os.PathLike[str]) -> Vocabulary:
    """Stanford's vocab.txt: a word and its count a line, the first line for id 1."""
    try:
        lines = Path(path).read_bytes().decode("utf-8", "replace").split("\n")
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None
    pairs = [line.rpartition(" ") for line in lines if line]
    for number, (word, _, count) in enumerate(pairs, 1):
        if not word or not (count.isascii() and count.isdigit()) or int(count) >= 2**63:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: must be a word, a space and its count; got {got!r}.",
                path=path,
                number=number,
                got=lines[number - 1],
            )
    document = {"tokens": [word for word, _, _ in pairs], "counts": [int(count) for _, _, count in pairs]}
    return Vocabulary.from_json(document)  # which refuses a word that stands twice


def open_records(path: Path) -> NDArray[Any]:
    try:
        size = path.stat().st_size
        if size % RECORD.itemsize:
            raise FirthError(
                "malformed_data",
                "{path} ends in the middle of a record: {size:,} bytes are {size_2:,} records of {itemsize} and "
                "{size_3} more; it was cut short or is another kind of file.",
                path=path,
                size=size,
                size_2=size // RECORD.itemsize,
                itemsize=RECORD.itemsize,
                size_3=size % RECORD.itemsize,
            )
        return np.memmap(path, dtype=RECORD, mode="r") if size else np.zeros(0, dtype=RECORD)
    except OSError as error:
        raise FirthError("unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror) from None


def check_records(path: Path, records: NDArray[Any], begin: int, words: int) -> None:
    """Refuses the first record that can't be; `begin` is how many stand before these."""
    for name in ("word", "context"):
        wrong = np.flatnonzero((records[name] < 1) | (records[name] > words))
        if len(wrong):
            raise FirthError(
                "malformed_data",
                "{path}, record {begin:,}: {name} must be from 1 to {words:,}, the number of words; got {got:,}.",
                path=path,
                begin=begin + wrong[0] + 1,
                name=name,
                words=words,
                got=records[name][wrong[0]],
            )
    wrong = np.flatnonzero(~((records["weight"] > 0) & (records["weight"] < np.inf)))
    if len(wrong):
        raise FirthError(
            "malformed_data",
            "{path}, record {begin:,}: weight must be finite and above 0; got {got:g}.",
            path=path,
            begin=begin + wrong[0] + 1,
            got=records["weight"][wrong[0]],
        )


# ---- counting within a bound ----


class Plan(NamedTuple):
    """How counting keeps to its memory."""

    bounds: NDArray[np.int32]  # of the blocks of words that threads take
    most_pairs: int  # records of a block, at the most
    threads: int
    shard: int  # tokens counted at a time
    spare: int  # bytes for a shard, or for reading runs


def make_plan(tokens: Tokens, contexts: int, run: Run) -> Plan:
    """Shards, blocks and threads so that memory stays within the run's bound; `contexts` is the most a place has."""
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
        "memory={memory} is too small to count pairs of {words:,} words in {size:,} tokens; about {enough}B are "
        "enough. Fewer words (max_vocabulary) need less.",
        memory=run.memory,
        words=words,
        size=size,
        enough=human(enough),
    )


def plan_within(memory: int, counts: NDArray[np.int64], contexts: int, threads: int) -> Plan | None:
    """The plan for so many threads; None when the memory is too small for it."""
    words, size = len(counts), int(counts.sum())
    most_pairs = max(min(LARGE_BLOCK, memory // (64 * threads)), words)  # a row may need that many
    spare = memory - 8 * CHUNK - 64 * words - threads * (13 * words + 16 * most_pairs)
    shard = min(spare // TOKEN, 1 << 30)
    if shard < LEAST_SHARD:
        return None
    bounds = block_bounds(counts, np.minimum(counts * contexts, words), most_pairs)
    runs = -(-size // shard)
    if runs > 1 and spare < runs * (threads * LEAST_BUFFER * 16 + 8 * len(bounds)):
        return None
    return Plan(bounds, most_pairs, threads, shard, spare)


def block_bounds(counts: NDArray[np.int64], records: NDArray[np.int64], most_pairs: int) -> NDArray[np.int32]:
    """Cuts the words where a block would get too many records, or more than its share of the work."""
    share = max(1, int(counts.sum()) // MANY_BLOCKS)
    limits = [(np.cumsum(values), most) for values, most in ((records, most_pairs), (counts, share))]
    bounds = [0]
    while bounds[-1] < len(counts):
        here = bounds[-1]
        ends = [int(np.searchsorted(sums, most + (sums[here - 1] if here else 0), "right")) for sums, most in limits]
        bounds.append(max(here + 1, min(ends)))
    return np.array(bounds, dtype=np.int32)


def count_shards(sums: kernel.PairSums, size: int, plan: Plan, folder: Path, run: Run) -> NDArray[np.int64]:
    """Writes the files `contexts` and `weights`; the number of contexts of each word. More than one shard goes through
    sorted runs on disk, which are then added up."""
    lengths = np.zeros(plan.bounds[-1], dtype=np.int64)
    starts = range(0, size, plan.shard)
    run.report.begin("counting pairs", size, "words")
    try:
        with opened(folder / "contexts") as contexts, opened(folder / "weights") as weights:
            if len(starts) == 1:
                sums.rows(0, size, contexts, weights, lengths)
            elif size:
                with opened(folder / "runs") as runs:
                    offsets = np.zeros((len(starts), len(plan.bounds)), dtype=np.int64)
                    for number, first in enumerate(starts):
                        last = min(first + plan.shard, size)
                        sums.run(first, last, runs, offsets[number - 1, -1] if number else 0, offsets[number])
                        run.report.step(last)
                    buffer = max(LEAST_BUFFER, (plan.spare - offsets.nbytes) // (plan.threads * len(starts) * 16))
                    sums.merge(runs, offsets, buffer, contexts, weights, lengths)
        run.report.step(size)
    finally:
        run.report.end()
    (folder / "runs").unlink(missing_ok=True)
    return lengths


@contextmanager
def opened(path: Path) -> Iterator[int]:
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600)
    try:
        yield handle
    finally:
        os.close(handle)


def mapped(path: Path, kind: Any) -> NDArray[Any]:
    return np.memmap(path, dtype=kind, mode="r") if path.stat().st_size else np.zeros(0, dtype=kind)


def check_choice(name: str, value: str, choices: tuple[str, ...]) -> None:
    if value not in choices:
        raise FirthError(
            "invalid_value",
            "{name} must be one of {choices}; got {got!r}.",
            name=name,
            choices=", ".join(choices),
            got=value,
        )
