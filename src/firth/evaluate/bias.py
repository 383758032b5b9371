"""Bias of word vectors: the word embedding association test (WEAT) of Caliskan, Bryson & Narayanan (2017).

Two sets of target words X, Y and two sets of attribute words A, B. The association of a word is

    s(w) = mean cos(w, a) over A − mean cos(w, b) over B,

and the effect size is d = (mean s over X − mean s over Y) / standard deviation of s over X ∪ Y. The p-value is the
share of divisions of X ∪ Y into sets of these sizes whose difference of means is at least the observed one.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from math import comb
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.notebook import html_lines, html_table
from firth.core.vectors import Vectors
from firth.evaluate.layout import text_table
from firth.evaluate.words import check_finite, fold, numbered_lines, row_lookup

PERMUTATIONS = 100_000  # up to so many divisions all are computed, otherwise so many are drawn
ROUNDING = 1e-12  # differences of means that are closer count as equal
BATCH = 10_000


class WordSet(NamedTuple):
    """Words with a name."""

    name: str
    words: tuple[str, ...]


class AssociationTest(NamedTuple):
    """Two sets of target words, and two sets of attribute words."""

    name: str
    targets: tuple[WordSet, WordSet]
    attributes: tuple[WordSet, WordSet]


@dataclass(frozen=True)
class Association:
    """The result of one test: a positive effect associates the first targets with the first attributes."""

    name: str
    effect: float  # d, from −2 to 2
    p: float  # one-sided
    exact: bool  # whether all divisions were computed
    words: tuple[int, int, int, int]  # words with vectors, of each set
    missing: tuple[str, ...]


@dataclass(frozen=True)
class BiasResult:
    """The results of several association tests."""

    tests: tuple[Association, ...]

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {"tests": [asdict(test) for test in self.tests]}

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [test.name, f"{test.effect:+.2f}", p_value(test), " ".join(map(str, test.words))] for test in self.tests
        ]
        return ["test", "effect d", "p", "words"], rows

    def _notes(self) -> str:
        missing = list(dict.fromkeys(word for test in self.tests for word in test.missing))
        more = f" and {len(missing) - 12:,} more" if len(missing) > 12 else ""
        return f"no vector: {', '.join(missing[:12])}{more}" if missing else ""

    def __str__(self) -> str:
        return f"{text_table(*self._table(), numbers=(1, 2))}\n{self._notes()}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=(1, 2)) + html_lines(self._notes())


def p_value(test: Association) -> str:
    """Format a p-value; the smallest one of sampled divisions is a bound."""
    least = 1 / (PERMUTATIONS + 1)
    return f"<{2 * least:.0e}" if not test.exact and test.p <= least else f"{test.p:.2g}"


def read_association_tests(path: str | os.PathLike[str]) -> list[AssociationTest]:
    """Read tests: a line `: name`, then two lines of targets and two of attributes, each `set name: word word …`."""
    tests: list[tuple[str, int, list[WordSet]]] = []
    for number, line in numbered_lines(path):
        name, colon, words = (part.strip() for part in line.partition(":"))
        if line.startswith("#"):
            continue
        if colon and not name:
            tests.append((words, number, []))
        elif colon and words and tests:
            tests[-1][2].append(WordSet(name, tuple(words.replace(",", " ").split())))
        else:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: expected ': name of a test' or 'name of a set: words'; got {got!r}.",
                path=path,
                number=number,
                got=line[:60],
            )
    for name, number, sets in tests:
        if len(sets) != 4:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: the test {name!r} needs four sets of words (two targets, two attributes); "
                "got {got}.",
                path=path,
                number=number,
                name=name,
                got=len(sets),
            )
    if not tests:
        raise FirthError("empty_data", "{path} has no tests. A test begins with a line ': name'.", path=path)
    return [AssociationTest(name, (s[0], s[1]), (s[2], s[3])) for name, _, s in tests]


def associations(
    vectors: Vectors,
    tests: str | os.PathLike[str] | Sequence[AssociationTest],
    *,
    seed: int = 1,
    fold_case: bool = True,
) -> BiasResult:
    """Run association tests (a file or a list). Words without a vector are left out and reported."""
    tests = read_association_tests(tests) if isinstance(tests, (str, os.PathLike)) else tests
    lookup = row_lookup(vectors, None, fold_case)
    check_finite(vectors, None)
    return BiasResult(tuple(association(vectors, test, lookup, seed, fold_case) for test in tests))


def association(
    vectors: Vectors, test: AssociationTest, lookup: dict[str, list[int]], seed: int, fold_case: bool
) -> Association:
    """Run one association test."""
    rows, missing = list[list[int]](), list[str]()
    for each in (*test.targets, *test.attributes):
        word_rows = [(word, lookup.get(fold(word, fold_case))) for word in dict.fromkeys(each.words)]
        missing += [word for word, row in word_rows if row is None]
        rows.append([row[0] for _, row in word_rows if row is not None])
        if len(rows[-1]) < 2:
            raise FirthError(
                "too_few",
                "The test {test!r} needs at least 2 words of {name!r} with vectors; got {got}.",
                test=test.name,
                name=each.name,
                got=len(rows[-1]),
            )
    if shared := set(rows[0]) & set(rows[1]):
        raise FirthError(
            "duplicate_name",
            "The targets of the test {test!r} share {word!r}; a word must be in one set only.",
            test=test.name,
            word=vectors.keys[min(shared)],
        )
    first, second, *attributes = (vectors.unit[each].astype(np.float64) for each in rows)
    targets = np.concatenate([first, second])
    scores = (targets @ attributes[0].T).mean(axis=1) - (targets @ attributes[1].T).mean(axis=1)
    difference = scores[: len(first)].mean() - scores[len(first) :].mean()
    deviation = scores.std(ddof=1)
    p, exact = permutation_p(scores, len(first), seed)
    sizes = (len(rows[0]), len(rows[1]), len(rows[2]), len(rows[3]))
    effect = float(difference / deviation) if deviation > ROUNDING else 0.0
    return Association(test.name, effect, p, exact, sizes, tuple(missing))


def permutation_p(scores: NDArray[np.float64], first: int, seed: int) -> tuple[float, bool]:
    """Return the one-sided p-value of the first `first` scores having a larger mean, and whether it is exact."""
    total, observed = scores.sum(), scores[:first].sum()  # the sum of a set of fixed size orders divisions as its mean
    bound = observed - ROUNDING * max(1.0, float(np.abs(scores).sum()))
    if comb(len(scores), first) <= PERMUTATIONS:
        every = np.array([sum(subset) for subset in combinations(scores.tolist(), first)])
        return float((every >= bound).mean()), True
    random = np.random.default_rng(seed)
    least = min(first, len(scores) - first)
    hits = 0
    for _ in range(PERMUTATIONS // BATCH):
        order = random.random((BATCH, len(scores))).argpartition(least - 1, axis=1)[:, :least]
        sums = scores[order].sum(axis=1)
        hits += int(((sums if least == first else total - sums) >= bound).sum())
    return (hits + 1) / (PERMUTATIONS + 1), False
