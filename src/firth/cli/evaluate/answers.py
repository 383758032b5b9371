"""`firth evaluate answers MODEL… DATA`: exact match and F1 of question answering."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import add_flags, json_flag, open_model
from firth.cli.data_kinds import QUESTION_OPTIONS
from firth.cli.evaluate.results import models_and_data, print_results


@click.command()
@models_and_data
@add_flags(QUESTION_OPTIONS[:3])
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool, **columns: Any) -> None:
    """Measure exact match and F1 of answers, as the SQuAD script does.

    DATA is a file in the format of SQuAD, or a table with questions, passages and answers.
    """
    from firth.cli.predict import question_answerer
    from firth.data.questions import Questions
    from firth.evaluate import answers

    questions = Questions(data, **{name.removesuffix("_column"): column for name, column in columns.items()})
    print_results(models, lambda path: answers(question_answerer(open_model(path), path), questions), as_json)
