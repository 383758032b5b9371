"""Product quantisation (Jégou et al. 2011) as fastText does it (Joulin et al. 2016): a row in dim / width bytes.

The columns are cut into parts of `width` (the last may be narrower). In each part every row is replaced by the nearest
of 256 centroids, found by k-means; a row's code is the number of its centroid in each part, one byte each. With norms,
rows are first divided by their length, and the lengths are quantised in the same way, as a column of their own.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

CENTROIDS = 256  # a code is one byte


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

    def dense(self) -> NDArray[np.float32]:
        """All rows as numbers."""
        return self.take(slice(None))


def parts_of(dim: int, width: int) -> int:
    return -(-dim // width)
