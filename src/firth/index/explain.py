"""Which words made a text be found, for models whose vector of a text is the mean of its words' vectors.

With q the mean of n words a of the query and d the mean of m words b of the text, cos(q, d) = Σ a·b / (n m |q| |d|):
every pair of words has its share, and all shares add up to the cosine.
"""

from __future__ import annotations

from collections import Counter
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.vectors import Matrix


class Share(NamedTuple):
    """How much of the cosine is due to a word of the query meeting a word of the text, all their places together."""

    query: str
    text: str
    share: float


def explain(model: Any, query: str, text: str, k: int = 5) -> list[Share]:
    """The `k` pairs of words with the largest shares of the cosine of two texts; zero shares are left out."""
    asked, given = (word_vectors(model, each) for each in (query, text))
    if not asked[0] or not given[0]:
        return []
    vectors = [matrix * np.array(list(counts.values()))[:, None] for counts, matrix in (asked, given)]
    lengths = [float(np.linalg.norm(matrix.sum(axis=0))) for matrix in vectors]
    if not all(lengths):
        return []
    shares = (vectors[0] @ vectors[1].T) / (lengths[0] * lengths[1])
    order = np.argsort(-shares, axis=None, kind="stable")[:k]
    names = [list(counts) for counts, _ in (asked, given)]
    pairs = [divmod(int(place), len(names[1])) for place in order]
    return [Share(names[0][i], names[1][j], float(shares[i, j])) for i, j in pairs if shares[i, j] != 0]


def word_vectors(model: Any, text: str) -> tuple[Counter[str], Matrix]:
    """The text's known words, how often each stands in it, and their vectors."""
    tokenize, vectors = getattr(model, "tokenize", None), getattr(model, "vectors", None)
    if tokenize is None or vectors is None or not hasattr(model, "pool"):
        raise why_not(model)
    counts: Counter[str] = Counter()
    rows = []
    for word, count in Counter(tokenize(text)).items():
        try:
            rows.append(vectors[word])
        except FirthError:  # unknown, and no part of the mean
            continue
        counts[word] = count
    matrix = np.array(rows, dtype=np.float32)
    mean = np.average(matrix, axis=0, weights=list(counts.values())) if rows else 0
    if not np.allclose(mean, model.embed([text])[0], rtol=1e-3, atol=1e-4):
        raise why_not(model)
    return counts, matrix


def why_not(model: Any) -> FirthError:
    rule = "Only a mean of word vectors can be explained word by word; {method} makes texts into vectors otherwise."
    return FirthError("unsupported_model", rule, method=type(model.method).method_name())
