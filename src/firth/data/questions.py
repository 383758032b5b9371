"""`Questions`: questions with passages and answers, from SQuAD files and tables."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from firth.core.data import Data, FileOption
from firth.core.errors import FirthError
from firth.core.remote import as_path
from firth.core.report import Report
from firth.data.readers import find_files, open_decompressed
from firth.data.shared_options import DEV_OPTION, QUESTION_OPTIONS
from firth.data.table import Table

MAX_SHOWN = 3  # ids listed in a note; the others are only counted


class Question(NamedTuple):
    """A question, its passage and the accepted answers; an unanswerable question has none."""

    id: str
    question: str
    passage: str
    answers: tuple[str, ...]
    starts: tuple[int | None, ...]  # character offset of each answer in the passage, if given


class Questions(Data):
    """Questions with passages.

        Questions("train-v1.1.json")                                    # the SQuAD format, optionally compressed
        Questions("faq.csv", question="q", passage="text", answer="a")  # optional: start="begin"

    A table (csv, tsv, jsonl, Parquet, data frame, dictionary of columns) has one question per row. An empty answer
    marks an unanswerable question. Without a column `start`, the first occurrence of the answer in the passage is used.
    `dev` is another source, used for model selection and early stopping. Immutable, so threads can share it.
    """

    noun = "set of questions"
    file_options = (
        *QUESTION_OPTIONS,
        FileOption("start", "The column with the character offset of the answer, if any.", flag="start-column"),
        DEV_OPTION,
    )
    has_texts = has_labels = True

    def __init__(
        self,
        source: Any,
        *,
        question: str = "question",
        passage: str = "passage",
        answer: str | None = "answer",
        start: str | None = None,
        dev: Any = None,
    ) -> None:
        names: dict[str, Any] = {"question": question, "passage": passage, "answer": answer, "start": start}
        if isinstance(source, Questions):
            self.rows: list[Question] = source.rows
        elif is_squad(source):
            self.rows = list(squad_questions(source))
        else:
            self.rows = list(table_questions(source, names))
        if not self.rows:
            raise FirthError("empty_data", "The data has no questions.")
        self.dev = dev if dev is None or isinstance(dev, Questions) else Questions(dev, **names)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.rows)

    def __repr__(self) -> str:
        return f"Questions({len(self):,} questions)"

    def _rows_shown(self) -> tuple[list[str], Iterator[list[str]]]:
        rows = ([row.question, row.passage, ", ".join(row.answers)] for row in self.rows)
        return ["question", "passage", "answers"], rows

    def fingerprint(self) -> str:
        """Return a hash of the questions and the dev data."""
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(json.dumps(row[1:]).encode())
        if self.dev is not None:
            digest.update(self.dev.fingerprint().encode())
        return digest.hexdigest()


def is_squad(source: Any) -> bool:
    """Whether a source is a .json file, possibly compressed."""
    return isinstance(source, (str, os.PathLike)) and ".json" in as_path(source).suffixes[-2:]


def squad_questions(source: Any) -> Iterator[Question]:
    """Yield the questions of a SQuAD file (Rajpurkar et al. 2016, 2018).

    Its structure is data → paragraphs → context, qas → question, answers → text, answer_start.
    """
    path = find_files(source)[0]
    with open_decompressed(path) as (_, stream):
        content = stream.read()
        try:
            document = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise FirthError(
                "malformed_data", "{path} is not valid JSON ({reason}).", path=path, reason=str(error)
            ) from None
    try:
        for article in document["data"]:
            for paragraph in article["paragraphs"]:
                for qa in paragraph["qas"]:
                    answers = [] if qa.get("is_impossible") else qa["answers"]
                    texts, starts = (tuple(each[name] for each in answers) for name in ("text", "answer_start"))
                    passage, question = paragraph["context"], qa["question"]
                    if not all(isinstance(text, str) for text in (passage, question, *texts)):
                        raise TypeError("texts must be strings")
                    if not all(start is None or type(start) is int for start in starts):
                        raise TypeError("answer_start must be a whole number")
                    yield Question(str(qa["id"]), question, passage, texts, starts)
    except (KeyError, TypeError, AttributeError) as error:
        raise FirthError(
            "malformed_data",
            "{path} is not in the SQuAD format: {reason}.",
            path=path,
            reason=f"missing key {error}" if isinstance(error, KeyError) else str(error),
        ) from None


def table_questions(source: Any, names: dict[str, Any]) -> Iterator[Question]:
    """Yield the questions of a table; `names` maps question, passage, answer and start to columns."""
    texts = [name for key, name in names.items() if name and key != "start"]
    column_names = [name for name in names.values() if name]
    table = Table(source, columns=column_names, categories=texts)
    nothing: list[Any] = [None] * len(table)
    columns = {key: table.categories(name) if name else nothing for key, name in names.items() if key != "start"}
    starts = table.numbers(names["start"]) if names["start"] else np.full(len(table), np.nan)
    rows = zip(columns["question"], columns["passage"], columns["answer"], starts.tolist(), strict=True)
    for number, (question, passage, answer, start) in enumerate(rows):
        begin = None if start != start else int(start)  # NaN: not given
        answers = (answer,) if answer else ()
        yield Question(table.row_number(number), question or "", passage or "", answers, (begin,) * len(answers))


class AnswerSpans(NamedTuple):
    """The answer span of each question, (begin, end) or (−1, −1), and the ids of questions with problems."""

    spans: list[tuple[int, int]]
    lost: list[str]  # questions whose answers do not occur in the passage
    moved: list[str]  # questions whose answer occurs elsewhere than at the given start


def find_answer_spans(rows: Sequence[Question]) -> AnswerSpans:
    """Find the first answer of each question that occurs in its passage.

    If the given start is wrong, the occurrence nearest to it is used.
    """
    spans, lost, moved = list[tuple[int, int]](), list[str](), list[str]()
    for row in rows:
        spans_of_answers = [
            answer_span(row.passage, text, start) for text, start in zip(row.answers, row.starts, strict=True)
        ]
        span = next((span for span in spans_of_answers if span[0] >= 0), (-1, -1))
        spans.append(span)
        if row.answers and span[0] < 0:
            lost.append(row.id)
        elif any(
            start is not None and start != begin for start, (begin, _) in zip(row.starts, spans_of_answers, strict=True)
        ):
            moved.append(row.id)
    return AnswerSpans(spans, lost, moved)


def answer_span(passage: str, answer: str, start: int | None) -> tuple[int, int]:
    """Return the span of an answer at `start` or nearest to it; (−1, −1) if it does not occur."""
    if start is not None and start >= 0 and passage[start : start + len(answer)] == answer:
        return start, start + len(answer)
    positions = [position for position in range(len(passage)) if passage.startswith(answer, position)] if answer else []
    if not positions:
        return -1, -1
    best = min(positions, key=lambda position: abs(position - (start or 0)))
    return best, best + len(answer)


def report_answer_problems(rows: Sequence[Question], spans: AnswerSpans, report: Report) -> None:
    """Report answers that are missing from their passage, or not at the given start."""
    problems = (
        (spans.lost, "answers that do not occur in the passage; they are not used", "answers_not_found"),
        (spans.moved, "answers that are not at the given start; the nearest occurrence is used", "answers_moved"),
    )
    for ids, what, code in problems:
        if ids:
            examples = ", ".join(ids[:MAX_SHOWN]) + (", …" if len(ids) > MAX_SHOWN else "")
            report.note(f"{len(ids):,} of {len(rows):,} questions have {what}: {examples}.", code)
