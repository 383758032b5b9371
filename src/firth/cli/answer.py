"""`firth answer MODEL --question … --passage …`: the answer, shown in its passage."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

import click

from firth.cli.common import json_flag, open_model, print_json
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Answers, Model, Span

AROUND = 200  # characters of a long passage that are shown on each side of an answer


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", required=False, metavar="[DATA]")
@click.option("--question", metavar="TEXT", help="What is asked.")
@click.option("--passage", metavar="TEXT", help="Where the answer stands; - reads standard input.")
@click.option("--question-column", default="question", show_default=True, metavar="NAME", help="DATA: the questions'.")
@click.option("--passage-column", default="passage", show_default=True, metavar="NAME", help="DATA: the passages'.")
@json_flag
def command(
    path: str,
    data: str | None,
    question: str | None,
    passage: str | None,
    question_column: str,
    passage_column: str,
    as_json: bool,
) -> None:
    """The answer to a question, marked in the passage it stands in.

    MODEL is a folder that `firth finetune question-answerer` made, or a question-answering model of Hugging Face. DATA
    is a table (csv, tsv, jsonl, Parquet) or a file in SQuAD's format; one answer is printed per line. In JSON, start
    and end are character offsets in the passage; the score is the sum of the answer's two logits, minus the score of
    "no answer" if the model can give it.
    """
    model = answering(open_model(path), path)
    if data is not None:
        answer_all(model, data, question_column, passage_column, as_json)
        return
    if question is None or passage is None:
        raise click.UsageError("Give --question and --passage, or a file of both.")
    text = sys.stdin.read() if passage == "-" else passage
    (found,) = model.answer([question], [text])
    if as_json:
        print_json(found._asdict())
    elif not found.text:
        click.echo("The passage does not tell.")
    else:
        click.echo(marked(text, found, sys.stdout.isatty()))


def answer_all(model: Answers, data: str, question: str, passage: str, as_json: bool) -> None:
    from firth.data.questions import Questions

    asked = Questions(data, question=question, passage=passage, answer=None).rows
    found = model.answer([row.question for row in asked], [row.passage for row in asked])
    for row, span in zip(asked, found, strict=True):
        print_json({"id": row.id, **span._asdict()}) if as_json else click.echo(" ".join(span.text.split()))


def marked(passage: str, found: Span, terminal: bool) -> str:
    """The passage around the answer, which is bold on a terminal and stands between ** elsewhere."""
    begin, end = max(0, found.start - AROUND), min(len(passage), found.end + AROUND)
    text = click.style(found.text, bold=True) if terminal else f"**{found.text}**"
    shown = f"{passage[begin : found.start]}{text}{passage[found.end : end]}"
    return "…" * (begin > 0) + shown + "…" * (end < len(passage))


def answering(model: Model, path: str) -> Answers:
    from firth.core.model import Answers

    if not isinstance(model, Answers):
        method = type(model.method).method_name()
        raise FirthError(
            "unsupported_model",
            "{path} answers no questions ({method}); what firth finetune question-answerer makes does.",
            path=path,
            method=method,
        )
    return model
