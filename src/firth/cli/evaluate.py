"""`firth evaluate PATH…`: accuracy on the tests of the field, each for what a model is made for."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import click

from firth.cli.common import (
    QUESTION_OPTIONS,
    RATING_OPTIONS,
    Function,
    choose_report,
    json_flag,
    no_texts,
    open_model,
    open_vectors,
    print_json,
)

Files = tuple[str, ...]
Tests = dict[str, Callable[[str], Any]]  # by name: what the model at a path makes of it
Flags = tuple[tuple[str, dict[str, Any]], ...]


def column_options(test: str, options: Flags) -> Callable[[Function], Function]:
    """The columns of a test's data, as `firth train` and `firth finetune` have them."""

    def added(function: Function) -> Function:
        for name, settings in reversed(options):
            help = f"{test}: {settings['help'][0].lower()}{settings['help'][1:]}"
            function = click.option(name, **{**settings, "help": help})(function)
        return function

    return added


@click.command()
@click.argument("paths", nargs=-1, required=True, metavar="PATH…")
@click.option("--analogies", multiple=True, metavar="FILE", help="Questions in the format of questions-words.txt.")
@click.option("--restrict", type=int, default=30_000, show_default=True, help="Analogies: only the first N words.")
@click.option("--mul", is_flag=True, help="Analogies: multiply cosines (3CosMul) instead of adding them.")
@click.option("--similarity", multiple=True, metavar="FILE", help="Pairs of words with people's scores (WS-353, …).")
@click.option(
    "--sentences", "--sts", multiple=True, metavar="FILE", help="Pairs of texts with people's scores (STS-B, …)."
)
@click.option("--labelled", multiple=True, metavar="FILE", help="Texts with labels, for a classifier.")
@click.option(
    "-k", type=int, default=1, show_default=True, help="Labelled: how many labels are predicted for each text."
)
@click.option("--column", metavar="NAME", help="Labelled: the text's column (jsonl, csv, tsv, Parquet).")
@click.option("--other", metavar="NAME", help="Labelled: the column of the second texts, of pairs.")
@click.option("--label", metavar="NAME", help="Labelled: the column of labels, or of numbers.")
@click.option(
    "--questions", multiple=True, metavar="FILE", help="Questions with passages and answers (SQuAD's json …)."
)
@column_options("Questions", QUESTION_OPTIONS[:3])
@click.option(
    "--features", multiple=True, metavar="FILE", help="A table: how well vectors of its texts tell the label."
)
@click.option("--columns", metavar="NAMES", help="Features: other columns beside the text, as in price,colour.")
@click.option(
    "--head",
    type=click.Choice(("logistic", "ridge", "mlp")),
    default="logistic",
    show_default=True,
    help="Features: what learns from them. Ridge is for numbers.",
)
@click.option("--folds", type=int, default=5, show_default=True, help="Features: parts of the cross-validation.")
@click.option(
    "--nodes",
    multiple=True,
    metavar="FILE",
    help="Nodes of a graph with their labels, one node a line; or communities, the members of one a line.",
)
@click.option(
    "--node-layout",
    type=click.Choice(("auto", "labels", "communities")),
    default="auto",
    show_default=True,
    help="Nodes: what a line of FILE is.",
)
@click.option("--share", type=float, default=0.5, show_default=True, help="Nodes: the share a probe is trained on.")
@click.option("--splits", type=int, default=10, show_default=True, help="Nodes: how many random splits.")
@click.option("--ratings", multiple=True, metavar="FILE", help="What users turned to later: user, item, rating.")
@click.option("--history", metavar="FILE", help="Ratings: what users had whom the model does not know.")
@click.option(
    "--baselines/--no-baselines",
    default=True,
    show_default=True,
    help="Ratings: also score popularity and item-kNN, which takes the longest where there are many items.",
)
@column_options("Ratings", RATING_OPTIONS)
@json_flag
def command(
    paths: Files,
    analogies: Files,
    similarity: Files,
    sentences: Files,
    labelled: Files,
    questions: Files,
    features: Files,
    nodes: Files,
    ratings: Files,
    as_json: bool,
    **settings: Any,
) -> None:
    """How good each PATH is, a model or a file of vectors, on the tests that are given.

    Analogies and similarity are for words; sentences for models that embed texts; labelled texts for classifiers;
    questions for models that answer (exact match and F1, as SQuAD's script computes them). Features are any model's
    vectors of texts, beside other columns of a table, from which a simple layer learns a label or a number,
    cross-validated. Labels of nodes, told by a linear probe, are for graphs. For models of people and items: what
    recommendations find (recall, NDCG, MAP) beside popularity and item-kNN, and the errors of predicted ratings.
    """
    tests: Tests = {}
    tests |= {file: analogy_test(file, settings) for file in analogies}
    tests |= {file: similarity_test(file) for file in similarity}
    tests |= {file: sentence_test(file) for file in sentences}
    tests |= {file: labelled_test(file, settings) for file in labelled}
    tests |= {file: question_test(file, settings) for file in questions}
    tests |= {file: feature_test(file, settings) for file in features}
    tests |= {file: node_test(file, settings) for file in nodes}
    for file in ratings:
        tests |= rating_tests(file, settings)
    if not tests:
        raise click.UsageError(
            "Give a test: --analogies, --similarity, --sentences, --labelled, --questions, --features, --nodes or "
            "--ratings FILE."
        )
    results: dict[str, dict[str, Any]] = {}
    for path in paths:
        found = {name: result for name, test in tests.items() if (result := test(path)) is not None}
        results[path] = {name: result.to_json() for name, result in found.items()}
        if not as_json:
            for name, result in found.items():
                click.echo(f"{path}: {name}\n{result}\n")
    if as_json:
        print_json(results)


def analogy_test(file: str, settings: dict[str, Any]) -> Callable[[str], Any]:
    from firth.evaluate import analogies, read_questions

    asked, method = read_questions(file), "mul" if settings["mul"] else "add"
    return lambda path: analogies(open_vectors(path), asked, restrict=settings["restrict"], method=method)


def similarity_test(file: str) -> Callable[[str], Any]:
    from firth.evaluate import read_pairs, word_similarity

    asked = read_pairs(file)
    return lambda path: word_similarity(open_vectors(path), asked)


def sentence_test(file: str) -> Callable[[str], Any]:
    from firth.core.model import Embeds
    from firth.evaluate import read_sentence_pairs, sentence_similarity

    asked = read_sentence_pairs(file)

    def test(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, Embeds):
            raise no_texts(model, path)
        return sentence_similarity(model, asked)

    return test


def labelled_test(file: str, settings: dict[str, Any]) -> Callable[[str], Any]:
    return lambda path: judged_labels(open_model(path), path, file, settings)


def judged_labels(model: Any, path: str, file: str, settings: dict[str, Any]) -> Any:
    """Labels, or numbers, of the texts in a file."""
    from firth.cli.predict import classifier, rows_of
    from firth.core.model import Estimates
    from firth.data.labeled_texts import LabeledTexts
    from firth.data.readers import format_and_compression
    from firth.evaluate import classification, label_result, number_result

    names, k = {name: settings[name] for name in ("column", "label")}, settings["k"]
    tuned = (
        hasattr(model, "columns") and format_and_compression(Path(file))[0]
    )  # its labels are a table's: True is true, 01 is 1
    if not (settings["other"] or tuned or isinstance(model, Estimates)):
        return classification(classifier(model, path), LabeledTexts(file, **names), k)
    rows = rows_of(model, file, settings["column"], settings["other"], settings["label"] or "label")
    if isinstance(model, Estimates):
        return number_result(rows.table.numbers(rows.label), rows.estimate())
    truths = [{label} if label is not None else set() for label in rows.table.categories(rows.label)]
    return label_result(zip(truths, rows.predict(k), strict=True), k)


def question_test(file: str, settings: dict[str, Any]) -> Callable[[str], Any]:
    from firth.cli.answer import answering
    from firth.data.questions import Questions
    from firth.evaluate import answers

    asked = Questions(file, **{name: settings[f"{name}_column"] for name in ("question", "passage", "answer")})
    return lambda path: answers(answering(open_model(path), path), asked)


def feature_test(file: str, settings: dict[str, Any]) -> Callable[[str], Any]:
    import numpy as np

    from firth.core import registry
    from firth.core.model import Embeds
    from firth.core.options import build_settings
    from firth.data.examples import Examples, labeled_rows
    from firth.data.table import Table
    from firth.evaluate import features

    names = {"text": settings["column"] or "text", "label": settings["label"] or "label"}
    columns = settings["columns"].split(",") if settings["columns"] else ()
    known = Examples(file, **names, columns=columns)
    texts, labels, rows = labeled_rows(known, choose_report(), settings["head"] == "ridge")
    beside = np.zeros((len(known), 0))
    if columns:
        encoder: Any = build_settings(registry.method("onehot"), {"missing": "mean"})
        beside = encoder.fit(Table(known.table, columns=columns)).transform(known.table)

    def test(path: str) -> Any:
        model = open_model(path)
        if not isinstance(model, Embeds):
            raise no_texts(model, path)
        matrix = np.hstack([model.embed(texts), beside[rows]])
        return features(matrix, np.array(labels), settings["head"], settings["folds"], texts)

    return test


def node_test(file: str, settings: dict[str, Any]) -> Callable[[str], Any]:
    from firth.evaluate import node_classification, read_labels

    def test(path: str) -> Any:
        vectors = open_vectors(path)
        known = read_labels(file, vectors, layout=settings["node_layout"])
        return node_classification(vectors, known, share=settings["share"], splits=settings["splits"])

    return test


def rating_tests(file: str, settings: dict[str, Any]) -> Tests:
    from firth.core.model import Rates
    from firth.data.interactions import Interactions
    from firth.evaluate import rating_errors, recommendations

    names = {name: settings[name] for name in ("user", "item", "value", "time")}
    test = Interactions(file, **names)
    history = Interactions(settings["history"], **names) if settings["history"] else None
    how = {"history": history, "baselines": settings["baselines"], "report": choose_report()}

    def errors(path: str) -> Any:
        model = open_model(path)
        return rating_errors(model, test) if isinstance(model, Rates) else None

    return {
        file: lambda path: recommendations(open_model(path), test, **how),  # type: ignore[arg-type]
        f"{file} (ratings)": errors,
    }
