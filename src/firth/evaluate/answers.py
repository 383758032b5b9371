"""How good answers from passages are: exact match and F1, as SQuAD's official script computes them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import Any, Protocol

from firth.core.errors import FirthError
from firth.core.model import Answers
from firth.core.scores import answer_f1, exact_match

BATCH = 2048


class Asked(Protocol):
    """A question, its passage and the answers that count as right."""

    @property
    def question(self) -> str: ...

    @property
    def passage(self) -> str: ...

    @property
    def answers(self) -> Sequence[str]: ...


@dataclass(frozen=True)
class AnswerResult:
    """Shares of 1. `unanswerable` questions, those without a right answer, are right when none is given."""

    questions: int
    unanswerable: int
    exact_match: float
    f1: float

    def to_json(self) -> dict[str, Any]:
        names = ("questions", "unanswerable", "exact_match", "f1")
        return {name: getattr(self, name) for name in names}

    def __str__(self) -> str:
        none = f" ({self.unanswerable:,} without an answer)" if self.unanswerable else ""
        return f"{self.questions:,} questions{none}: exact match {self.exact_match:.3f}, F1 {self.f1:.3f}"


def answers(model: Answers, asked: Iterable[Asked]) -> AnswerResult:
    """Asks the model, and compares with the right answers: with the nearest of several."""
    exact, overlap, unanswerable = list[float](), list[float](), 0
    rest = iter(asked)
    while batch := list(islice(rest, BATCH)):
        found = model.answer([row.question for row in batch], [row.passage for row in batch])
        for span, row in zip(found, batch, strict=True):
            exact.append(exact_match(span.text, row.answers))
            overlap.append(answer_f1(span.text, row.answers))
            unanswerable += not row.answers
    if not exact:
        raise FirthError("empty_data", "There is no question to ask.")
    return AnswerResult(len(exact), unanswerable, sum(exact) / len(exact), sum(overlap) / len(exact))
