"""Blocks of corpus bytes with document boundaries, the input of the native tokenizers."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data import readers
from firth.kernels.text import as_bytes, line_ends, paragraph_ends, safe_cut

Tags = tuple[Any, ...]  # tags (str), or the values of the requested fields


class Block(NamedTuple):
    """A part of the corpus for native code. Its buffer is reused by the block after the next one."""

    data: memoryview  # the bytes as read, cut after a separator
    ends: NDArray[np.int64]  # where documents end; text after the last end continues in the next block
    keys: list[str]  # of the documents that end in this block, if keys were requested
    tags: list[Tags]  # of the same documents
    done: int  # bytes of the sources read so far


class BlockBuilder:
    """Collects bytes and document ends from several sources into blocks."""

    def __init__(self, size: int, split: str, unit: str, with_keys: bool) -> None:
        self.buffer, self.spare = new_buffer(max(size, 16)), new_buffer(max(size, 16))  # used alternately
        self.filled = 0
        self.ends = array("q")
        self.split, self.unit, self.with_keys = split, unit, with_keys
        self.keys: list[str] = []
        self.tags: list[Tags] = []
        self.source = ""  # name of the source; "" if there is only one
        self.number = 0  # of the last document of the source
        self.before = self.done = 0  # bytes of the earlier sources; bytes of all sources so far

    def text(self, raw: Any, stream: Any, name: str, offset: int = 0) -> Iterator[Block]:
        """Yield the blocks of a text file, whose documents are lines, paragraphs or the whole file.

        `offset` is where to begin: the start of a line.
        """
        state, last = 0, b""  # state of `paragraph_ends`; the last byte read
        head = readers.check_head(stream.read(readers.HEAD), name)
        if offset:
            head = b""
            stream.seek(offset)
        while True:
            if self.filled == len(self.buffer):
                yield from self.cut()
                continue
            room = self.buffer[self.filled :]
            if head:
                count = min(len(head), len(room))
                room[:count], head = head[:count], head[count:]
            else:
                count = stream.readinto(room)
            if not count:
                break
            chunk = as_bytes(room[:count])
            if self.unit == "line":
                self.end_documents(line_ends(chunk))
            elif self.unit == "block":
                ends, state = paragraph_ends(chunk, state)
                self.end_documents(ends)
            last = bytes(room[count - 1 : count])
            self.filled += count
            self.done = self.before + raw.tell()
        is_open = {"line": last not in (b"", b"\n"), "block": state & 2, "file": True}[self.unit]
        if is_open or last not in (b"", b"\n"):
            yield from self.put(b"\n")
        if is_open:
            self.end_documents(np.zeros(1, dtype=np.int64), name if self.unit == "file" else None)

    def records(self, records: Iterable[readers.Record]) -> Iterator[Block]:
        """Yield the blocks of a sequence of records, with one document per record."""
        for key, text, tags in records:
            yield from self.put(readers.to_bytes(text))
            yield from self.put(b"\n")
            self.end_documents(np.zeros(1, dtype=np.int64), key, tags)

    def put(self, data: bytes) -> Iterator[Block]:
        """Append bytes to the buffer, and yield a block each time it is full."""
        while data:
            if self.filled == len(self.buffer):
                yield from self.cut()
            count = min(len(data), len(self.buffer) - self.filled)
            self.buffer[self.filled : self.filled + count] = data[:count]
            self.filled += count
            data = data[count:]

    def end_documents(self, ends: NDArray[np.int64], key: str | None = None, tags: Tags = ()) -> None:
        """Record the ends of documents, given relative to the filled part of the buffer."""
        self.ends.frombytes((ends + self.filled).tobytes())
        if self.with_keys:
            first = self.number + 1
            prefix = f"{self.source}:" if self.source else ""
            numbers = range(first, first + len(ends))
            self.keys += [key] if key is not None else [f"{prefix}{number}" for number in numbers]
            self.tags += [tags] * len(ends)
        self.number += len(ends)

    def cut(self) -> Iterator[Block]:
        """Yield a block up to the last position that splits no token, or enlarge the buffer if there is none."""
        position = safe_cut(as_bytes(self.buffer[: self.filled]), self.split)
        if position == 0:
            self.spare = new_buffer(2 * len(self.buffer))
            self.spare[: self.filled] = self.buffer[: self.filled]
            self.buffer, self.spare = self.spare, new_buffer(len(self.spare))
            return
        yield self.block(position)
        rest = self.buffer[position : self.filled]
        self.spare[: len(rest)] = rest
        self.filled = len(rest)
        self.buffer, self.spare = self.spare, self.buffer

    def block(self, position: int) -> Block:
        """Return the bytes before `position` as a block, with the documents that end there."""
        ends = np.array(self.ends, dtype=np.int64)
        count = int(np.searchsorted(ends, position, side="right"))
        self.ends = array("q", (ends[count:] - position).tolist())
        keys, self.keys = self.keys[:count], self.keys[count:]
        tags, self.tags = self.tags[:count], self.tags[count:]
        return Block(self.buffer[:position].toreadonly(), ends[:count], keys, tags, self.done)

    def rest(self) -> Iterator[Block]:
        """Yield the last block, if any bytes are left."""
        if self.filled:
            yield self.block(self.filled)


def new_buffer(size: int) -> memoryview:
    """Return a buffer whose memory pages are allocated only when they are used."""
    return memoryview(np.empty(size, dtype=np.uint8))  # type: ignore[arg-type]
