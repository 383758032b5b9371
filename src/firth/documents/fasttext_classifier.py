"""fastText's classifier: a text is the mean of its words and n-grams, and predicts its label (Joulin et al. 2016)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import chosen_values
from firth.core.run import Run
from firth.core.sketch import recorded_rows
from firth.data.labeled_texts import LabeledTexts
from firth.documents.classifier_model import ClassifierModel, learned, scored
from firth.documents.classifier_training import ClassifierOptions, Training


@dataclass(frozen=True, kw_only=True)
class FastTextClassifier(ClassifierOptions):
    """Maximises Σ log p(label | mean of the text's rows)."""

    summary: ClassVar[str] = (
        "labels of texts: the mean of words and n-grams, then a linear layer; quick and hard to beat"
    )
    model: ClassVar[type[Model]] = ClassifierModel
    kind: ClassVar[str] = "labelled"

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> ClassifierModel:
        """Learns from Labelled data (or what it can be made of). Words that `start` knows begin with its vectors."""
        began = time.monotonic()
        labelled = data if isinstance(data, LabeledTexts) else LabeledTexts(data)
        examples = self.read_examples(labelled, run)
        texts = (" ".join(text) if isinstance(text, list) else text for text, _ in labelled)
        rows = recorded_rows(texts, run.report)
        reading = time.monotonic() - began
        training = Training(self, examples, run, start)
        figures = training.go()
        figures |= {
            "tokens": examples.tokens.raw_tokens,
            "vocabulary": len(training.vocabulary),
            "labels": len(examples.labels),
            "documents": len(examples.tokens),
            "held_out_documents": len(training.held_out),
            "chosen": chosen_values(self, training.method),
            "reading_seconds": reading,
            "data": training.fingerprint,
            "seed": run.seed,
            "deterministic": run.deterministic,
            "threads": training.threads,
            **rows,
        }
        began = time.monotonic()
        verdict = scored(learned(training, figures), training)
        if verdict is not None:
            figures |= verdict.metrics() | {"scoring_seconds": time.monotonic() - began}
            verdict.add_notes(run.report, "Try more epochs, another learning_rate, word_ngrams=2, or more texts.")
        return learned(training, figures)
