"""Word-level explanations of search results, for models whose text vector is the mean of the word vectors.

With q the mean of the n query words a, and d the mean of the m text words b, cos(q, d) = Σ a·b / (n m |q| |d|). Each
pair of words contributes one term, and the terms add up to the cosine.
"""

from __future__ import annotations

from collections import Counter
from typing import NamedTuple

import numpy as np

from firth.core.embedding import EmbedsTexts
from firth.core.errors import FirthError
from firth.core.model import HasVectors, Model, TokenizesWords
from firth.core.vectors import Matrix


class Contribution(NamedTuple):
    """The part of the cosine that is due to one query word and one text word, summed over all their occurrences."""

    query: str
    text: str
    share: float


def explain(model: Model, query: str, text: str, k: int = 5) -> list[Contribution]:
    """Return the `k` word pairs that contribute most to the cosine of two texts, without zero contributions."""
    query_words, text_words = (word_vectors(model, each) for each in (query, text))
    if not query_words[0] or not text_words[0]:
        return []
    vectors = [matrix * np.array(list(counts.values()))[:, None] for counts, matrix in (query_words, text_words)]
    lengths = [float(np.linalg.norm(matrix.sum(axis=0))) for matrix in vectors]
    if not all(lengths):
        return []
    shares = (vectors[0] @ vectors[1].T) / (lengths[0] * lengths[1])
    order = np.argsort(-shares, axis=None, kind="stable")[:k]
    names = [list(counts) for counts, _ in (query_words, text_words)]
    pairs = [divmod(int(position), len(names[1])) for position in order]
    return [Contribution(names[0][i], names[1][j], float(shares[i, j])) for i, j in pairs if shares[i, j] != 0]


def word_vectors(model: Model, text: str) -> tuple[Counter[str], Matrix]:
    """Return the counts of a text's in-vocabulary words, and their vectors."""
    if not isinstance(model, TokenizesWords) or not isinstance(model, HasVectors) or not isinstance(model, EmbedsTexts):
        raise not_explainable(model)
    counts: Counter[str] = Counter()
    rows = []
    for word, count in Counter(model.tokenize(text)).items():
        try:
            rows.append(model.vectors[word])
        except FirthError:  # out of vocabulary: not part of the mean
            continue
        counts[word] = count
    matrix = np.array(rows, dtype=np.float32)
    mean = np.average(matrix, axis=0, weights=list(counts.values())) if rows else 0
    if not np.allclose(mean, model.embed_with_counts([text]).matrix[0], rtol=1e-3, atol=1e-4):
        raise not_explainable(model)
    return counts, matrix


def not_explainable(model: Model) -> FirthError:
    """Return the error for a model whose text vector is not a mean of word vectors."""
    rule = "Explanations need a model whose text vector is the mean of word vectors; {method} is not such a model."
    return FirthError("unsupported_model", rule, method=type(model.method).method_name())
