"""One space turned onto another: orthogonal Procrustes (Schönemann 1966; for words over time, Hamilton et al. 2016).

Two trainings give the same words other axes. With A and B the unit vectors of the words that both have, the rotation
(or reflection) R that brings them nearest to each other, min ‖A R − B‖ with RᵀR = 1, is U Vᵀ where U S Vᵀ = AᵀB.
Distances and cosines within the turned space stay what they were.
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
from firth.core.vectors import Hit, Hits, Vectors, row_lengths, unit_rows
from firth.evaluate.words import check_finite, numbered_lines

WordPairs = Sequence[tuple[str, str]]


@dataclass(frozen=True)
class Aligned:
    """`vectors` are all of the first space, turned by `rotation`. `pairs` are the words it was found by, with how near
    (cosine) each lies to its fellow: `before`, where the spaces have nothing to do with each other, and `after`."""

    vectors: Vectors
    rotation: NDArray[np.float64]
    pairs: tuple[tuple[str, str], ...]
    before: NDArray[np.float64]
    after: NDArray[np.float64]

    def moved(self, k: int = 10) -> Hits:
        """The `k` words that moved most, each with its cosine to where it is in the other space."""
        order = np.argsort(self.after, kind="stable")[:k]
        return Hits(Hit(self.shown(row), float(self.after[row])) for row in order)

    def stayed(self, k: int = 10) -> Hits:
        order = np.argsort(-self.after, kind="stable")[:k]
        return Hits(Hit(self.shown(row), float(self.after[row])) for row in order)

    def shown(self, row: int) -> str:
        a, b = self.pairs[row]
        return a if a == b else f"{a} → {b}"

    def to_json(self, k: int = 10) -> dict[str, Any]:
        return {
            "words": len(self.pairs),
            "dim": len(self.rotation),
            "mean_cosine": {"before": float(self.before.mean()), "after": float(self.after.mean())},
            "moved": [{"word": hit.key, "cosine": hit.score} for hit in self.moved(k)],
            "stayed": [{"word": hit.key, "cosine": hit.score} for hit in self.stayed(k)],
        }


def align(a: Any, b: Any, *, pairs: WordPairs | None = None, restrict: int | None = None) -> Aligned:
    """Vectors of `a` (or a model's) turned into the space of `b`, by the words that both have.

    `pairs` says which word of `a` is which of `b`, as between languages. With `restrict`, only pairs of the first
    so many words of each, the most frequent, are used.
    """
    source, target = vectors_of(a), vectors_of(b)
    if source.dim != target.dim:
        raise FirthError(
            "shape_mismatch",
            "Spaces to align must have the same dimension; got {got} and {dim}.",
            got=source.dim,
            dim=target.dim,
        )
    if restrict is not None and restrict < 1:
        raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="restrict", got=restrict)
    check_finite(source, None)
    check_finite(target, None)
    known = usable(source, target, pairs, restrict)
    left, right = (
        unit_rows(vectors.matrix[[vectors.rows[pair[side]] for pair in known]]).astype(np.float64)
        for side, vectors in ((0, source), (1, target))
    )
    rotation = procrustes(left, right)
    before, after = ((rows * right).sum(axis=1) for rows in (left, left @ rotation))
    turned = Vectors(source.keys, source.matrix @ rotation.astype(np.float32))
    return Aligned(turned, rotation, tuple(known), before, after)


def vectors_of(given: Any) -> Vectors:
    if isinstance(given, Vectors):
        return given
    if isinstance(given, HasVectors):
        return given.vectors
    raise FirthError(
        "invalid_type", "align takes two Vectors or models that have them; got {got}.", got=type(given).__name__
    )


def usable(source: Vectors, target: Vectors, pairs: WordPairs | None, restrict: int | None) -> list[tuple[str, str]]:
    """Pairs whose words both have a vector other than zero."""
    asked = [(word, word) for word in dict.fromkeys(source.keys)] if pairs is None else list(dict.fromkeys(pairs))
    last = max(len(source), len(target)) if restrict is None else restrict
    some = [row_lengths(vectors.matrix) > 0 for vectors in (source, target)]
    known = [
        (x, y)
        for x, y in asked
        if (i := source.rows.get(x, last)) < last
        and (j := target.rows.get(y, last)) < last
        and some[0][i]
        and some[1][j]
    ]
    if not known:
        raise FirthError(
            "empty_data", "The two spaces have no word in common; pairs=… says which words belong together."
        )
    if len(known) < source.dim:
        warnings.warn(
            f"{len(known):,} common words do not fix a rotation in {source.dim} dimensions; cosines say too much.",
            FirthWarning,
            stacklevel=3,
        )
    return known


def procrustes(a: NDArray[np.float64], b: NDArray[np.float64]) -> NDArray[np.float64]:
    """The orthogonal R that makes ‖A R − B‖ least."""
    u, _, vt = np.linalg.svd(a.T @ b)
    rotation: NDArray[np.float64] = u @ vt
    return rotation


def read_word_pairs(path: str | os.PathLike[str]) -> list[tuple[str, str]]:
    """Two words a line, by a tab or blanks."""
    pairs = []
    for number, line in numbered_lines(path):
        words = line.split("\t") if "\t" in line else line.split()
        if len(words) != 2:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a pair is two words; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
        pairs.append((words[0].strip(), words[1].strip()))
    if not pairs:
        raise FirthError("empty_data", "{path} has no pairs; it needs two words a line.", path=path)
    return pairs
