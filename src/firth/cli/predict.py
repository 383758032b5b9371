"""`firth predict MODEL DATA…`: labels, numbers, tags or answers, depending on the model."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from typing import TYPE_CHECKING, Any

import click
from click.core import ParameterSource

from firth.cli.common import data_options, json_flag, open_model, print_json, unsupported
from firth.core.data import single_file
from firth.core.errors import FirthError

if TYPE_CHECKING:
    from firth.core.model import Answers, Model, Predicts, ReadsColumns, Span
    from firth.data.table import Table

BATCH = 1024
CONTEXT = 200  # characters of a long passage that are shown on each side of an answer
#: Options that apply to question answering only, and those that apply to the other models only.
QUESTION_NAMES = ("question", "passage", "question_column", "passage_column")
TEXT_NAMES = ("k", "threshold", "other", "pair", "unit", "column", "key")


@click.command()
@click.argument("path", metavar="MODEL")
@click.argument("data", nargs=-1, metavar="[DATA]…")
@click.option("-k", type=int, default=1, show_default=True, help="How many labels to print per text.")
@click.option("--threshold", type=float, default=0.0, help="Leave out labels with a lower probability.")
@click.option("--other", metavar="NAME", help="The column of the second text, for text pairs.")
@click.option("--pair", nargs=2, metavar="FIRST SECOND", help="One pair of texts instead of DATA.")
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
      a pre-trained BERT the probability that the second text of a pair follows the first

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
    if not data and not values["pair"]:
        raise click.UsageError("Missing argument 'DATA…'.")
    if data and values["pair"]:
        raise FirthError("conflicting_options", "Give DATA or --pair, not both.")
    print_predictions(model, predictions(model, path, data, values), as_json)


def predictions(
    model: Model, path: str, data: tuple[str, ...], values: dict[str, Any]
) -> Iterator[tuple[str | None, Any]]:
    """Yield the key and the prediction of each text: labels with probabilities, a number, or tagged words."""
    from firth.core.model import Estimates, PredictsNextSentence, ReadsColumns, TagsWords
    from firth.data.corpus import Corpus

    k, threshold = values["k"], values["threshold"]
    if isinstance(model, PredictsNextSentence):
        yield from next_sentences(model, path, data, values)
        return
    if values["pair"]:
        pairs_reader(model, path)
        pair: list[Any] = [tuple(values["pair"])]
        if isinstance(model, Estimates):
            yield "1", model.estimate(pair).tolist()[0]
        else:
            yield "1", classifier(model, path).predict(pair, k, threshold)[0]
        return
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


def next_sentences(
    model: Model, path: str, data: tuple[str, ...], values: dict[str, Any]
) -> Iterator[tuple[str | None, float]]:
    """Yield the probability that the second text of each pair follows the first one."""
    from firth.core.model import PredictsNextSentence

    if not isinstance(model, PredictsNextSentence) or "next_sentence" not in model.heads:
        advice = "Train a classifier with `firth train fasttext-classifier` or `firth finetune text-classifier`."
        raise unsupported(model, path, "has no next-sentence head and does not predict labels", advice)
    if values["pair"]:
        pairs = [tuple(values["pair"])]
    elif values["other"]:
        pairs = read_pairs(single_file(data, "table"), values["column"] or "text", values["other"])[1]
    else:
        raise FirthError(
            "missing_option",
            "{path} predicts whether one text follows another, so it needs pairs. Pass a table with {option}, or one "
            "pair with --pair.",
            path=path,
            option="--other COLUMN",
        )
    for begin in range(0, len(pairs), BATCH):
        probabilities = model.next_sentence(*map(list, zip(*pairs[begin : begin + BATCH], strict=True)))
        yield from ((str(begin + row), value) for row, value in enumerate(probabilities.tolist(), 1))


def is_regression(model: Model) -> bool:
    """Return whether the model predicts numbers."""
    from firth.core.model import Estimates

    return isinstance(model, Estimates)


def print_predictions(model: Model, results: Iterator[tuple[str | None, Any]], as_json: bool) -> None:
    """Print one prediction per text."""
    from firth.core.model import PredictsNextSentence, TagsWords

    for key, prediction in results:
        if isinstance(model, TagsWords):
            print_tags(key, prediction, as_json)
        elif isinstance(prediction, float):
            name = "next_sentence" if isinstance(model, PredictsNextSentence) else "number"
            print_json({"key": key, name: prediction}) if as_json else click.echo(f"{prediction:.4f}")
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
    reader = pairs_reader(model, path)
    table, texts = read_pairs(file, column or "text", other, [*reader.columns, *([label] if label else [])])
    return ModelInputs(model, table, texts, label)


def pairs_reader(model: Model, path: str) -> ReadsColumns:
    """Return the model as one that reads text pairs and columns, or raise an error."""
    from firth.core.model import ReadsColumns

    if not isinstance(model, ReadsColumns):
        raise unsupported(
            model,
            path,
            "takes single texts, not text pairs",
            "Fine-tune a model on pairs with `firth finetune text-classifier … --other COLUMN`.",
        )
    return model


def read_pairs(file: str, column: str, other: str | None, more: Sequence[str] = ()) -> tuple[Table, list[Any]]:
    """Return a table with these columns and its texts, or its pairs of texts if there is a second column."""
    from firth.data.table import Table

    names = [column, *([other] if other else [])]
    table = Table(file, columns=list(dict.fromkeys([*names, *more])), categories=names)
    sides = [[text or "" for text in table.categories(name)] for name in names]
    return table, list(zip(*sides, strict=True)) if other else sides[0]


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
