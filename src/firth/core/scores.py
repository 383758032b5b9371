"""Evaluation metrics: accuracy, F1, correlations, and the agreement of answers."""

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


def accuracy(truth: ArrayLike, predicted: ArrayLike) -> float:
    """The share of correct predictions."""
    return float(np.mean(np.asarray(truth) == np.asarray(predicted))) if np.size(truth) else 0.0


def f1(truth: ArrayLike, predicted: ArrayLike, classes: int) -> float:
    """F1 of class 1 for two classes, as in GLUE; otherwise the macro average over the classes that occur."""
    expected, given = np.asarray(truth), np.asarray(predicted)
    scores = []
    for number in (1,) if classes == 2 else range(classes):
        either = int((expected == number).sum() + (given == number).sum())
        if either or classes == 2:
            scores.append(2 * int(((expected == number) & (given == number)).sum()) / max(1, either))
    return float(np.mean(scores)) if scores else 0.0


def matthews(truth: ArrayLike, predicted: ArrayLike) -> float:
    """Matthews correlation coefficient for any number of classes (Gorodkin 2004); 0 if undefined."""
    expected, given = np.asarray(truth), np.asarray(predicted)
    if not expected.size:
        return 0.0
    classes = np.unique(np.concatenate([expected, given]))
    confusion = np.zeros((len(classes), len(classes)))
    np.add.at(confusion, (np.searchsorted(classes, expected), np.searchsorted(classes, given)), 1)
    true_counts, predicted_counts, total = confusion.sum(1), confusion.sum(0), confusion.sum()
    spread = (total**2 - predicted_counts @ predicted_counts) * (total**2 - true_counts @ true_counts)
    covariance = confusion.trace() * total - true_counts @ predicted_counts
    return float(covariance / math.sqrt(spread)) if spread > 0 else 0.0


def ranks(values: NDArray[Any]) -> NDArray[np.float64]:
    """Ranks from 1; ties get their mean rank, as for Spearman's ρ."""
    _, position, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    return np.asarray((last - (counts - 1) / 2)[position], dtype=np.float64)


def correlation(x: NDArray[np.float64], y: NDArray[np.float64]) -> float:
    """Pearson's r; NaN if undefined."""
    if len(x) < 2 or np.ptp(x) == 0 or np.ptp(y) == 0:
        return math.nan
    x, y = x - x.mean(), y - y.mean()
    return float(x @ y / math.sqrt(float(x @ x) * float(y @ y)))


# ---- answers (Rajpurkar et al. 2016, section 6.1) ----


def plain_answer(text: str) -> str:
    """Normalize an answer: lower case, no punctuation, no articles, single spaces."""
    return " ".join(ARTICLES.sub(" ", text.lower().translate(PUNCTUATION)).split())


def exact_match(predicted: str, answers: Sequence[str]) -> float:
    """1 if the prediction equals one of the reference answers, else 0."""
    return float(any(plain_answer(predicted) == right for right in right_answers(answers)))


def answer_f1(predicted: str, answers: Sequence[str]) -> float:
    """The best word-level F1 with any of the reference answers."""
    return max(words_f1(plain_answer(predicted).split(), right.split()) for right in right_answers(answers))


def right_answers(answers: Sequence[str]) -> list[str]:
    """Normalized reference answers; an empty answer if there are none."""
    return [right for answer in answers if (right := plain_answer(answer))] or [""]


def words_f1(predicted: Sequence[str], right: Sequence[str]) -> float:
    """Return the F1 score of the words of two answers (Rajpurkar et al. 2016)."""
    if not predicted or not right:
        return float(list(predicted) == list(right))
    same = sum((Counter(predicted) & Counter(right)).values())
    return 2 * same / (len(predicted) + len(right))
