"""Evaluation of generated texts: BLEU of translations, ROUGE of summaries."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple

from firth.core.errors import FirthError
from firth.core.extras import missing_package


def bleu(texts: Sequence[str], references: Sequence[str], tokenize: str = "none") -> float:
    """Return corpus BLEU (Papineni et al. 2002), computed by sacrebleu, from 0 to 100, with one reference per text.

    `tokenize` is sacrebleu's: "none" for texts that are tokenized already (words separated by spaces), "13a" for
    others.
    """
    check_lengths(texts, references)
    try:
        import sacrebleu
    except ImportError:
        raise missing_package("BLEU needs", "sacrebleu") from None
    # force: no warning about tokenized texts (ending with " ."), which are what "none" is for
    return float(sacrebleu.corpus_bleu(list(texts), [list(references)], tokenize=tokenize, force=True).score)


class Rouge(NamedTuple):
    """Mean F1 over texts, from 0 to 100, of shared words, shared bigrams and the longest common subsequence."""

    one: float
    two: float
    longest: float


def rouge(texts: Sequence[str], references: Sequence[str]) -> Rouge:
    """Return ROUGE-1, ROUGE-2 and ROUGE-L (Lin 2004) over lower-case words separated by spaces, without stemming."""
    check_lengths(texts, references)
    scores = [rouge_of(a.lower().split(), b.lower().split()) for a, b in zip(texts, references, strict=True)]
    means = [100 * sum(column) / len(scores) for column in zip(*scores, strict=True)] if scores else [0.0] * 3
    return Rouge(*means)


def rouge_of(words: Sequence[str], reference: Sequence[str]) -> tuple[float, float, float]:
    """Return the three ROUGE scores of one text, from 0 to 1."""
    n_grams = overlap(words, reference, 1), overlap(words, reference, 2)
    return (*n_grams, f1(longest_common(words, reference), len(words), len(reference)))


def overlap(words: Sequence[str], reference: Sequence[str], n: int) -> float:
    """Return the F1 of shared n-grams; repeated n-grams count each time."""
    grams = [Counter(zip(*(side[i:] for i in range(n)), strict=False)) for side in (words, reference)]
    return f1((grams[0] & grams[1]).total(), grams[0].total(), grams[1].total())


def f1(shared: int, predicted: int, expected: int) -> float:
    """Return the harmonic mean of shared / predicted and shared / expected."""
    return 2 * shared / (predicted + expected) if shared else 0.0


def longest_common(a: Sequence[str], b: Sequence[str]) -> int:
    """Return the length of the longest common subsequence."""
    row = [0] * (len(b) + 1)
    for word in a:
        before = 0
        for column, other in enumerate(b, 1):
            before, row[column] = row[column], before + 1 if word == other else max(row[column], row[column - 1])
    return row[-1]


def check_lengths(texts: Sequence[str], references: Sequence[str]) -> None:
    """Refuse lists of different lengths."""
    if len(texts) != len(references):
        raise FirthError(
            "shape_mismatch",
            "There must be one reference per text; got {n_texts:,} texts and {n_references:,} references.",
            n_texts=len(texts),
            n_references=len(references),
        )
