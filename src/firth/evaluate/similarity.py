"""Word similarity: correlation of cosines with human scores of word pairs (WS-353, SimLex-999, MEN, …)."""

from __future__ import annotations

import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.notebook import html_lines, html_table
from firth.core.scores import correlation, ranks
from firth.core.vectors import Vectors, similarity
from firth.evaluate.layout import decimal, number_or_none, text_table
from firth.evaluate.words import check_finite, fold, numbered_lines, row_lookup


class Pair(NamedTuple):
    """Two words and a human similarity score."""

    a: str
    b: str
    score: float


@dataclass(frozen=True)
class SimilarityResult:
    """Correlations over the `answered` pairs, those whose words both have vectors; `missing` are words without one."""

    spearman: float  # NaN if fewer than two pairs were answered or all have the same score
    pearson: float
    pairs: int
    answered: int
    missing: tuple[str, ...]

    @property
    def skipped(self) -> int:
        """The number of pairs with a word that has no vector."""
        return self.pairs - self.answered

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "spearman": number_or_none(self.spearman),
            "pearson": number_or_none(self.pearson),
            "asked": self.pairs,
            "answered": self.answered,
            "skipped": self.skipped,
            "missing": list(self.missing),
        }

    def _table(self) -> tuple[list[str], list[list[str]]]:
        counts = [f"{number:,}" for number in (self.answered, self.skipped)]
        header = ["spearman", "pearson", "answered", "skipped"]
        return header, [[decimal(self.spearman), decimal(self.pearson), *counts]]

    def _why_skipped(self) -> str:
        rest = len(self.missing) - 12
        more = f" and {rest:,} more" if rest > 0 else ""
        return f"no vector: {', '.join(self.missing[:12])}{more}" if self.missing else ""

    def __str__(self) -> str:
        return f"{text_table(*self._table(), numbers=range(4))}\n{self._why_skipped()}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=range(4)) + html_lines(self._why_skipped())


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """Read the pairs of a file with lines `word word score`, separated by tabs, commas or spaces.

    Lines that start with # are comments; other lines before the first pair are the header.
    """
    pairs: list[Pair] = []
    for number, line in numbered_lines(path):
        if line.startswith("#"):
            continue
        pair = _parse(line)
        if pair is not None:
            pairs.append(pair)
        elif pairs:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: expected two words and a number; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
    if not pairs:
        raise FirthError(
            "empty_data",
            "{path} has no pairs. It must have lines of two words and a number, separated by tabs, commas or spaces.",
            path=path,
        )
    return pairs


def word_similarity(
    vectors: Vectors,
    pairs: str | os.PathLike[str] | Sequence[Pair],
    *,
    restrict: int | None = None,
    fold_case: bool = True,
) -> SimilarityResult:
    """Return the correlation of cosines and human scores over the pairs (a file or a list) whose words have vectors."""
    pairs = read_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else pairs
    lookup = row_lookup(vectors, restrict, fold_case)
    rows_of_pairs = [(lookup.get(fold(pair.a, fold_case)), lookup.get(fold(pair.b, fold_case))) for pair in pairs]
    answered = [(a[0], b[0], pair.score) for (a, b), pair in zip(rows_of_pairs, pairs, strict=True) if a and b]
    missing = dict.fromkeys(
        word
        for rows, pair in zip(rows_of_pairs, pairs, strict=True)
        for word, row in zip(pair[:2], rows, strict=True)
        if row is None
    )
    cosines = np.array([similarity(vectors.matrix[a], vectors.matrix[b]) for a, b, _ in answered])
    cosines = cosines.round(12)  # rounding errors must not break ties, such as those of words with themselves
    if not np.isfinite(cosines).all():
        check_finite(vectors, restrict)
    scores = np.array([score for _, _, score in answered])
    return SimilarityResult(
        spearman=correlation(ranks(cosines), ranks(scores)),
        pearson=correlation(cosines, scores),
        pairs=len(pairs),
        answered=len(answered),
        missing=tuple(missing),
    )


def _parse(line: str) -> Pair | None:
    separator = next((each for each in ("\t", ",") if each in line), r"\s+")
    fields = [field.strip() for field in re.split(separator, line)]
    try:
        a, b, score = fields[0], fields[1], float(fields[2])
    except (IndexError, ValueError):
        return None
    return Pair(a, b, score) if len(fields) == 3 and a and b and math.isfinite(score) else None
