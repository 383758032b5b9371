"""A segment: rows written once and never changed, with their keys, attributes and words.

Arrays by name (those in brackets where they are needed):
  vectors                    rows × dim, float32 or float16
  [codes, steps, sums, errors, norms]   the rows in bytes (`firth.kernels.search.Sketch`)
  [scales]                   1/|row|, which makes a product a cosine; NaN for a zero row, which no cosine finds
  hashes, hash_rows          hashes of the keys in rising order, and whose they are
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

BLOCK = 65_536  # rows that are copied, coded or written at a time
KEY, TEXT = "key", "text"  # columns: the rows' keys; what is searched for words, where there is such a column
NUMBERS = ("float32", "float16", "int8")
SKETCHED, WIDEST = 64, 1 << 16  # numbers a row from which on float32 gets a sketch, and up to which there is one
WIDEST_ROW = 1 << 22  # numbers a row that an index takes, as many as a file of vectors may have
LONGEST, SHORTEST = 1e18, 1e-30  # lengths of rows and queries: beyond, float32 cannot hold squares, or loses cosines

Arrays = Mapping[str, NDArray[Any] | Stacked]
Positions = NDArray[np.int64]


class Space(NamedTuple):
    """What vectors an index holds."""

    dim: int
    metric: str
    numbers: str


@dataclass(frozen=True)
class Segment:
    """`table` has the column key and the attributes; `terms` are the words of its texts, in order."""

    arrays: Arrays
    table: Any  # pyarrow.Table
    terms: Any = None  # pyarrow.Array of strings
    record: Mapping[str, Any] = field(default_factory=dict)  # what the manifest says of it
    path: Path | None = None  # of its arrays

    def __len__(self) -> int:
        return int(self.table.num_rows)

    def array(self, name: str) -> NDArray[Any]:
        found = self.arrays[name]
        assert not isinstance(found, Stacked)
        return found

    @property
    def quantized(self) -> QuantizedRows | None:
        """Segments of earlier versions have none, or not all of it."""
        there = all(name in self.arrays for name in QuantizedRows._fields)
        return QuantizedRows(*map(self.array, QuantizedRows._fields)) if there else None

    @cached_property
    def words(self) -> Arrays:
        """The arrays, after a look at the postings: they are read at their first use, not when a segment is opened."""
        rows, counts = self.array("word_rows"), self.array("word_counts")
        if len(rows) and (rows.min() < 0 or rows.max() >= len(self) or counts.min() < 1):
            raise damaged(self.path, "its words are in rows that it does not have")
        return self.arrays

    def rows_of(self, keys: Sequence[str], hashes: NDArray[np.uint64]) -> Iterator[tuple[int, int]]:
        """(place in `keys`, row) for each row that has one of the keys."""
        own, rows = self.array("hashes"), self.array("hash_rows")
        first, last = np.searchsorted(own, hashes, "left"), np.searchsorted(own, hashes, "right")
        column = self.table.column(KEY)
        for place in np.flatnonzero(first < last).tolist():
            for row in rows[first[place] : last[place]].tolist():
                if python_value(column[row], KEY) == keys[place]:  # equal hashes are not yet equal keys
                    yield place, row


def damaged(path: Path | None, reason: str) -> FirthError:
    return FirthError("damaged_index", "{path} is damaged: {reason}.", path=path, reason=reason)


def python_value(scalar: Any, name: str) -> Any:
    """A value of an Arrow column for Python."""
    try:
        return scalar.as_py()
    except Exception as error:  # no UTF-8, a date beyond the year 9999, a time zone that there is not, …
        raise FirthError(
            "damaged_index",
            "A value in the column {name} ({type}) cannot be read: {reason}.",
            name=name,
            type=str(scalar.type),
            reason=str(error).partition("\n")[0],
        ) from None


def values_of(column: Any, name: str) -> list[Any]:
    """All values of an Arrow column for Python."""
    return [python_value(scalar, name) for scalar in column]


def key_hashes(keys: Sequence[str]) -> NDArray[np.uint64]:
    digests = b"".join(hashlib.blake2b(key.encode("utf-8", "surrogatepass"), digest_size=8).digest() for key in keys)
    return np.frombuffer(digests, dtype="<u8") if digests else np.zeros(0, dtype=np.uint64)


def make_segment(space: Space, matrix: Matrix, table: Any) -> Segment:
    """A segment of checked rows, in memory."""
    arrays: dict[str, NDArray[Any]] = {"vectors": matrix}
    if space.numbers == "float16":
        with np.errstate(over="ignore"):
            arrays["vectors"] = matrix.astype(np.float16)
        high = np.flatnonzero(~np.isfinite(arrays["vectors"]).all(axis=1))
        if len(high):
            key = table.column(KEY)[int(high[0])].as_py()
            raise FirthError(
                "out_of_range",
                "The vector of {key!r} has numbers beyond 65,504, the most float16 holds; take float32.",
                key=key,
            )
        low = np.flatnonzero(~arrays["vectors"].any(axis=1) & matrix.any(axis=1))
        if len(low):
            key = table.column(KEY)[int(low[0])].as_py()
            raise FirthError(
                "out_of_range",
                "The vector of {key!r} has numbers below 3e-8 only, zeros in float16; take float32.",
                key=key,
            )
    lengths = row_lengths(arrays["vectors"])
    check_lengths(lengths, space.metric, lambda row: repr(table.column(KEY)[row].as_py()))
    if space.metric == "cosine":
        with np.errstate(divide="ignore"):
            arrays["scales"] = np.where(lengths > 0, 1 / lengths, np.nan).astype(np.float32)
    if sketched(space):
        arrays |= quantize_rows(matrix)._asdict()
    hashes = key_hashes(table.column(KEY).to_pylist())
    order = np.argsort(hashes, kind="stable")
    arrays |= {"hashes": hashes[order], "hash_rows": order.astype(np.int64)}
    if TEXT not in table.column_names:
        return Segment(arrays, table)
    postings = make_postings(table.column(TEXT).to_pylist())
    return Segment(arrays | postings.arrays(), table, postings.terms)


def check_lengths(lengths: NDArray[np.float64], metric: str, named: Callable[[int], str]) -> None:
    """Refuses rows or queries so long that float32 cannot hold their squares, or so short that their cosine is lost."""
    odd = np.flatnonzero((lengths > LONGEST) | ((metric == "cosine") & (lengths > 0) & (lengths < SHORTEST)))
    if len(odd):
        raise FirthError(
            "out_of_range",
            "The vector of {key} has the length {length:.3g}; an index takes lengths up to {longest:g}, under cosine "
            "from {shortest:g} on (or 0). Scale the vectors.",
            key=named(int(odd[0])),
            length=float(lengths[odd[0]]),
            longest=LONGEST,
            shortest=SHORTEST,
        )


def sketched(space: Space) -> bool:
    """Narrow rows are read about as quickly as a sketch with its five arrays."""
    least = {"float32": SKETCHED, "int8": 1}.get(space.numbers, WIDEST + 1)
    return least <= space.dim <= WIDEST


def merge_segments(segments: Sequence[Segment], keep: Sequence[NDArray[np.bool_] | None]) -> Segment:
    """One segment of the rows of several, less those not to keep; large arrays are not made before they are written."""
    counts = [len(each) if kept is None else int(kept.sum()) for each, kept in zip(segments, keep, strict=True)]
    arrays: dict[str, Any] = {}
    for name in ("vectors", *QuantizedRows._fields, "scales"):
        if all(name in each.arrays for each in segments):
            arrays[name] = stacked([each.array(name) for each in segments], keep, sum(counts))
    table = pyarrow.concat_tables(
        [each.table if kept is None else each.table.filter(kept) for each, kept in zip(segments, keep, strict=True)]
    )
    hashes, rows = merged_hashes(segments, keep, counts)
    arrays |= {"hashes": hashes, "hash_rows": rows}
    if segments[0].terms is None:
        return Segment(arrays, table)
    postings = merge_postings([(each.words, each.terms) for each in segments], keep)
    return Segment(arrays | postings.arrays(), table, postings.terms)


def stacked(arrays: Sequence[NDArray[Any]], keep: Sequence[NDArray[np.bool_] | None], rows: int) -> Stacked:
    def pieces() -> Iterator[NDArray[Any]]:
        for array, kept in zip(arrays, keep, strict=True):
            for first in range(0, len(array), BLOCK):
                block = array[first : first + BLOCK]
                yield block if kept is None else block[kept[first : first + BLOCK]]

    return Stacked(arrays[0].dtype, (rows, *arrays[0].shape[1:]), pieces)


def merged_hashes(
    segments: Sequence[Segment], keep: Sequence[NDArray[np.bool_] | None], counts: Sequence[int]
) -> tuple[NDArray[np.uint64], Positions]:
    hashes, rows = [], []
    for each, kept, first in zip(segments, keep, np.cumsum([0, *counts]), strict=False):
        own, own_rows = each.array("hashes"), each.array("hash_rows")
        if kept is not None:
            stays = kept[own_rows]
            own, own_rows = own[stays], (np.cumsum(kept) - 1)[own_rows[stays]]
        hashes.append(own)
        rows.append(own_rows + first)
    all_hashes, all_rows = np.concatenate(hashes), np.concatenate(rows)
    order = np.argsort(all_hashes, kind="stable")
    return all_hashes[order], all_rows[order]


def in_memory(segment: Segment) -> Segment:
    """The same with its arrays made."""
    arrays = dict(segment.arrays)
    for name, array in arrays.items():
        if isinstance(array, Stacked):
            whole = list(array.pieces())
            arrays[name] = np.concatenate(whole) if whole else np.zeros(array.shape, array.dtype)
    return Segment(arrays, segment.table, segment.terms)
