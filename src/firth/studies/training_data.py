"""Overlap of a model's training data with the data it is compared on: with labels, which excludes it, or texts only."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cached_property
from typing import NamedTuple

from firth.core.sketch import RowSketch, sketch_in
from firth.data.corpus import Corpus
from firth.data.similar_pairs import SimilarPairs
from firth.evaluate import SentencePair
from firth.evaluate.layout import percent
from firth.studies.compared_models import ComparedModel
from firth.studies.documents import LEAST, Drawn

LABELS, OTHER_LABELS, TEXTS = "these labels", "other labels", "these texts"
UNKNOWN, UNKNOWN_LABELS = "unknown", "unknown labels"
ACCIDENTAL = 0.02  # share of common rows up to which they count as duplicates: public splits have 1 to 2 %
SKETCH_SIZE = 1 << 16  # hashes in the sketch of the data that models are compared on


class TrainingData(NamedTuple):
    """What a model was trained on; `share` is the share of the compared rows in its training data, NaN if unknown."""

    what: str = ""  # "" if models were not compared on rows
    share: float = math.nan

    @property
    def excluded(self) -> bool:
        """Whether the model is excluded from the recommendation, because its scores on training rows are too high."""
        return self.what == LABELS

    def __str__(self) -> str:
        return f"{self.what} ({percent(self.share)})" if self.share > 0 else self.what or "–"


NOT_COMPARED = TrainingData()


class EvaluationData:
    """The data that models are compared on, read only when it is needed."""

    def __init__(self, documents: Drawn | None, pairs: Sequence[SentencePair]) -> None:
        self.documents, self.sentence_pairs = documents, pairs

    @cached_property
    def texts(self) -> RowSketch:
        """A sketch of all documents, not only of the sampled ones."""
        if self.documents is None:
            return RowSketch()
        corpus = self.documents.corpus
        texts: Iterable[str] = self.documents.texts if corpus is None else (text for _, text in corpus)
        return RowSketch.of(texts, size=SKETCH_SIZE)

    @cached_property
    def pairs(self) -> RowSketch:
        """A sketch of the sentence pairs."""
        return RowSketch.of_pairs(((pair[0], pair[1]) for pair in self.sentence_pairs), size=SKETCH_SIZE)

    @cached_property
    def fingerprints(self) -> dict[str, bool]:
        """The data fingerprints of trainings on the same files, and whether each includes the labels."""
        if self.documents is None or self.documents.corpus is None:
            return {}
        corpus, label = self.documents.corpus, self.documents.label
        fingerprints = {
            corpus.fingerprint(): False,
            SimilarPairs(corpus, text=corpus.column, unit=corpus.unit).fingerprint(): False,
        }
        if label:
            fingerprints[Corpus(corpus, unit=corpus.unit, column=corpus.column, tags=label).fingerprint()] = True
        return {name: with_labels for name, with_labels in fingerprints.items() if name is not None}


def training_data(each: ComparedModel, evaluated: EvaluationData) -> TrainingData:
    """Compare a model's training data with the evaluated data, by recorded rows or else by fingerprint."""
    if each.model is None:
        return TrainingData(UNKNOWN)
    training, supervised = each.model.training, each.model.method.data.has_labels
    rows = sketch_in(training)
    if rows is not None:
        return by_rows(rows, evaluated)
    fingerprint = (training.get("command") or {}).get("data")
    with_labels = evaluated.fingerprints.get(fingerprint) if fingerprint else None
    if with_labels is None:
        return TrainingData(UNKNOWN_LABELS if supervised else UNKNOWN)
    return TrainingData(LABELS if with_labels or supervised else TEXTS, 1.0)


def by_rows(rows: RowSketch, evaluated: EvaluationData) -> TrainingData:
    """Compare the labeled training rows of a model with the evaluated data."""
    parts = [part for part in (evaluated.texts, evaluated.pairs) if part.count]
    overlaps = [rows.share_of(part) for part in parts]
    share = max((share for share, _ in overlaps), default=0.0)
    if share > ACCIDENTAL:
        return TrainingData(LABELS, share)
    enough = all(count >= min(LEAST, len(part.hashes)) for part, (_, count) in zip(parts, overlaps, strict=True))
    return TrainingData(OTHER_LABELS, share) if enough else TrainingData(UNKNOWN_LABELS)


def training_note(name: str, data: TrainingData) -> str:
    """Return the note on a model whose training data overlaps with the evaluated data."""
    if data.excluded:
        return (
            f"{name} was trained on these labels: {percent(data.share)} of the rows are in its training data. It is "
            "never recommended; compare it on rows that it was not trained on."
        )
    return f"{name} was trained on these texts, without their labels; it may do worse on new texts."
