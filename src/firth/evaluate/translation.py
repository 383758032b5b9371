"""How good written texts are: BLEU of translations, ROUGE of summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from firth.core.errors import FirthError
from firth.core.extras import missing_package


def bleu(found: Sequence[str], right: Sequence[str], tokenize: str = "none") -> float:
    """Corpus BLEU (Papineni et al. 2002) by sacrebleu, 0 to 100, with one right translation each.

    `tokenize` is sacrebleu's: "none" for texts that are tokenised already (words apart by spaces), "13a" for others.
    """
    check(found, right)
    try:
        import sacrebleu
    except ImportError:
        raise missing_package("BLEU needs", "sacrebleu") from None
    # force: a text that ends with " ." is what "none" is for.
    return float(sacrebleu.corpus_bleu(list(found), [list(right)], tokenize=tokenize, force=True).score)


class Rouge(NamedTuple):
    """Mean F1 over texts, 0 to 100: of shared words, shared pairs of neighbours, the longest common subsequence."""

    one: float
    two: float
    longest: float


def rouge(found: Sequence[str], right: Sequence[str]) -> Rouge:
    """ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) over words in lower case, apart by spaces; nothing is stemmed."""
    check(found, right)
    scores = [rouge_of(a.lower().split(), b.lower().split()) for a, b in zip(found, right, strict=True)]
    means = [100 * sum(column) / len(scores) for column in zip(*scores, strict=True)] if scores else [0.0] * 3
    return Rouge(*means)


def rouge_of(found: Sequence[str], right: Sequence[str]) -> tuple[float, float, float]:
    singles = overlap(found, right, 1), overlap(found, right, 2)
    return (*singles, f1(longest_common(found, right), len(found), len(right)))


def overlap(found: Sequence[str], right: Sequence[str], n: int) -> float:
    """F1 of shared n-grams, each counted as often as it stands in both."""
    grams = [Counter(zip(*(words[i:] for i in range(n)), strict=False)) for words in (found, right)]
    return f1((grams[0] & grams[1]).total(), grams[0].total(), grams[1].total())


def f1(shared: int, found: int, right: int) -> float:
    return 2 * shared / (found + right) if shared else 0.0


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """Length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for place, other in enumerate(b, 1):
            before, row[place] = row[place], before + 1 if word == other else max(row[place], row[place - 1])
    return row[-1]


def check(found: Sequence[str], right: Sequence[str]) -> None:
    if len(found) != len(right):
        raise FirthError(
            "shape_mismatch",
            "{n_got:,} texts can't be held against {n_expected:,}: there must be one for each.",
            n_got=len(found),
            n_expected=len(right),
        )
