"""Word analogies: a is to b as c is to …? Accuracy on any file in the questions-words format.

The protocol is that of word2vec's compute-accuracy and of gensim: only the most frequent words take part, case is
ignored, a question with a word that has no vector is skipped, and the three question words are excluded from the
answers. "add" is 3CosAdd (Mikolov et al. 2013), "mul" is 3CosMul (Levy & Goldberg 2014, eq. 4).
"""

from __future__ import annotations

import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.notebook import html_lines, html_table
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.evaluate.layout import number_or_none, percent, text_table
from firth.evaluate.words import Lookup, check_finite, fold, numbered_lines, row_lookup

Question = tuple[str, str, str, str]
BATCH_BYTES = 64 << 20  # scores of one batch of questions; bounds the memory
MUL_EPSILON = 1e-3  # Levy & Goldberg's ε, as in Vectors.analogy


@dataclass(frozen=True)
class Section:
    """The questions of one section, such as gram3-comparative."""

    name: str
    questions: tuple[Question, ...]

    @property
    def syntactic(self) -> bool:
        """Whether the section is syntactic: its name starts with "gram"."""
        return self.name.startswith("gram")


@dataclass(frozen=True)
class Score:
    """Counts of one section. Questions whose four words have vectors are `answered`, the others `skipped`."""

    name: str
    questions: int
    answered: int
    correct: int

    @property
    def skipped(self) -> int:
        """The number of questions with a word that has no vector."""
        return self.questions - self.answered

    @property
    def accuracy(self) -> float:
        """The share of answered questions that are correct; NaN if none was answered."""
        return self.correct / self.answered if self.answered else math.nan

    def to_json(self) -> dict[str, Any]:
        """Return the score as JSON values."""
        counts = {"asked": self.questions, "answered": self.answered, "skipped": self.skipped, "correct": self.correct}
        return {"name": self.name, **counts, "accuracy": number_or_none(self.accuracy)}


@dataclass(frozen=True)
class AnalogyResult:
    """Scores by section, and the words because of which questions were skipped, with the number of such questions."""

    sections: tuple[Score, ...]
    semantic: Score
    syntactic: Score
    total: Score
    method: str
    restrict: int | None
    missing: Mapping[str, int]  # words without a vector
    beyond: Mapping[str, int]  # words with a vector beyond the first `restrict`

    @property
    def accuracy(self) -> float:
        """The accuracy over all sections."""
        return self.total.accuracy

    def to_json(self) -> dict[str, Any]:
        """Return the result as JSON values."""
        return {
            "accuracy": number_or_none(self.accuracy),
            "total": self.total.to_json(),
            "semantic": self.semantic.to_json(),
            "syntactic": self.syntactic.to_json(),
            "sections": [score.to_json() for score in self.sections],
            "method": self.method,
            "restrict": self.restrict,
            "missing": dict(self.missing),
            "beyond": dict(self.beyond),
        }

    def _table(self) -> tuple[list[str], list[list[str]]]:
        scores = [*self.sections, self.semantic, self.syntactic, self.total]
        rows = [
            [score.name, percent(score.accuracy), *(f"{n:,}" for n in (score.correct, score.answered, score.skipped))]
            for score in scores
        ]
        return ["section", "accuracy", "correct", "answered", "skipped"], rows

    def _why_skipped(self) -> str:
        """Return one line per reason, with the words that caused most skipped questions."""
        reasons = ((self.missing, "no vector"), (self.beyond, f"not among the first {self.restrict or 0:,}"))
        return "\n".join(f"{reason}: {_listed(words)}" for words, reason in reasons if words)

    def __str__(self) -> str:
        table = text_table(*self._table(), numbers=(1, 2, 3, 4))
        return f"{table}\n{self._why_skipped()}".rstrip()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return html_table(*self._table(), numbers=(1, 2, 3, 4)) + html_lines(self._why_skipped())


def read_questions(path: str | os.PathLike[str]) -> list[Section]:
    """Read the sections of a questions-words file: lines `: name`, each followed by lines of four words."""
    names: list[str] = []
    questions: list[list[Question]] = []
    for number, line in numbered_lines(path):
        if line.startswith(":"):
            names.append(line[1:].strip())
            questions.append([])
            continue
        words = line.split()
        if len(words) != 4:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a question must have 4 words; got {got}: {line!r}.",
                path=path,
                number=number,
                got=len(words),
                line=line[:60],
            )
        if not names:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: the first question must follow a line ': section name'.",
                path=path,
                number=number,
            )
        questions[-1].append((words[0], words[1], words[2], words[3]))
    if not any(questions):
        raise FirthError(
            "empty_data",
            "{path} has no questions. It must have a line ': section name', then lines of 4 words.",
            path=path,
        )
    return [Section(name, tuple(section)) for name, section in zip(names, questions, strict=True)]


def analogies(
    vectors: Vectors,
    questions: str | os.PathLike[str] | Sequence[Section],
    *,
    restrict: int | None = 30000,
    method: str = "add",
    fold_case: bool = True,
) -> AnalogyResult:
    """Evaluate the first `restrict` vectors on analogy questions, given as a file or its sections."""
    if method not in ("add", "mul"):
        raise FirthError("invalid_value", "{option} must be add or mul; got {got!r}.", option="method", got=method)
    sections = _sections(questions)
    lookup = row_lookup(vectors, restrict, fold_case)
    check_finite(vectors, restrict)
    folded = [[_folded(question, fold_case) for question in section.questions] for section in sections]
    answerable = [[question for question in section if all(word in lookup for word in question)] for section in folded]
    unit = unit_rows(vectors.matrix[:restrict])
    is_correct = _correct(unit, lookup, [question for section in answerable for question in section], method)

    scores, done = [], 0
    for section, answered in zip(sections, answerable, strict=True):
        correct = int(is_correct[done : done + len(answered)].sum())
        scores.append(Score(section.name, len(section.questions), len(answered), correct))
        done += len(answered)
    missing, beyond = _skip_reasons(vectors, sections, lookup, restrict, fold_case)
    by_section = list(zip(scores, sections, strict=True))
    return AnalogyResult(
        sections=tuple(scores),
        semantic=_sum("semantic", (score for score, section in by_section if not section.syntactic)),
        syntactic=_sum("syntactic", (score for score, section in by_section if section.syntactic)),
        total=_sum("total", scores),
        method=method,
        restrict=restrict,
        missing=missing,
        beyond=beyond,
    )


def right_answers(
    vectors: Vectors,
    questions: str | os.PathLike[str] | Sequence[Section],
    *,
    restrict: int | None = 30000,
    method: str = "add",
    fold_case: bool = True,
) -> NDArray[np.bool_]:
    """Return whether each question is answered correctly; all words must have vectors (see `common_questions`)."""
    lookup = row_lookup(vectors, restrict, fold_case)
    folded = [_folded(question, fold_case) for section in _sections(questions) for question in section.questions]
    check_finite(vectors, restrict)
    return _correct(unit_rows(vectors.matrix[:restrict]), lookup, folded, method)


def common_questions(
    questions: str | os.PathLike[str] | Sequence[Section],
    *vectors: Vectors,
    restrict: int | None = 30000,
    fold_case: bool = True,
) -> list[Section]:
    """Return the questions whose words all of `vectors` have, for comparing models of different vocabularies."""
    if not vectors:
        raise FirthError("too_few", "common_questions needs at least one set of vectors.")
    shared = set.intersection(*(set(row_lookup(each, restrict, fold_case)) for each in vectors))
    return [
        Section(section.name, tuple(q for q in section.questions if shared.issuperset(_folded(q, fold_case))))
        for section in _sections(questions)
    ]


def _correct(unit: Matrix, lookup: Lookup, questions: Sequence[Question], method: str) -> NDArray[np.bool_]:
    """Return for each question whether the word with the highest score is the fourth one, in any case."""
    is_correct = np.zeros(len(questions), dtype=bool)
    batch = max(1, BATCH_BYTES // (4 * max(1, len(unit))))
    score = _cos_add if method == "add" else _cos_mul
    for start in range(0, len(questions), batch):
        part = questions[start : start + batch]
        a, b, c, _ = np.array([[lookup[word][0] for word in question] for question in part]).T
        scores = score(unit, a, b, c)  # questions × words
        for row, question in enumerate(part):
            for word in question[:3]:
                scores[row, lookup[word]] = -np.inf
        best = scores.argmax(axis=1)
        is_correct[start : start + batch] = [
            scores[row, answer] > -np.inf and answer in lookup[question[3]]
            for row, (answer, question) in enumerate(zip(best.tolist(), part, strict=True))
        ]
    return is_correct


def _skip_reasons(
    vectors: Vectors, sections: Sequence[Section], lookup: Lookup, restrict: int | None, fold_case: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Return the words without a vector and those beyond `restrict`, with the number of questions each is in."""
    words = (word for section in sections for question in section.questions for word in set(question))
    unknown = Counter(word for word in words if fold(word, fold_case) not in lookup).most_common()
    rest = {fold(key, fold_case) for key in vectors.keys[restrict:]} if restrict is not None else set()
    missing = {word: count for word, count in unknown if fold(word, fold_case) not in rest}
    return missing, {word: count for word, count in unknown if word not in missing}


def _cos_add(unit: Matrix, a: NDArray[np.intp], b: NDArray[np.intp], c: NDArray[np.intp]) -> Matrix:
    """Return 3CosAdd scores, (questions, words)."""
    target = unit[b] - unit[a] + unit[c]  # its length does not change the order
    return np.asarray(target @ unit.T, dtype=np.float32)


def _cos_mul(unit: Matrix, a: NDArray[np.intp], b: NDArray[np.intp], c: NDArray[np.intp]) -> Matrix:
    """Return 3CosMul scores cos(b)·cos(c) / (cos(a) + ε), each cosine shifted to 0…1; (questions, words)."""
    words, inverse = np.unique(np.concatenate((a, b, c)), return_inverse=True)
    cosines = (unit[words] @ unit.T + 1) / 2
    row_a, row_b, row_c = inverse.reshape(3, -1)
    scores = cosines[row_b]
    scores *= cosines[row_c]
    scores /= cosines[row_a] + np.float32(MUL_EPSILON)
    return np.asarray(scores, dtype=np.float32)


def _sections(questions: str | os.PathLike[str] | Sequence[Section]) -> Sequence[Section]:
    return read_questions(questions) if isinstance(questions, (str, os.PathLike)) else questions


def _folded(question: Question, fold_case: bool) -> Question:
    a, b, c, d = question
    return fold(a, fold_case), fold(b, fold_case), fold(c, fold_case), fold(d, fold_case)


def _sum(name: str, scores: Iterable[Score]) -> Score:
    parts = list(scores)
    return Score(
        name, *(sum(getattr(score, field) for score in parts) for field in ("questions", "answered", "correct"))
    )


def _listed(words: Mapping[str, int], shown: int = 8) -> str:
    listed = ", ".join(f"{word} ({count})" for word, count in list(words.items())[:shown])
    return listed + (f" and {len(words) - shown:,} more words" if len(words) > shown else "")
