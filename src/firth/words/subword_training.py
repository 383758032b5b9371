"""Word vectors as the mean of a word's own row and the rows of its character n-grams.

Bojanowski et al. 2017, eq. 2, with a mean instead of the sum, as in fastText. N-grams are hashed into `buckets`. Only
buckets that contain an n-gram of the vocabulary are trained, so only those have a row.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

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
from firth.words.window_training import Training, TrainsWindows

if TYPE_CHECKING:
    from firth.words.fasttext_model import FastTextModel
    from firth.words.word_model import TextModel

CHUNK = 1 << 16  # words composed at a time


class Composed(NamedTuple):
    """Vectors of words, and the number of rows each is composed of; a word without any row is a zero vector."""

    matrix: Matrix
    n_rows: NDArray[np.int64]


@dataclass(frozen=True)
class Subwords:
    """Assignment of n-grams to rows. `bucket_ids`, in ascending order, are the buckets with a row; None means all."""

    minn: int
    maxn: int
    buckets: int
    bucket_ids: NDArray[np.int32] | None = None
    skip_missing: bool = False  # exclude n-grams without a row from the mean; otherwise they count as zeros

    def __post_init__(self) -> None:
        ids = self.bucket_ids
        if ids is None:
            return
        if ids.ndim != 1 or ids.dtype != np.int32 or (len(ids) and not 0 <= ids[0] <= ids[-1] < self.buckets):
            raise FirthError(
                "damaged_model", "{name} must be int32 from 0 to {last}.", name="bucket_ids", last=self.buckets - 1
            )
        if (np.diff(ids) <= 0).any():
            raise FirthError("damaged_model", "{name} must be strictly increasing.", name="bucket_ids")

    @property
    def rows(self) -> int:
        """The number of n-gram rows."""
        return self.buckets if self.bucket_ids is None else len(self.bucket_ids)

    def find_rows(self, buckets: NDArray[np.int32]) -> NDArray[np.int32]:
        """Return the row of each bucket, −1 for buckets without one."""
        if self.bucket_ids is None:
            return buckets
        if not len(self.bucket_ids):
            return np.full(len(buckets), -1, dtype=np.int32)
        positions = np.minimum(np.searchsorted(self.bucket_ids, buckets), len(self.bucket_ids) - 1)
        return np.where(self.bucket_ids[positions] == buckets, positions, -1).astype(np.int32)

    def row_lists(self, words: Sequence[str], word_rows: NDArray[np.int32], offset: int) -> kernel.Lists:
        """Return the rows that each word is composed of: its own, then those of its n-grams; −1 for a missing row.

        N-gram rows follow the `offset` rows of words.
        """
        starts, buckets = ngrams(words, self.minn, self.maxn, self.buckets)
        ngram_rows = self.find_rows(buckets)
        rows = np.empty(len(words) + len(ngram_rows), dtype=np.int32)
        word_positions = starts[:-1] + np.arange(len(words))
        rows[word_positions] = word_rows
        is_ngram = np.ones(len(rows), dtype=bool)
        is_ngram[word_positions] = False
        rows[is_ngram] = np.where(ngram_rows >= 0, ngram_rows + np.int32(offset), -1)
        return kernel.Lists(starts + np.arange(len(starts)), rows)

    def compose(
        self, table: Matrix | ProductCodes, words: Sequence[str], word_rows: NDArray[np.int32], threads: int = 1
    ) -> Composed:
        """Return the vector of each word. `word_rows` are the words' rows in the table, −1 for words without one."""
        parts = [
            self._compose(table, words[first : first + CHUNK], word_rows[first : first + CHUNK], threads)
            for first in range(0, len(words), CHUNK)
        ]
        if len(parts) == 1:
            return parts[0]
        empty = np.zeros((0, table.shape[1]), dtype=np.float32), np.zeros(0, dtype=np.int64)
        return Composed(*(np.concatenate(column) for column in zip(empty, *parts, strict=True)))

    def _compose(
        self, table: Matrix | ProductCodes, words: Sequence[str], word_rows: NDArray[np.int32], threads: int
    ) -> Composed:
        starts, rows = self.row_lists(words, word_rows, len(table) - self.rows)
        has_row = rows >= 0
        word_index = np.repeat(np.arange(len(words)), np.diff(starts))[has_row]
        n_rows = np.bincount(word_index, minlength=len(words))
        divisors = n_rows if self.skip_missing else np.diff(starts) - (word_rows < 0)
        columns: NDArray[Any] = rows[has_row]
        if isinstance(table, ProductCodes):
            unique_rows, columns = np.unique(columns, return_inverse=True)
            table = table.take(unique_rows)
        shares = (1 / np.maximum(divisors, 1)).astype(np.float32)[word_index]
        weights = sparse.CSRMatrix(np.concatenate([[0], np.cumsum(n_rows)]), columns.astype(np.int32), shares)
        return Composed(sparse.multiply(weights, table, threads), n_rows)


class TrainsSubwords(TrainsWindows, Protocol):
    """A method of words with subwords: the lengths of n-grams, their buckets, and the held-out share of the corpus."""

    @property
    def minn(self) -> int: ...
    @property
    def maxn(self) -> int: ...
    @property
    def buckets(self) -> int: ...
    @property
    def held_out(self) -> float: ...


class SubwordTraining(Training):
    """Training of words that are means of rows. Rows of n-grams follow those of the words."""

    def __init__(self, method: TrainsSubwords, tokens: Tokens, run: Run, start: FastTextModel | None) -> None:
        words = tokens.vocabulary.tokens
        ids = np.unique(ngrams(words, method.minn, method.maxn, method.buckets).rows)
        if start is not None:  # keep the n-grams of the start model, whether or not this corpus has them
            start_buckets = start.subwords.bucket_ids
            ids = np.arange(method.buckets, dtype=np.int32) if start_buckets is None else np.union1d(ids, start_buckets)
        self.subwords = Subwords(method.minn, method.maxn, method.buckets, ids)
        self.previous = start
        super().__init__(method, tokens, run, start, method.held_out)

    def first_tables(self, start: TextModel | None) -> tuple[kernel.Table, kernel.Table]:
        """Return initial inputs (uniform in ±1/dim, as in fastText) and outputs (zero), or rows of a start model."""
        method, words, ids = self.method, len(self.tokens.vocabulary), self.subwords.bucket_ids
        rows = words + self.subwords.rows
        inputs = kernel.new_table(rows, method.dim)
        inputs[:, : method.dim] = np.random.default_rng(self.run.seed).random((rows, method.dim), dtype=np.float32)
        inputs[:, : method.dim] = (inputs[:, : method.dim] - 0.5) * (2 / method.dim)
        outputs = kernel.new_table(max(1, words - 1) if method.loss == "hierarchical" else words, method.dim)
        previous = self.previous
        if previous is not None:
            assert not isinstance(previous.table, ProductCodes)  # FastText.check_start refuses quantized models
            inputs[: previous.n_words, : method.dim] = previous.table[: previous.n_words]
            previous_buckets = previous.subwords.bucket_ids
            bucket_positions = (
                slice(None) if previous_buckets is None or ids is None else np.searchsorted(ids, previous_buckets)
            )
            inputs[words:, : method.dim][bucket_positions] = previous.table[previous.n_words :]
            # Nodes of a Huffman tree cannot be reused in another tree.
            if len(previous.outputs) == previous.n_words and method.loss != "hierarchical":
                outputs[: previous.n_words, : method.dim] = previous.outputs
        return inputs, outputs

    def task(self) -> kernel.Task:
        """Return the kernel's arguments, with the rows of each word."""
        words = self.tokens.vocabulary.tokens
        subwords = self.subwords.row_lists(words, np.arange(len(words), dtype=np.int32), len(words))
        return replace(super().task(), subwords=subwords)
