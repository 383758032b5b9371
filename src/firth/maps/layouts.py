"""2-D layouts of vectors: PCA (Pearson 1901), t-SNE (van der Maaten & Hinton 2008), UMAP (McInnes et al. 2018).

t-SNE and UMAP are computed by the packages openTSNE and umap-learn. Both get the exact nearest neighbors from the
native scan and are initialized with PCA, which preserves the global structure (Kobak & Linderman 2021) and makes the
result a function of the seed.
"""

from __future__ import annotations

import importlib
import importlib.util
import warnings
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.notebook import ShowsRows
from firth.core.run import Run
from firth.core.vectors import Matrix, Vectors, row_lengths, unit_rows
from firth.kernels.search import search_rows
from firth.maps.pca import pca
from firth.maps.preserved import Preservation, preservation

METHODS = ("pca", "tsne", "umap")
METRICS = ("cosine", "euclidean")
NEIGHBORS = {"tsne": 30, "umap": 15}  # the defaults of the packages
MIN_POINTS = 4  # with fewer points, all layouts are equally good
BLOCK = 4096  # rows whose neighbors are searched together
THREADED_FROM = 20_000  # points from which threads make t-SNE faster
ITERATIONS = 750  # of t-SNE: 250 with exaggeration and 500 without, openTSNE's default


@dataclass(frozen=True, eq=False)
class Layout(ShowsRows):
    """The 2-D coordinates of keys, how they were computed, and how well they preserve neighborhoods."""

    keys: Sequence[str]
    xy: Matrix  # keys × 2
    method: str
    metric: str
    neighbors: int  # the perplexity of t-SNE; 0 for PCA, which uses no neighbors
    seed: int
    score: Preservation
    vectors: str  # fingerprint of the vectors

    def __repr__(self) -> str:
        return f"{self.method}: {len(self.keys):,} points, {self.score}"

    def _rows_shown(self) -> tuple[list[str], Iterator[tuple[Any, ...]]]:
        return ["key", "x", "y"], ((key, *xy) for key, xy in zip(self.keys, self.xy.tolist(), strict=True))


class NearestRows(NamedTuple):
    """The nearest neighbors of each row, nearest first, without the row itself."""

    rows: NDArray[np.int64]  # rows × k
    distances: NDArray[np.float64]


def layout(
    vectors: Vectors, method: str = "pca", *, metric: str = "cosine", neighbors: int | None = None, run: Run = Run()
) -> Layout:
    """Compute a 2-D layout of vectors. The same seed gives the same coordinates.

    Distances are between unit vectors ("cosine") or between the vectors as they are ("euclidean"). `neighbors` is
    UMAP's n_neighbors (default 15) or t-SNE's perplexity (default 30); it is reduced if there are few points.
    """
    check(vectors, method, metric, neighbors)
    n_neighbors = neighbor_count(method, len(vectors), neighbors)
    rows = euclidean_rows(vectors, metric)
    run.report.begin(
        f"Computing the layout of {len(rows):,} points ({method})", ITERATIONS if method == "tsne" else 0, "iterations"
    )
    try:
        initial = pca(rows).points
        coordinates = (
            initial if method == "pca" else (tsne if method == "tsne" else umap)(rows, initial, n_neighbors, run)
        )
        xy: Matrix = np.ascontiguousarray(coordinates, dtype=np.float32)
        score = preservation(rows, xy, seed=run.seed, threads=run.cores)
    finally:
        run.report.end()
    return Layout(vectors.keys, xy, method, metric, n_neighbors, run.seed, score, vectors.fingerprint())


def check(vectors: Vectors, method: str, metric: str, neighbors: int | None) -> None:
    """Validate the arguments of `layout` before any work."""
    check_choice("method", method, METHODS)
    check_choice("metric", metric, METRICS)
    if len(vectors) < MIN_POINTS:
        raise FirthError(
            "too_few", "A map needs at least {least} points; got {got}.", least=MIN_POINTS, got=len(vectors)
        )
    if vectors.dim == 1 and metric == "cosine":
        raise FirthError(
            "conflicting_options",
            "1-dimensional vectors differ only in sign under cosine. Use {metric}.",
            metric="metric='euclidean'",
        )
    if method == "pca" and neighbors is not None:
        raise FirthError(
            "conflicting_options",
            "PCA does not use neighbors; got neighbors={neighbors}. Omit it, or use method tsne or umap.",
            neighbors=neighbors,
        )
    if neighbors is not None and neighbors < 2:
        raise FirthError("invalid_value", "{option} must be at least 2; got {got}.", option="neighbors", got=neighbors)


def neighbor_count(method: str, points: int, neighbors: int | None) -> int:
    """Return the number of neighbors: as given or the default, but no more than the number of points allows."""
    if method == "pca":
        return 0
    largest = points - 1 if method == "umap" else (points - 1) // 3  # t-SNE uses 3 × perplexity neighbors
    return min(neighbors or NEIGHBORS[method], largest)


def euclidean_rows(vectors: Vectors, metric: str) -> Matrix:
    """Return rows whose Euclidean distances are those of the metric, scaled so that float32 can square them."""
    lengths = row_lengths(vectors.matrix)
    if not np.isfinite(lengths).all():
        key = vectors.keys[int(np.argmin(np.isfinite(lengths)))]
        raise FirthError(
            "non_finite", "A map needs finite vectors; that of {key!r} has NaN, infinity or too large values.", key=key
        )
    rows = unit_rows(vectors.matrix) if metric == "cosine" else vectors.matrix
    with np.errstate(over="ignore"):  # an infinite difference is a difference
        is_constant = np.abs(rows - rows[0]).max() <= 1e-6 * np.abs(rows).max()
    if is_constant:
        detail = "have the same direction" if metric == "cosine" else "are equal"
        raise FirthError(
            "no_variation",
            "A map needs vectors that differ; all {n_rows:,} vectors {detail}.",
            n_rows=len(rows),
            detail=detail,
        )
    if metric == "cosine":
        return rows
    centered = rows - rows.mean(axis=0, dtype=np.float64)
    return np.asarray(centered / np.abs(centered).max(), dtype=np.float32)


def nearest(rows: Matrix, k: int, threads: int) -> NearestRows:
    """Return the k nearest neighbors of each row by brute force, which is faster than building a graph for up to a few
    hundred thousand rows."""
    neighbor_rows = np.empty((len(rows), k), dtype=np.int64)
    for first in range(0, len(rows), BLOCK):
        block = rows[first : first + BLOCK]
        own_rows = np.arange(first, first + len(block))[:, None]
        nearest_rows = search_rows(rows, block, k + 1, squared=True, threads=threads).rows
        # Moves the row itself to the end: among duplicates it may be at any rank.
        without_self = np.argsort(nearest_rows == own_rows, axis=1, kind="stable")[:, :k]
        neighbor_rows[first : first + len(block)] = np.take_along_axis(nearest_rows, without_self, axis=1)
    distances = np.empty(neighbor_rows.shape)
    for first in range(0, len(rows), BLOCK // 8):
        part = slice(first, first + BLOCK // 8)
        distances[part] = np.sqrt(np.square(rows[neighbor_rows[part]] - rows[part, None]).sum(axis=2))
    return NearestRows(neighbor_rows, distances)


def tsne(rows: Matrix, initial: NDArray[np.float64], perplexity: int, run: Run) -> NDArray[Any]:
    """Compute a t-SNE layout, initialized with PCA."""
    package = load_package("openTSNE", "openTSNE")
    nearest_neighbors = nearest(rows, 3 * perplexity, run.cores)
    threads = run.cores if len(rows) >= THREADED_FROM else 1
    knn_index = package.nearest_neighbors.PrecomputedNeighbors(nearest_neighbors.rows, nearest_neighbors.distances)
    affinities = package.affinity.PerplexityBasedNN(perplexity=perplexity, knn_index=knn_index, n_jobs=threads)
    done = 0

    def report_progress(*_: Any) -> None:
        nonlocal done
        done += 50
        run.report.step(done)

    embedding = package.TSNE(
        n_jobs=threads, random_state=run.seed % 2**32, callbacks=report_progress, callbacks_every_iters=50
    )
    # Small, with a little noise: rows on a line would stay on it.
    start = 1e-4 * initial / initial[:, 0].std() + np.random.default_rng(run.seed).normal(
        scale=1e-6, size=initial.shape
    )
    return np.asarray(embedding.fit(affinities=affinities, initialization=start))


def umap(rows: Matrix, initial: NDArray[np.float64], neighbors: int, run: Run) -> NDArray[Any]:
    """Compute a UMAP layout, initialized with PCA."""
    package = load_package("umap", "umap-learn")
    nearest_neighbors = nearest(rows, neighbors, run.cores)
    own_rows = np.arange(len(rows))[:, None]  # UMAP counts the row itself as its first neighbor
    knn = (
        np.hstack([own_rows, nearest_neighbors.rows]).astype(np.int32),
        np.hstack([np.zeros((len(rows), 1)), nearest_neighbors.distances]).astype(np.float32),
    )
    start = 10 * initial / np.abs(initial).max() + np.random.default_rng(run.seed).normal(
        scale=1e-4, size=initial.shape
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # UMAP warns that new points cannot be transformed, which is not needed
        embedding = package.UMAP(
            n_neighbors=neighbors + 1,
            precomputed_knn=knn,
            force_approximation_algorithm=True,  # use the given neighbors even for few points
            init=start.astype(np.float32),
            random_state=run.seed % 2**32,
            n_jobs=1,  # with several threads, the result does not depend on the seed alone
        )
        return np.asarray(embedding.fit_transform(rows))


def load_package(module: str, package: str) -> Any:
    """Import a package of the extra `maps`."""
    if importlib.util.find_spec(module) is None:
        raise missing_package("This map needs", package, "maps")
    return importlib.import_module(module)


def first_rows(vectors: Vectors, count: int | None) -> Vectors:
    """Return the first `count` rows, which are the most frequent words in a table of words."""
    if count is not None and count < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="restrict", got=count)
    if count is None or count >= len(vectors):
        return vectors
    return Vectors(vectors.keys[:count], vectors.matrix[:count])
