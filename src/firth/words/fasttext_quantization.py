"""Compression of fastText models: product quantization, and pruning of the rows with the smallest norms.

Joulin et al. 2016 ("FastText.zip"). fastText quantizes classifiers only; Firth also quantizes models of word vectors.
"""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.run import available_cores
from firth.core.vectors import Matrix
from firth.formats.fasttext import FastTextFile, SparseRows
from firth.kernels import product

BLOCK = 1 << 16  # rows processed at a time


class Quantized(NamedTuple):
    """A quantized model and its relative error: Σ|row − quantized row|² / Σ|row|² over the rows that remain."""

    file: FastTextFile
    error: float


def quantize(
    file: FastTextFile,
    *,
    width: int = 2,
    norms: bool = False,
    cutoff: int | None = None,
    outputs: bool = False,
    seed: int = 0,
    threads: int | None = None,
) -> Quantized:
    """Return the model with a product-quantized input matrix (with `outputs`, also the output matrix).

    Each `width` columns share a code of one byte. With `norms`, the norms of rows are quantized separately. `cutoff`
    first reduces the number of rows to those with the largest norms. In a classifier, rows of words and n-grams are
    pruned, and words without a row leave the vocabulary. In a model of word vectors, only rows of n-grams are pruned.
    """
    if isinstance(file.inputs, product.ProductCodes):
        raise FirthError("wrong_input", "The model is already quantized. Quantize the original model instead.")
    if not 1 <= width <= file.args.dim:
        raise FirthError(
            "invalid_value",
            "{option} must be from 1 to dim={dim}; got {got}.",
            option="width",
            dim=file.args.dim,
            got=width,
        )
    if cutoff is not None and cutoff < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="cutoff", got=cutoff)
    result, matrix = prune(file, cutoff)
    cores = threads or available_cores()
    codes = product.quantize(matrix, width, norms, seed, cores)
    result = replace(result, inputs=codes)
    if outputs and not isinstance(file.outputs, product.ProductCodes):
        result = replace(result, outputs=product.quantize(file.outputs, min(2, file.args.dim), norms, seed, cores))
    return Quantized(result, relative_error(matrix, codes))


def prune(file: FastTextFile, cutoff: int | None) -> tuple[FastTextFile, Matrix]:
    """Return the model without the pruned rows, and its input matrix."""
    words = len(file.words)
    if isinstance(file.inputs, SparseRows):  # unused buckets are dropped in any case
        matrix, buckets = np.concatenate([file.inputs.first, file.inputs.rows]), file.inputs.row_ids
    else:
        assert not isinstance(file.inputs, product.ProductCodes)
        matrix = file.inputs
        buckets = np.arange(file.args.bucket, dtype=np.int32) if file.pruned is None else file.pruned[:, 0]
    if cutoff is None or cutoff >= len(matrix):
        is_spread = isinstance(file.inputs, SparseRows)
        return (replace(file, pruned=bucket_row_pairs(buckets)) if is_spread else file), matrix
    rows = longest_rows(file, matrix, cutoff)
    word_rows, ngram_rows = rows[rows < words], rows[rows >= words]
    pruned_file = replace(
        file,
        words=[file.words[word] for word in word_rows],
        word_counts=file.word_counts[word_rows],
        pruned=bucket_row_pairs(buckets[ngram_rows - words]),
    )
    return pruned_file, matrix[rows]


def bucket_row_pairs(buckets: NDArray[np.int32]) -> NDArray[np.int32]:
    """Return the pairs (bucket, n-gram row), where rows are counted from the first n-gram row."""
    return np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1)


def longest_rows(file: FastTextFile, matrix: Matrix, cutoff: int) -> NDArray[np.int64]:
    """Return the `cutoff` rows with the largest norms, in ascending order. As in fastText, the row of </s> stays."""
    squared_norms = np.concatenate(
        [np.einsum("ij,ij->i", block, block) for block in np.array_split(matrix, 1 + len(matrix) // BLOCK)]
    )
    if file.args.model == "sup":
        squared_norms[: len(file.words)][[word == b"</s>" for word in file.words]] = np.inf
    else:
        squared_norms[: len(file.words)] = np.inf
        cutoff = max(cutoff, len(file.words))
    return np.sort(np.argsort(-squared_norms, kind="stable")[:cutoff])


def relative_error(matrix: Matrix, codes: product.ProductCodes) -> float:
    """Return Σ|row − quantized row|² / Σ|row|²."""
    squared_error = squared_norm = 0.0
    for first in range(0, len(matrix), BLOCK):
        rows = np.asarray(matrix[first : first + BLOCK], dtype=np.float64)
        squared_error += float(np.square(rows - codes.take(slice(first, first + BLOCK))).sum())
        squared_norm += float(np.square(rows).sum())
    return squared_error / squared_norm if squared_norm else 0.0
