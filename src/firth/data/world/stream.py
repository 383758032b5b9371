"""`Stream`: a sequence made while it is read, the same each time, so that a million texts need no memory."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from random import Random
from typing import TypeVar, overload

from firth.core.errors import FirthError

Item = TypeVar("Item")

BLOCK = 1024  # items drawn from one random generator; item i can be made without those of earlier blocks


class Stream(Sequence[Item]):
    """`n` items drawn by `draw` from random numbers that depend on `key` alone.

    Iterating again gives the same items, and a shorter stream of the same key is the start of a longer one.
    """

    def __init__(self, key: str, n: int, draw: Callable[[Random], Item]) -> None:
        if n < 0:
            raise FirthError("invalid_value", "The number of items must be at least 0; got {got}.", got=n)
        self._key, self._n, self._draw = key, n, draw
        self._block: tuple[int, list[Item]] = (-1, [])  # the one that was indexed last: neighbours are asked together

    def __len__(self) -> int:
        return self._n

    def __iter__(self) -> Iterator[Item]:
        for first in range(0, self._n, BLOCK):
            yield from self._items(first)

    def _items(self, first: int) -> Iterator[Item]:
        """The items of the block that begins at `first`."""
        random = Random(f"{self._key}/{first}")  # a text seed is hashed by SHA-512: the same on every machine
        for _ in range(min(BLOCK, self._n - first)):
            yield self._draw(random)

    @overload
    def __getitem__(self, index: int) -> Item: ...
    @overload
    def __getitem__(self, index: slice) -> list[Item]: ...
    def __getitem__(self, index: int | slice) -> Item | list[Item]:
        if isinstance(index, slice):
            return [self[i] for i in range(*index.indices(self._n))]
        position = index + self._n if index < 0 else index
        if not 0 <= position < self._n:
            raise IndexError(f"item {index} of a stream of {self._n}")
        first = position - position % BLOCK
        begin, items = self._block
        if begin != first:
            items = list(self._items(first))
            self._block = (first, items)
        return items[position - first]

    def __repr__(self) -> str:
        return f"Stream({self._key!r}, {self._n:,} items)"
