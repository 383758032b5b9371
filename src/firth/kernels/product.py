"""Product quantization (Jégou et al. 2011) as in fastText (Joulin et al. 2016): dim / width bytes per row.

The columns are split into parts of `width` (the last may be narrower). In each part every row is replaced by the
nearest of 256 centroids, trained by k-means. A row's code is the index of its centroid in each part, one byte each.
With norms, rows are first divided by their norm, and the norms are quantized separately, as a column of their own.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

CENTROIDS = 256  # a code is one byte
ITERATIONS = 25  # of k-means
SAMPLE = 65536  # rows that k-means is trained on
BLOCK = 65536  # rows quantized at a time

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class ProductCodes:
    """A quantized matrix. `centroids` holds the 256 centroids of each part, part after part, as .ftz files do."""

    codes: NDArray[np.uint8]  # rows × parts
    centroids: NDArray[np.float32]  # dim · 256
    dim: int
    width: int
    norm_codes: NDArray[np.uint8] | None = None  # one per row
    norm_centroids: NDArray[np.float32] | None = None  # 256

    @property
    def shape(self) -> tuple[int, int]:
        """The shape of the original matrix."""
        return len(self.codes), self.dim

    def __len__(self) -> int:
        return len(self.codes)

    def take(self, rows: NDArray[np.integer] | slice) -> NDArray[np.float32]:
        """Return some rows, decoded."""
        codes = self.codes[rows]
        decoded = np.empty((len(codes), self.dim), dtype=np.float32)
        for part in range(codes.shape[1]):
            first, last = part * self.width, min((part + 1) * self.width, self.dim)
            codebook = self.centroids[first * CENTROIDS : last * CENTROIDS].reshape(CENTROIDS, last - first)
            decoded[:, first:last] = codebook[codes[:, part]]
        if self.norm_codes is not None and self.norm_centroids is not None:
            decoded *= self.norm_centroids[self.norm_codes[rows]][:, None]
        return decoded

    def rows(self, rows: NDArray[np.integer]) -> ProductCodes:
        """Return some rows, still quantized."""
        norm_codes = None if self.norm_codes is None else self.norm_codes[rows]
        return replace(self, codes=self.codes[rows], norm_codes=norm_codes)

    def dense(self) -> NDArray[np.float32]:
        """Return all rows, decoded."""
        return self.take(slice(None))


def parts_of(dim: int, width: int) -> int:
    """Return the number of parts."""
    return -(-dim // width)


def quantize(matrix: FloatArray, width: int = 2, norms: bool = False, seed: int = 0, threads: int = 1) -> ProductCodes:
    """Return the quantized matrix: dim / width bytes per row, plus one with `norms`."""
    row_norms = np.sqrt(np.einsum("ij,ij->i", matrix, matrix)) if norms else None
    codes, centroids = _quantize(matrix, row_norms, width, seed, threads)
    dim = matrix.shape[1]
    if row_norms is None:
        return ProductCodes(codes, centroids, dim, width)
    norm_codes, norm_centroids = _quantize(row_norms[:, None], None, 1, seed, threads)
    return ProductCodes(codes, centroids, dim, width, norm_codes[:, 0], norm_centroids)


def _quantize(
    matrix: FloatArray, row_norms: FloatArray | None, width: int, seed: int, threads: int
) -> tuple[NDArray[np.uint8], FloatArray]:
    """Return codes and centroids of a matrix, its rows divided by `row_norms` (zero rows stay zero)."""

    def normalized(which: NDArray[np.int64] | slice) -> FloatArray:
        selected = np.ascontiguousarray(matrix[which], dtype=np.float32)
        if row_norms is not None:
            selected = np.divide(
                selected, np.where(row_norms[which] > 0, row_norms[which], 1)[:, None], dtype=np.float32
            )
        return selected

    count, dim = matrix.shape
    sample = np.random.default_rng(seed).permutation(count)[:SAMPLE]
    centroids = np.zeros(dim * CENTROIDS, dtype=np.float32)
    codes = np.zeros((count, parts_of(dim, width)), dtype=np.uint8)
    if count:
        _native.find_centroids(normalized(sample), width, ITERATIONS, centroids, threads)
    for first in range(0, count, BLOCK):
        block = slice(first, first + BLOCK)
        _native.assign_codes(normalized(block), width, centroids, codes[block], threads)
    return codes, centroids


def assign_twin(matrix: FloatArray, centroids: FloatArray, width: int) -> NDArray[np.uint8]:
    """Return the nearest centroid of each row in each part, in NumPy."""
    codes = np.zeros((len(matrix), parts_of(matrix.shape[1], width)), dtype=np.uint8)
    for part in range(codes.shape[1]):
        points = matrix[:, part * width : (part + 1) * width]
        first = part * width * CENTROIDS
        codebook = centroids[first : first + points.shape[1] * CENTROIDS].reshape(CENTROIDS, -1)
        codes[:, part] = np.argmin(((points[:, None] - codebook[None]) ** 2).sum(axis=2), axis=1)
    return codes


def centroids_twin(sample: FloatArray, width: int, iterations: int = ITERATIONS) -> FloatArray:
    """Return the centroids of k-means for each part, initialized with the first 256 rows, in NumPy.

    A centroid without points moves to the point that is farthest from its centroid.
    """
    centroids: list[FloatArray] = []
    for first in range(0, sample.shape[1], width):
        points = np.ascontiguousarray(sample[:, first : first + width])
        codebook = points[np.arange(CENTROIDS) % len(points)]
        for _ in range(iterations):
            codes = assign_twin(points, codebook.ravel(), points.shape[1])[:, 0]
            distances = ((points - codebook[codes]) ** 2).sum(axis=1)
            for centroid in range(CENTROIDS):
                if (codes == centroid).any():
                    codebook[centroid] = points[codes == centroid].mean(axis=0, dtype=np.float64)
            for centroid in np.setdiff1d(np.arange(CENTROIDS), codes):
                if not distances.max() > 0:
                    break
                codebook[centroid] = points[distances.argmax()]
                distances[distances.argmax()] = 0
        centroids.append(codebook.ravel())
    return np.concatenate(centroids)
