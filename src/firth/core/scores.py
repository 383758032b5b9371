"""Figures that compare what was predicted with what is right: labels, numbers, spans of text."""

from __future__ import annotations

import math
import re
import string
from collections import Counter
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

ARTICLES = re.compile(r"\b(a|an|the)\b")
PUNCTUATION = str.maketrans("", "", string.punctuation)


def accuracy(right: ArrayLike, found: ArrayLike) -> float:
    """The share that is right."""
    return float(np.mean(np.asarray(right) == np.asarray(found))) if np.size(right) else 0.0


def f1(right: ArrayLike, found: ArrayLike, classes: int) -> float:
    """2 · both / (right + found): of class 1 where there are two, as GLUE has it; else the plain mean over the classes
    that occur."""
    truth, guess = np.asarray(right), np.asarray(found)
    scores = []
    for number in (1,) if classes == 2 else range(classes):
        either = int((truth == number).sum() + (guess == number).sum())
        if either or classes == 2:
            scores.append(2 * int(((truth == number) & (guess == number)).sum()) / max(1, either))
    return float(np.mean(scores)) if scores else 0.0


def matthews(right: ArrayLike, found: ArrayLike) -> float:
    """Matthews' correlation of any number of classes (Gorodkin 2004); 0 where it is not defined."""
    truth, guess = np.asarray(right), np.asarray(found)
    if not truth.size:
        return 0.0
    names = np.unique(np.concatenate([truth, guess]))
    rows, columns = np.searchsorted(names, truth), np.searchsorted(names, guess)
    table = np.zeros((len(names), len(names)))
    np.add.at(table, (rows, columns), 1)
    real, given, total = table.sum(1), table.sum(0), table.sum()
    spread = (total**2 - given @ given) * (total**2 - real @ real)
    return float((table.trace() * total - real @ given) / math.sqrt(spread)) if spread > 0 else 0.0


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; equal values share the mean of theirs, as Spearman's ρ wants it."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[place], dtype=np.float64)


def correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson's r; NaN where it is not defined."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / math.sqrt(float(x @ x) * float(y @ y)))


# ---- answers, as SQuAD's official script judges them (Rajpurkar et al. 2016) ----


def plain_answer(text: str) -> str:
    """Lower case, without punctuation and articles, single blanks."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(found: str, answers: Sequence[str]) -> float:
    """1 where the answer is one of the right ones."""
    return float(any(plain_answer(found) == right for right in right_answers(answers)))


def answer_f1(found: str, answers: Sequence[str]) -> float:
    """The best F1 over words with one of the right answers."""
    return max(words_f1(plain_answer(found).split(), right.split()) for right in right_answers(answers))


def right_answers(answers: Sequence[str]) -> list[str]:
    """In plain form; where there is none, to give none is right."""
    return [right for answer in answers if (right := plain_answer(answer))] or [""]


def words_f1(found: Sequence[str], right: Sequence[str]) -> float:
    if not found or not right:
        return float(list(found) == list(right))
    same = sum((Counter(found) & Counter(right)).values())
    return 2 * same / (len(found) + len(right))
