"""`firth evaluate answers MODEL… DATA`: exact match and F1 of question answering."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import add_flags, file_flags, json_flag, open_model
from firth.cli.evaluate.results import models_and_data, print_results
from firth.data.shared_options import QUESTION_OPTIONS


@click.command()
@models_and_data
@add_flags(file_flags(QUESTION_OPTIONS))
@json_flag
def command(models: tuple[str, ...], data: str, as_json: bool, **columns: Any) -> None:
    """Measure exact match and F1 of answers, as the SQuAD script does.

    DATA is a file in the format of SQuAD, or a table with questions, passages and answers.
    """
    from firth.cli.predict import question_answerer
    from firth.data.questions import Questions
    from firth.evaluate import answers

    questions = Questions.from_files([data], columns)
    print_results(models, lambda path: answers(question_answerer(open_model(path), path), questions), as_json)
