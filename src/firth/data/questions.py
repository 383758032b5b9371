"""`Questions`: questions with the passages that answer them, from SQuAD's files and from tables."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from firth.core.errors import FirthError
from firth.core.report import Report
from firth.data.readers import find_files, open_decompressed
from firth.data.table import Table

MAX_SHOWN = 3  # of what is wrong: the others are counted


class Question(NamedTuple):
    """A question, its passage, and the answers that count as right: none where the passage does not tell."""

    id: str
    question: str
    passage: str
    answers: tuple[str, ...]
    starts: tuple[int | None, ...]  # where in the passage each begins, where that was said


class Questions:
    """Questions with passages.

        Questions("train-v1.1.json")                                    # SQuAD's own format, also compressed
        Questions("faq.csv", question="q", passage="text", answer="a")  # and, if known, start="begin"

    A table (csv, tsv, jsonl, Parquet, data frames, dictionaries of columns) has one question a row. An empty answer
    means that the passage does not tell. Without a column `start` an answer stands where it is first found. `dev`
    (another source) is what to choose and stop by. Read once and never changed: threads can share it.
    """

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
            raise FirthError("empty_data", "There is no question to learn from or to answer.")
        self.dev = dev if dev is None or isinstance(dev, Questions) else Questions(dev, **names)

    def __len__(self) -> int:
        return len(self.rows)

    def __iter__(self) -> Iterator[Question]:
        return iter(self.rows)

    def fingerprint(self) -> str:
        digest = hashlib.sha256()
        for row in self.rows:
            digest.update(json.dumps(row[1:]).encode())
        if self.dev is not None:
            digest.update(self.dev.fingerprint().encode())
        return digest.hexdigest()


def is_squad(source: Any) -> bool:
    """Whether a source is a .json file, maybe compressed."""
    return isinstance(source, (str, os.PathLike)) and ".json" in Path(source).suffixes[-2:]


def squad_questions(source: Any) -> Iterator[Question]:
    """data → paragraphs → context, qas → question, answers → text, answer_start (Rajpurkar et al. 2016, 2018)."""
    path = find_files(source)[0]
    with open_decompressed(path) as (_, stream):
        try:
            document = json.loads(stream.read())
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
            "{path} is not in SQuAD's format: {reason_type} {reason}.",
            path=path,
            reason_type=type(error).__name__,
            reason=str(error),
        ) from None


def table_questions(source: Any, names: dict[str, Any]) -> Iterator[Question]:
    texts = [name for key, name in names.items() if name and key != "start"]
    column_names = [name for name in names.values() if name]
    table = Table(source, columns=column_names, categories=texts)
    nothing: list[Any] = [None] * len(table)
    columns = {key: table.categories(name) if name else nothing for key, name in names.items() if key != "start"}
    starts = table.numbers(names["start"]) if names["start"] else np.full(len(table), np.nan)
    rows = zip(columns["question"], columns["passage"], columns["answer"], starts.tolist(), strict=True)
    for number, (question, passage, answer, start) in enumerate(rows):
        begin = None if start != start else int(start)  # NaN: not said
        answers = (answer,) if answer else ()
        yield Question(table.row_number(number), question or "", passage or "", answers, (begin,) * len(answers))


class AnswerSpans(NamedTuple):
    """Where the answer of each question stands: begin and end, −1 where there is none; and what is wrong."""

    spans: list[tuple[int, int]]
    lost: list[str]  # ids of questions whose answers are not in the passage
    moved: list[str]  # ids of those whose answer does not stand where it was said, and stands elsewhere


def find_answer_spans(rows: Sequence[Question]) -> AnswerSpans:
    """The first answer of each that stands in the passage; where its place is said wrongly, the nearest one."""
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
    if start is not None and start >= 0 and passage[start : start + len(answer)] == answer:
        return start, start + len(answer)
    positions = [position for position in range(len(passage)) if passage.startswith(answer, position)] if answer else []
    if not positions:
        return -1, -1
    best = min(positions, key=lambda position: abs(position - (start or 0)))
    return best, best + len(answer)


def report_answer_problems(rows: Sequence[Question], spans: AnswerSpans, report: Report) -> None:
    """Says what is wrong, and with which questions."""
    problems = (
        (spans.lost, "answers that are not in their passages, and teach nothing"),
        (spans.moved, "answers that do not stand where it is said; they are taken where they stand"),
    )
    for ids, what in problems:
        if ids:
            examples = ", ".join(ids[:MAX_SHOWN]) + (", …" if len(ids) > MAX_SHOWN else "")
            report.note(f"{len(ids):,} of {len(rows):,} questions have {what}: {examples}.")
