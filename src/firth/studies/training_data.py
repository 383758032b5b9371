"""Whether a model was trained on what it is compared on: with the labels, which excludes it, or on the texts alone."""

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
from firth.studies.contender import Contender
from firth.studies.documents import LEAST, Drawn

LABELS, OTHER_LABELS, TEXTS = "these labels", "other labels", "these texts"
UNKNOWN, UNKNOWN_LABELS = "unknown", "unknown labels"
ACCIDENTAL = 0.02  # share of common rows up to which they count as duplicates: public splits have 1 to 2 %
ASKED = 1 << 16  # hashes kept of the data that is compared on
SUPERVISED = ("labelled", "examples", "questions", "tagged words")  # kinds of data that methods learn labels from


class TrainingData(NamedTuple):
    """`share`: of the rows that are compared on, how many the model was trained on; NaN where that is unknown."""

    what: str = ""  # "": nothing was compared on rows
    share: float = math.nan

    @property
    def excluded(self) -> bool:
        """From the recommendation: what it was trained to give on these rows says little of others."""
        return self.what == LABELS

    def __str__(self) -> str:
        return f"{self.what} ({percent(self.share)})" if self.share > 0 else self.what or "–"


NOT_ASKED = TrainingData()


class Asked:
    """What models are compared on; read only as far as one of them has something to be compared with."""

    def __init__(self, documents: Drawn | None, pairs: Sequence[SentencePair]) -> None:
        self.documents, self.sentence_pairs = documents, pairs

    @cached_property
    def texts(self) -> RowSketch:
        """All documents, not only those that were drawn."""
        if self.documents is None:
            return RowSketch()
        corpus = self.documents.corpus
        texts: Iterable[str] = self.documents.texts if corpus is None else (text for _, text in corpus)
        return RowSketch.of(texts, size=ASKED)

    @cached_property
    def pairs(self) -> RowSketch:
        return RowSketch.of_pairs(((pair[0], pair[1]) for pair in self.sentence_pairs), size=ASKED)

    @cached_property
    def fingerprints(self) -> dict[str, bool]:
        """What a training on the same files has as its data's fingerprint, and whether that is with the labels."""
        if self.documents is None or self.documents.corpus is None:
            return {}
        corpus, label = self.documents.corpus, self.documents.label
        found = {
            corpus.fingerprint(): False,
            SimilarPairs(corpus, text=corpus.column, unit=corpus.unit).fingerprint(): False,
        }
        if label:
            found[Corpus(corpus, unit=corpus.unit, column=corpus.column, tags=label).fingerprint()] = True
        return {name: labelled for name, labelled in found.items() if name is not None}


def training_data(each: Contender, asked: Asked) -> TrainingData:
    """Of one model: by the rows that it recorded, or else by the fingerprint of its data."""
    if each.model is None:
        return TrainingData(UNKNOWN)
    training, supervised = each.model.training, each.model.method.kind in SUPERVISED
    rows = sketch_in(training)
    if rows is not None:
        return by_rows(rows, asked)
    fingerprint = (training.get("command") or {}).get("data")
    with_labels = asked.fingerprints.get(fingerprint) if fingerprint else None
    if with_labels is None:
        return TrainingData(UNKNOWN_LABELS if supervised else UNKNOWN)
    return TrainingData(LABELS if with_labels or supervised else TEXTS, 1.0)


def by_rows(rows: RowSketch, asked: Asked) -> TrainingData:
    """Of a model that was trained on these rows with labels."""
    given = [part for part in (asked.texts, asked.pairs) if part.count]
    found = [rows.share_of(part) for part in given]
    share = max((share for share, _ in found), default=0.0)
    if share > ACCIDENTAL:
        return TrainingData(LABELS, share)
    enough = all(count >= min(LEAST, len(part.hashes)) for part, (_, count) in zip(given, found, strict=True))
    return TrainingData(OTHER_LABELS, share) if enough else TrainingData(UNKNOWN_LABELS)


def training_note(name: str, data: TrainingData) -> str:
    """On a model that was trained on some of what it is compared on."""
    if data.excluded:
        return (
            f"{name} was trained on these labels: {percent(data.share)} of the rows are in its training data. It is "
            "not recommended; compare it on rows that it was not trained on."
        )
    return f"{name} was trained on these texts, without their labels: on new texts it may do worse."
