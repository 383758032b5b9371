"""`firth evaluate PATH…`: accuracy on the tests of the field."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, open_model, open_vectors, print_json


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--analogies", multiple=True, metavar="FILE", help="Questions in the format of questions-words.txt.")
@click.option("--similarity", multiple=True, metavar="FILE", help="Pairs of words with people's scores (WS-353, …).")
@click.option("--restrict", type=int, default=30_000, show_default=True, help="Analogies: only the first N words.")
@click.option("--mul", is_flag=True, help="Analogies: multiply cosines (3CosMul) instead of adding them.")
@click.option("-k", type=int, default=1, show_default=True, help="Labels: how many are predicted for each text.")
@click.option("--threshold", type=float, default=0.0, help="Labels: only those with at least this probability.")
@click.option("--column", metavar="NAME", help="Labels: the text's column (jsonl, csv, tsv, Parquet).")
@click.option("--label", metavar="NAME", help="Labels: the column of labels.")
@json_flag
def command(
    paths: tuple[str, ...],
    analogies: tuple[str, ...],
    similarity: tuple[str, ...],
    restrict: int,
    mul: bool,
    k: int,
    threshold: float,
    column: str | None,
    label: str | None,
    as_json: bool,
) -> None:
    """Accuracy on analogies and rank correlation on word similarity, for each PATH: a model folder or vector file.

    Of a classifier: firth evaluate MODEL DATA… tells how many labels of DATA it finds.
    """
    from firth import evaluate

    if not analogies and not similarity:
        if len(paths) < 2:
            raise click.UsageError("Give a test: --analogies FILE, --similarity FILE, or a classifier and DATA.")
        evaluate_labels(paths[0], paths[1:], k, threshold, column, label, as_json)
        return
    questions = {file: evaluate.read_questions(file) for file in analogies}
    pairs = {file: evaluate.read_pairs(file) for file in similarity}
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        vectors = open_vectors(path)
        method = "mul" if mul else "add"
        found: dict[str, Any] = {
            file: evaluate.analogies(vectors, asked, restrict=restrict, method=method)
            for file, asked in questions.items()
        }
        found |= {file: evaluate.word_similarity(vectors, asked) for file, asked in pairs.items()}
        results[path] = {file: result.to_json() for file, result in found.items()}
        if not as_json:
            for file, result in found.items():
                click.echo(f"{path}: {file}\n{result}\n")
    if as_json:
        print_json(results)


def evaluate_labels(
    path: str, data: tuple[str, ...], k: int, threshold: float, column: str | None, label: str | None, as_json: bool
) -> None:
    """How many labels a classifier finds."""
    from firth.cli.predict import classifier
    from firth.data.labelled import Labelled
    from firth.evaluate import classification

    examples = Labelled(*data, column=column, label=label)
    result = classification(classifier(open_model(path), path), examples, k, threshold)
    if as_json:
        print_json({path: result.to_json()})
    else:
        click.echo(f"{path}\n{result}")
