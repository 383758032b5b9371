"""Vectors placed on a plane: PCA (Pearson 1901), t-SNE (van der Maaten & Hinton 2008), UMAP (McInnes et al. 2018).

t-SNE and UMAP come from the packages openTSNE and umap-learn. Both are given the true nearest neighbours, found by
the native scan, and begin from the principal components, which keeps the large shape of the data (Kobak & Linderman
2021) and makes the result a function of the seed.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.run import Run
from firth.core.vectors import Matrix, Vectors, row_lengths, unit_rows
from firth.kernels.search import search_rows
from firth.maps.pca import pca
from firth.maps.preserved import Preservation, preservation

METHODS = ("pca", "tsne", "umap")
METRICS = ("cosine", "euclidean")
NEIGHBORS = {"tsne": 30, "umap": 15}  # what the packages take, too
LEAST = 4  # points: with fewer every map is as good as any other
BLOCK = 4096  # rows whose neighbours are searched together
MANY = 20_000  # points from which t-SNE's threads do more than wait for each other
ITERATIONS = 750  # of t-SNE: 250 exaggerated and 500 plain, openTSNE's own


@dataclass(frozen=True, eq=False)
class Layout:
    """Where each key lies, how that was found, and how much of the neighbourhoods it keeps."""

    keys: Sequence[str]
    xy: Matrix  # keys × 2
    method: str
    metric: str
    neighbors: int  # of t-SNE its perplexity; 0 for PCA, which looks at no neighbours
    seed: int
    score: Preservation
    vectors: str  # fingerprint of what was placed

    def __repr__(self) -> str:
        return f"{self.method}: {len(self.keys):,} points, {self.score}"


class Near(NamedTuple):
    """The nearest other rows of each row, nearest first."""

    rows: NDArray[np.int64]  # rows × k
    distances: NDArray[np.float64]


def layout(
    vectors: Vectors, method: str = "pca", *, metric: str = "cosine", neighbors: int | None = None, run: Run = Run()
) -> Layout:
    """All rows of `vectors` on a plane, near ones near each other. The same seed gives the same numbers.

    Distances are those between unit vectors ("cosine") or between the vectors as they are ("euclidean"). `neighbors`:
    how many count, UMAP's n_neighbors (15) and t-SNE's perplexity (30); fewer where there are few points.
    """
    check(vectors, method, metric, neighbors)
    count = reach(method, len(vectors), neighbors)
    rows = comparable(vectors, metric)
    run.report.begin(f"Placing {len(rows):,} points ({method})", ITERATIONS if method == "tsne" else 0, "iterations")
    try:
        flat = pca(rows).points
        placed = flat if method == "pca" else (tsne if method == "tsne" else umap)(rows, flat, count, run)
        xy: Matrix = np.ascontiguousarray(placed, dtype=np.float32)
        score = preservation(rows, xy, seed=run.seed, threads=run.cores)
    finally:
        run.report.end()
    return Layout(vectors.keys, xy, method, metric, count, run.seed, score, vectors.fingerprint())


def check(vectors: Vectors, method: str, metric: str, neighbors: int | None) -> None:
    """Refuses what can't be placed, before any work."""
    if method not in METHODS:
        raise FirthError(
            "invalid_value", "A map's method is one of {choices}; got {got!r}.", choices=", ".join(METHODS), got=method
        )
    if metric not in METRICS:
        raise FirthError(
            "invalid_value", "A map's metric is one of {choices}; got {got!r}.", choices=", ".join(METRICS), got=metric
        )
    if len(vectors) < LEAST:
        raise FirthError("too_few", "A map needs at least {least} points; got {got}.", least=LEAST, got=len(vectors))
    if vectors.dim == 1 and metric == "cosine":
        raise FirthError(
            "conflicting_options",
            "Vectors of one number differ only in sign under cosine; the metric euclidean places them.",
        )
    if method == "pca" and neighbors is not None:
        raise FirthError(
            "conflicting_options", "PCA looks at no neighbours; leave neighbors out, or choose tsne or umap."
        )
    if neighbors is not None and neighbors < 2:
        raise FirthError("invalid_value", "{option} must be at least 2; got {got}.", option="neighbors", got=neighbors)


def reach(method: str, points: int, neighbors: int | None) -> int:
    """How many neighbours count: as many as asked or usual, fewer where there are few points."""
    if method == "pca":
        return 0
    most = points - 1 if method == "umap" else (points - 1) // 3  # t-SNE looks at 3 × its perplexity
    return min(neighbors or NEIGHBORS[method], most)


def comparable(vectors: Vectors, metric: str) -> Matrix:
    """Rows whose Euclidean distances are those of the metric, in a range that single precision can square."""
    lengths = row_lengths(vectors.matrix)
    if not np.isfinite(lengths).all():
        key = vectors.keys[int(np.argmin(np.isfinite(lengths)))]
        raise FirthError(
            "non_finite", "A map needs finite numbers; the vector of {key!r} has others, or too large ones.", key=key
        )
    rows = unit_rows(vectors.matrix) if metric == "cosine" else vectors.matrix
    with np.errstate(over="ignore"):  # infinitely far apart is apart
        alike = np.abs(rows - rows[0]).max() <= 1e-6 * np.abs(rows).max()
    if alike:
        what = "point the same way" if metric == "cosine" else "are the same"
        raise FirthError(
            "no_variation",
            "All {n_rows:,} vectors {detail}; there is nothing to tell apart on a map.",
            n_rows=len(rows),
            detail=what,
        )
    if metric == "cosine":
        return rows
    centred = rows - rows.mean(axis=0, dtype=np.float64)
    return np.asarray(centred / np.abs(centred).max(), dtype=np.float32)


def nearest(rows: Matrix, k: int, threads: int) -> Near:
    """By looking at every pair: up to some hundred thousand rows that is quicker than to build a graph."""
    found = np.empty((len(rows), k), dtype=np.int64)
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        own = np.arange(first, first + len(block))[:, None]
        near = search_rows(rows, block, k + 1, squared=True, threads=threads).rows
        others = np.argsort(near == own, axis=1, kind="stable")[:, :k]  # itself to the end: among equals it may be last
        found[first : first + len(block)] = np.take_along_axis(near, others, axis=1)
    distances = np.empty(found.shape)
    for first in range(0, len(rows), BLOCK // 8):
        part = slice(first, first + BLOCK // 8)
        distances[part] = np.sqrt(np.square(rows[found[part]] - rows[part, None]).sum(axis=2))
    return Near(found, distances)


def tsne(rows: Matrix, flat: NDArray[np.float64], perplexity: int, run: Run) -> NDArray[Any]:
    package = needed("openTSNE", "openTSNE")
    near = nearest(rows, 3 * perplexity, run.cores)
    threads = run.cores if len(rows) >= MANY else 1
    known = package.nearest_neighbors.PrecomputedNeighbors(near.rows, near.distances)
    affinities = package.affinity.PerplexityBasedNN(perplexity=perplexity, knn_index=known, n_jobs=threads)
    done = 0

    def told(*_: Any) -> None:
        nonlocal done
        done += 50
        run.report.step(done)

    placing = package.TSNE(n_jobs=threads, random_state=run.seed % 2**32, callbacks=told, callbacks_every_iters=50)
    # Small and not quite flat: rows on a line would stay on it for ever.
    start = 1e-4 * flat / flat[:, 0].std() + np.random.default_rng(run.seed).normal(scale=1e-6, size=flat.shape)
    return np.asarray(placing.fit(affinities=affinities, initialization=start))


def umap(rows: Matrix, flat: NDArray[np.float64], neighbors: int, run: Run) -> NDArray[Any]:
    package = needed("umap", "umap-learn")
    near = nearest(rows, neighbors, run.cores)
    itself = np.arange(len(rows))[:, None]  # it counts itself as the first
    known = (
        np.hstack([itself, near.rows]).astype(np.int32),
        np.hstack([np.zeros((len(rows), 1)), near.distances]).astype(np.float32),
    )
    start = 10 * flat / np.abs(flat).max() + np.random.default_rng(run.seed).normal(scale=1e-4, size=flat.shape)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # that new points can't be placed, which nobody asks for
        placing = package.UMAP(
            n_neighbors=neighbors + 1,
            precomputed_knn=known,
            force_approximation_algorithm=True,  # take the neighbours given, however few points
            init=start.astype(np.float32),
            random_state=run.seed % 2**32,
            n_jobs=1,  # its threads race: with several, the seed decides nothing
        )
        return np.asarray(placing.fit_transform(rows))


def needed(module: str, package: str) -> Any:
    """A package of the extra `maps`."""
    if importlib.util.find_spec(module) is None:
        raise missing_package("This map needs", package, "maps")
    return importlib.import_module(module)


def first_rows(vectors: Vectors, count: int | None) -> Vectors:
    """The first `count` of them, the most frequent where they are words."""
    if count is not None and count < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="restrict", got=count)
    if count is None or count >= len(vectors):
        return vectors
    return Vectors(vectors.keys[:count], vectors.matrix[:count])
