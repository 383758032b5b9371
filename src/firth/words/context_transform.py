"""Vectors of unknown words from their contexts: the à la carte embedding of Khodak et al. (2018).

The mean u of the vectors around a word is dominated by frequent words. A linear transform A, learned from words whose
vector v is known, corrects this:

    A = argmin Σ_w log(n_w) ‖v_w − A u_w‖²    (weight log n_w for a word with n_w contexts)

The vector of an unknown word is A u. Contexts are represented by the model's context vectors where it has them, which
are trained to predict the word; with word vectors the result is worse (benchmarks/unknown_words.py).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from firth.core.errors import FirthError
from firth.core.vectors import Matrix

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix

LEAST_CONTEXTS = 10  # context words that a known word needs to take part in the regression


def learned_transform(counts: csr_matrix, contexts: Matrix, vectors: Matrix) -> Matrix:
    """Return A, dim × dim, from co-occurrence counts (words × words), the vectors of contexts and those of words."""
    totals = np.asarray(counts.sum(axis=1)).ravel()
    words = np.flatnonzero(totals >= LEAST_CONTEXTS)
    dim = vectors.shape[1]
    if len(words) < dim:
        raise FirthError(
            "too_few",
            "The transform has {dim} dimensions and needs as many words with {least} context words; got {got:,}. "
            "Pass more text, such as the training corpus.",
            dim=dim,
            least=LEAST_CONTEXTS,
            got=len(words),
        )
    means = (counts[words] @ contexts.astype(np.float64)) / totals[words, None]
    weights = np.sqrt(np.log(totals[words]))[:, None]
    solution = np.linalg.lstsq(means * weights, vectors[words] * weights, rcond=None)[0]
    return np.ascontiguousarray(solution.T, dtype=np.float32)


def window_rows(
    texts: Sequence[Sequence[str]], word: str, rows: Mapping[str, int], window: int
) -> tuple[list[int], int]:
    """Return the rows of the known words around each occurrence of `word`, and the number of occurrences.

    Unknown words are skipped before windows are formed, as in training. The word itself is not its own context.
    """
    result, occurrences = list[int](), 0
    for tokens in texts:
        known = [(token == word, rows.get(token)) for token in tokens if token == word or token in rows]
        for position, (is_word, _) in enumerate(known):
            if is_word:
                occurrences += 1
                around = known[max(0, position - window) : position] + known[position + 1 : position + 1 + window]
                result.extend(row for is_same, row in around if not is_same and row is not None)
    return result, occurrences
