"""A segment: immutable rows with their keys, attributes and words.

Arrays by name (optional ones in brackets):
  vectors                    rows × dim, float32 or float16
  [codes, steps, sums, errors, norms]   the rows quantized to int8 (`firth.kernels.search.QuantizedRows`)
  [scales]                   1/|row|, which turns a dot product into a cosine; NaN for a zero row, which is never a hit
  hashes, hash_rows          sorted hashes of the keys, and the row of each
  [word_starts, word_rows, word_counts, lengths]   `firth.index.words`
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pyarrow
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.storage import Stacked
from firth.core.vectors import Matrix, row_lengths
from firth.index.words import make_postings, merge_postings
from firth.kernels.search import QuantizedRows, quantize_rows

BLOCK = 65_536  # rows that are copied, quantized or written at a time
KEY, TEXT = "key", "text"  # columns: the keys of the rows; the texts for word search, if any
DTYPES = ("float32", "float16", "int8")
QUANTIZED_FROM, MAX_QUANTIZED_DIM = 64, 1 << 16  # dimensions between which float32 rows also get int8 codes
MAX_DIM = 1 << 22  # as many as a file of vectors may have
LONGEST, SHORTEST = 1e18, 1e-30  # norms of rows and queries: beyond these, float32 overflows or cosines lose precision

Arrays = Mapping[str, NDArray[Any] | Stacked]
Positions = NDArray[np.int64]


class Space(NamedTuple):
    """The dimension, the metric and the storage dtype of an index."""

    dim: int
    metric: str
    dtype: str

    @classmethod
    def from_json(cls, properties: Mapping[str, Any]) -> Space:
        """Return the space that a manifest describes. Its key for the dtype is "numbers", as in all versions."""
        return cls(properties["dim"], properties["metric"], properties["numbers"])

    def to_json(self) -> dict[str, Any]:
        """Return the manifest entries that `from_json` reads."""
        return {"dim": self.dim, "metric": self.metric, "numbers": self.dtype}


@dataclass(frozen=True)
class Segment:
    """Rows of an index. `table` has the column key and the attributes; `terms` are the sorted words of its texts."""

    arrays: Arrays
    table: Any  # pyarrow.Table
    terms: Any = None  # pyarrow.Array of strings
    record: Mapping[str, Any] = field(default_factory=dict)  # its entry in the manifest
    path: Path | None = None  # file of its arrays

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def array(self, name: str) -> NDArray[Any]:
        """Return an array by its name."""
        array = self.arrays[name]
        assert not isinstance(array, Stacked)
        return array

    @property
    def quantized(self) -> QuantizedRows | None:
        """The quantized rows; None in segments of earlier versions, which lack them or some of their arrays."""
        complete = all(name in self.arrays for name in QuantizedRows._fields)
        return QuantizedRows(*map(self.array, QuantizedRows._fields)) if complete else None

    @cached_property
    def words(self) -> Arrays:
        """The arrays, with validated postings. Postings are checked at their first use, not when a segment is
        opened."""
        rows, counts = self.array("word_rows"), self.array("word_counts")
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self) or counts.min() < 1):
            raise damaged(self.path, "its postings refer to rows that do not exist")
        return self.arrays

    def rows_of(self, keys: Sequence[str], hashes: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
        """Yield (index in `keys`, row) for each row that has one of the keys."""
        sorted_hashes, rows = self.array("hashes"), self.array("hash_rows")
        first, last = np.searchsorted(sorted_hashes, hashes, "left"), np.searchsorted(sorted_hashes, hashes, "right")
        column = self.table.column(KEY)
        for position in np.flatnonzero(first < last).tolist():
            for row in rows[first[position] : last[position]].tolist():
                if python_value(column[row], KEY) == keys[position]:  # equal hashes do not imply equal keys
                    yield position, row


def damaged(path: Path | None, reason: str) -> FirthError:
    """Return the error for a damaged file of an index."""
    return FirthError("damaged_index", "{path} is damaged: {reason}.", path=path, reason=reason)


def python_value(scalar: Any, name: str) -> Any:
    """Return a value of an Arrow column as a Python object."""
    try:
        return scalar.as_py()
    except Exception as error:  # invalid UTF-8, a date after the year 9999, an unknown time zone, …
        raise FirthError(
            "damaged_index",
            "A value in the column {name} ({type}) cannot be read: {reason}.",
            name=name,
            type=str(scalar.type),
            reason=str(error).partition("\n")[0],
        ) from None


def values_of(column: Any, name: str) -> list[Any]:
    """Return all values of an Arrow column as Python objects."""
    return [python_value(scalar, name) for scalar in column]


def key_hashes(keys: Sequence[str]) -> NDArray[np.uint64]:
    """Return a 64-bit BLAKE2b hash of each key."""
    digests = b"".join(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, dtype="<u8") if digests else np.zeros(0, dtype=np.uint64)


def make_segment(space: Space, matrix: Matrix, table: Any) -> Segment:
    """Return a segment of validated rows, in memory."""
    arrays: dict[str, NDArray[Any]] = {"vectors": matrix}
    if space.dtype == "float16":
        with np.errstate(over="ignore"):
            arrays["vectors"] = matrix.astype(np.float16)
        overflowing = np.flatnonzero(~np.isfinite(arrays["vectors"]).all(axis=1))
        if len(overflowing):
            key = table.column(KEY)[int(overflowing[0])].as_py()
            raise FirthError(
                "out_of_range",
                "The vector of {key!r} has values beyond 65,504, the float16 maximum. Use dtype='float32'.",
                key=key,
            )
        underflowing = np.flatnonzero(~arrays["vectors"].any(axis=1) & matrix.any(axis=1))
        if len(underflowing):
            key = table.column(KEY)[int(underflowing[0])].as_py()
            raise FirthError(
                "out_of_range",
                "All values of the vector of {key!r} are below 3e-8 and become zero in float16. Use dtype='float32'.",
                key=key,
            )
    lengths = row_lengths(arrays["vectors"])
    check_lengths(lengths, space.metric, lambda row: repr(table.column(KEY)[row].as_py()))
    if space.metric == "cosine":
        with np.errstate(divide="ignore"):
            arrays["scales"] = np.where(lengths > 0, 1 / lengths, np.nan).astype(np.float32)
    if is_quantized(space):
        arrays |= quantize_rows(matrix)._asdict()
    hashes = key_hashes(table.column(KEY).to_pylist())
    order = np.argsort(hashes, kind="stable")
    arrays |= {"hashes": hashes[order], "hash_rows": order.astype(np.int64)}
    if TEXT not in table.column_names:
        return Segment(arrays, table)
    postings = make_postings(table.column(TEXT).to_pylist())
    return Segment(arrays | postings.arrays(), table, postings.terms)


def check_lengths(lengths: NDArray[np.float64], metric: str, named: Callable[[int], str]) -> None:
    """Refuse rows or queries whose squared norm overflows float32, or that are too short for a precise cosine."""
    invalid = np.flatnonzero((lengths > LONGEST) | ((metric == "cosine") & (lengths > 0) & (lengths < SHORTEST)))
    if len(invalid):
        raise FirthError(
            "out_of_range",
            "The vector of {key} has the norm {length:.3g}. Norms must be at most {longest:g} and, for cosine, at "
            "least {shortest:g} (or 0). Scale the vectors.",
            key=named(int(invalid[0])),
            length=float(lengths[invalid[0]]),
            longest=LONGEST,
            shortest=SHORTEST,
        )


def is_quantized(space: Space) -> bool:
    """Return whether rows also get int8 codes. For narrow rows, the five arrays of codes would not save time."""
    min_dim = {"float32": QUANTIZED_FROM, "int8": 1}.get(space.dtype, MAX_QUANTIZED_DIM + 1)
    return min_dim <= space.dim <= MAX_QUANTIZED_DIM


def merge_segments(segments: Sequence[Segment], keep: Sequence[NDArray[np.bool_] | None]) -> Segment:
    """Merge segments into one with the rows to keep. Large arrays are only produced when they are written."""
    counts = [len(segment) if mask is None else int(mask.sum()) for segment, mask in zip(segments, keep, strict=True)]
    arrays: dict[str, Any] = {}
    for name in ("vectors", *QuantizedRows._fields, "scales"):
        if all(name in segment.arrays for segment in segments):
            arrays[name] = stacked([segment.array(name) for segment in segments], keep, sum(counts))
    table = pyarrow.concat_tables(
        [
            segment.table if mask is None else segment.table.filter(mask)
            for segment, mask in zip(segments, keep, strict=True)
        ]
    )
    hashes, rows = merged_hashes(segments, keep, counts)
    arrays |= {"hashes": hashes, "hash_rows": rows}
    if segments[0].terms is None:
        return Segment(arrays, table)
    postings = merge_postings([(segment.words, segment.terms) for segment in segments], keep)
    return Segment(arrays | postings.arrays(), table, postings.terms)


def stacked(arrays: Sequence[NDArray[Any]], keep: Sequence[NDArray[np.bool_] | None], rows: int) -> Stacked:
    """Return the concatenation of the rows to keep, produced block by block when it is written."""

    def pieces() -> Iterator[NDArray[Any]]:
        for array, mask in zip(arrays, keep, strict=True):
            for first in range(0, len(array), BLOCK):
                block = array[first : first + BLOCK]
                yield block if mask is None else block[mask[first : first + BLOCK]]

    return Stacked(arrays[0].dtype, (rows, *arrays[0].shape[1:]), pieces)


def merged_hashes(
    segments: Sequence[Segment], keep: Sequence[NDArray[np.bool_] | None], counts: Sequence[int]
) -> tuple[NDArray[np.uint64], Positions]:
    """Return the sorted key hashes of merged segments, and their rows in the merged segment."""
    hashes, rows = [], []
    for segment, mask, first in zip(segments, keep, np.cumsum([0, *counts]), strict=False):
        segment_hashes, segment_rows = segment.array("hashes"), segment.array("hash_rows")
        if mask is not None:
            stays = mask[segment_rows]
            segment_hashes, segment_rows = segment_hashes[stays], (np.cumsum(mask) - 1)[segment_rows[stays]]
        hashes.append(segment_hashes)
        rows.append(segment_rows + first)
    all_hashes, all_rows = np.concatenate(hashes), np.concatenate(rows)
    order = np.argsort(all_hashes, kind="stable")
    return all_hashes[order], all_rows[order]


def in_memory(segment: Segment) -> Segment:
    """Return the segment with all arrays in memory."""
    arrays = dict(segment.arrays)
    for name, array in arrays.items():
        if isinstance(array, Stacked):
            blocks = list(array.pieces())
            arrays[name] = np.concatenate(blocks) if blocks else np.zeros(array.shape, array.dtype)
    return Segment(arrays, segment.table, segment.terms)
