"""`firth evaluate PATH…`: accuracy on the tests of the field."""

from __future__ import annotations

from typing import Any

import click

from firth.cli.common import json_flag, open_vectors, print_json


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--analogies", multiple=True, metavar="FILE", help="Questions in the format of questions-words.txt.")
@click.option("--similarity", multiple=True, metavar="FILE", help="Pairs of words with people's scores (WS-353, …).")
@click.option("--restrict", type=int, default=30_000, show_default=True, help="Analogies: only the first N words.")
@click.option("--mul", is_flag=True, help="Analogies: multiply cosines (3CosMul) instead of adding them.")
@click.option("--labels", multiple=True, metavar="FILE", help="Nodes with their labels, one node a line.")
@click.option("--share", type=float, default=0.5, show_default=True, help="Labels: the share a probe is trained on.")
@click.option("--splits", type=int, default=10, show_default=True, help="Labels: how many random splits.")
@json_flag
def command(
    paths: tuple[str, ...],
    analogies: tuple[str, ...],
    similarity: tuple[str, ...],
    restrict: int,
    mul: bool,
    labels: tuple[str, ...],
    share: float,
    splits: int,
    as_json: bool,
) -> None:
    """For each PATH, a model folder or vector file: accuracy on analogies, rank correlation on word similarity, and how
    well a linear probe tells the labels of nodes (Macro- and Micro-F1)."""
    from firth import evaluate

    if not (analogies or similarity or labels):
        raise click.UsageError("Give a test: --analogies FILE, --similarity FILE or --labels FILE.")
    questions = {file: evaluate.read_questions(file) for file in analogies}
    pairs = {file: evaluate.read_pairs(file) for file in similarity}
    labelled = {file: evaluate.read_labels(file) for file in labels}
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        vectors = open_vectors(path)
        method = "mul" if mul else "add"
        found: dict[str, Any] = {
            file: evaluate.analogies(vectors, asked, restrict=restrict, method=method)
            for file, asked in questions.items()
        }
        found |= {file: evaluate.word_similarity(vectors, asked) for file, asked in pairs.items()}
        found |= {
            file: evaluate.node_classification(vectors, known, share=share, splits=splits)
            for file, known in labelled.items()
        }
        results[path] = {file: result.to_json() for file, result in found.items()}
        if not as_json:
            for file, result in found.items():
                click.echo(f"{path}: {file}\n{result}\n")
    if as_json:
        print_json(results)
