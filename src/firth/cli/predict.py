"""`firth predict MODEL DATA…`: labels, numbers, tags or answers, depending on the model."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from firth.cli.common import data_options, json_flag, open_model, print_json, unsupported
from firth.core.data import single_file
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Answers, Model, Predicts, Span
    from firth.data.table import Table

BATCH = 1024
CONTEXT = 200  # characters of a long passage that are shown on each side of an answer
#: Options that apply to question answering only, and those that apply to the other models only.
QUESTION_NAMES = ("question", "passage", "question_column", "passage_column")
TEXT_NAMES = ("k", "threshold", "other", "unit", "column", "key")


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, metavar="[DATA]…")
@click.option("-k", type=int, default=1, show_default=True, help="How many labels to print per text.")
@click.option("--threshold", type=float, default=0.0, help="Leave out labels with a lower probability.")
@click.option("--other", metavar="NAME", help="The column of the second text, for text pairs.")
@data_options
@click.option("--question", metavar="TEXT", help="A question to answer.")
@click.option("--passage", metavar="TEXT", help="The passage that contains the answer; - reads standard input.")
@click.option(
    "--question-column", default="question", show_default=True, metavar="NAME", help="The question column of DATA."
)
@click.option(
    "--passage-column", default="passage", show_default=True, metavar="NAME", help="The passage column of DATA."
)
@json_flag
def command(path: str, data: tuple[str, ...], as_json: bool, **values: Any) -> None:
    """Predict labels, numbers, tags or answers for the texts of DATA.

    \b
      a classifier       one line per text: label, tab, probability, and so on
      a regression       one number per line
      a token tagger     one word and its tag per line, an empty line after each text
      question answering the answer, marked in its passage; with DATA one answer per line

    MODEL is a model folder, or a .bin or .ftz file of fastText. DATA are files, quoted globs, or - for standard input.
    Text pairs, and models with further input columns, need one table (csv, tsv, jsonl, Parquet). Questions come from
    --question and --passage, a table, or a file in the format of SQuAD. A text without known words has an empty line.

    With --json, `start` and `end` of an answer are character offsets in the passage; its score is the sum of the two
    logits, minus the score of "no answer" if the model can give that.
    """
    from firth.core.model import Answers

    model = open_model(path)
    answers = isinstance(model, Answers)
    ctx = click.get_current_context()
    given = {name for name in values if ctx.get_parameter_source(name) not in (None, ParameterSource.DEFAULT)}
    for name in TEXT_NAMES if answers else QUESTION_NAMES:
        if name in given:
            flag = "-k" if name == "k" else f"--{name.replace('_', '-')}"
            problem = "answers questions" if answers else "answers no questions"
            raise unsupported(model, path, f"{problem}, and {flag} does not apply to it")
    if answers:
        predict_answers(question_answerer(model, path), data, values, as_json)
        return
    if not data:
        raise click.UsageError("Missing argument 'DATA…'.")
    print_predictions(model, predictions(model, path, data, values), as_json)


def predictions(
    model: Model, path: str, data: tuple[str, ...], values: dict[str, Any]
) -> Iterator[tuple[str | None, Any]]:
    """Yield the key and the prediction of each text: labels with probabilities, a number, or tagged words."""
    from firth.core.model import Estimates, ReadsColumns, TagsWords
    from firth.data.corpus import Corpus

    k, threshold = values["k"], values["threshold"]
    if values["other"] or (isinstance(model, ReadsColumns) and model.columns):
        rows = read_rows(model, path, single_file(data, "table"), values["column"], values["other"])
        results = rows.estimate().tolist() if is_regression(model) else rows.predict(k, threshold)
        yield from zip(map(str, range(1, len(rows) + 1)), results, strict=True)
        return
    documents = iter(Corpus(*data, unit=values["unit"], column=values["column"], key=values["key"]))
    while batch := list(islice(documents, BATCH)):
        texts = [text for _, text in batch]
        results = (
            model.estimate(texts).tolist()
            if isinstance(model, Estimates)
            else model.tag(texts)
            if isinstance(model, TagsWords)
            else classifier(model, path).predict(texts, k, threshold)
        )
        yield from zip((key for key, _ in batch), results, strict=True)


def is_regression(model: Model) -> bool:
    """Return whether the model predicts numbers."""
    from firth.core.model import Estimates

    return isinstance(model, Estimates)


def print_predictions(model: Model, results: Iterator[tuple[str | None, Any]], as_json: bool) -> None:
    """Print one prediction per text."""
    from firth.core.model import TagsWords

    for key, prediction in results:
        if isinstance(model, TagsWords):
            print_tags(key, prediction, as_json)
        elif isinstance(prediction, float):
            print_json({"key": key, "number": prediction}) if as_json else click.echo(f"{prediction:.4f}")
        elif as_json:
            labels = [{"label": label, "probability": probability} for label, probability in prediction]
            print_json({"key": key, "labels": labels})
        else:
            click.echo("\t".join(f"{label}\t{probability:.4f}" for label, probability in prediction))


def print_tags(key: str | None, words: Any, as_json: bool) -> None:
    """Print the words of a text with their tags."""
    if as_json:
        print_json({"key": key, "words": [word._asdict() for word in words]})
    else:
        click.echo("".join(f"{word.word}\t{word.tag}\n" for word in words))


@dataclass(frozen=True)
class ModelInputs:
    """Rows of a table as input of a fine-tuned model: texts or text pairs, and its further input columns."""

    model: Any
    table: Table
    texts: list[Any]
    label: str

    def __len__(self) -> int:
        return len(self.texts)

    @property
    def features(self) -> Table | None:
        """The further input columns of the model."""
        from firth.data.table import Table

        return Table(self.table, columns=self.model.columns) if self.model.columns else None

    def predict(self, k: int = 1, threshold: float = 0.0) -> Any:
        """Return the k most probable labels of each row."""
        return self.model.predict(self.texts, k, threshold, columns=self.features)

    def estimate(self) -> Any:
        """Return the predicted number of each row."""
        return self.model.estimate(self.texts, columns=self.features)


def read_rows(
    model: Model, path: str, file: str, column: str | None, other: str | None, label: str = ""
) -> ModelInputs:
    """Read the columns of a table that a fine-tuned model takes."""
    from firth.core.model import ReadsColumns
    from firth.data.table import Table

    if not isinstance(model, ReadsColumns):
        raise unsupported(
            model,
            path,
            "takes single texts, not text pairs",
            "Fine-tune a model on pairs with `firth finetune text-classifier … --other COLUMN`.",
        )
    names = [column or "text", *([other] if other else [])]
    columns = dict.fromkeys([*names, *model.columns, *([label] if label else [])])
    table = Table(file, columns=list(columns), categories=names)
    sides = [[text or "" for text in table.categories(name)] for name in names]
    return ModelInputs(model, table, list(zip(*sides, strict=True)) if other else sides[0], label)


def classifier(model: Model, path: str) -> Predicts:
    """Return the model as a classifier, or raise an error."""
    from firth.core.model import Predicts

    if not isinstance(model, Predicts):
        advice = "Train a classifier with `firth train fasttext-classifier` or `firth finetune text-classifier`."
        raise unsupported(model, path, "does not predict labels", advice)
    return model


def question_answerer(model: Model, path: str) -> Answers:
    """Return the model as a question answerer, or raise an error."""
    from firth.core.model import Answers

    if not isinstance(model, Answers):
        advice = "Fine-tune a model with `firth finetune question-answerer`."
        raise unsupported(model, path, "does not answer questions", advice)
    return model


def predict_answers(model: Answers, data: tuple[str, ...], values: dict[str, Any], as_json: bool) -> None:
    """Answer the question of the command line, or all questions of a file."""
    question, passage = values["question"], values["passage"]
    if data:
        if question is not None or passage is not None:
            raise FirthError("conflicting_options", "Give DATA, or --question and --passage, not both.")
        answer_file(model, single_file(data, "set of questions"), values, as_json)
        return
    if question is None or passage is None:
        raise click.UsageError("Give --question and --passage, or DATA with both.")
    text = sys.stdin.read() if passage == "-" else passage
    (answer,) = model.answer([question], [text])
    if as_json:
        print_json(answer._asdict())
    elif not answer.text:
        click.echo("The passage does not contain an answer.")
    else:
        click.echo(mark_answer(text, answer, sys.stdout.isatty()))


def answer_file(model: Answers, file: str, values: dict[str, Any], as_json: bool) -> None:
    """Print the answer to each question of a file."""
    from firth.data.questions import Questions

    columns = {"question": values["question_column"], "passage": values["passage_column"]}
    questions = Questions(file, **columns, answer=None).rows
    answers = model.answer([row.question for row in questions], [row.passage for row in questions])
    for row, span in zip(questions, answers, strict=True):
        print_json({"id": row.id, **span._asdict()}) if as_json else click.echo(" ".join(span.text.split()))


def mark_answer(passage: str, answer: Span, terminal: bool) -> str:
    """Return the passage around the answer, which is bold on a terminal and between ** elsewhere."""
    begin, end = max(0, answer.start - CONTEXT), min(len(passage), answer.end + CONTEXT)
    text = click.style(answer.text, bold=True) if terminal else f"**{answer.text}**"
    shown = f"{passage[begin : answer.start]}{text}{passage[answer.end : end]}"
    return "…" * (begin > 0) + shown + "…" * (end < len(passage))
