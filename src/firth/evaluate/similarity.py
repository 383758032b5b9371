"""Word similarity: how well cosines agree with what people said of word pairs (WS-353, SimLex-999, MEN, …)."""

from __future__ import annotations

import html
import math
import os
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.scores import correlation, ranks
from firth.core.vectors import Vectors, similarity
from firth.evaluate.layout import decimal, html_table, number_or_none, text_table
from firth.evaluate.words import check_finite, fold, numbered_lines, row_lookup


class Pair(NamedTuple):
    """Two words and how alike people found them."""

    a: str
    b: str
    score: float


@dataclass(frozen=True)
class SimilarityResult:
    """Correlation over the `answered` of `asked` pairs; `missing` are the words without a vector."""

    spearman: float  # NaN where fewer than two pairs were answered or all have the same score
    pearson: float
    asked: int
    answered: int
    missing: tuple[str, ...]

    @property
    def skipped(self) -> int:
        return self.asked - self.answered

    def to_json(self) -> dict[str, Any]:
        return {
            "spearman": number_or_none(self.spearman),
            "pearson": number_or_none(self.pearson),
            "asked": self.asked,
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

    def _repr_html_(self) -> str:
        why = f"<p>{html.escape(self._why_skipped())}</p>" if self.missing else ""
        return html_table(*self._table(), numbers=range(4)) + why


def read_pairs(path: str | os.PathLike[str]) -> list[Pair]:
    """Pairs of a file with `word word score` lines, apart by tab, comma or space.

    Lines beginning with # are comments; other lines before the first pair are taken for its heading.
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
                "{path}, line {number}: a pair is two words and a number; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
    if not pairs:
        raise FirthError(
            "empty_data",
            "{path} has no pairs; it needs lines of two words and a number with tab, comma or space between.",
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
    """Correlation of cosine and human score over `pairs` (a file or its pairs) whose words both have vectors."""
    asked = read_pairs(pairs) if isinstance(pairs, (str, os.PathLike)) else pairs
    lookup = row_lookup(vectors, restrict, fold_case)
    found = [(lookup.get(fold(pair.a, fold_case)), lookup.get(fold(pair.b, fold_case))) for pair in asked]
    known = [(a[0], b[0], pair.score) for (a, b), pair in zip(found, asked, strict=True) if a and b]
    missing = dict.fromkeys(
        word
        for rows, pair in zip(found, asked, strict=True)
        for word, row in zip(pair[:2], rows, strict=True)
        if row is None
    )
    cosines = np.array([similarity(vectors.matrix[a], vectors.matrix[b]) for a, b, _ in known])
    cosines = cosines.round(12)  # a word with itself is 1, not 0.9999999999999999: noise must not undo ties
    if not np.isfinite(cosines).all():
        check_finite(vectors, restrict)
    scores = np.array([score for _, _, score in known])
    return SimilarityResult(
        spearman=correlation(ranks(cosines), ranks(scores)),
        pearson=correlation(cosines, scores),
        asked=len(asked),
        answered=len(known),
        missing=tuple(missing),
    )


def _parse(line: str) -> Pair | None:
    separator = next((mark for mark in ("\t", ",") if mark in line), r"\s+")
    fields = [field.strip() for field in re.split(separator, line)]
    try:
        a, b, score = fields[0], fields[1], float(fields[2])
    except (IndexError, ValueError):
        return None
    return Pair(a, b, score) if len(fields) == 3 and a and b and math.isfinite(score) else None
