"""Counts: the document–term matrix of word counts (Salton, Wong & Yang 1975)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.documents.document_matrix import TF, DocumentOptions, SparseModel, Weights, fit_sparse


@dataclass(frozen=True, kw_only=True)
class Counts(DocumentOptions):
    """The count of each word in each document."""

    summary: ClassVar[str] = "document-term matrix: documents as word counts, words as counts by document"
    model: ClassVar[type[SparseModel]] = SparseModel

    tf: str = option("count", "term frequency: the count n, 1, log(1 + n), or 1 + log n", choices=TF)

    def weights(self) -> Weights:
        """Return the weighting of counts: no idf, no normalization."""
        return Weights(self.tf, "none", "none")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> SparseModel:
        """Count the words of a corpus (or Tokens, paths, texts)."""
        return fit_sparse(self, data, run, start)
