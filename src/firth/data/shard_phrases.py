"""Phrases on a cluster: workers count the pairs of their shards and join phrases in them (see `phrases`)."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.run import Run
from firth.data.phrases import Phrase, joined_words, write_joined
from firth.data.shard_encoding import ShardFile
from firth.data.shard_jobs import array_hash, read_array, run_shards, write_array
from firth.data.streams import Piece, Stream
from firth.kernels.pairs import PairCounter
from firth.work.job import Job, Shard

UNLIMITED = 0  # bytes for the pairs of a shard


def count_shard_pairs(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Write the pairs of a shard in order, as first · 2³² + second, and their counts; a job's function."""
    counter, frequent = PairCounter(UNLIMITED), read_array(Path(common["frequent"]), np.uint8)
    for piece in shard_file(parameters).pieces(len(frequent)):
        counter.add(piece.ids, piece.map, frequent)
    first, second, counts = counter.pairs(1)
    output = f"{common['pass']}-{parameters['name']}"
    (folder / f"{output}.pairs").write_bytes((first.astype(np.int64) << 32 | second).tobytes())
    (folder / f"{output}.counts").write_bytes(counts.tobytes())


def join_shard(common: Mapping[str, Any], parameters: Mapping[str, Any], folder: Path) -> None:
    """Write a shard with joined phrases, and the counts of its words; a job's function."""
    joined = read_array(Path(common["joined"]), np.int32).reshape(-1, 3)
    output = f"{common['pass']}-{parameters['name']}"
    pieces = shard_file(parameters).pieces(common["words"])
    counts = write_joined(pieces, joined, common["words"], folder / f"{output}.ids")
    (folder / f"{output}.counts").write_bytes(counts.tobytes())


def shard_file(parameters: Mapping[str, Any]) -> ShardFile:
    """Return the file that a job's parameters name."""
    map = Path(parameters["map"]) if parameters["map"] else None
    return ShardFile(parameters["name"], Path(parameters["ids"]), map)


class ShardPasses:
    """The passes of `phrases.PhrasePasses` on a cluster. Pairs are counted without a memory limit."""

    pruned = False

    def __init__(self, files: Sequence[ShardFile], folder: Path, run: Run) -> None:
        self.files, self.folder, self.run = files, folder, run
        self.number = 0  # of the pass

    def pairs(
        self, stream: Stream, is_frequent: NDArray[np.uint8], min_count: int
    ) -> tuple[NDArray[np.int32], NDArray[np.int32], NDArray[np.int64]]:
        """Return the adjacent pairs of frequent words, in order, and their counts."""
        name = self.next_pass("pairs")
        path = write_array(self.folder / f"{name}.frequent", is_frequent)
        common = {"pass": name, "frequent": str(path), "hash": array_hash(is_frequent)}
        run_shards(Job("counting pairs", "ids", count_shard_pairs, common, self.shards(), self.folder), self.run)
        keys, counts = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
        for file in self.files:
            path = self.folder / f"{name}-{file.name}"
            shard = [read_array(path.with_suffix(suffix), np.int64) for suffix in (".pairs", ".counts")]
            keys, counts = added(keys, counts, *shard)
        frequent = counts >= min_count
        keys, counts = keys[frequent], counts[frequent]
        return (keys >> 32).astype(np.int32), (keys & 0xFFFFFFFF).astype(np.int32), counts

    def join(self, stream: Stream, phrases: Iterable[Phrase], name: str) -> Stream:
        """Join the phrases of all shards."""
        words, joined = joined_words(stream, phrases)
        name = self.next_pass(name)
        path = write_array(self.folder / f"{name}.triples", joined)
        common = {"pass": name, "joined": str(path), "words": len(words), "hash": array_hash(joined)}
        run_shards(Job("joining phrases", "ids", join_shard, common, self.shards(), self.folder), self.run)
        outputs = [self.folder / f"{name}-{file.name}" for file in self.files]
        counts = np.zeros(len(words), dtype=np.int64)
        for path in outputs:
            counts += read_array(path.with_suffix(".counts"), np.int64)
        for file in self.files:
            if file.map is None:  # of the pass before
                file.ids.unlink(missing_ok=True)
        files = [
            ShardFile(file.name, path.with_suffix(".ids"), None) for file, path in zip(self.files, outputs, strict=True)
        ]
        self.files = files

        def pieces() -> Iterator[Piece]:
            for file in files:
                yield from file.pieces(len(words))

        return Stream(words, counts, pieces, stream.fixed)

    def next_pass(self, name: str) -> str:
        """Return the name of the files of the next pass."""
        self.number += 1
        return f"{self.number}-{name}"

    def shards(self) -> list[Shard]:
        """Return the shards of a job over the files."""
        return [
            Shard(
                f"{self.number}-{file.name}",
                {"name": file.name, "ids": str(file.ids), "map": str(file.map or "")},
                file.ids.stat().st_size // 4,
            )
            for file in self.files
        ]


def added(
    keys: NDArray[np.int64], counts: NDArray[np.int64], more_keys: NDArray[np.int64], more_counts: NDArray[np.int64]
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Return the sum of two lists of counts, each sorted by key."""
    keys, counts = np.concatenate([keys, more_keys]), np.concatenate([counts, more_counts])
    order = np.argsort(keys, kind="stable")  # merges the two sorted parts
    keys, counts = keys[order], counts[order]
    first = np.flatnonzero(np.concatenate([[True], keys[1:] != keys[:-1]])[: len(keys)])
    return keys[first], np.add.reduceat(counts, first) if len(first) else counts
