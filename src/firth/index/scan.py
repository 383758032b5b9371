"""Exact search of segments: every row is looked at, or every row of a list."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firth.core.vectors import Matrix
from firth.index.segment import Positions, Segment, Space
from firth.index.snapshot import Snapshot
from firth.kernels.search import SearchResult, search_rows


def scan(state: Snapshot, listed: Sequence[Positions | None], queries: Matrix, k: int, threads: int) -> SearchResult:
    """The `k` best rows of all segments for each query, as positions: rows counted through all segments.

    Scores are such that larger is nearer: minus the squared distance for Euclidean. `queries` are of length 1 for
    cosine.
    """
    found = [none(len(queries))]
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        own = scan_segment(state.space, segment, rows, queries, k, threads)
        found.append(SearchResult(own.scores, np.where(own.rows < 0, -1, own.rows + first) if first else own.rows))
    return best(found, k)


def scan_segment(
    space: Space, segment: Segment, rows: Positions | None, queries: Matrix, k: int, threads: int
) -> SearchResult:
    count = len(segment) if rows is None else len(rows)
    if not count:
        return none(len(queries))
    return search_rows(
        segment.array("vectors"),
        queries,
        min(k, count),
        scales=segment.array("scales") if space.metric == "cosine" else None,
        listed=rows,
        squared=space.metric == "euclidean",
        sketch=segment.sketch,
        threads=threads,
    )


def best(parts: Sequence[SearchResult], k: int) -> SearchResult:
    """The best `k` of several findings, each best first; of equal scores the lower row."""
    parts = [part for part in parts if part.rows.shape[1]] or parts[:1]
    if len(parts) == 1:
        return SearchResult(parts[0].scores[:, :k], parts[0].rows[:, :k])
    scores = np.concatenate([part.scores for part in parts], axis=1)
    rows = np.concatenate([part.rows for part in parts], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return SearchResult(np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1))


def none(queries: int) -> SearchResult:
    return SearchResult(np.zeros((queries, 0), dtype=np.float32), np.zeros((queries, 0), dtype=np.int64))
