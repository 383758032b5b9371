"""Exact search of segments: every row is looked at, or every row of a list."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.vectors import Matrix
from firth.index.segment import Positions, Segment, Space
from firth.index.store import Store
from firth.kernels.search import Codes, Found, search_codes, search_rows

CANDIDATES = 4  # times k, at least 32 more: rows that byte codes choose and full numbers judge
AT_ONCE = 64  # queries whose candidates are judged together


def scan(store: Store, listed: Sequence[Positions | None], queries: Matrix, k: int, threads: int) -> Found:
    """The `k` best rows of all segments for each query, as positions: rows counted through all segments.

    Scores are such that larger is nearer: minus the squared distance for Euclidean. `queries` are of length 1 for
    cosine.
    """
    found = [none(len(queries))]
    for first, segment, rows in zip(store.starts.tolist(), store.segments, listed, strict=False):
        own = scan_segment(store.space, segment, rows, queries, k, threads)
        found.append(Found(own.scores, np.where(own.rows < 0, -1, own.rows + first)))
    return best(found, k)


def scan_segment(
    space: Space, segment: Segment, rows: Positions | None, queries: Matrix, k: int, threads: int
) -> Found:
    count = len(segment) if rows is None else len(rows)
    if not count:
        return none(len(queries))
    k = min(k, count)
    scales = segment.array("scales") if space.metric == "cosine" else None
    if space.numbers != "int8":
        squared = space.metric == "euclidean"
        vectors = segment.array("vectors")
        return search_rows(vectors, queries, k, scales=scales, listed=rows, squared=squared, threads=threads)
    codes = Codes(*(segment.array(name) for name in ("codes", "steps", "sums")))
    wide = min(count, max(CANDIDATES * k, k + 32))
    steps = codes.scales if scales is None else codes.scales * scales
    # −|x − q|² / 2 = x·q − |x|² / 2, less what is the same for all rows
    offsets = segment.array("offsets") if space.metric == "euclidean" else None
    found = search_codes(codes, queries, wide, scales=steps, offsets=offsets, listed=rows, threads=threads)
    return best([Found(judged(space, segment, queries, found.rows), found.rows)], k)


def judged(space: Space, segment: Segment, queries: Matrix, rows: Positions) -> Matrix:
    """Scores of rows (queries × candidates) by the full numbers; rows of −1 get −∞."""
    vectors = segment.array("vectors")
    scores = np.empty(rows.shape, dtype=np.float32)
    for first in range(0, len(queries), AT_ONCE):
        part = slice(first, first + AT_ONCE)
        scores[part] = nearness(space.metric, vectors[np.maximum(rows[part], 0)], queries[part])
    if space.metric == "cosine":
        scores *= segment.array("scales")[np.maximum(rows, 0)]
    scores[rows < 0] = -np.inf
    return scores


def nearness(metric: str, rows: NDArray[Any], queries: Matrix) -> Matrix:
    """queries × candidates, from queries × candidates × dim."""
    if metric == "euclidean":
        off = rows - queries[:, None]
        return np.asarray(-np.einsum("qcd,qcd->qc", off, off), dtype=np.float32)
    found: Matrix = (rows.astype(np.float32, copy=False) @ queries[:, :, None])[:, :, 0]
    return found


def best(parts: Sequence[Found], k: int) -> Found:
    """The best `k` of several findings; of equal scores the lower row."""
    scores = np.concatenate([part.scores for part in parts], axis=1)
    rows = np.concatenate([part.rows for part in parts], axis=1)
    if len(parts) == 2 and not parts[0].rows.shape[1]:  # one segment: in order already
        return Found(scores[:, :k], rows[:, :k])
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return Found(np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1))


def none(queries: int) -> Found:
    return Found(np.zeros((queries, 0), dtype=np.float32), np.zeros((queries, 0), dtype=np.int64))
