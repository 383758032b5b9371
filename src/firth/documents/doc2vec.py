"""Doc2Vec: a document's vector predicts its words, alone or with their neighbours (Le & Mikolov 2014)."""

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
    """Maximises Σ log p(word | document) over the words of all documents; with `dm` p(word | document, neighbours)."""

    summary: ClassVar[str] = "document vectors that predict the documents' words; new documents are inferred"
    kind: ClassVar[str] = "tagged"
    model: ClassVar[type[Model]] = Doc2VecModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Doc2VecModel:
        """Learns from a corpus (or Tokens, paths, texts). With `start`, goes on from that model: its words, documents
        and tags keep their vectors, new ones are added; documents with a key of it go on from its vector."""
        if start is not None:
            self.check_start(start)
        previous = start if isinstance(start, Doc2VecModel) else None
        tokens, reading_seconds = self.read_words(data, run, previous, keys=True)
        if tokens.tags and self.mode == "dm_concat":
            raise FirthError(
                "conflicting_options",
                "mode=dm_concat has room for one vector a document, not for tags; take dbow or dm.",
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
