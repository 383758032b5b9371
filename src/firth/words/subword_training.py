"""Vectors of words as means of rows: the word's own, and one for each of its n-grams of characters.

Bojanowski et al. 2017, eq. 2, with the mean that fastText takes in place of the sum. N-grams share rows by a hash into
`buckets`. Only buckets that an n-gram of the vocabulary falls into are ever trained, so only those have a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.run import Run
from firth.core.vectors import Matrix
from firth.data.tokens import Tokens
from firth.kernels import predict as kernel
from firth.kernels import sparse
from firth.kernels.product import ProductCodes
from firth.kernels.subwords import ngrams
from firth.words.window_training import Training

CHUNK = 1 << 16  # words composed at a time


class Composed(NamedTuple):
    """Vectors of words, and how many rows each is the mean of (0: nothing is known of it, and it is zero)."""

    matrix: Matrix
    pieces: NDArray[np.int64]


@dataclass(frozen=True)
class Subwords:
    """How n-grams find their rows. `bucket_ids`, in ascending order, are the buckets that have one; None: all have."""

    minn: int
    maxn: int
    buckets: int
    bucket_ids: NDArray[np.int32] | None = None
    skip_missing: bool = False  # n-grams without a row are left out of the mean; else they count in it, as zeros

    def __post_init__(self) -> None:
        ids = self.bucket_ids
        if ids is None:
            return
        if ids.ndim != 1 or ids.dtype != np.int32 or (len(ids) and not 0 <= ids[0] <= ids[-1] < self.buckets):
            raise FirthError("damaged_model", "bucket_ids must be int32 from 0 to {buckets}.", buckets=self.buckets - 1)
        if (np.diff(ids) <= 0).any():
            raise FirthError("damaged_model", "bucket_ids must ascend.")

    @property
    def rows(self) -> int:
        """How many rows n-grams have."""
        return self.buckets if self.bucket_ids is None else len(self.bucket_ids)

    def find(self, buckets: NDArray[np.int32]) -> NDArray[np.int32]:
        """The row of each bucket, −1 where it has none."""
        if self.bucket_ids is None:
            return buckets
        if not len(self.bucket_ids):
            return np.full(len(buckets), -1, dtype=np.int32)
        found = np.minimum(np.searchsorted(self.bucket_ids, buckets), len(self.bucket_ids) - 1)
        return np.where(self.bucket_ids[found] == buckets, found, -1).astype(np.int32)

    def lists(self, words: Sequence[str], own: NDArray[np.int32], offset: int) -> kernel.Lists:
        """The rows that make up each word: its `own` first, then its n-grams' (which follow `offset` rows of words); −1
        where there is none."""
        starts, buckets = ngrams(words, self.minn, self.maxn, self.buckets)
        found = self.find(buckets)
        rows = np.empty(len(words) + len(found), dtype=np.int32)
        firsts = starts[:-1] + np.arange(len(words))
        rows[firsts] = own
        others = np.ones(len(rows), dtype=bool)
        others[firsts] = False
        rows[others] = np.where(found >= 0, found + np.int32(offset), -1)
        return kernel.Lists(starts + np.arange(len(starts)), rows)

    def compose(
        self, table: Matrix | ProductCodes, words: Sequence[str], own: NDArray[np.int32], threads: int = 1
    ) -> Composed:
        """The vector of each word; `own` is its row in the table, −1 for a word that has none."""
        parts = [
            self._compose(table, words[first : first + CHUNK], own[first : first + CHUNK], threads)
            for first in range(0, len(words), CHUNK)
        ]
        if len(parts) == 1:
            return parts[0]
        empty = np.zeros((0, table.shape[1]), dtype=np.float32), np.zeros(0, dtype=np.int64)
        return Composed(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))

    def _compose(
        self, table: Matrix | ProductCodes, words: Sequence[str], own: NDArray[np.int32], threads: int
    ) -> Composed:
        starts, rows = self.lists(words, own, len(table) - self.rows)
        known = rows >= 0
        word = np.repeat(np.arange(len(words)), np.diff(starts))[known]
        found = np.bincount(word, minlength=len(words))
        wanted = found if self.skip_missing else np.diff(starts) - (own < 0)
        columns: NDArray[Any] = rows[known]
        if isinstance(table, ProductCodes):
            different, columns = np.unique(columns, return_inverse=True)
            table = table.take(different)
        shares = (1 / np.maximum(wanted, 1)).astype(np.float32)[word]
        weights = sparse.Rows(np.concatenate([[0], np.cumsum(found)]), columns.astype(np.int32), shares)
        return Composed(sparse.multiply(weights, table, threads), found)


class SubwordTraining(Training):
    """Training where a word is the mean of its rows. Rows for n-grams follow those of the words."""

    def __init__(self, method: Any, tokens: Tokens, run: Run, start: Any) -> None:
        words = tokens.vocabulary.tokens
        ids = np.unique(ngrams(words, method.minn, method.maxn, method.buckets).rows)
        if start is not None:  # rows of words it met before stay, whether or not this text has them
            known = start.subwords.bucket_ids
            ids = np.arange(method.buckets, dtype=np.int32) if known is None else np.union1d(ids, known)
        self.subwords = Subwords(method.minn, method.maxn, method.buckets, ids)
        super().__init__(method, tokens, run, start, method.held_out)

    def first_tables(self, start: Any) -> tuple[kernel.Table, kernel.Table]:
        """Inputs drawn from ±1/dim as in fastText, outputs zero; the rows of `start` where there are any."""
        method, words, ids = self.method, len(self.tokens.vocabulary), self.subwords.bucket_ids
        rows = words + self.subwords.rows
        inputs = kernel.new_table(rows, method.dim)
        inputs[:, : method.dim] = np.random.default_rng(self.run.seed).random((rows, method.dim), dtype=np.float32)
        inputs[:, : method.dim] = (inputs[:, : method.dim] - 0.5) * (2 / method.dim)
        outputs = kernel.new_table(max(1, words - 1) if method.loss == "hierarchical" else words, method.dim)
        if start is not None:
            inputs[: start.words, : method.dim] = start.table[: start.words]
            known = start.subwords.bucket_ids
            places = slice(None) if known is None or ids is None else np.searchsorted(ids, known)
            inputs[words:, : method.dim][places] = start.table[start.words :]
            if len(start.outputs) == start.words and method.loss != "hierarchical":
                outputs[: start.words, : method.dim] = start.outputs  # a tree's nodes mean another thing in a new tree
        return inputs, outputs

    def task(self) -> kernel.Task:
        words = self.tokens.vocabulary.tokens
        pieces = self.subwords.lists(words, np.arange(len(words), dtype=np.int32), len(words))
        return replace(super().task(), subwords=pieces)
