"""Encodes a corpus as token ids on disk: one pass over the text, then one over the ids.

The memory needed depends on the vocabulary, not on the corpus.
"""

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
from firth.data.corpus import Corpus, Note, invalid_utf8_note
from firth.data.streams import Ids, Piece, write_all
from firth.data.vocabulary import Vocabulary
from firth.kernels import text as kernel

BLOCK = 1 << 24  # bytes of text per block: enough to split over threads, small enough to reuse the buffers
WINDOW = 1 << 22  # ids memory-mapped at a time

Split = Callable[[str], list[str]]


class CorpusEncoder:
    """The first pass over a corpus: writes provisional ids to disk and builds one word table per thread."""

    def __init__(
        self, path: Path, folder: Path, split: str, lowercase: bool, start_vocabulary: Vocabulary | None, run: Run
    ) -> None:
        self.path, self.folder, self.run = path, folder, run
        # With a memory limit there is a single table: a word that is rare in one thread's part of the text may be
        # frequent in another's, and the division of the text among threads differs between runs.
        self.slots = 1 if run.memory_bytes else run.cores
        self.most_bytes = max(run.memory_bytes // 4, 1 << 19)  # merging and growing need more than as much again
        self.encoder = kernel.TextEncoder(split, lowercase, self.slots)
        if start_vocabulary:
            self.encoder.seed(seed_words(start_vocabulary))
        self.segments: list[tuple[int, int, int]] = []  # generation, slot and number of ids, in text order
        self.generation = 0  # number of times rare words were dropped to save memory; each time renumbers the ids
        self.final_maps: list[Ids] = []
        self.keys: list[str] = []  # of the documents, if the blocks have keys
        self.tags: list[Tags] = []

    def read(self, blocks: Iterable[Block], total: int) -> None:
        """Run the first pass; `total` is the size of the text in bytes, 0 if unknown."""
        report = self.run.report
        report.begin("reading", total, "B")
        try:
            # A worker encodes (on all cores) while this thread reads and writes: during the encoding of block n,
            # block n + 1 is read and the ids of block n - 1 are written.
            with saying_where(self.folder):
                file = self.path.open("wb", buffering=0)
            with ThreadPoolExecutor(1) as worker, file:
                pending: Future[None] | None = None
                for block in blocks:
                    ids = self.finished(pending)
                    pending = worker.submit(self.encoder.encode, kernel.as_bytes(block.data), block.ends)
                    self.keys += block.keys
                    self.tags += block.tags
                    self.write(file, ids)
                    report.step(block.done)
                self.write(file, self.finished(pending))
        finally:
            report.end()

    @property
    def length(self) -> int:
        """Number of tokens and document ends read so far."""
        return sum(length for _, _, length in self.segments)

    def finished(self, pending: Future[None] | None) -> list[Ids]:
        """Wait for a block to be encoded, and return its ids in text order."""
        if pending is None:
            return []
        pending.result()
        stretches = self.encoder.stretches()
        self.segments += [(self.generation, slot, len(ids)) for slot, ids in stretches if len(ids)]
        self.prune_to_memory()
        return [ids for _, ids in stretches]

    def write(self, file: Any, stretches: list[Ids]) -> None:
        """Append ids to the file."""
        with saying_where(self.folder):  # only around the write: errors of the source are not rewritten
            for ids in stretches:
                write_all(file, ids)

    def prune_to_memory(self) -> None:
        """Drop the rarer half of each word table if together they exceed Run.memory."""
        used = sum(self.encoder.bytes(slot) for slot in range(self.slots))
        if self.run.memory_bytes and used > self.most_bytes:
            for slot in range(self.slots):
                self.write_map(self.generation, slot, self.encoder.prune(slot))
            self.generation += 1

    def write_map(self, generation: int, slot: int, map: Ids) -> None:
        """Write the map from the ids of a generation to those of the next one."""
        with saying_where(self.folder):
            self.map_path(generation, slot).write_bytes(map.tobytes())  # `tofile` gives no reason when it fails

    def read_map(self, generation: int, slot: int) -> Ids:
        """Read what `write_map` wrote."""
        return np.fromfile(self.map_path(generation, slot), dtype=np.int32)

    def map_path(self, generation: int, slot: int) -> Path:
        return self.folder / f"map-{generation}-{slot}.i32"

    def merge(self, min_count: int, max_size: int | None) -> kernel.Merged:
        """Merge the word tables into the vocabulary; compose the maps of all generations, on disk."""
        merged = kernel.merge(self.encoder, min_count, max_size)
        self.final_maps = merged.maps
        for slot, map in enumerate(merged.maps):
            for generation in range(self.generation - 1, -1, -1):
                survivors = self.read_map(generation, slot)
                # If no word is left, the map is empty and every id maps to −1.
                map = np.where(survivors >= 0, map[survivors] if len(map) else -1, -1).astype(np.int32)
                self.write_map(generation, slot, map)
        return merged

    def pieces(self) -> Iterator[Piece]:
        """Yield the provisional ids in text order with their maps to the vocabulary. Call `merge` first."""
        position, loaded, maps = 0, -1, self.final_maps
        window, begin = np.zeros(0, dtype=np.int32), 0  # many segments share a mapping, which is slow to set up
        for generation, slot, length in self.segments:
            if generation != loaded:
                is_pruned = generation < self.generation
                maps = [self.read_map(generation, s) for s in range(self.slots)] if is_pruned else self.final_maps
                loaded = generation
            if position + length > begin + len(window):
                begin, size = position, min(max(WINDOW, length), self.path.stat().st_size // 4 - position)
                window = np.memmap(self.path, dtype=np.int32, mode="r", offset=begin * 4, shape=(size,))
            yield Piece(window[position - begin : position - begin + length], maps[slot])
            position += length

    def notes(self, merged: kernel.Merged, split: str, corpus: Corpus | None) -> list[Note]:
        """Return notes about invalid bytes, unsegmented scripts and words dropped to save memory."""
        invalid, unsegmented = self.encoder.statistics()
        if split == "separated" and corpus:  # a Python tokenizer received decoded texts
            invalid += corpus.replaced
        notes = encoding_notes(invalid, unsegmented, merged.tokens, split, corpus)
        if self.generation:
            text = (
                f"Counting exceeded memory={self.run.memory} {self.generation} times. The rarest words were dropped "
                f"each time ({merged.dropped_tokens:,} of {merged.tokens:,} tokens are left out), and counts may be "
                "too low."
            )
            notes.append(Note(text, "memory_limit"))
        return notes


def seed_words(vocabulary: Vocabulary) -> bytes:
    """Return the words of a vocabulary for `TextEncoder.seed`."""
    return "".join(token + "\0" for token in vocabulary.tokens).encode("utf-8", "surrogatepass")


def encoding_notes(invalid: int, unsegmented: int, tokens: int, split: str, corpus: Corpus | None) -> list[Note]:
    """Return notes about invalid bytes and unsegmented scripts."""
    notes = []
    if invalid:
        notes.append(Note(invalid_utf8_note(invalid, corpus), "invalid_utf8"))
    if split != "separated" and unsegmented * 1000 >= tokens > 0:  # more than a few foreign names
        text = (
            f"{unsegmented:,} of {tokens:,} words are long runs of a script that is written without spaces. "
            "tokenizer=characters or a segmenter (tokenizer=jieba) splits them."
        )
        notes.append(Note(text, "unsegmented_script"))
    return notes


def block_size(run: Run) -> int:
    """Return the block size in bytes, which is smaller under a memory limit."""
    return min(BLOCK, max(1 << 12, run.memory_bytes // 64)) if run.memory_bytes else BLOCK


def blocks_of(corpus: Corpus, split: str, tokenizer: Split | None, run: Run, keys: bool) -> Iterator[Block]:
    """Yield blocks for the native code. A Python tokenizer runs here; its tokens are separated by NUL characters."""
    size = block_size(run)
    if tokenizer is None:
        yield from corpus.blocks(size, split, keys)
        return
    walk = corpus.walk()
    documents = ((tokenizer(text), done, [key][:keys], [tags][:keys]) for (key, text), tags, done in walk)
    yield from token_blocks(documents, size)


def token_blocks(documents: Iterable[tuple[Sequence[str], int, list[str], list[Tags]]], size: int) -> Iterator[Block]:
    """Yield tokenized documents as blocks of NUL-separated text, for the split "separated".

    A document is (tokens, bytes read so far, [key] or [], [tags] or []).
    """
    parts: list[bytes] = []
    keys: list[str] = []
    tags: list[Tags] = []
    ends: list[int] = []
    filled = done = 0
    for number, (tokens, done, key, document_tags) in enumerate(documents, 1):
        text = "\0".join([*tokens, ""])
        if text.count("\0") != len(tokens):
            raise FirthError(
                "invalid_value",
                "A {what} must not contain the character NUL; found one in document {number:,}.",
                what="token",
                number=number,
            )
        parts.append(text.encode("utf-8", "surrogatepass"))
        filled += len(parts[-1])
        ends.append(filled)
        keys += key
        tags += document_tags
        if filled >= size:
            yield Block(memoryview(b"".join(parts)), np.array(ends, dtype=np.int64), keys, tags, done)
            parts, ends, keys, tags, filled = [], [], [], [], 0
    yield Block(memoryview(b"".join(parts)), np.array(ends, dtype=np.int64), keys, tags, done)


def no_words_error(merged: kernel.Merged, min_count: int) -> FirthError:
    """Return the error for a vocabulary without words."""
    if not merged.tokens:
        return FirthError(
            "empty_data", "The corpus has no words: it is empty, or contains only separators for this tokenizer."
        )
    return FirthError(
        "empty_vocabulary",
        "No word occurs min_count={min_count} times. The corpus has {tokens:,} tokens of {types:,} different words; "
        "the most frequent one occurs {top_count:,} times. Use a smaller min_count.",
        min_count=min_count,
        types=merged.types,
        tokens=merged.tokens,
        top_count=merged.top_count,
    )
