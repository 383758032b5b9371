"""Doc2Vec: predict the words of a document from its vector, alone or with context words (Le & Mikolov 2014).

mode=dbow maximizes Σ log p(word | document), mode=dm and mode=dm_concat Σ log p(word | document, contexts). Document
vectors are input rows of the window kernel: `kernels.predict.Task(tags=rows of each document)` with the architecture
skipgram (dbow), cbow (dm) or concat (dm_concat).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.run import Run
from firth.core.vectors import Vectors
from firth.documents.doc2vec_training import (
    Doc2VecModel,
    DocumentMethod,
    DocumentTraining,
    assign_rows,
    without_padding,
)
from firth.words.window_training import merged_vocabulary


@dataclass(frozen=True, kw_only=True)
class Doc2Vec(DocumentMethod):
    """Maximize Σ log p(word | document) over all documents; with mode=dm, Σ log p(word | document, contexts)."""

    summary: ClassVar[str] = (
        "document vectors trained to predict the words of documents; vectors of new documents are inferred"
    )
    kind: ClassVar[str] = "tagged"
    model: ClassVar[type[Model]] = Doc2VecModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Doc2VecModel:
        """Train on a corpus (or Tokens, paths, texts).

        With `start`, training continues from that model: its words, documents and tags keep their vectors, new ones are
        added. A document with a key of `start` begins with its vector.
        """
        if start is not None:
            self.check_start(start)
        previous = start if isinstance(start, Doc2VecModel) else None
        tokens, reading_seconds = self.read_words(data, run, previous, keys=True)
        if tokens.tags and self.mode == "dm_concat":
            raise FirthError(
                "conflicting_options",
                "mode={mode} supports one vector per document and no tags. Use mode=dbow or mode=dm.",
                mode=self.mode,
            )
        layout = assign_rows(tokens, previous, run)
        method = self.sized(tokens)
        training = DocumentTraining(method, tokens, run, layout, previous)
        metrics = training.go() | {
            "reading_seconds": reading_seconds,
            "empty_documents": int((tokens.starts[1:] == tokens.starts[:-1]).sum()),
            "tags": len(layout.tags),
        }
        words, documents, tags = training.result(previous)
        vocabulary = merged_vocabulary(tokens.vocabulary, previous.vocabulary) if previous else tokens.vocabulary
        return Doc2VecModel(
            method.as_trained(tokens.splitting, vocabulary, run, previous),
            vocabulary,
            Vectors(layout.documents, documents),
            Vectors(layout.tags, tags),
            words if self.has_words else None,
            without_padding(training.outputs, self.n_concatenated, self.dim),
            metrics,
            tokens.phrases,
        )
