"""A binary file that is read value by value, with checks of every size against the size of the file."""

from __future__ import annotations

import math
import mmap
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError


class MappedReader:
    """A file, memory-mapped or in memory, with a read position. Reads beyond its end are refused."""

    def __init__(self, path: Path, in_memory: bool = False) -> None:
        self.path, self.position = path, 0
        try:
            with path.open("rb") as file:
                self.data: mmap.mmap | bytes = (
                    file.read()
                    if in_memory or not os.fstat(file.fileno()).st_size
                    else mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
                )
                self.size = len(self.data)
        except OSError as error:
            raise FirthError(
                "unreadable_file", "Cannot read {path}: {reason}.", path=path, reason=error.strerror
            ) from None

    def wrong(self, rule: str, expected: Any, actual: Any) -> FirthError:
        """Return the error for an invalid value before the current position."""
        return FirthError(
            "damaged_file",
            "{path}: {rule} {expected}; got {got} before byte {byte:,}.",
            path=self.path,
            rule=rule,
            expected=expected,
            got=actual,
            byte=self.position,
        )

    def reserve(self, length: int, what: str) -> int:
        """Return the current position, and advance it by `length` bytes."""
        begin = self.position
        if not 0 <= length <= self.size - begin:
            raise FirthError(
                "damaged_file",
                "{path} is truncated or damaged: {part} needs {length:,} bytes from byte {byte:,} on, but the file has "
                "{size:,} bytes.",
                path=self.path,
                part=what,
                length=length,
                byte=begin,
                size=self.size,
            )
        self.position += length
        return begin

    def unpack(self, format: str, what: str) -> tuple[Any, ...]:
        """Read values in the format of the `struct` module."""
        return struct.unpack_from(format, self.data, self.reserve(struct.calcsize(format), what))

    def array(self, dtype: str, shape: tuple[int, ...], what: str) -> NDArray[Any]:
        """Read an array, which stays mapped from the file and may be unaligned."""
        count = math.prod(shape)
        begin = self.reserve(count * np.dtype(dtype).itemsize, what)
        if not count:
            return np.zeros(shape, dtype=dtype)
        return np.frombuffer(self.data, dtype=dtype, count=count, offset=begin).reshape(shape)

    def flag(self, what: str) -> bool:
        """Read a boolean."""
        (value,) = self.unpack("<B", what)
        if value > 1:
            raise self.wrong(f"the flag whether {what} must be", "0 or 1", value)
        return bool(value)

    def finish(self) -> None:
        """Refuse data after the end of the model."""
        if self.position < self.size:
            more = self.size - self.position
            raise FirthError(
                "damaged_file",
                "{path} has {more:,} bytes after the end of the model at byte {byte:,}.",
                path=self.path,
                more=more,
                byte=self.position,
            )
