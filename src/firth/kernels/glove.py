"""GloVe: records, tables and training steps. The native kernel (cpp/glove.cpp, cpp/strata.cpp) and its NumPy twin.

For a pair that co-occurs X times (Pennington et al. 2014, eq. 8 and 9), with f(X) = min(1, (X / x_max)^exponent):

    J = ½ f(X) (w · c + b_w + b_c − log X)²

Each parameter with gradient g takes an AdaGrad step, as in Stanford's program: p −= η g / √s, then s += (η g)², where
s starts at 1.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

RECORD = np.dtype([("word", "=i4"), ("context", "=i4"), ("log_count", "=f4"), ("weight", "=f4")])

Table = NDArray[np.float32]


@dataclass(frozen=True)
class Tables:
    """Each row holds a vector, padded to 16 floats, then its AdaGrad sums; each bias row holds the bias and its sum."""

    words: Table
    contexts: Table
    word_biases: Table
    context_biases: Table

    @property
    def stride(self) -> int:
        """The padded dimension."""
        return int(self.words.shape[1]) // 2

    def arrays(self) -> dict[str, Table]:
        """Return the tables by name."""
        names = ("words", "contexts", "word_biases", "context_biases")
        return {name: getattr(self, name) for name in names}


class Strata(NamedTuple):
    """Records in parts × parts blocks; block (i, j) is `records[starts[i * parts + j] : starts[i * parts + j + 1]]`."""

    records: NDArray[np.void]
    starts: NDArray[np.int64]
    parts: int


def new_tables(words: int, dim: int, seed: int) -> Tables:
    """Return new tables: parameters uniform in ±½/dim, AdaGrad sums 1."""
    stride = -(-dim // 16) * 16
    generator = np.random.default_rng(seed)
    tables = []
    for _ in range(2):
        table = _native.new_table(words, 2 * stride)
        table[:, :dim] = (generator.random((words, dim), dtype=np.float32) - 0.5) / dim
        table[:, stride:] = 1
        tables.append(table)
    for _ in range(2):
        biases = np.ones((words, 2), dtype=np.float32)
        biases[:, 0] = (generator.random(words, dtype=np.float32) - 0.5) / dim
        tables.append(biases)
    return Tables(*tables)


def write_strata(
    starts: NDArray[np.int64],
    contexts: NDArray[np.int32],
    counts: NDArray[np.float64],
    *,
    x_max: float,
    exponent: float,
    parts: int,
    seed: int,
    threads: int,
    file: int,
) -> NDArray[np.int64]:
    """Write the entries of a CSR matrix as records to an open file, block by block, each block shuffled.

    Returns the start offset of each block.
    """
    blocks = np.zeros(parts * parts + 1, dtype=np.int64)
    arrays = (np.ascontiguousarray(starts), np.ascontiguousarray(contexts), np.ascontiguousarray(counts))
    _native.write_strata(*arrays, x_max, exponent, parts, seed, threads, file, blocks)
    return blocks


def native_trainer(strata: Strata, tables: Tables) -> _native.GloveTrainer:
    """Return the native trainer; `diagonal(which, piece, pieces, rate, threads)` trains and returns the summed loss."""
    records = np.ascontiguousarray(strata.records).view(np.uint32)
    return _native.GloveTrainer(records, strata.starts, strata.parts, *tables.arrays().values())


class TwinTrainer:
    """The NumPy twin of `native_trainer`: one record after the other."""

    def __init__(self, strata: Strata, tables: Tables) -> None:
        self.strata, self.tables = strata, tables

    def diagonal(self, which: int, piece: int, pieces: int, rate: float, threads: int) -> float:
        """Train on one piece of each block of a diagonal and return the summed loss."""
        records, starts, parts = self.strata
        loss = 0.0
        for part in range(parts):
            first, last = starts[part * parts + (part + which) % parts + np.arange(2)]
            size = last - first
            for record in records[first + size * piece // pieces : first + size * (piece + 1) // pieces]:
                loss += self.step(record, np.float32(rate))
        return loss

    def step(self, record: NDArray[np.void], rate: np.float32) -> float:
        """Take one AdaGrad step and return the loss."""
        stride = self.tables.stride
        word, context = self.tables.words[record["word"]], self.tables.contexts[record["context"]]
        biases = self.tables.word_biases[record["word"]], self.tables.context_biases[record["context"]]
        error = word[:stride] @ context[:stride] + biases[0][0] + biases[1][0] - record["log_count"]
        step = rate * record["weight"] * error
        to_word, to_context = step * context[:stride], step * word[:stride]
        for row, change in ((word, to_word), (context, to_context), (biases[0], step), (biases[1], step)):
            half = len(row) // 2
            row[:half] -= change / np.sqrt(row[half:])
            row[half:] += change**2
        return float(0.5 * record["weight"] * error * error)
