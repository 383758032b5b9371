"""`firth evaluate PATH…`: accuracy on the tests of the field."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, open_model, open_vectors, print_json


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--analogies", multiple=True, metavar="FILE", help="Questions in the format of questions-words.txt.")
@click.option("--similarity", multiple=True, metavar="FILE", help="Pairs of words with people's scores (WS-353, …).")
@click.option("--ratings", multiple=True, metavar="FILE", help="What users turned to later: user, item, rating.")
@click.option("--history", metavar="FILE", help="With --ratings: what users had whom the model does not know.")
@click.option("--restrict", type=int, default=30_000, show_default=True, help="Analogies: only the first N words.")
@click.option("--mul", is_flag=True, help="Analogies: multiply cosines (3CosMul) instead of adding them.")
@json_flag
def command(
    paths: tuple[str, ...],
    analogies: tuple[str, ...],
    similarity: tuple[str, ...],
    ratings: tuple[str, ...],
    history: str | None,
    restrict: int,
    mul: bool,
    as_json: bool,
) -> None:
    """Accuracy on analogies, rank correlation on word similarity, for each PATH: a model folder or vector file.

    Of models of people and items: what recommendations find (recall, NDCG, MAP) beside popularity and item-kNN, and
    the errors of predicted ratings.
    """
    from firth import evaluate

    if not analogies and not similarity and not ratings:
        raise click.UsageError("Give a test: --analogies FILE, --similarity FILE, --ratings FILE or several.")
    questions = {file: evaluate.read_questions(file) for file in analogies}
    pairs = {file: evaluate.read_pairs(file) for file in similarity}
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        found: dict[str, Any] = recommended(path, ratings, history) if ratings else {}
        if questions or pairs:
            vectors = open_vectors(path)
            method = "mul" if mul else "add"
            found |= {
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


def recommended(path: str, files: tuple[str, ...], history: str | None) -> dict[str, Any]:
    """What a model of people and items makes of each test."""
    from firth import evaluate
    from firth.core.model import Rates
    from firth.data.ratings import Ratings

    model: Any = open_model(path)
    told = Ratings(history) if history else None
    found: dict[str, Any] = {}
    for file in files:
        test = Ratings(file)
        found[file] = evaluate.recommendations(model, test, history=told)
        if isinstance(model, Rates):
            found[f"{file} (ratings)"] = evaluate.rating_errors(model, test)
    return found
