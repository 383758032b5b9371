"""Alignment of vector spaces by orthogonal Procrustes (Schönemann 1966; for words over time, Hamilton et al. 2016).

Two trainings on the same data give spaces that differ by a rotation. With A and B the unit vectors of the common words,
the rotation (or reflection) R that minimizes ‖A R − B‖ with RᵀR = 1 is U Vᵀ where U S Vᵀ = AᵀB. Distances and cosines
within the rotated space do not change.
"""

from __future__ import annotations

import os
import warnings
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError, FirthWarning
from firth.core.model import HasVectors
from firth.core.notebook import ROWS, ShowsRows
from firth.core.vectors import Hit, Hits, Vectors, row_lengths, unit_rows
from firth.evaluate.words import check_finite, numbered_lines

WordPairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Aligned(ShowsRows):
    """The result of an alignment.

    `vectors` are all vectors of the first space, rotated by `rotation`. `pairs` are the word pairs that it was computed
    from, `before` and `after` the cosines of the words of each pair before and after the rotation.
    """

    vectors: Vectors
    rotation: NDArray[np.float64]
    pairs: tuple[tuple[str, str], ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    def moved(self, k: int = 10) -> Hits:
        """Return the `k` words that moved most, each with the cosine of its two vectors after the rotation."""
        order = np.argsort(self.after, kind="stable")[:k]
        return Hits(Hit(self.label(row), float(self.after[row])) for row in order)

    def stayed(self, k: int = 10) -> Hits:
        """Return the `k` words that moved least, each with the cosine of its two vectors after the rotation."""
        order = np.argsort(-self.after, kind="stable")[:k]
        return Hits(Hit(self.label(row), float(self.after[row])) for row in order)

    def label(self, row: int) -> str:
        """Return the word of a pair, or both words if they differ."""
        a, b = self.pairs[row]
        return a if a == b else f"{a} → {b}"

    def __repr__(self) -> str:
        before, after = (float(np.mean(cosines)) for cosines in (self.before, self.after))
        return f"Aligned({len(self.pairs):,} word pairs: mean cosine {before:.3f} before, {after:.3f} after)"

    def _rows_shown(self) -> tuple[list[str], list[tuple[str, float]]]:
        return ["moved most", "cosine"], list(self.moved(ROWS))

    def to_json(self, k: int = 10) -> dict[str, Any]:
        """Return a summary as JSON values."""
        return {
            "words": len(self.pairs),
            "dim": len(self.rotation),
            "mean_cosine": {"before": float(self.before.mean()), "after": float(self.after.mean())},
            "moved": [{"word": hit.key, "cosine": hit.score} for hit in self.moved(k)],
            "stayed": [{"word": hit.key, "cosine": hit.score} for hit in self.stayed(k)],
        }


def align(a: Any, b: Any, *, pairs: WordPairs | None = None, restrict: int | None = None) -> Aligned:
    """Rotate the vectors of `a` into the space of `b`; both are `Vectors` or models that have them.

    The rotation is computed from the common words, or from `pairs` of a word of `a` and a word of `b`, for example
    between languages. With `restrict`, only pairs among the first `restrict` (most frequent) words of each are used.
    """
    source, target = vectors_of(a), vectors_of(b)
    if source.dim != target.dim:
        raise FirthError(
            "shape_mismatch",
            "Both spaces must have the same dimension; got {source_dim} and {target_dim}.",
            source_dim=source.dim,
            target_dim=target.dim,
        )
    if restrict is not None and restrict < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="restrict", got=restrict)
    check_finite(source, None)
    check_finite(target, None)
    common = usable(source, target, pairs, restrict)
    left, right = (
        unit_rows(vectors.matrix[[vectors.rows[pair[side]] for pair in common]]).astype(np.float64)
        for side, vectors in ((0, source), (1, target))
    )
    rotation = procrustes(left, right)
    before, after = ((rows * right).sum(axis=1) for rows in (left, left @ rotation))
    rotated = Vectors(source.keys, source.matrix @ rotation.astype(np.float32))
    return Aligned(rotated, rotation, tuple(common), before, after)


def vectors_of(source: Any) -> Vectors:
    """Return the vectors of a model, or the vectors themselves."""
    if isinstance(source, Vectors):
        return source
    if isinstance(source, HasVectors):
        return source.vectors
    raise FirthError(
        "invalid_type", "align takes two Vectors or models that have them; got {got}.", got=type(source).__name__
    )


def usable(source: Vectors, target: Vectors, pairs: WordPairs | None, restrict: int | None) -> list[tuple[str, str]]:
    """Return the pairs whose words both have a non-zero vector."""
    candidates = [(word, word) for word in dict.fromkeys(source.keys)] if pairs is None else list(dict.fromkeys(pairs))
    last = max(len(source), len(target)) if restrict is None else restrict
    nonzero = [row_lengths(vectors.matrix) > 0 for vectors in (source, target)]
    usable_pairs = [
        (x, y)
        for x, y in candidates
        if (i := source.rows.get(x, last)) < last
        and (j := target.rows.get(y, last)) < last
        and nonzero[0][i]
        and nonzero[1][j]
    ]
    if not usable_pairs:
        raise FirthError(
            "empty_data", "The two spaces have no word in common. Pass pairs=… to say which words correspond."
        )
    if len(usable_pairs) < source.dim:
        text = (
            f"{len(usable_pairs):,} common words do not determine a rotation in {source.dim} dimensions; the cosines "
            "after it are too high."
        )
        warnings.warn(FirthWarning(text, "underdetermined_rotation"), stacklevel=3)
    return usable_pairs


def procrustes(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """Return the orthogonal R that minimizes ‖A R − B‖."""
    u, _, vt = np.linalg.svd(a.T @ b)
    rotation: NDArray[np.float64] = u @ vt
    return rotation


def read_word_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Read word pairs from a file with two words per line, separated by a tab or spaces."""
    pairs = []
    for number, line in numbered_lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) != 2:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: expected two words; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
        pairs.append((words[0].strip(), words[1].strip()))
    if not pairs:
        raise FirthError("empty_data", "{path} has no pairs. It must have two words per line.", path=path)
    return pairs
