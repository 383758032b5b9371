"""A corpus becomes ids on disk: one pass over the text, a second over the ids, in memory of the vocabulary's size."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.data.blocks import Block, Tags
from firth.data.corpus import Corpus, not_utf8
from firth.data.streams import Ids, Piece, write_all
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel

BLOCK = 1 << 24  # bytes of text at a time: large enough to split, small enough for its buffers to be reused soon
WINDOW = 1 << 22  # ids that are mapped at a time

Split = Callable[[str], list[str]]


class Encoded:
    """What the first pass left: provisional ids on disk, and the word tables."""

    def __init__(
        self, path: Path, folder: Path, split: str, lowercase: bool, known: Vocabulary | None, run: Run
    ) -> None:
        self.path, self.folder, self.run = path, folder, run
        # Under a bound, one table: what is rare in the part of the text that one thread met may be frequent elsewhere,
        # and which thread meets what differs from run to run.
        self.slots = 1 if run.memory_bytes else run.cores
        self.most_bytes = max(run.memory_bytes // 4, 1 << 19)  # merging and growing need as much again, and more
        self.encoder = kernel.TextEncoder(split, lowercase, self.slots)
        if known:
            self.encoder.seed("".join(token + "\0" for token in known.tokens).encode("utf-8", "surrogatepass"))
        self.segments: list[tuple[int, int, int]] = []  # generation, slot, number of ids, in the order of the text
        self.generation = 0  # how often rare words were dropped to save memory; each renumbers the ids
        self.final_maps: list[Ids] = []
        self.keys: list[str] = []  # of the documents, where the blocks bring them
        self.tags: list[Tags] = []

    def read(self, blocks: Iterable[Block], total: int) -> None:
        """The first pass."""
        report = self.run.report
        report.begin("reading", total, "B")
        try:
            # This thread reads and writes while another one encodes (on all cores): block n + 1 is read and the ids
            # of block n - 1 are written while block n is encoded.
            with saying_where(self.folder):
                file = self.path.open("wb", buffering=0)
            with ThreadPoolExecutor(1) as worker, file:
                under_way: Future[None] | None = None
                for block in blocks:
                    ids = self.finished(under_way)
                    under_way = worker.submit(self.encoder.encode, kernel.as_bytes(block.data), block.ends)
                    self.keys += block.keys
                    self.tags += block.tags
                    self.write(file, ids)
                    report.step(block.done)
                self.write(file, self.finished(under_way))
        finally:
            report.end()

    @property
    def length(self) -> int:
        """Tokens and ends of documents that were read."""
        return sum(length for _, _, length in self.segments)

    def finished(self, under_way: Future[None] | None) -> list[Ids]:
        """Waits for a block; its ids, in the order of the text."""
        if under_way is None:
            return []
        under_way.result()
        stretches = self.encoder.stretches()
        self.segments += [(self.generation, slot, len(ids)) for slot, ids in stretches if len(ids)]
        self.keep_to_memory()
        return [ids for _, ids in stretches]

    def write(self, file: Any, stretches: list[Ids]) -> None:
        with saying_where(self.folder):  # only here: errors of the source pass as they are
            for ids in stretches:
                write_all(file, ids)

    def keep_to_memory(self) -> None:
        """Drops the rarer half of each table when together they outgrow Run.memory."""
        used = sum(self.encoder.bytes(slot) for slot in range(self.slots))
        if self.run.memory_bytes and used > self.most_bytes:
            for slot in range(self.slots):
                self.write_map(self.generation, slot, self.encoder.prune(slot))
            self.generation += 1

    def write_map(self, generation: int, slot: int, map: Ids) -> None:
        with saying_where(self.folder):
            self.map_path(generation, slot).write_bytes(map.tobytes())  # (`tofile` does not say why it fails)

    def read_map(self, generation: int, slot: int) -> Ids:
        return np.fromfile(self.map_path(generation, slot), dtype=np.int32)

    def map_path(self, generation: int, slot: int) -> Path:
        return self.folder / f"map-{generation}-{slot}.i32"

    def merge(self, min_count: int, max_size: int | None) -> kernel.Merged:
        """The vocabulary. Maps of earlier generations are composed with the later ones, on disk."""
        merged = kernel.merge(self.encoder, min_count, max_size)
        self.final_maps = merged.maps
        for slot, map in enumerate(merged.maps):
            for generation in range(self.generation - 1, -1, -1):
                survivors = self.read_map(generation, slot)
                # With no word left a map is empty: then nothing survived either.
                map = np.where(survivors >= 0, map[survivors] if len(map) else -1, -1).astype(np.int32)
                self.write_map(generation, slot, map)
        return merged

    def pieces(self) -> Iterator[Piece]:
        """The provisional ids in the order of the text, each with its map; to be asked for after `merge`."""
        place, loaded, maps = 0, -1, self.final_maps
        window, begin = np.zeros(0, dtype=np.int32), 0  # mapping takes longer than translating a short segment
        for generation, slot, length in self.segments:
            if generation != loaded:
                past = generation < self.generation
                maps = [self.read_map(generation, s) for s in range(self.slots)] if past else self.final_maps
                loaded = generation
            if place + length > begin + len(window):
                begin, size = place, min(max(WINDOW, length), self.path.stat().st_size // 4 - place)
                window = np.memmap(self.path, dtype=np.int32, mode="r", offset=begin * 4, shape=(size,))
            yield Piece(window[place - begin : place - begin + length], maps[slot])
            place += length

    def notes(self, merged: kernel.Merged, split: str, corpus: Corpus | None) -> list[str]:
        """What the user should know of this text."""
        notes = []
        invalid, unsegmented = self.encoder.statistics()
        if split == "separated" and corpus:  # a tokenizer in Python was given texts
            invalid += corpus.replaced
        if invalid:
            notes.append(not_utf8(invalid, corpus))
        if split != "separated" and unsegmented * 1000 >= merged.tokens > 0:  # not for a foreign name here and there
            notes.append(
                f"{unsegmented:,} of {merged.tokens:,} words are long runs of a script that writes no spaces between "
                "words; tokenizer=characters or a segmenter (tokenizer=jieba) splits them."
            )
        if self.generation:
            notes.append(
                f"Counting outgrew memory={self.run.memory} {self.generation} times: the rarest words were dropped on "
                f"the way ({merged.dropped_tokens:,} of {merged.tokens:,} tokens are left out), and counts may be low."
            )
        return notes


def block_size(run: Run) -> int:
    return min(BLOCK, max(1 << 12, run.memory_bytes // 64)) if run.memory_bytes else BLOCK


def blocks_of(corpus: Corpus, split: str, tokenizer: Split | None, run: Run, keys: bool) -> Iterator[Block]:
    """Blocks for the native code; a tokenizer in Python is run here and its tokens are handed on with NULs between."""
    size = block_size(run)
    if tokenizer is None:
        yield from corpus.blocks(size, split, keys)
        return
    walk = corpus.walk()
    documents = ((tokenizer(text), done, [key][:keys], [tags][:keys]) for (key, text), tags, done in walk)
    yield from token_blocks(documents, size)


def token_blocks(documents: Iterable[tuple[Sequence[str], int, list[str], list[Tags]]], size: int) -> Iterator[Block]:
    """Documents that are lists of tokens (each with the bytes read so far, and its key and tags where they are wanted),
    as text for the split "separated"."""
    parts: list[bytes] = []
    keys: list[str] = []
    tags: list[Tags] = []
    ends: list[int] = []
    filled = done = 0
    for tokens, done, key, tagged in documents:
        text = "\0".join([*tokens, ""])
        if text.count("\0") != len(tokens):
            raise FirthError(
                "invalid_value",
                "A token must not contain the character NUL; this tokenizer or list gives one that does.",
            )
        parts.append(text.encode("utf-8", "surrogatepass"))
        filled += len(parts[-1])
        ends.append(filled)
        keys += key
        tags += tagged
        if filled >= size:
            yield Block(memoryview(b"".join(parts)), np.array(ends, dtype=np.int64), keys, tags, done)
            parts, ends, keys, tags, filled = [], [], [], [], 0
    yield Block(memoryview(b"".join(parts)), np.array(ends, dtype=np.int64), keys, tags, done)


def nothing_left(merged: kernel.Merged, min_count: int) -> FirthError:
    if not merged.tokens:
        return FirthError(
            "empty_data", "The corpus has no words: it is empty, or its text has only separators for this tokenizer."
        )
    return FirthError(
        "empty_vocabulary",
        "No word occurs min_count={min_count} times: of {types:,} different words in {tokens:,} the most "
        "frequent occurs {top_count:,} times. A smaller min_count keeps some.",
        min_count=min_count,
        types=merged.types,
        tokens=merged.tokens,
        top_count=merged.top_count,
    )
