"""fastText models in a fraction of their bytes: product quantisation, and rows that matter least left out.

Joulin et al. 2016 ("FastText.zip"). fastText itself quantises classifiers only; here models of words too.
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

BLOCK = 1 << 16


class Quantized(NamedTuple):
    """A model in codes, and what that lost: Σ|row − its code's row|² / Σ|row|² over the rows kept."""

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
    """The model with its input matrix in codes (and, with `outputs`, its output matrix).

    `width` columns share a code of one byte; with `norms` rows' lengths get a code of their own. `cutoff` keeps only so
    many rows, the longest, before that: of a classifier rows of words and n-grams alike (a word without its row is no
    longer in the vocabulary), of a model of words only rows of n-grams, for its words are what it is asked for.
    """
    if isinstance(file.inputs, product.ProductCodes):
        raise FirthError("wrong_input", "The model is in codes already; quantise the one it was made from.")
    if not 1 <= width <= file.args.dim:
        raise FirthError(
            "invalid_value",
            "{option} must be 1 to {dim}, the model's dim; got {got}.",
            option="width",
            dim=file.args.dim,
            got=width,
        )
    if cutoff is not None and cutoff < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="cutoff", got=cutoff)
    kept, matrix = pruned(file, cutoff)
    cores = threads or available_cores()
    codes = product.quantize(matrix, width, norms, seed, cores)
    kept = replace(kept, inputs=codes)
    if outputs and not isinstance(file.outputs, product.ProductCodes):
        kept = replace(kept, outputs=product.quantize(file.outputs, min(2, file.args.dim), norms, seed, cores))
    return Quantized(kept, relative_error(matrix, codes))


def pruned(file: FastTextFile, cutoff: int | None) -> tuple[FastTextFile, Matrix]:
    """The model without the rows that are left out, and its input matrix."""
    words = len(file.words)
    if isinstance(file.inputs, SparseRows):  # the buckets that nothing fell into are left out in any case
        matrix, buckets = np.concatenate([file.inputs.first, file.inputs.rows]), file.inputs.row_ids
    else:
        assert not isinstance(file.inputs, product.ProductCodes)
        matrix = file.inputs
        buckets = np.arange(file.args.bucket, dtype=np.int32) if file.pruned is None else file.pruned[:, 0]
    if cutoff is None or cutoff >= len(matrix):
        spread = isinstance(file.inputs, SparseRows)
        return (replace(file, pruned=pairs(buckets)) if spread else file), matrix
    rows = longest_rows(file, matrix, cutoff)
    own, others = rows[rows < words], rows[rows >= words]
    smaller = replace(
        file,
        words=[file.words[word] for word in own],
        word_counts=file.word_counts[own],
        pruned=pairs(buckets[others - words]),
    )
    return smaller, matrix[rows]


def pairs(buckets: NDArray[np.int32]) -> NDArray[np.int32]:
    """(bucket, row after the words)."""
    return np.stack([buckets, np.arange(len(buckets), dtype=np.int32)], axis=1)


def longest_rows(file: FastTextFile, matrix: Matrix, cutoff: int) -> NDArray[np.int64]:
    """The rows to keep, in ascending order. The row of the line's end is kept, as in fastText."""
    lengths = np.concatenate(
        [np.einsum("ij,ij->i", block, block) for block in np.array_split(matrix, 1 + len(matrix) // BLOCK)]
    )
    if file.args.model == "sup":
        lengths[: len(file.words)][[word == b"</s>" for word in file.words]] = np.inf
    else:
        lengths[: len(file.words)] = np.inf
        cutoff = max(cutoff, len(file.words))
    return np.sort(np.argsort(-lengths, kind="stable")[:cutoff])


def relative_error(matrix: Matrix, codes: product.ProductCodes) -> float:
    lost = total = 0.0
    for first in range(0, len(matrix), BLOCK):
        rows = np.asarray(matrix[first : first + BLOCK], dtype=np.float64)
        lost += float(np.square(rows - codes.take(slice(first, first + BLOCK))).sum())
        total += float(np.square(rows).sum())
    return lost / total if total else 0.0
