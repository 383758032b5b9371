"""Product quantisation (Jégou et al. 2011) as fastText does it (Joulin et al. 2016): a row in dim / width bytes.

The columns are cut into parts of `width` (the last may be narrower). In each part every row is replaced by the nearest
of 256 centroids, found by k-means; a row's code is the number of its centroid in each part, one byte each. With norms,
rows are first divided by their length, and the lengths are quantised in the same way, as a column of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

CENTROIDS = 256  # a code is one byte
ITERATIONS = 25  # of k-means
SAMPLE = 65536  # rows that k-means looks at
BLOCK = 65536  # rows coded at a time

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class ProductCodes:
    """A matrix in codes. `centroids` holds part after part, and in each part its 256 centroids, as .ftz files do."""

    codes: NDArray[np.uint8]  # rows × parts
    centroids: NDArray[np.float32]  # dim · 256
    dim: int
    width: int
    norm_codes: NDArray[np.uint8] | None = None  # one a row
    norm_centroids: NDArray[np.float32] | None = None  # 256

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.codes), self.dim

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.integer] | slice) -> NDArray[np.float32]:
        """Some rows as numbers."""
        codes = self.codes[rows]
        found = np.empty((len(codes), self.dim), dtype=np.float32)
        for part in range(codes.shape[1]):
            first, last = part * self.width, min((part + 1) * self.width, self.dim)
            book = self.centroids[first * CENTROIDS : last * CENTROIDS].reshape(CENTROIDS, last - first)
            found[:, first:last] = book[codes[:, part]]
        if self.norm_codes is not None and self.norm_centroids is not None:
            found *= self.norm_centroids[self.norm_codes[rows]][:, None]
        return found

    def rows(self, rows: NDArray[np.integer]) -> ProductCodes:
        """Some rows, still in codes."""
        norm_codes = None if self.norm_codes is None else self.norm_codes[rows]
        return replace(self, codes=self.codes[rows], norm_codes=norm_codes)

    def dense(self) -> NDArray[np.float32]:
        """All rows as numbers."""
        return self.take(slice(None))


def parts_of(dim: int, width: int) -> int:
    return -(-dim // width)


def quantize(matrix: Numbers, width: int = 2, norms: bool = False, seed: int = 0, threads: int = 1) -> ProductCodes:
    """A matrix in codes: dim / width bytes a row, and one more with `norms`."""
    lengths = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) if norms else None
    codes, centroids = _coded(matrix, lengths, width, seed, threads)
    dim = matrix.shape[1]
    if lengths is None:
        return ProductCodes(codes, centroids, dim, width)
    norm_codes, norm_centroids = _coded(lengths[:, None], None, 1, seed, threads)
    return ProductCodes(codes, centroids, dim, width, norm_codes[:, 0], norm_centroids)


def _coded(
    matrix: Numbers, lengths: Numbers | None, width: int, seed: int, threads: int
) -> tuple[NDArray[np.uint8], Numbers]:
    """Codes and centroids of a matrix, its rows divided by `lengths` (zero rows stay zero)."""

    def rows(which: NDArray[np.int64] | slice) -> Numbers:
        found = np.ascontiguousarray(matrix[which], dtype=np.float32)
        if lengths is not None:
            found = np.divide(found, np.where(lengths[which] > 0, lengths[which], 1)[:, None], dtype=np.float32)
        return found

    count, dim = matrix.shape
    sample = np.random.default_rng(seed).permutation(count)[:SAMPLE]
    centroids = np.zeros(dim * CENTROIDS, dtype=np.float32)
    codes = np.zeros((count, parts_of(dim, width)), dtype=np.uint8)
    if count:
        _native.find_centroids(rows(sample), width, ITERATIONS, centroids, threads)
    for first in range(0, count, BLOCK):
        block = slice(first, first + BLOCK)
        _native.assign_codes(rows(block), width, centroids, codes[block], threads)
    return codes, centroids


def assign_twin(matrix: Numbers, centroids: Numbers, width: int) -> NDArray[np.uint8]:
    """The nearest centroid of each row in each part, in NumPy."""
    codes = np.zeros((len(matrix), parts_of(matrix.shape[1], width)), dtype=np.uint8)
    for part in range(codes.shape[1]):
        points = matrix[:, part * width : (part + 1) * width]
        first = part * width * CENTROIDS
        book = centroids[first : first + points.shape[1] * CENTROIDS].reshape(CENTROIDS, -1)
        codes[:, part] = np.argmin(((points[:, None] - book[None]) ** 2).sum(axis=2), axis=1)
    return codes


def centroids_twin(sample: Numbers, width: int, iterations: int = ITERATIONS) -> Numbers:
    """k-means for each part, from the first 256 rows on; a centroid without points goes to the point furthest from its
    own."""
    centroids: list[Numbers] = []
    for first in range(0, sample.shape[1], width):
        points = np.ascontiguousarray(sample[:, first : first + width])
        book = points[np.arange(CENTROIDS) % len(points)]
        for _ in range(iterations):
            codes = assign_twin(points, book.ravel(), points.shape[1])[:, 0]
            distances = ((points - book[codes]) ** 2).sum(axis=1)
            for centroid in range(CENTROIDS):
                if (codes == centroid).any():
                    book[centroid] = points[codes == centroid].mean(axis=0, dtype=np.float64)
            for centroid in np.setdiff1d(np.arange(CENTROIDS), codes):
                if not distances.max() > 0:
                    break
                book[centroid] = points[distances.argmax()]
                distances[distances.argmax()] = 0
        centroids.append(book.ravel())
    return np.concatenate(centroids)
