"""How often predicted labels are right: accuracy, precision and recall of the k best, F1 of each label; which label was
taken for which; and how well predicted numbers go with the right ones."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firth.core import scores as figures
from firth.core.errors import FirthError
from firth.core.model import Predicts
from firth.evaluate.layout import number_or_none, text_table

BATCH = 1024


@dataclass(frozen=True)
class LabelScore:
    """One label: how many texts have it, how many were given it, how many of these rightly."""

    label: str
    texts: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        return self.right / self.texts if self.texts else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of both: 2 · right / (texts + predicted)."""
        both = self.texts + self.predicted
        return 2 * self.right / both if both else 0.0


@dataclass(frozen=True)
class LabelResult:
    """`accuracy` is the share of texts whose best label is one of theirs. `scores` has the labels that texts have or
    were given, most frequent first; `unlabelled` texts were left out. `confusion` has the best label "" for none."""

    k: int
    texts: int
    unlabelled: int
    best_right: int
    scores: tuple[LabelScore, ...]
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)  # right and best label, of texts with one

    @property
    def accuracy(self) -> float:
        return self.best_right / self.texts if self.texts else 0.0

    @property
    def precision(self) -> float:
        """Of the labels given, those that are right (P@k)."""
        predicted = sum(score.predicted for score in self.scores)
        return sum(score.right for score in self.scores) / predicted if predicted else 0.0

    @property
    def recall(self) -> float:
        """Of the labels that texts have, those that were given (R@k)."""
        having = sum(score.texts for score in self.scores)
        return sum(score.right for score in self.scores) / having if having else 0.0

    @property
    def macro_f1(self) -> float:
        """The plain mean of the labels' F1, rare ones as weighty as frequent ones."""
        return sum(score.f1 for score in self.scores) / len(self.scores) if self.scores else 0.0

    @property
    def matthews(self) -> float:
        """Matthews' correlation over the texts with one label: 0 for guessing, however unlike the labels' numbers."""
        counts = list(self.confusion.values())
        right, found = (np.repeat([pair[side] for pair in self.confusion], counts) for side in (0, 1))
        return figures.matthews(right, found)

    def to_json(self) -> dict[str, Any]:
        names = ("texts", "predicted", "right", "precision", "recall", "f1")
        return {
            "texts": self.texts,
            "unlabelled": self.unlabelled,
            "k": self.k,
            "accuracy": self.accuracy,
            "precision": self.precision,
            "recall": self.recall,
            "macro_f1": self.macro_f1,
            "matthews": self.matthews,
            "confusion": [[right, found, count] for (right, found), count in sorted(self.confusion.items())],
            "labels": {score.label: {name: getattr(score, name) for name in names} for score in self.scores},
        }

    def __str__(self) -> str:
        rows = [
            [score.label, f"{score.texts:,}", *(f"{value:.3f}" for value in (score.precision, score.recall, score.f1))]
            for score in self.scores
        ]
        table = text_table(["label", "texts", "precision", "recall", "F1"], rows, numbers=range(1, 5))
        left = f" ({self.unlabelled:,} without a label left out)" if self.unlabelled else ""
        return (
            f"{self.texts:,} texts{left}: accuracy {self.accuracy:.3f}, P@{self.k} {self.precision:.3f}, "
            f"R@{self.k} {self.recall:.3f}, macro F1 {self.macro_f1:.3f}, Matthews {self.matthews:.3f}\n\n{table}"
        )


def classification(
    model: Predicts, examples: Iterable[tuple[Any, str | Sequence[str]]], k: int = 1, threshold: float = 0.0
) -> LabelResult:
    """Predicts the texts of (text, label or labels) and compares. A label that the model never met counts as not found;
    a text without labels is left out."""
    return label_result(predicted(model, examples, k, threshold), k)


def predicted(
    model: Predicts, examples: Iterable[tuple[Any, str | Sequence[str]]], k: int, threshold: float
) -> Iterator[tuple[set[str], list[tuple[str, float]]]]:
    """Each text's labels and the predicted ones."""
    rest = iter(examples)
    while batch := list(islice(rest, BATCH)):
        truths = [label_set(truth) for _, truth in batch]
        asked = [text for (text, _), truth in zip(batch, truths, strict=True) if truth]
        found = iter(model.predict(asked, k=k, threshold=threshold))
        for truth in truths:
            yield truth, next(found) if truth else []


def label_set(truth: Any) -> set[str]:
    """The labels of a text: one, a number that stands for one (as `LabeledTexts` reads it: 5.0 is 5), or several."""
    if isinstance(truth, Real):
        number = int(truth) if isinstance(truth, float) and truth.is_integer() else truth
        return set() if truth != truth else {str(number)}
    return {truth} if isinstance(truth, str) else set(truth)


def label_result(answers: Iterable[tuple[set[str], list[tuple[str, float]]]], k: int = 1) -> LabelResult:
    """Compares each text's labels with the predicted ones, best first."""
    having, given, right = Counter[str](), Counter[str](), Counter[str]()
    confusion = Counter[tuple[str, str]]()
    texts = unlabelled = best_right = 0
    for truth, predictions in answers:
        if not truth:
            unlabelled += 1
            continue
        names = [name for name, _ in predictions]
        texts += 1
        best_right += bool(names) and names[0] in truth
        having.update(truth)
        given.update(names)
        right.update(truth & set(names))
        if len(truth) == 1:
            confusion[next(iter(truth)), names[0] if names else ""] += 1
    if not texts:
        raise FirthError(
            "empty_data", "None of the {unlabelled:,} texts has a label to compare with.", unlabelled=unlabelled
        )
    ranked = sorted(having | given, key=lambda name: (-having[name], name))
    scores = tuple(LabelScore(name, having[name], given[name], right[name]) for name in ranked)
    return LabelResult(k, texts, unlabelled, best_right, scores, dict(confusion))


@dataclass(frozen=True)
class NumberResult:
    """How well predicted numbers go with the right ones; correlations are NaN where all of either are the same. Texts
    without a right one, `unlabelled`, were left out."""

    texts: int
    spearman: float
    pearson: float
    error: float  # the root of the mean squared one
    unlabelled: int = 0

    def to_json(self) -> dict[str, Any]:
        return {
            "texts": self.texts,
            "unlabelled": self.unlabelled,
            "spearman": number_or_none(self.spearman),
            "pearson": number_or_none(self.pearson),
            "error": self.error,
        }

    def __str__(self) -> str:
        left = f" ({self.unlabelled:,} without a number left out)" if self.unlabelled else ""
        return (
            f"{self.texts:,} texts{left}: Spearman {self.spearman:.3f}, Pearson {self.pearson:.3f}, "
            f"root mean squared error {self.error:.3f}"
        )


def number_result(right: ArrayLike, found: ArrayLike) -> NumberResult:
    """Compares numbers; those whose right one is NaN are left out."""
    whole, guessed = np.asarray(right, np.float64), np.asarray(found, np.float64)
    x, y = whole[~np.isnan(whole)], guessed[~np.isnan(whole)]
    if not len(x):
        raise FirthError("empty_data", "There is no number to compare with.")
    ranked = figures.correlation(figures.ranks(x), figures.ranks(y))
    error = float(np.sqrt(np.mean((x - y) ** 2)))
    return NumberResult(len(x), ranked, figures.correlation(x, y), error, len(whole) - len(x))
