"""`compare`: models on one protocol, each with the measures that apply to it, with bootstrap intervals."""

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
from firth.data.corpus import Corpus
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
from firth.studies.cluster import embedded_models, retrained
from firth.studies.compared_models import ComparedModel, ModelOrPath, compared_models
from firth.studies.comparison import Comparison, Measure, ModelMetadata, make_measure
from firth.studies.documents import LEAST, Drawn, Lookups, draw, lookups
from firth.studies.training_data import LABELS, TEXTS, EvaluationData, training_data, training_note
from firth.work.executors import Cluster

PathLike = str | os.PathLike[str]
WORDS = 2000  # most frequent common words of two models, for the overlap
NEAREST = 10
Note = Callable[[str], None]


def compare(
    models: Sequence[ModelOrPath] | Mapping[str, ModelOrPath],
    data: Any = None,
    *,
    analogies: PathLike | None = None,
    similarity: PathLike | None = None,
    sts: PathLike | None = None,
    texts: int = 2000,
    seed: int = 1,
    retrain: int = 0,
    cluster: Cluster = Cluster(),
    **columns: Any,
) -> Comparison:
    """Compare models, vectors, or paths to them.

    `data` are your own documents, anything a `Corpus` reads, of which `texts` are sampled. `columns` name the columns
    of records: `column` (the text), `title`, `name` and `label`. `analogies`, `similarity` (of words) and `sts` (of
    sentences) are test files as in `firth evaluate`. All models are evaluated on the same items, those that all can
    answer. With `retrain`, methods that train word vectors are trained that many times on `data` with different seeds,
    to measure how stable the nearest neighbors are. A model that was trained on labels of these rows is marked and
    never recommended. The workers of a `cluster` embed the texts with one model each, and train again.
    """
    everyone = compared_models(models)
    if columns and (data is None or isinstance(data, Drawn)):
        raise FirthError(
            "conflicting_options",
            "{columns} can only be used with data to read, and none was passed.",
            columns=", ".join(columns),
        )
    documents = data if data is None or isinstance(data, Drawn) else draw(data, texts=texts, seed=seed, **columns)
    if retrain and (retrain < 2 or documents is None or documents.corpus is None):
        raise FirthError(
            "invalid_value",
            "{option} must be at least 2 and needs data to train on; got {got}.",
            option="retrain",
            got=retrain,
        )
    notes: list[str] = []
    results: list[Measure | None] = []
    if analogies is not None:
        results.append(analogy_measure(everyone, analogies, seed, notes.append))
    if similarity is not None:
        results.append(word_measure(everyone, similarity, seed, notes.append))
    pairs = [] if sts is None else read_sentence_pairs(sts)
    searches = [] if documents is None else lookups(documents, seed)
    if cluster.where:
        halves = [[pair[side] for pair in pairs] for side in (0, 1)] if len(pairs) >= LEAST else []
        lists: list[Sequence[str]] = [
            *([documents.texts] if documents else []),
            *halves,
            *(each for one in searches for each in (one.queries, one.targets)),
        ]
        everyone = embedded_models(everyone, lists, cluster)
    embedders = [each for each in everyone if each.embed is not None]
    if sts is not None:
        results.append(sentence_measure(embedders, pairs, seed, notes.append))
    rows: dict[str, Matrix] = {}
    metadata = {each.name: initial_metadata(each) for each in everyone}
    if documents is not None or pairs:
        evaluated = EvaluationData(documents, pairs)
        metadata = {each.name: replace(metadata[each.name], data=training_data(each, evaluated)) for each in everyone}
    if documents is not None:
        for each in embedders:
            rows[each.name], coverage, speed = each.timed(documents.texts)
            values = {"dim": rows[each.name].shape[1], "coverage": coverage, "speed": speed}
            metadata[each.name] = replace(metadata[each.name], **values)
        without_texts = [each.name for each in everyone if each.embed is None]
        if without_texts:
            notes.append(f"Not evaluated on texts, because they do not embed any: {', '.join(without_texts)}.")
        if embedders:
            results += lookup_measures(embedders, searches, seed)
            results += label_measures(rows, documents.labels, seed, notes.append)
    if retrain and documents is not None:
        results.append(stability_measure(everyone, documents.corpus, retrain, seed, notes.append, cluster))
    shares, what = text_overlap(rows) if len(rows) > 1 else word_overlap(everyone)
    notes += [training_note(name, each.data) for name, each in metadata.items() if each.data.what in (LABELS, TEXTS)]
    excluded = frozenset(name for name, each in metadata.items() if each.data.excluded)
    all_measures = tuple(replace(measure, excluded=excluded) for measure in results if measure)
    return Comparison(metadata, all_measures, shares, what, tuple(notes))


def initial_metadata(each: ComparedModel) -> ModelMetadata:
    """Return the metadata that needs no measurement."""
    dim = each.vectors.dim if each.vectors else 0
    return ModelMetadata(each.bytes, dim, np.nan, np.nan, memory=each.memory, training=each.training_seconds)


def analogy_measure(everyone: Sequence[ComparedModel], path: PathLike, seed: int, note: Note) -> Measure | None:
    """Return the accuracy on the analogies whose words all models have."""
    tables = {each.name: each.vectors for each in everyone if each.vectors is not None}
    questions = read_questions(path)
    common = common_questions(questions, *tables.values()) if tables else []
    count, total = (sum(len(section.questions) for section in each) for each in (common, questions))
    if count < LEAST:
        note(
            f"Analogies left out: all models have vectors for the words of {count} of {total:,} questions; at least "
            f"{LEAST} are needed."
        )
        return None
    values = {name: right_answers(vectors, common).astype(np.float64) for name, vectors in tables.items()}
    return make_measure("analogies", "share of analogies answered correctly", values, seed=seed)


def word_measure(everyone: Sequence[ComparedModel], path: PathLike, seed: int, note: Note) -> Measure | None:
    """Return the word similarity on the pairs whose words all models have."""
    tables = {each.name: each.vectors for each in everyone if each.vectors is not None}
    lookups = {name: row_lookup(vectors, None, True) for name, vectors in tables.items()}
    pairs = read_pairs(path)
    common = [
        pair
        for pair in pairs
        if lookups and all(fold(word, True) in lookup for lookup in lookups.values() for word in pair[:2])
    ]
    if len(common) < LEAST:
        note(
            f"Word similarity left out: all models have vectors for the words of {len(common)} of {len(pairs):,} "
            f"pairs; at least {LEAST} are needed."
        )
        return None
    values = {}
    for name, vectors in tables.items():
        check_finite(vectors, None)
        rows = [[lookups[name][fold(word, True)][0] for word in pair[:2]] for pair in common]
        values[name] = np.array([cosine(vectors.matrix[a], vectors.matrix[b]) for a, b in rows]).round(12)
    truth = np.array([pair.score for pair in common])
    return make_measure("word similarity", "Spearman's ρ of cosine and human score", values, truth=truth, seed=seed)


def sentence_measure(
    embedders: Sequence[ComparedModel], pairs: Sequence[SentencePair], seed: int, note: Note
) -> Measure | None:
    """Return the sentence similarity of the models that embed texts."""
    if not embedders or len(pairs) < LEAST:
        note(
            f"STS left out: it needs at least {LEAST} pairs and a model that embeds texts; there are {len(pairs)} "
            f"pairs and {len(embedders)} such models."
        )
        return None
    values = {}
    for each in embedders:
        left, right = (unit_rows(each.rows([pair[side] for pair in pairs])) for side in (0, 1))  # type: ignore[misc]
        values[each.name] = (left.astype(np.float64) * right).sum(axis=1).round(12)
    truth = np.array([pair.score for pair in pairs])
    return make_measure("STS", "Spearman's ρ of cosine and human score of sentences", values, truth=truth, seed=seed)


def lookup_measures(embedders: Sequence[ComparedModel], searches: Sequence[Lookups], seed: int) -> list[Measure]:
    """Return mean reciprocal rank and recall@10 of each known-item search, with BM25 as the baseline."""
    results = []
    for lookup in searches:
        ranks = {each.name: measures.known_item_ranks(*map(each.rows, lookup[2:])) for each in embedders}
        bm25_ranks = measures.word_ranks(lookup.queries, lookup.targets)
        what = f"{lookup.what}, of {len(lookup.targets):,}"
        results.append(
            make_measure(
                f"{lookup.name}, MRR",
                f"{what}: mean of 1 / rank",
                {name: 1 / rank for name, rank in ranks.items()},
                baseline=("BM25", 1 / bm25_ranks),
                seed=seed,
            )
        )
        results.append(
            make_measure(
                f"{lookup.name}, recall@10",
                f"{what}: share among the first 10",
                {name: (rank <= 10).astype(np.float64) for name, rank in ranks.items()},
                baseline=("BM25", (bm25_ranks <= 10).astype(np.float64)),
                counted=False,
                seed=seed,
            )
        )
    return results


def label_measures(rows: Mapping[str, Matrix], labels: Sequence[str], seed: int, note: Note) -> list[Measure]:
    """Return the accuracy of a linear probe and the purity of clusters; labels of few documents are left out."""
    counts = Counter(label for label in labels if label)
    names = [label for label, count in sorted(counts.items()) if count >= LEAST]
    if not counts:
        return []
    if len(names) < len(counts):
        note(f"{len(counts) - len(names):,} labels with fewer than {LEAST} documents are left out.")
    if len(names) < 2:
        return []
    label_ids = {name: number for number, name in enumerate(names)}
    selected = [row for row, label in enumerate(labels) if label in label_ids]
    ids = np.array([label_ids[labels[row]] for row in selected])
    labeled = {name: matrix[selected] for name, matrix in rows.items()}
    purity = {
        name: measures.purity(measures.clusters(matrix, len(names), seed), ids) for name, matrix in labeled.items()
    }
    majority = np.asarray(ids == np.bincount(ids).argmax(), dtype=np.float64)
    what = f"share in the cluster of their label, {len(names)} clusters"
    purity_measure = make_measure("cluster purity", what, purity, baseline=("most frequent", majority), seed=seed)
    if importlib.util.find_spec("sklearn") is None:
        note(f"The probe of labels is left out, because scikit-learn is not installed; {how_to_install('sklearn')}.")
        return [purity_measure]
    correct = {name: measures.probe(matrix, ids, seed) for name, matrix in labeled.items()}
    baseline = ("most frequent", measures.most_frequent(ids, seed))
    what = "labels predicted by logistic regression trained on the other half"
    return [make_measure("labels, accuracy", what, correct, baseline=baseline, seed=seed), purity_measure]


def stability_measure(
    everyone: Sequence[ComparedModel],
    corpus: Any,
    trainings: int,
    seed: int,
    note: Note,
    cluster: Cluster = Cluster(),
) -> Measure | None:
    """Return the share of a word's 10 nearest that are the same in two trainings with different seeds."""
    methods = {
        each.name: each.model.method
        for each in everyone
        if each.model is not None and each.vectors is not None and each.model.method.data is Corpus
    }
    trained: dict[str, list[Vectors]]
    if cluster.where and methods:
        trained = retrained([each for each in everyone if each.name in methods], corpus, trainings, seed, cluster)
    else:
        trained = {
            name: [vectors_of(method.fit(corpus, run=Run(seed=seed + turn))) for turn in range(trainings)]
            for name, method in methods.items()
        }
    tables = [vectors for runs in trained.values() for vectors in runs]
    words = [word for word in tables[0].keys if all(word in other.rows for other in tables)][:WORDS] if tables else []
    if len(words) <= NEAREST:
        note("Stability left out: no model trains word vectors on texts, or there are too few words.")
        return None
    values = {}
    for name, runs in trained.items():
        rows = [vectors.matrix[[vectors.rows[word] for word in words]] for vectors in runs]
        values[name] = np.mean([measures.overlap(a, b, NEAREST) for a, b in combinations(rows, 2)], axis=0)
    what = f"share of a word's 10 nearest that are the same after training again, {trainings} seeds"
    return make_measure("stability", what, values, counted=False, seed=seed)


def text_overlap(rows: Mapping[str, Matrix]) -> tuple[dict[tuple[str, str], float], str]:
    """Return the share of the 10 nearest texts that each two models have in common, and what it was computed on."""
    count = len(next(iter(rows.values())))
    k = min(NEAREST, count - 1)
    shares = {(a, b): float(measures.overlap(rows[a], rows[b], k).mean()) for a, b in combinations(rows, 2)}
    return shares, f"{count:,} texts"


def word_overlap(everyone: Sequence[ComparedModel]) -> tuple[dict[tuple[str, str], float], str]:
    """Return the share of the 10 nearest words that each two models have in common, over their common words."""
    shares = {}
    tables = [(each.name, each.vectors) for each in everyone if each.vectors is not None]
    for (a, left), (b, right) in combinations(tables, 2):
        words = common_words(left, right)[:WORDS]
        if len(words) > NEAREST:
            x, y = (vectors.matrix[[vectors.rows[word] for word in words]] for vectors in (left, right))
            shares[a, b] = float(measures.overlap(x, y, NEAREST).mean())
    return shares, f"common words, at most {WORDS:,}"


def common_words(a: Vectors, b: Vectors) -> list[str]:
    """Return the words that both have, in the order of `a`."""
    return [word for word in dict.fromkeys(a.keys) if word in b.rows]
