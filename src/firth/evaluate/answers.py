"""Evaluation of extracted answers by exact match and F1, as in SQuAD's official script."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from firth.core.errors import FirthError
from firth.core.model import Answers
from firth.core.notebook import html_table
from firth.core.scores import answer_f1, exact_match

BATCH = 2048


class QuestionWithAnswers(Protocol):
    """A question, its passage and the accepted answers."""

    @property
    def question(self) -> str: ...

    @property
    def passage(self) -> str: ...

    @property
    def answers(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class AnswerResult:
    """Metrics from 0 to 1. A question without an accepted answer (`unanswerable`) is correct if the answer is empty."""

    questions: int
    unanswerable: int
    exact_match: float
    f1: float

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        names = ("questions", "unanswerable", "exact_match", "f1")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        without_answer = f" ({self.unanswerable:,} without an answer)" if self.unanswerable else ""
        return f"{self.questions:,} questions{without_answer}: exact match {self.exact_match:.3f}, F1 {self.f1:.3f}"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        counts = [f"{self.questions:,}", f"{self.unanswerable:,}"]
        row = [*counts, f"{self.exact_match:.3f}", f"{self.f1:.3f}"]
        return html_table(["questions", "without an answer", "exact match", "F1"], [row], numbers=range(4))


def answers(model: Answers, questions: Iterable[QuestionWithAnswers]) -> AnswerResult:
    """Answer the questions and compare with the accepted answers; the best match of several counts."""
    exact, f1, unanswerable = list[float](), list[float](), 0
    rest = iter(questions)
    while batch := list(islice(rest, BATCH)):
        spans = model.answer([row.question for row in batch], [row.passage for row in batch])
        for span, row in zip(spans, batch, strict=True):
            exact.append(exact_match(span.text, row.answers))
            f1.append(answer_f1(span.text, row.answers))
            unanswerable += not row.answers
    if not exact:
        raise FirthError("empty_data", "There are no questions to evaluate.")
    return AnswerResult(len(exact), unanswerable, sum(exact) / len(exact), sum(f1) / len(exact))
