"""Counts: the term–document matrix (Salton, Wong & Yang 1975): a document is the words in it, a word the documents
that hold it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.documents.document_matrix import TF, DocumentOptions, SparseModel, Weights, fit_sparse


@dataclass(frozen=True, kw_only=True)
class Counts(DocumentOptions):
    """How often each word stands in each document."""

    summary: ClassVar[str] = "documents by their words and words by their documents: the counts themselves"
    model: ClassVar[type[Model]] = SparseModel

    tf: str = option("count", "the count n, 1, log(1 + n), or 1 + log n", choices=TF)

    def weights(self) -> Weights:
        return Weights(self.tf, "none", "none")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> SparseModel:
        """Counts the words of a corpus (or Tokens, paths, texts)."""
        return fit_sparse(self, data, run, start)
