"""What a sweep chooses by: a task of the user's own in two parts, one to choose on and one that tells the truth after.

Every task gives one number an item, larger is better, for the same items whatever model is asked: a word that a model
has dropped costs it the question, so that no model gains by knowing less.
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
from firth.core.model import Predicts, Rates
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.core.vectors import similarity as cosine
from firth.data.interactions import Interactions
from firth.data.labeled_texts import LabeledTexts
from firth.evaluate import Section, read_labels, read_pairs, read_questions, read_sentence_pairs, recommended
from firth.evaluate import right_answers as answered
from firth.evaluate.nodes import label_scores, likeliest
from firth.evaluate.words import fold, row_lookup
from firth.studies.bootstrap import Floats, figure
from firth.studies.contender import Contender, embedding, word_table
from firth.studies.documents import LEAST, Drawn, lookups
from firth.studies.measures import known_item_ranks

PathLike = str | os.PathLike[str]
Ids = NDArray[np.int64]
FREQUENT = 30_000  # words that take part in analogies, as everywhere in the field


class Part(NamedTuple):
    """Items of a task: `values(model)` has one number for each; with `truth`, the figure is Spearman's ρ with it."""

    items: int
    values: Callable[[Any], Floats]
    truth: Floats | None = None

    def score(self, model: Any) -> float:
        return figure(self.values(model), self.truth)


class Task(NamedTuple):
    """`identity` tells whether two tasks ask the same."""

    name: str
    what: str
    dev: Part
    test: Part
    identity: str


def similarity_task(path: PathLike, seed: int = 1) -> Task:
    """Pairs of words with people's scores. A pair with an unknown word is as alike as the others on average."""
    pairs = read_pairs(path)

    def part(places: Ids) -> Part:
        asked = [pairs[place] for place in places]

        def values(model: Any) -> Floats:
            vectors = words_of(model)
            rows = row_lookup(vectors, None, True)
            known = [rows.get(fold(word, True)) for pair in asked for word in pair[:2]]
            found = np.array(
                [
                    cosine(vectors.matrix[a[0]], vectors.matrix[b[0]]) if a and b else np.nan
                    for a, b in zip(known[::2], known[1::2], strict=True)
                ]
            )
            middle = np.nanmean(found) if np.isfinite(found).any() else 0.0
            return np.where(np.isnan(found), middle, found).round(12)

        return Part(len(asked), values, np.array([pair.score for pair in asked]))

    return task("word similarity", "Spearman's ρ of cosine and human score", part, len(pairs), pairs, seed)


def analogy_task(path: PathLike, seed: int = 1) -> Task:
    """Analogies; a question with an unknown word is answered wrongly."""
    questions = [(section.name, question) for section in read_questions(path) for question in section.questions]

    def part(places: Ids) -> Part:
        asked = [questions[place][1] for place in places]

        def values(model: Any) -> Floats:
            vectors = words_of(model)
            rows = row_lookup(vectors, FREQUENT, True)
            known = np.array([all(fold(word, True) in rows for word in question) for question in asked])
            right = np.zeros(len(asked))
            if known.any():
                some = tuple(question for question, there in zip(asked, known, strict=True) if there)
                right[known] = answered(vectors, [Section("all", some)], restrict=FREQUENT)
            return right

        return Part(len(asked), values)

    return task("analogies", "share of analogies answered rightly", part, len(questions), questions, seed)


def sentence_task(path: PathLike, seed: int = 1) -> Task:
    """Pairs of sentences with people's scores."""
    pairs = read_sentence_pairs(path)

    def part(places: Ids) -> Part:
        asked = [pairs[place] for place in places]

        def values(model: Any) -> Floats:
            left, right = (unit_rows(rows_of(model, [pair[side] for pair in asked])) for side in (0, 1))
            return np.asarray((left.astype(np.float64) * right).sum(axis=1).round(12))

        return Part(len(asked), values, np.array([pair.score for pair in asked]))

    return task("STS", "Spearman's ρ of cosine and human score of sentences", part, len(pairs), pairs, seed)


def document_task(documents: Drawn, seed: int = 1) -> Task:
    """Known items: the text that a title belongs to, else the name that a text describes, else the next sentence."""
    asked = lookups(documents, seed)
    if not asked:
        raise FirthError(
            "too_few",
            "The documents have fewer than {least} titles, names or pairs of sentences to ask for.",
            least=LEAST,
        )
    first = asked[0]

    def part(places: Ids) -> Part:
        queries, targets = ([texts[place] for place in places] for texts in first[2:])
        return Part(len(places), lambda model: 1 / known_item_ranks(rows_of(model, queries), rows_of(model, targets)))

    return task(first.name, f"{first.what}: mean of 1 / rank", part, len(first.queries), first[2:], seed)


def labelled_task(examples: LabeledTexts | Iterable[tuple[str, str | None]], seed: int = 1) -> Task:
    """Texts with one label each: what a classifier predicts, or what a linear probe tells from a model's vectors."""
    known = [(text, labels if isinstance(labels, str) else labels[0]) for text, labels in examples if labels]
    names = {name: place for place, name in enumerate(sorted({label for _, label in known}))}
    truth = np.zeros((len(known), len(names)), dtype=bool)
    truth[np.arange(len(known)), [names[label] for _, label in known]] = True
    if len(names) < 2:
        raise FirthError("too_few", "A task of labels needs two of them; got {got}.", got=len(names))

    def texts(places: Ids) -> list[str]:
        return [known[place][0] for place in places]

    def right(model: Any, learn: Ids, ask: Ids) -> Floats:
        if isinstance(model, Predicts):
            found = model.predict(texts(ask))
            return np.array(
                [bool(best) and best[0][0] == known[row][1] for best, row in zip(found, ask, strict=True)], float
            )
        return probed(rows_of(model, texts(learn)), truth[learn], rows_of(model, texts(ask)), truth[ask])

    return probe_task("labels", "labels told rightly", right, len(known), known, seed)


def node_task(path: PathLike, seed: int = 1, nodes: Container[str] | None = None, layout: str = "auto") -> Task:
    """Labels of nodes, or communities (see `read_labels`), told by a linear probe; a node without a vector is asked by
    zeros."""
    labels = [(node, found) for node, found in read_labels(path, nodes, layout=layout).items() if found]
    names = {name: place for place, name in enumerate(sorted({label for _, found in labels for label in found}))}
    truth = np.zeros((len(labels), len(names)), dtype=bool)
    for row, (_, found) in enumerate(labels):
        truth[row, [names[label] for label in found]] = True

    def right(model: Any, learn: Ids, ask: Ids) -> Floats:
        vectors = words_of(model)
        rows = np.zeros((len(labels), vectors.dim), dtype=np.float32)
        for place, (node, _) in enumerate(labels):
            if node in vectors.rows:
                rows[place] = vectors.matrix[vectors.rows[node]]
        return probed(rows[learn], truth[learn], rows[ask], truth[ask])

    return probe_task(
        "labels of nodes", "share of a node's labels told by a linear probe", right, len(labels), labels, seed
    )


def rating_task(test: Interactions, seed: int = 1) -> Task:
    """What users turned to later: NDCG@100 of each, 0 of a user the model does not know; for models that predict
    ratings, minus the squared error of each, that of guessing the mean where user or item is unknown."""
    histories = sorted(test.histories().items())

    def part(places: Ids) -> Part:
        asked = dict(histories[place] for place in places)
        rated = [(user, item, value) for user, items in asked.items() for item, value in items.items()]

        def values(model: Any) -> Floats:
            if isinstance(model, Rates):
                return -squared_errors(model, rated)
            found = recommended(model, asked)
            return np.array([found.get(user, 0.0) for user in asked])

        return Part(len(asked), values)

    what = "NDCG@100 of what users turned to, or minus the squared error of ratings"
    return task("ratings", what, part, len(histories), histories, seed)


def squared_errors(model: Any, rated: Sequence[tuple[str, str, float]]) -> Floats:
    users, items = model.tables["users"], model.tables["items"]
    guess = np.full(len(rated), float(model.mean))
    known = np.array([user in users and item in items for user, item, _ in rated])
    if known.any():
        some = [triple for triple, there in zip(rated, known, strict=True) if there]
        guess[known] = model.rate([user for user, _, _ in some], [item for _, item, _ in some])
    return np.asarray((guess - np.array([value for _, _, value in rated])) ** 2)


# ---- what they share ----


def task(name: str, what: str, part: Callable[[Ids], Part], items: int, content: Any, seed: int) -> Task:
    """Its items dealt at random into two halves."""
    order = dealt(name, items, 2, seed)
    return Task(name, what, part(order[0]), part(order[1]), identity_of(name, content, seed))


def probe_task(
    name: str, what: str, right: Callable[[Any, Ids, Ids], Floats], items: int, content: Any, seed: int
) -> Task:
    """Its items dealt into three: one that probes learn from, one to choose by, one to tell."""
    learn, dev, test = dealt(name, items, 3, seed)

    def part(ask: Ids) -> Part:
        return Part(len(ask), lambda model: right(model, learn, ask))

    return Task(name, what, part(dev), part(test), identity_of(name, content, seed))


def dealt(name: str, items: int, parts: int, seed: int) -> list[Ids]:
    if items < parts * LEAST:
        raise FirthError(
            "too_few",
            "A sweep by {name} needs at least {parts} items to deal into {parts_2}; got {got}.",
            name=name,
            parts=parts * LEAST,
            parts_2=parts,
            got=items,
        )
    return [np.sort(places) for places in np.array_split(np.random.default_rng(seed).permutation(items), parts)]


def identity_of(name: str, content: Any, seed: int) -> str:
    return hashlib.sha256(json.dumps([name, content, seed], sort_keys=True).encode()).hexdigest()


def probed(learn: Matrix, known: NDArray[np.bool_], ask: Matrix, truth: NDArray[np.bool_]) -> Floats:
    """Of each row asked, the share of its labels that logistic regression tells when told how many there are."""
    middle, spread = learn.mean(axis=0), np.maximum(learn.std(axis=0), 1e-12)
    scaled = [((rows - middle) / spread).astype(np.float64) for rows in (learn, ask)]
    counts = truth.sum(axis=1)
    found = likeliest(label_scores(scaled[0], known, scaled[1]), counts)
    return np.asarray((found & truth).sum(axis=1) / counts)


def words_of(model: Any) -> Vectors:
    found = word_table(model)
    if found is None:
        raise FirthError(
            "unsupported_model",
            "This task asks for words or nodes, of which a {method} has no table.",
            method=type(model.method).__name__,
        )
    return found


def rows_of(model: Any, texts: Sequence[str]) -> Matrix:
    asked = Contender("The model", None, embedding(model), 0, model)
    if asked.embed is None:
        raise FirthError(
            "unsupported_model",
            "This task asks about texts, which a {method} does not embed.",
            method=type(model.method).__name__,
        )
    return asked.rows(texts)
