"""Documents as stretches of bytes with the places where they end: what native code reads."""

from __future__ import annotations

from array import array
from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.data import readers
from firth.kernels.text import as_bytes, line_ends, paragraph_ends, safe_cut

Tags = tuple[Any, ...]  # texts, or the values of fields


class Block(NamedTuple):
    """A stretch of the corpus for native code: valid until the next but one is asked for."""

    data: memoryview  # UTF-8 as it was read, cut behind a separator
    ends: NDArray[np.int64]  # where documents end in it; text behind the last end goes on in the next block
    keys: list[str]  # of the documents that end in it, where keys were asked for
    tags: list[Tags]  # the same
    done: int  # bytes of the sources read so far


class BlockBuilder:
    """Gathers bytes and document ends from sources into blocks."""

    def __init__(self, size: int, split: str, unit: str, with_keys: bool) -> None:
        self.buffer, self.spare = new_buffer(max(size, 16)), new_buffer(max(size, 16))  # used in turn
        self.filled = 0
        self.ends = array("q")
        self.split, self.unit, self.with_keys = split, unit, with_keys
        self.keys: list[str] = []
        self.tags: list[Tags] = []
        self.source = ""  # name of the source, "" when it is the only one
        self.number = 0  # of the last document in the source
        self.before = self.done = 0  # bytes of the sources before this one; of all so far

    def text(self, raw: Any, stream: Any, name: str) -> Iterator[Block]:
        """A text file: its documents by the corpus's unit."""
        state, last = 0, b""  # of `paragraph_ends`; the last byte seen
        head = readers.check_head(stream.read(readers.HEAD), name)
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
        """One document each."""
        for key, text, tags in records:
            yield from self.put(readers.to_bytes(text))
            yield from self.put(b"\n")
            self.end_documents(np.zeros(1, dtype=np.int64), key, tags)

    def put(self, data: bytes) -> Iterator[Block]:
        while data:
            if self.filled == len(self.buffer):
                yield from self.cut()
            count = min(len(data), len(self.buffer) - self.filled)
            self.buffer[self.filled : self.filled + count] = data[:count]
            self.filled += count
            data = data[count:]

    def end_documents(self, ends: NDArray[np.int64], key: str | None = None, tags: Tags = ()) -> None:
        """Documents end at these places behind what is filled."""
        self.ends.frombytes((ends + self.filled).tobytes())
        if self.with_keys:
            first = self.number + 1
            prefix = f"{self.source}:" if self.source else ""
            numbers = range(first, first + len(ends))
            self.keys += [key] if key is not None else [f"{prefix}{number}" for number in numbers]
            self.tags += [tags] * len(ends)
        self.number += len(ends)

    def cut(self) -> Iterator[Block]:
        """A block up to the last place where no token is cut; a longer buffer when there is none."""
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
        ends = np.array(self.ends, dtype=np.int64)
        count = int(np.searchsorted(ends, position, side="right"))
        self.ends = array("q", (ends[count:] - position).tolist())
        keys, self.keys = self.keys[:count], self.keys[count:]
        tags, self.tags = self.tags[:count], self.tags[count:]
        return Block(self.buffer[:position].toreadonly(), ends[:count], keys, tags, self.done)

    def rest(self) -> Iterator[Block]:
        if self.filled:
            yield self.block(self.filled)


def new_buffer(size: int) -> memoryview:
    """Bytes whose pages are touched only as they are used."""
    return memoryview(np.empty(size, dtype=np.uint8))  # type: ignore[arg-type]
