"""Tasks of a sweep: user data in two parts, one for selection (dev) and one for the final score (test).

A task gives one value per item, larger is better, for the same items with every model. An item with a word that the
model lacks counts as wrong, so that a smaller vocabulary is no advantage.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Callable, Container, Iterable, Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.model import Model, Predicts, Rates, Recommends
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.core.vectors import similarity as cosine
from firth.data.interactions import Interactions
from firth.data.labeled_texts import LabeledTexts
from firth.evaluate import (
    Section,
    read_labels,
    read_pairs,
    read_questions,
    read_sentence_pairs,
    recommended,
    right_answers,
)
from firth.evaluate.nodes import label_scores, likeliest
from firth.evaluate.recommendation import check_recommends
from firth.evaluate.words import fold, row_lookup
from firth.studies.bootstrap import Floats, statistic
from firth.studies.compared_models import ComparedModel, embedding, word_table
from firth.studies.documents import LEAST, Drawn, lookups
from firth.studies.measures import known_item_ranks

PathLike = str | os.PathLike[str]
Ids = NDArray[np.int64]
FREQUENT = 30_000  # most frequent words that take part in analogies, as is usual


class Part(NamedTuple):
    """A part of a task. `values(model)` has one value per item; with `truth`, the score is Spearman's ρ with it."""

    items: int
    values: Callable[[Model], Floats]
    truth: Floats | None = None

    def score(self, model: Model) -> float:
        """Return the score of a model on this part."""
        return statistic(self.values(model), self.truth)


class Task(NamedTuple):
    """A task with its two parts. Tasks with the same `identity` have the same items."""

    name: str
    what: str
    dev: Part
    test: Part
    identity: str


def similarity_task(path: PathLike, seed: int = 1) -> Task:
    """Return a task of word pairs with human scores; a pair with an unknown word gets the mean cosine of the others."""
    pairs = read_pairs(path)

    def part(rows: Ids) -> Part:
        selected = [pairs[row] for row in rows]

        def values(model: Model) -> Floats:
            vectors = words_of(model)
            lookup = row_lookup(vectors, None, True)
            word_rows = [lookup.get(fold(word, True)) for pair in selected for word in pair[:2]]
            cosines = np.array(
                [
                    cosine(vectors.matrix[a[0]], vectors.matrix[b[0]]) if a and b else np.nan
                    for a, b in zip(word_rows[::2], word_rows[1::2], strict=True)
                ]
            )
            mean = np.nanmean(cosines) if np.isfinite(cosines).any() else 0.0
            return np.where(np.isnan(cosines), mean, cosines).round(12)

        return Part(len(selected), values, np.array([pair.score for pair in selected]))

    return task("word similarity", "Spearman's ρ of cosine and human score", part, len(pairs), pairs, seed)


def analogy_task(path: PathLike, seed: int = 1) -> Task:
    """Return a task of analogies; a question with an unknown word counts as wrong."""
    questions = [(section.name, question) for section in read_questions(path) for question in section.questions]

    def part(rows: Ids) -> Part:
        selected = [questions[row][1] for row in rows]

        def values(model: Model) -> Floats:
            vectors = words_of(model)
            lookup = row_lookup(vectors, FREQUENT, True)
            answerable = np.array([all(fold(word, True) in lookup for word in question) for question in selected])
            correct = np.zeros(len(selected))
            if answerable.any():
                remaining = tuple(question for question, yes in zip(selected, answerable, strict=True) if yes)
                correct[answerable] = right_answers(vectors, [Section("all", remaining)], restrict=FREQUENT)
            return correct

        return Part(len(selected), values)

    return task("analogies", "share of analogies answered correctly", part, len(questions), questions, seed)


def sentence_task(path: PathLike, seed: int = 1) -> Task:
    """Return a task of sentence pairs with human scores."""
    pairs = read_sentence_pairs(path)

    def part(rows: Ids) -> Part:
        selected = [pairs[row] for row in rows]

        def values(model: Model) -> Floats:
            left, right = (unit_rows(rows_of(model, [pair[side] for pair in selected])) for side in (0, 1))
            return np.asarray((left.astype(np.float64) * right).sum(axis=1).round(12))

        return Part(len(selected), values, np.array([pair.score for pair in selected]))

    return task("STS", "Spearman's ρ of cosine and human score of sentences", part, len(pairs), pairs, seed)


def document_task(documents: Drawn, seed: int = 1) -> Task:
    """Return a task of known-item search: the text of a title, else the name of a text, else the next sentence."""
    searches = lookups(documents, seed)
    if not searches:
        raise FirthError(
            "too_few",
            "A task of documents needs at least {least} different titles, names or pairs of sentences.",
            least=LEAST,
        )
    first = searches[0]

    def part(rows: Ids) -> Part:
        queries, targets = ([texts[row] for row in rows] for texts in first[2:])
        return Part(len(rows), lambda model: 1 / known_item_ranks(rows_of(model, queries), rows_of(model, targets)))

    return task(first.name, f"{first.what}: mean of 1 / rank", part, len(first.queries), first[2:], seed)


def labeled_task(examples: LabeledTexts | Iterable[tuple[str, str | None]], seed: int = 1) -> Task:
    """Return a task of texts with one label each, predicted by a classifier or by a linear probe on vectors."""
    labeled = [(text, labels if isinstance(labels, str) else labels[0]) for text, labels in examples if labels]
    label_ids = {name: number for number, name in enumerate(sorted({label for _, label in labeled}))}
    truth = np.zeros((len(labeled), len(label_ids)), dtype=bool)
    truth[np.arange(len(labeled)), [label_ids[label] for _, label in labeled]] = True
    if len(label_ids) < 2:
        raise FirthError("too_few", "A task of labels needs at least 2 labels; got {got}.", got=len(label_ids))

    def texts(rows: Ids) -> list[str]:
        return [labeled[row][0] for row in rows]

    def correct(model: Model, train: Ids, test: Ids) -> Floats:
        if isinstance(model, Predicts):
            predictions = model.predict(texts(test))
            return np.array(
                [bool(best) and best[0][0] == labeled[row][1] for best, row in zip(predictions, test, strict=True)],
                float,
            )
        return probe_scores(rows_of(model, texts(train)), truth[train], rows_of(model, texts(test)), truth[test])

    return probe_task("labels", "labels predicted correctly", correct, len(labeled), labeled, seed)


def node_task(path: PathLike, seed: int = 1, nodes: Container[str] | None = None, layout: str = "auto") -> Task:
    """Return a task of node labels or communities (see `read_labels`), predicted by a linear probe.

    A node without a vector is represented by zeros.
    """
    labels = [(node, own) for node, own in read_labels(path, nodes, layout=layout).items() if own]
    label_ids = {name: number for number, name in enumerate(sorted({label for _, own in labels for label in own}))}
    truth = np.zeros((len(labels), len(label_ids)), dtype=bool)
    for row, (_, own) in enumerate(labels):
        truth[row, [label_ids[label] for label in own]] = True

    def correct(model: Model, train: Ids, test: Ids) -> Floats:
        vectors = words_of(model)
        rows = np.zeros((len(labels), vectors.dim), dtype=np.float32)
        for row, (node, _) in enumerate(labels):
            if node in vectors.rows:
                rows[row] = vectors.matrix[vectors.rows[node]]
        return probe_scores(rows[train], truth[train], rows[test], truth[test])

    return probe_task(
        "labels of nodes", "share of a node's labels predicted by a linear probe", correct, len(labels), labels, seed
    )


def rating_task(test: Interactions, seed: int = 1) -> Task:
    """Return a task of held-out interactions: the NDCG@100 of each user, 0 for users unseen in training.

    For models that predict ratings it is minus the squared error of each rating; for unseen users and items the mean
    rating is the prediction.
    """
    histories = sorted(test.histories().items())

    def part(rows: Ids) -> Part:
        selected = dict(histories[row] for row in rows)
        rated = [(user, item, value) for user, items in selected.items() for item, value in items.items()]

        def values(model: Model) -> Floats:
            if isinstance(model, Rates):
                return -squared_errors(model, rated)
            check_recommends(model)
            assert isinstance(model, Recommends)
            ndcg = recommended(model, selected)
            return np.array([ndcg.get(user, 0.0) for user in selected])

        return Part(len(selected), values)

    what = "NDCG@100 of held-out items, or minus the squared error of ratings"
    return task("ratings", what, part, len(histories), histories, seed)


def squared_errors(model: Rates, rated: Sequence[tuple[str, str, float]]) -> Floats:
    """Return the squared error of each rating; the mean rating is predicted for unseen users and items."""
    users, items = model.tables["users"], model.tables["items"]
    predicted = np.full(len(rated), float(model.mean))
    seen = np.array([user in users and item in items for user, item, _ in rated])
    if seen.any():
        pairs = [triple for triple, yes in zip(rated, seen, strict=True) if yes]
        predicted[seen] = model.rate([user for user, _, _ in pairs], [item for _, item, _ in pairs])
    return np.asarray((predicted - np.array([value for _, _, value in rated])) ** 2)


# ---- construction of tasks ----


def task(name: str, what: str, part: Callable[[Ids], Part], items: int, content: Any, seed: int) -> Task:
    """Return a task whose items are split at random into two halves."""
    dev, test = split_items(name, items, 2, seed)
    return Task(name, what, part(dev), part(test), identity_of(name, content, seed))


def probe_task(
    name: str, what: str, correct: Callable[[Model, Ids, Ids], Floats], items: int, content: Any, seed: int
) -> Task:
    """Return a task whose items are split into three: training data of the probe, dev and test."""
    train, dev, test = split_items(name, items, 3, seed)

    def part(rows: Ids) -> Part:
        return Part(len(rows), lambda model: correct(model, train, rows))

    return Task(name, what, part(dev), part(test), identity_of(name, content, seed))


def split_items(name: str, items: int, parts: int, seed: int) -> list[Ids]:
    """Split item numbers at random into equal parts."""
    if items < parts * LEAST:
        raise FirthError(
            "too_few",
            "A sweep by {name} needs at least {least} items, to split them into {parts} parts; got {got}.",
            name=name,
            least=parts * LEAST,
            parts=parts,
            got=items,
        )
    return [np.sort(rows) for rows in np.array_split(np.random.default_rng(seed).permutation(items), parts)]


def identity_of(name: str, content: Any, seed: int) -> str:
    """Return a hash of a task's content and split."""
    return hashlib.sha256(json.dumps([name, content, seed], sort_keys=True).encode()).hexdigest()


def probe_scores(train: Matrix, train_truth: NDArray[np.bool_], test: Matrix, truth: NDArray[np.bool_]) -> Floats:
    """Return the share of each test row's labels that logistic regression predicts, given the number of labels."""
    mean, deviation = train.mean(axis=0), np.maximum(train.std(axis=0), 1e-12)
    scaled = [((rows - mean) / deviation).astype(np.float64) for rows in (train, test)]
    counts = truth.sum(axis=1)
    predicted = likeliest(label_scores(scaled[0], train_truth, scaled[1]), counts)
    return np.asarray((predicted & truth).sum(axis=1) / counts)


def words_of(model: Model) -> Vectors:
    """Return the table of words or nodes of a model."""
    vectors = word_table(model)
    if vectors is None:
        raise FirthError(
            "unsupported_model",
            "This task needs vectors of {needed}, and {method} has no such table.",
            needed="words or nodes",
            method=type(model.method).__name__,
        )
    return vectors


def rows_of(model: Model, texts: Sequence[str]) -> Matrix:
    """Return one vector per text."""
    compared = ComparedModel("The model", None, embedding(model), 0, model)
    if compared.embed is None:
        raise FirthError(
            "unsupported_model",
            "This task needs vectors of {needed}, and {method} does not embed any.",
            needed="texts",
            method=type(model.method).__name__,
        )
    return compared.rows(texts)
