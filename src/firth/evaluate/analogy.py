"""Word analogies: a is to b as c is to …? Accuracy on any file in the questions-words format.

The protocol of the field (word2vec's compute-accuracy, gensim): only the most frequent words take part,
upper and lower case are one, a question with a word that has no vector is skipped, and the three given
words are no answers. "add" is 3CosAdd (Mikolov et al. 2013), "mul" 3CosMul (Levy & Goldberg 2014, eq. 4).
"""

from __future__ import annotations

import html
import math
import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.evaluate.layout import html_table, number_or_none, percent, text_table
from firth.evaluate.words import Lookup, check_finite, fold, numbered_lines, row_lookup

Question = tuple[str, str, str, str]
BATCH_BYTES = 64 << 20  # scores of one batch of questions: bounds the memory whatever the file and the vocabulary
MUL_EPSILON = 1e-3  # Levy & Goldberg's ε, as in Vectors.analogy


@dataclass(frozen=True)
class Section:
    """Questions of one kind, such as gram3-comparative."""

    name: str
    questions: tuple[Question, ...]

    @property
    def syntactic(self) -> bool:
        return self.name.startswith("gram")


@dataclass(frozen=True)
class Score:
    """Of `asked` questions, those whose four words were known are `answered`, the others `skipped`."""

    name: str
    asked: int
    answered: int
    correct: int

    @property
    def skipped(self) -> int:
        return self.asked - self.answered

    @property
    def accuracy(self) -> float:
        """Share of the answered questions that is correct; NaN where none was answered."""
        return self.correct / self.answered if self.answered else math.nan

    def to_json(self) -> dict[str, Any]:
        counts = {"asked": self.asked, "answered": self.answered, "skipped": self.skipped, "correct": self.correct}
        return {"name": self.name, **counts, "accuracy": number_or_none(self.accuracy)}


@dataclass(frozen=True)
class AnalogyResult:
    """Scores by section, and why questions were skipped: words with the number of questions each one spoiled."""

    sections: tuple[Score, ...]
    semantic: Score
    syntactic: Score
    total: Score
    method: str
    restrict: int | None
    missing: Mapping[str, int]  # no vector at all
    beyond: Mapping[str, int]  # a vector, but not among the first `restrict`

    @property
    def accuracy(self) -> float:
        return self.total.accuracy

    def to_json(self) -> dict[str, Any]:
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
        """One line a reason, with the words that cost most questions."""
        reasons = ((self.missing, "no vector"), (self.beyond, f"not among the first {self.restrict or 0:,}"))
        return "\n".join(f"{reason}: {_most_costly(words)}" for words, reason in reasons if words)

    def __str__(self) -> str:
        table = text_table(*self._table(), numbers=(1, 2, 3, 4))
        return f"{table}\n{self._why_skipped()}".rstrip()

    def _repr_html_(self) -> str:
        lines = (f"<p>{line}</p>" for line in html.escape(self._why_skipped()).splitlines())
        return html_table(*self._table(), numbers=(1, 2, 3, 4)) + "".join(lines)


def read_questions(path: str | os.PathLike[str]) -> list[Section]:
    """Sections of a questions-words file: `: name` lines, each followed by lines of four words."""
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
                "{path}, line {number}: a question has 4 words; got {got}: {line!r}.",
                path=path,
                number=number,
                got=len(words),
                line=line[:60],
            )
        if not names:
            raise FirthError(
                "malformed_data",
                "{path}, line {number}: a line ': section name' must come before the first question.",
                path=path,
                number=number,
            )
        questions[-1].append((words[0], words[1], words[2], words[3]))
    if not any(questions):
        raise FirthError(
            "empty_data", "{path} has no questions; it needs a line ': section name', then lines of 4 words.", path=path
        )
    return [Section(name, tuple(asked)) for name, asked in zip(names, questions, strict=True)]


def analogies(
    vectors: Vectors,
    questions: str | os.PathLike[str] | Sequence[Section],
    *,
    restrict: int | None = 30000,
    method: str = "add",
    fold_case: bool = True,
) -> AnalogyResult:
    """How many of `questions` (a file or its sections) the first `restrict` vectors answer rightly."""
    if method not in ("add", "mul"):
        raise FirthError("invalid_value", "analogy method must be add or mul; got {got!r}.", got=method)
    sections = _sections(questions)
    lookup = row_lookup(vectors, restrict, fold_case)
    check_finite(vectors, restrict)
    folded = [[_folded(question, fold_case) for question in section.questions] for section in sections]
    known = [[question for question in asked if all(word in lookup for word in question)] for asked in folded]
    unit = unit_rows(vectors.matrix[:restrict])
    right = _correct(unit, lookup, [question for asked in known for question in asked], method)

    scores, done = [], 0
    for section, answered in zip(sections, known, strict=True):
        correct = int(right[done : done + len(answered)].sum())
        scores.append(Score(section.name, len(section.questions), len(answered), correct))
        done += len(answered)
    missing, beyond = _spoilers(vectors, sections, lookup, restrict, fold_case)
    kinds = [section.syntactic for section in sections]
    return AnalogyResult(
        sections=tuple(scores),
        semantic=_sum("semantic", (score for score, syntactic in zip(scores, kinds, strict=True) if not syntactic)),
        syntactic=_sum("syntactic", (score for score, syntactic in zip(scores, kinds, strict=True) if syntactic)),
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
    """Whether each question, in order, is answered rightly; all their words must be known (`common_questions`)."""
    lookup = row_lookup(vectors, restrict, fold_case)
    asked = [_folded(question, fold_case) for section in _sections(questions) for question in section.questions]
    check_finite(vectors, restrict)
    return _correct(unit_rows(vectors.matrix[:restrict]), lookup, asked, method)


def common_questions(
    questions: str | os.PathLike[str] | Sequence[Section],
    *vectors: Vectors,
    restrict: int | None = 30000,
    fold_case: bool = True,
) -> list[Section]:
    """Those questions which all of `vectors` can answer: what models of different vocabularies are compared on."""
    if not vectors:
        raise FirthError("too_few", "common_questions needs at least one set of vectors.")
    shared = set.intersection(*(set(row_lookup(each, restrict, fold_case)) for each in vectors))
    return [
        Section(section.name, tuple(q for q in section.questions if shared.issuperset(_folded(q, fold_case))))
        for section in _sections(questions)
    ]


def _correct(unit: Matrix, lookup: Lookup, asked: Sequence[Question], method: str) -> NDArray[np.bool_]:
    """For each question whether the best-scoring word is the fourth one, whichever case it is written in."""
    right = np.zeros(len(asked), dtype=bool)
    batch = max(1, BATCH_BYTES // (4 * max(1, len(unit))))
    score = _added if method == "add" else _multiplied
    for start in range(0, len(asked), batch):
        part = asked[start : start + batch]
        a, b, c, _ = np.array([[lookup[word][0] for word in question] for question in part]).T
        scores = score(unit, a, b, c)  # questions × words
        for row, question in enumerate(part):
            for word in question[:3]:
                scores[row, lookup[word]] = -np.inf
        best = scores.argmax(axis=1)
        right[start : start + batch] = [
            scores[row, answer] > -np.inf and answer in lookup[question[3]]
            for row, (answer, question) in enumerate(zip(best.tolist(), part, strict=True))
        ]
    return right


def _spoilers(
    vectors: Vectors, sections: Sequence[Section], lookup: Lookup, restrict: int | None, fold_case: bool
) -> tuple[dict[str, int], dict[str, int]]:
    """Words that made questions be skipped, with how many: those without a vector, those beyond `restrict`."""
    words = (word for section in sections for question in section.questions for word in set(question))
    unknown = Counter(word for word in words if fold(word, fold_case) not in lookup).most_common()
    rest = {fold(key, fold_case) for key in vectors.keys[restrict:]} if restrict is not None else set()
    missing = {word: count for word, count in unknown if fold(word, fold_case) not in rest}
    return missing, {word: count for word, count in unknown if word not in missing}


def _added(unit: Matrix, a: NDArray[np.intp], b: NDArray[np.intp], c: NDArray[np.intp]) -> Matrix:
    target = unit[b] - unit[a] + unit[c]  # its length does not change the order
    return np.asarray(target @ unit.T, dtype=np.float32)


def _multiplied(unit: Matrix, a: NDArray[np.intp], b: NDArray[np.intp], c: NDArray[np.intp]) -> Matrix:
    """cos(b)·cos(c) / (cos(a) + ε), each cosine moved to 0…1."""
    words, place = np.unique(np.concatenate((a, b, c)), return_inverse=True)
    near = (unit[words] @ unit.T + 1) / 2
    near_a, near_b, near_c = place.reshape(3, -1)
    scores = near[near_b]
    scores *= near[near_c]
    scores /= near[near_a] + np.float32(MUL_EPSILON)
    return np.asarray(scores, dtype=np.float32)


def _sections(questions: str | os.PathLike[str] | Sequence[Section]) -> Sequence[Section]:
    return read_questions(questions) if isinstance(questions, (str, os.PathLike)) else questions


def _folded(question: Question, fold_case: bool) -> Question:
    a, b, c, d = question
    return fold(a, fold_case), fold(b, fold_case), fold(c, fold_case), fold(d, fold_case)


def _sum(name: str, scores: Iterable[Score]) -> Score:
    parts = list(scores)
    return Score(name, *(sum(getattr(score, field) for score in parts) for field in ("asked", "answered", "correct")))


def _most_costly(words: Mapping[str, int], shown: int = 8) -> str:
    listed = ", ".join(f"{word} ({count})" for word, count in list(words.items())[:shown])
    return listed + (f" and {len(words) - shown:,} more words" if len(words) > shown else "")
