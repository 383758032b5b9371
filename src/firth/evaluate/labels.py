"""How often predicted labels are right: accuracy, precision and recall of the k best, F1 of each label."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any

from firth.core.errors import FirthError
from firth.core.model import Predicts
from firth.evaluate.layout import text_table

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
    were given, most frequent first; `unlabelled` texts were left out."""

    k: int
    texts: int
    unlabelled: int
    best_right: int
    scores: tuple[LabelScore, ...]

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
            f"R@{self.k} {self.recall:.3f}, macro F1 {self.macro_f1:.3f}\n\n{table}"
        )


def classification(
    model: Predicts, examples: Iterable[tuple[str, str | Sequence[str]]], k: int = 1, threshold: float = 0.0
) -> LabelResult:
    """Predicts the texts of (text, label or labels) and compares. A label that the model never met counts as not found;
    a text without labels is left out."""
    having, given, right = Counter[str](), Counter[str](), Counter[str]()
    texts = unlabelled = best_right = 0
    rest = iter(examples)
    while batch := list(islice(rest, BATCH)):
        truths = [{truth} if isinstance(truth, str) else set(truth) for _, truth in batch]
        asked = [(text, truth) for (text, _), truth in zip(batch, truths, strict=True) if truth]
        unlabelled += len(batch) - len(asked)
        found = model.predict([text for text, _ in asked], k=k, threshold=threshold)
        for (_, truth), predictions in zip(asked, found, strict=True):
            names = [name for name, _ in predictions]
            texts += 1
            best_right += bool(names) and names[0] in truth
            having.update(truth)
            given.update(names)
            right.update(truth & set(names))
    if not texts:
        raise FirthError(f"None of the {unlabelled:,} texts has a label to compare with.")
    ranked = sorted(having | given, key=lambda name: (-having[name], name))
    scores = tuple(LabelScore(name, having[name], given[name], right[name]) for name in ranked)
    return LabelResult(k, texts, unlabelled, best_right, scores)
