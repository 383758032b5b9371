"""Exact search of segments, over all rows or a list of rows."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from firth.core.vectors import Matrix
from firth.index.segment import Positions, Segment, Space
from firth.index.snapshot import Snapshot
from firth.kernels.search import SearchResult, search_rows


def scan(state: Snapshot, listed: Sequence[Positions | None], queries: Matrix, k: int, threads: int) -> SearchResult:
    """Return the positions and scores of the `k` best rows of all segments for each query.

    A position counts rows across all segments. Larger scores are nearer: for euclidean, the score is minus the squared
    distance. For cosine, `queries` must be unit vectors.
    """
    results = [empty_result(len(queries))]
    for first, segment, rows in zip(state.starts.tolist(), state.segments, listed, strict=False):
        result = scan_segment(state.space, segment, rows, queries, k, threads)
        results.append(
            SearchResult(result.scores, np.where(result.rows < 0, -1, result.rows + first) if first else result.rows)
        )
    return merge_results(results, k)


def scan_segment(
    space: Space, segment: Segment, rows: Positions | None, queries: Matrix, k: int, threads: int
) -> SearchResult:
    """Return the best rows of one segment, as row numbers of that segment."""
    count = len(segment) if rows is None else len(rows)
    if not count:
        return empty_result(len(queries))
    return search_rows(
        segment.array("vectors"),
        queries,
        min(k, count),
        scales=segment.array("scales") if space.metric == "cosine" else None,
        listed=rows,
        squared=space.metric == "euclidean",
        quantized=segment.quantized,
        threads=threads,
    )


def merge_results(parts: Sequence[SearchResult], k: int) -> SearchResult:
    """Merge several sorted results into the best `k`; equal scores are ordered by row."""
    parts = [part for part in parts if part.rows.shape[1]] or parts[:1]
    if len(parts) == 1:
        return SearchResult(parts[0].scores[:, :k], parts[0].rows[:, :k])
    scores = np.concatenate([part.scores for part in parts], axis=1)
    rows = np.concatenate([part.rows for part in parts], axis=1)
    order = np.lexsort((rows, -scores), axis=1)[:, :k]
    return SearchResult(np.take_along_axis(scores, order, axis=1), np.take_along_axis(rows, order, axis=1))


def empty_result(queries: int) -> SearchResult:
    """Return a result without rows."""
    return SearchResult(np.zeros((queries, 0), dtype=np.float32), np.zeros((queries, 0), dtype=np.int64))
