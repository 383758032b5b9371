"""Streams of token ids between the passes over a corpus: chunks on disk, with a marker after each document."""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.storage import saying_where
from firth.kernels import text as kernel

IDS, STARTS = "ids.i32", "starts.i64"
PIECE = 1 << 17  # ids at a time; the arrays of larger ones are not reused by malloc

Ids = NDArray[np.int32]


class Piece(NamedTuple):
    """A chunk of ids, with DOCUMENT_END after each document, and the map to vocabulary ids (−1: dropped)."""

    ids: Ids
    map: Ids


class Stream(NamedTuple):
    """A corpus as ids of `words`; the first `fixed` words keep their ids."""

    words: Sequence[str]
    counts: NDArray[np.int64]
    pieces: Callable[[], Iterator[Piece]]
    fixed: int = 0


def flat_pieces(ids: Ids, starts: NDArray[np.int64], map: Ids) -> Callable[[], Iterator[Piece]]:
    """Return a function that iterates over flat ids and document starts as chunks."""

    def iterate() -> Iterator[Piece]:
        for begin in range(0, max(len(ids), 1), PIECE):
            end = min(begin + PIECE, len(ids))
            # An end at `begin` belongs to the previous chunk, except for empty documents at the very start.
            first = 1 if begin == 0 else int(np.searchsorted(starts, begin, side="right"))
            ends = starts[first : int(np.searchsorted(starts, end, side="right"))]
            yield Piece(np.insert(ids[begin:end], ends - begin, np.int32(kernel.DOCUMENT_END)), map)

    return iterate


def file_pieces(path: Path, words: int) -> Callable[[], Iterator[Piece]]:
    """Return a function that iterates over a file of ids with document ends as chunks."""

    def iterate() -> Iterator[Piece]:
        identity = np.arange(words, dtype=np.int32)
        total = path.stat().st_size // 4
        for begin in range(0, total, PIECE):
            shape = (min(PIECE, total - begin),)
            yield Piece(np.memmap(path, dtype=np.int32, mode="r", offset=begin * 4, shape=shape), identity)

    return iterate


def select_vocabulary(stream: Stream, min_count: int, max_size: int | None) -> kernel.Merged:
    """Select the vocabulary of a stream; maps[0] of the result maps the stream's ids to vocabulary ids."""
    words, counts, fixed = stream.words, stream.counts, stream.fixed
    frequent_ids = (np.flatnonzero(counts[fixed:] >= max(min_count, 1)) + fixed).tolist()
    negative_counts = (-counts).tolist()
    order = sorted(frequent_ids, key=lambda word: (negative_counts[word], words[word].encode("utf-8", "surrogatepass")))
    if max_size:
        del order[max(0, max_size - fixed) :]
    id_map = np.full(len(words), -1, dtype=np.int32)
    id_map[:fixed] = np.arange(fixed)
    id_map[order] = np.arange(fixed, fixed + len(order))
    selected_ids = np.array([*range(fixed), *order], dtype=np.int64)
    types, tokens = int(np.count_nonzero(counts[fixed:])) + fixed, int(counts.sum())
    return kernel.Merged(
        words=[words[id] for id in selected_ids],
        counts=counts[selected_ids],
        maps=[id_map],
        types=types,
        tokens=tokens,
        top_count=int(counts.max(initial=0)),
        dropped_types=types - len(selected_ids),
        dropped_tokens=tokens - int(counts[selected_ids].sum()),
    )


def remapped_pieces(stream: Stream, map: Ids) -> Iterator[Piece]:
    """Yield the chunks of a stream with `map` applied after their own maps."""
    previous_map: Ids | None = None
    for piece in stream.pieces():
        if piece.map is not previous_map:
            previous_map = piece.map
            composed = np.where(previous_map >= 0, map[previous_map], np.int32(-1)).astype(np.int32)
        yield Piece(piece.ids, composed)


def write_final(pieces: Iterable[Piece], folder: Path, threads: int) -> None:
    """Run the second pass: translate provisional to final ids, drop words, and write the document starts.

    If the chunks come from the output file itself, it is overwritten in place, which saves a second copy on disk. The
    write position never overtakes the read position, because there are at most as many final ids.
    """

    def translate_piece(piece: Piece) -> tuple[Ids, NDArray[np.int64]]:
        ids, ends = np.empty(len(piece.ids), dtype=np.int32), np.empty(len(piece.ids), dtype=np.int64)
        count, documents = kernel.translate(piece.ids, piece.map, ids, ends)
        return ids[:count], ends[:documents]

    mode = "r+b" if (folder / IDS).exists() else "wb"
    with saying_where(folder), (folder / IDS).open(mode, buffering=0) as ids, (folder / STARTS).open("wb") as starts:
        starts.write(np.zeros(1, dtype=np.int64).tobytes())
        written = 0
        with ThreadPoolExecutor(threads) as pool:
            for part, ends in map_ahead(pool, translate_piece, pieces, threads + 1):
                write_all(ids, part)
                starts.write((ends + written).tobytes())
                written += len(part)
        ids.truncate()


def map_ahead(
    pool: ThreadPoolExecutor,
    work: Callable[[Piece], tuple[Ids, NDArray[np.int64]]],
    items: Iterable[Piece],
    max_pending: int,
) -> Iterator[tuple[Ids, NDArray[np.int64]]]:
    """Yield work(item) for each item in order, with at most `max_pending` items in progress."""
    pending: deque[Future[tuple[Ids, NDArray[np.int64]]]] = deque()
    for item in items:
        pending.append(pool.submit(work, item))
        if len(pending) >= max_pending:
            yield pending.popleft().result()
    while pending:
        yield pending.popleft().result()


def write_all(file: Any, values: NDArray[Any]) -> None:
    """Write a whole array to an unbuffered file, whose `write` may write only a part of it."""
    view = memoryview(values).cast("B")  # type: ignore[arg-type]
    while view:
        view = view[file.write(view) :]
