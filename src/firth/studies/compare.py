"""`compare`: models on one protocol, with what applies to each; figures come with bootstrap intervals."""

from __future__ import annotations

import importlib.util
import os
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from firth.core.errors import FirthError
from firth.core.extras import how_to_install
from firth.core.run import Run
from firth.core.vectors import Matrix, Vectors, unit_rows
from firth.core.vectors import similarity as cosine
from firth.evaluate import (
    SentencePair,
    common_questions,
    read_pairs,
    read_questions,
    read_sentence_pairs,
    right_answers,
)
from firth.evaluate.words import check_finite, fold, row_lookup
from firth.studies import measures
from firth.studies.alignment import vectors_of
from firth.studies.comparison import Comparison, Facts, Measure, measured
from firth.studies.contender import Contender, contenders
from firth.studies.documents import LEAST, Drawn, draw, lookups
from firth.studies.training_data import LABELS, TEXTS, Asked, training_data, training_note

PathLike = str | os.PathLike[str]
WORDS = 2000  # of those that two models share, the most frequent, for the overlap
NEAREST = 10
Noted = Callable[[str], None]


def compare(
    models: Sequence[Any] | Mapping[str, Any],
    data: Any = None,
    *,
    analogies: PathLike | None = None,
    similarity: PathLike | None = None,
    sts: PathLike | None = None,
    texts: int = 2000,
    seed: int = 1,
    retrain: int = 0,
    **columns: Any,
) -> Comparison:
    """Models (or vectors, or paths to them) beside each other.

    `data` are your own documents, anything a `Corpus` reads, of which `texts` are drawn; `columns` name what records
    have: `column` the text, `title`, `name` and `label`. `analogies`, `similarity` (of words) and `sts` (of sentences)
    are test files as in `firth evaluate`. All models get the same items, those that all can answer. With `retrain`,
    methods that learn words train so many times more on `data`, each time from another seed, to see how many neighbours
    survive. A model that was trained on labels of these rows is marked and never recommended.
    """
    everyone = contenders(models)
    if columns and (data is None or isinstance(data, Drawn)):
        raise FirthError(
            "conflicting_options", "{columns} say how data is read; there is none to read.", columns=", ".join(columns)
        )
    documents = data if data is None or isinstance(data, Drawn) else draw(data, texts=texts, seed=seed, **columns)
    if retrain and (retrain < 2 or documents is None or documents.corpus is None):
        raise FirthError(
            "invalid_value",
            "{option} takes 2 or more trainings, and data to train on; got {got}.",
            option="retrain",
            got=retrain,
        )
    notes: list[str] = []
    found: list[Measure | None] = []
    if analogies is not None:
        found.append(analogy_measure(everyone, analogies, seed, notes.append))
    if similarity is not None:
        found.append(word_measure(everyone, similarity, seed, notes.append))
    embedders = [each for each in everyone if each.embed is not None]
    pairs = [] if sts is None else read_sentence_pairs(sts)
    if sts is not None:
        found.append(sentence_measure(embedders, pairs, seed, notes.append))
    rows: dict[str, Matrix] = {}
    facts = {each.name: known_facts(each) for each in everyone}
    if documents is not None or pairs:
        asked = Asked(documents, pairs)
        facts = {each.name: replace(facts[each.name], data=training_data(each, asked)) for each in everyone}
    if documents is not None:
        for each in embedders:
            rows[each.name], coverage, speed = each.timed(documents.texts)
            figures = {"dim": rows[each.name].shape[1], "coverage": coverage, "speed": speed}
            facts[each.name] = replace(facts[each.name], **figures)
        silent = [each.name for each in everyone if each.embed is None]
        if silent:
            notes.append(f"Not a model of texts, so not asked about them: {', '.join(silent)}.")
        if embedders:
            found += lookup_measures(embedders, documents, seed)
            found += label_measures(rows, documents.labels, seed, notes.append)
    if retrain and documents is not None:
        found.append(stability_measure(everyone, documents.corpus, retrain, seed, notes.append))
    shares, what = text_overlap(rows) if len(rows) > 1 else word_overlap(everyone)
    notes += [training_note(name, each.data) for name, each in facts.items() if each.data.what in (LABELS, TEXTS)]
    excluded = frozenset(name for name, each in facts.items() if each.data.excluded)
    kept = tuple(replace(measure, excluded=excluded) for measure in found if measure)
    return Comparison(facts, kept, shares, what, tuple(notes))


def known_facts(each: Contender) -> Facts:
    """What is known before anything is measured."""
    dim = each.vectors.dim if each.vectors else 0
    return Facts(each.bytes, dim, np.nan, np.nan, memory=each.memory, training=each.training_seconds)


def analogy_measure(everyone: Sequence[Contender], path: PathLike, seed: int, note: Noted) -> Measure | None:
    tables = {each.name: each.vectors for each in everyone if each.vectors is not None}
    questions = read_questions(path)
    asked = common_questions(questions, *tables.values()) if tables else []
    count, total = (sum(len(section.questions) for section in each) for each in (asked, questions))
    if count < LEAST:
        note(f"Analogies left out: {count} of {total:,} questions have words that all models know; {LEAST} are needed.")
        return None
    values = {name: right_answers(vectors, asked).astype(np.float64) for name, vectors in tables.items()}
    return measured("analogies", "share of analogies answered rightly", values, seed=seed)


def word_measure(everyone: Sequence[Contender], path: PathLike, seed: int, note: Noted) -> Measure | None:
    tables = {each.name: each.vectors for each in everyone if each.vectors is not None}
    lookups = {name: row_lookup(vectors, None, True) for name, vectors in tables.items()}
    pairs = read_pairs(path)
    asked = [
        pair
        for pair in pairs
        if lookups and all(fold(word, True) in lookup for lookup in lookups.values() for word in pair[:2])
    ]
    if len(asked) < LEAST:
        known = f"{len(asked)} of {len(pairs):,} pairs have words that all models know"
        note(f"Word similarity left out: {known}; {LEAST} are needed.")
        return None
    values = {}
    for name, vectors in tables.items():
        check_finite(vectors, None)
        places = [[lookups[name][fold(word, True)][0] for word in pair[:2]] for pair in asked]
        values[name] = np.array([cosine(vectors.matrix[a], vectors.matrix[b]) for a, b in places]).round(12)
    truth = np.array([pair.score for pair in asked])
    return measured("word similarity", "Spearman's ρ of cosine and human score", values, truth=truth, seed=seed)


def sentence_measure(
    embedders: Sequence[Contender], pairs: Sequence[SentencePair], seed: int, note: Noted
) -> Measure | None:
    if not embedders or len(pairs) < LEAST:
        note(f"STS left out: it needs {LEAST} pairs and a model of texts; there are {len(pairs)} and {len(embedders)}.")
        return None
    values = {}
    for each in embedders:
        left, right = (unit_rows(each.rows([pair[side] for pair in pairs])) for side in (0, 1))  # type: ignore[misc]
        values[each.name] = (left.astype(np.float64) * right).sum(axis=1).round(12)
    truth = np.array([pair.score for pair in pairs])
    return measured("STS", "Spearman's ρ of cosine and human score of sentences", values, truth=truth, seed=seed)


def lookup_measures(embedders: Sequence[Contender], documents: Drawn, seed: int) -> list[Measure]:
    """Mean reciprocal rank and recall@10 of each kind of known item, beside BM25."""
    found = []
    for asked in lookups(documents, seed):
        ranks = {each.name: measures.known_item_ranks(*map(each.rows, asked[2:])) for each in embedders}
        by_words = measures.word_ranks(asked.queries, asked.targets)
        what = f"{asked.what}, of {len(asked.targets):,}"
        found.append(
            measured(
                f"{asked.name}, MRR",
                f"{what}: mean of 1 / rank",
                {name: 1 / rank for name, rank in ranks.items()},
                baseline=("BM25", 1 / by_words),
                seed=seed,
            )
        )
        found.append(
            measured(
                f"{asked.name}, recall@10",
                f"{what}: share among the first 10",
                {name: (rank <= 10).astype(np.float64) for name, rank in ranks.items()},
                baseline=("BM25", (by_words <= 10).astype(np.float64)),
                counted=False,
                seed=seed,
            )
        )
    return found


def label_measures(rows: Mapping[str, Matrix], labels: Sequence[str], seed: int, note: Noted) -> list[Measure]:
    """What a linear probe tells, and how pure clusters are; labels of few documents are left out."""
    counts = Counter(label for label in labels if label)
    names = [label for label, count in sorted(counts.items()) if count >= LEAST]
    if not counts:
        return []
    if len(names) < len(counts):
        note(f"{len(counts) - len(names):,} labels with fewer than {LEAST} documents are left out.")
    if len(names) < 2:
        return []
    places = {name: place for place, name in enumerate(names)}
    chosen = [row for row, label in enumerate(labels) if label in places]
    ids = np.array([places[labels[row]] for row in chosen])
    some = {name: matrix[chosen] for name, matrix in rows.items()}
    pure = {name: measures.purity(measures.clusters(matrix, len(names), seed), ids) for name, matrix in some.items()}
    guess = np.asarray(ids == np.bincount(ids).argmax(), dtype=np.float64)
    what = f"share in the cluster of their label, {len(names)} clusters"
    found = [measured("cluster purity", what, pure, baseline=("most frequent", guess), seed=seed)]
    if importlib.util.find_spec("sklearn") is None:
        note(f"The probe of labels is left out, since scikit-learn is not installed; {how_to_install('sklearn')}.")
        return found
    told = {name: measures.probe(matrix, ids, seed) for name, matrix in some.items()}
    known = ("most frequent", measures.most_frequent(ids, seed))
    what = "labels told by logistic regression trained on the other half"
    return [measured("labels, accuracy", what, told, baseline=known, seed=seed), *found]


def stability_measure(
    everyone: Sequence[Contender], corpus: Any, trainings: int, seed: int, note: Noted
) -> Measure | None:
    """How many of a word's 10 nearest are the same in two trainings of one method that differ by their seed alone."""
    methods = {
        each.name: each.model.method
        for each in everyone
        if each.model is not None and each.vectors is not None and each.model.method.kind == "text"
    }
    again: dict[str, list[Vectors]] = {
        name: [vectors_of(method.fit(corpus, run=Run(seed=seed + turn))) for turn in range(trainings)]
        for name, method in methods.items()
    }
    tables = [vectors for turns in again.values() for vectors in turns]
    words = [word for word in tables[0].keys if all(word in other.rows for other in tables)][:WORDS] if tables else []
    if len(words) <= NEAREST:
        note("Stability left out: there are no models that learn words of their own from texts, or too few words.")
        return None
    values = {}
    for name, turns in again.items():
        rows = [vectors.matrix[[vectors.rows[word] for word in words]] for vectors in turns]
        values[name] = np.mean([measures.overlap(a, b, NEAREST) for a, b in combinations(rows, 2)], axis=0)
    what = f"share of a word's 10 nearest that are the same after training again, {trainings} seeds"
    return measured("stability", what, values, counted=False, seed=seed)


def text_overlap(rows: Mapping[str, Matrix]) -> tuple[dict[tuple[str, str], float], str]:
    count = len(next(iter(rows.values())))
    k = min(NEAREST, count - 1)
    shares = {(a, b): float(measures.overlap(rows[a], rows[b], k).mean()) for a, b in combinations(rows, 2)}
    return shares, f"{count:,} texts"


def word_overlap(everyone: Sequence[Contender]) -> tuple[dict[tuple[str, str], float], str]:
    """Of each two models, over the words that both have."""
    shares = {}
    tables = [(each.name, each.vectors) for each in everyone if each.vectors is not None]
    for (a, left), (b, right) in combinations(tables, 2):
        words = common_words(left, right)[:WORDS]
        if len(words) > NEAREST:
            x, y = (vectors.matrix[[vectors.rows[word] for word in words]] for vectors in (left, right))
            shares[a, b] = float(measures.overlap(x, y, NEAREST).mean())
    return shares, f"common words, at most {WORDS:,}"


def common_words(a: Vectors, b: Vectors) -> list[str]:
    """In the order of `a`."""
    return [word for word in dict.fromkeys(a.keys) if word in b.rows]
