"""fastText's classifier: predict the label of a text from the mean of its word and n-gram vectors (Joulin et al. 2016).

With h the mean of a text's input rows and u the output row of a label, loss=softmax minimizes −log softmax(h · u) by
stochastic gradient descent. `kernels.classify.Task` implements the update.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.core.sketch import recorded_rows
from firth.data.labeled_texts import LabeledTexts
from firth.documents.classifier_model import ClassifierModel, held_out_comparison, model_from_training
from firth.documents.classifier_training import ClassifierOptions, Training


@dataclass(frozen=True, kw_only=True)
class FastTextClassifier(ClassifierOptions):
    """Maximize Σ log p(label | mean of the text's rows)."""

    summary: ClassVar[str] = (
        "text classification: a linear layer on the mean of word and n-gram vectors; a fast, strong baseline"
    )
    model: ClassVar[type[ClassifierModel]] = ClassifierModel
    data = LabeledTexts

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> ClassifierModel:
        """Train on LabeledTexts (or data it can be made from). Words of `start` begin with its vectors."""
        started = time.monotonic()
        texts_with_labels = data if isinstance(data, LabeledTexts) else LabeledTexts(data)
        examples = self.read_examples(texts_with_labels, run)
        texts = (" ".join(text) if isinstance(text, list) else text for text, _ in texts_with_labels)
        rows = recorded_rows(texts, run.report)
        reading_seconds = time.monotonic() - started
        training = Training(self, examples, run, start)
        metrics = training.go()
        metrics |= {
            "tokens": examples.tokens.raw_tokens,
            "vocabulary": len(training.vocabulary),
            "labels": len(examples.labels),
            "documents": len(examples.tokens),
            "held_out_documents": len(training.held_out),
            "reading_seconds": reading_seconds,
            "data": training.fingerprint,
            "seed": run.seed,
            "deterministic": run.deterministic,
            "threads": training.threads,
            **rows,
        }
        started = time.monotonic()
        comparison = held_out_comparison(model_from_training(training, metrics), training)
        if comparison is not None:
            metrics |= comparison.metrics() | {"scoring_seconds": time.monotonic() - started}
            comparison.add_notes(run.report, "Try more epochs, another learning_rate, word_ngrams=2, or more texts.")
        return model_from_training(training, metrics)
