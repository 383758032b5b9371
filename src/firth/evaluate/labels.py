"""Evaluation of predicted labels (accuracy, precision and recall of the k best, F1 of each label, confusion) and of
predicted numbers (correlations and error)."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import islice
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from firth.core import scores as metrics
from firth.core.errors import FirthError
from firth.core.model import Predicts
from firth.core.notebook import html_lines, html_table
from firth.evaluate.layout import number_or_none, text_table

BATCH = 1024


@dataclass(frozen=True)
class LabelScore:
    """One label: how many texts have it, how many were predicted to have it, and how many of these predictions are
    right."""

    label: str
    texts: int
    predicted: int
    right: int

    @property
    def precision(self) -> float:
        """The share of predictions of this label that are right."""
        return self.right / self.predicted if self.predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of texts with this label for which it was predicted."""
        return self.right / self.texts if self.texts else 0.0

    @property
    def f1(self) -> float:
        """The harmonic mean of precision and recall: 2 · right / (texts + predicted)."""
        both = self.texts + self.predicted
        return 2 * self.right / both if both else 0.0


@dataclass(frozen=True)
class LabelResult:
    """Metrics of predicted labels.

    `scores` has all labels that occur or were predicted, most frequent first. `unlabeled` texts are left out. In
    `confusion`, "" stands for no predicted label.
    """

    k: int
    texts: int
    unlabeled: int
    best_right: int
    scores: tuple[LabelScore, ...]
    #: Number of texts by (label, best prediction), over texts with exactly one label.
    confusion: Mapping[tuple[str, str], int] = field(default_factory=dict)

    @property
    def accuracy(self) -> float:
        """The share of texts whose most probable label is one of theirs."""
        return self.best_right / self.texts if self.texts else 0.0

    @property
    def precision(self) -> float:
        """The share of predicted labels that are right (P@k)."""
        predicted = sum(score.predicted for score in self.scores)
        return sum(score.right for score in self.scores) / predicted if predicted else 0.0

    @property
    def recall(self) -> float:
        """The share of the texts' labels that were predicted (R@k)."""
        total = sum(score.texts for score in self.scores)
        return sum(score.right for score in self.scores) / total if total else 0.0

    @property
    def macro_f1(self) -> float:
        """The unweighted mean of the labels' F1."""
        return sum(score.f1 for score in self.scores) / len(self.scores) if self.scores else 0.0

    @property
    def matthews(self) -> float:
        """Matthews' correlation coefficient over texts with one label; 0 for guessing, also with unbalanced labels."""
        counts = list(self.confusion.values())
        labels, predicted = (np.repeat([pair[side] for pair in self.confusion], counts) for side in (0, 1))
        return metrics.matthews(labels, predicted)

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON values."""
        names = ("texts", "predicted", "right", "precision", "recall", "f1")
        return {
            "texts": self.texts,
            "unlabelled": self.unlabeled,
            "k": self.k,
            "accuracy": self.accuracy,
            "precision": self.precision,
            "recall": self.recall,
            "macro_f1": self.macro_f1,
            "matthews": self.matthews,
            "confusion": [[label, predicted, n] for (label, predicted), n in sorted(self.confusion.items())],
            "labels": {score.label: {name: getattr(score, name) for name in names} for score in self.scores},
        }

    def _table(self) -> tuple[list[str], list[list[str]]]:
        rows = [
            [score.label, f"{score.texts:,}", *(f"{value:.3f}" for value in (score.precision, score.recall, score.f1))]
            for score in self.scores
        ]
        return ["label", "texts", "precision", "recall", "F1"], rows

    def _summary(self) -> str:
        left_out = f" ({self.unlabeled:,} without a label left out)" if self.unlabeled else ""
        return (
            f"{self.texts:,} texts{left_out}: accuracy {self.accuracy:.3f}, P@{self.k} {self.precision:.3f}, "
            f"R@{self.k} {self.recall:.3f}, macro F1 {self.macro_f1:.3f}, Matthews {self.matthews:.3f}"
        )

    def __str__(self) -> str:
        return f"{self._summary()}\n\n{text_table(*self._table(), numbers=range(1, 5))}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_lines(self._summary()) + html_table(*self._table(), numbers=range(1, 5))


def classification(
    model: Predicts, examples: Iterable[tuple[Any, str | float | Sequence[str]]], k: int = 1, threshold: float = 0.0
) -> LabelResult:
    """Predict labels for examples of (text, label or labels) and compare.

    A label unseen in training counts as missed. Texts without a label are left out.
    """
    return label_result(predicted(model, examples, k, threshold), k)


def predicted(
    model: Predicts, examples: Iterable[tuple[Any, str | float | Sequence[str]]], k: int, threshold: float
) -> Iterator[tuple[set[str], list[tuple[str, float]]]]:
    """Yield the labels and the predicted labels of each text."""
    rest = iter(examples)
    while batch := list(islice(rest, BATCH)):
        truths = [label_set(truth) for _, truth in batch]
        labeled = [text for (text, _), truth in zip(batch, truths, strict=True) if truth]
        predictions = iter(model.predict(labeled, k=k, threshold=threshold))
        for truth in truths:
            yield truth, next(predictions) if truth else []


def label_set(truth: Any) -> set[str]:
    """Return the labels of a text, which may be one str, one number (5.0 is "5", as in `LabeledTexts`), or several."""
    if isinstance(truth, Real):
        number = int(truth) if isinstance(truth, float) and truth.is_integer() else truth
        return set() if truth != truth else {str(number)}
    return {truth} if isinstance(truth, str) else set(truth)


def label_result(answers: Iterable[tuple[set[str], list[tuple[str, float]]]], k: int = 1) -> LabelResult:
    """Compare the labels of each text with the predicted ones, which are in order of probability."""
    occurring, given, right = Counter[str](), Counter[str](), Counter[str]()
    confusion = Counter[tuple[str, str]]()
    texts = unlabeled = best_right = 0
    for truth, predictions in answers:
        if not truth:
            unlabeled += 1
            continue
        names = [name for name, _ in predictions]
        texts += 1
        best_right += bool(names) and names[0] in truth
        occurring.update(truth)
        given.update(names)
        right.update(truth & set(names))
        if len(truth) == 1:
            confusion[next(iter(truth)), names[0] if names else ""] += 1
    if not texts:
        raise FirthError("empty_data", "None of the {n_texts:,} texts has a label to compare with.", n_texts=unlabeled)
    ranked = sorted(occurring | given, key=lambda name: (-occurring[name], name))
    scores = tuple(LabelScore(name, occurring[name], given[name], right[name]) for name in ranked)
    return LabelResult(k, texts, unlabeled, best_right, scores, dict(confusion))


@dataclass(frozen=True)
class NumberResult:
    """Metrics of predicted numbers. Correlations are NaN if either side is constant; `unlabeled` texts are left out."""

    texts: int
    spearman: float
    pearson: float
    error: float  # root mean squared error
    unlabeled: int = 0

    def to_json(self) -> dict[str, Any]:
        """Return the metrics as JSON values."""
        return {
            "texts": self.texts,
            "unlabelled": self.unlabeled,
            "spearman": number_or_none(self.spearman),
            "pearson": number_or_none(self.pearson),
            "error": self.error,
        }

    def __str__(self) -> str:
        left_out = f" ({self.unlabeled:,} without a number left out)" if self.unlabeled else ""
        return (
            f"{self.texts:,} texts{left_out}: Spearman {self.spearman:.3f}, Pearson {self.pearson:.3f}, "
            f"root mean squared error {self.error:.3f}"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        counts = [f"{self.texts:,}", f"{self.unlabeled:,}"]
        row = [*counts, f"{self.spearman:.3f}", f"{self.pearson:.3f}", f"{self.error:.3f}"]
        header = ["texts", "without a number", "Spearman", "Pearson", "root mean squared error"]
        return html_table(header, [row], numbers=range(5))


def number_result(targets: ArrayLike, predictions: ArrayLike) -> NumberResult:
    """Compare predicted numbers with their targets; rows whose target is NaN are left out."""
    correct, predicted = np.asarray(targets, np.float64), np.asarray(predictions, np.float64)
    x, y = correct[~np.isnan(correct)], predicted[~np.isnan(correct)]
    if not len(x):
        raise FirthError("empty_data", "There is no number to compare with.")
    spearman = metrics.correlation(metrics.ranks(x), metrics.ranks(y))
    error = float(np.sqrt(np.mean((x - y) ** 2)))
    return NumberResult(len(x), spearman, metrics.correlation(x, y), error, len(correct) - len(x))
