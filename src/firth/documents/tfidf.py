"""TfIdf: word counts weighted by inverse document frequency (Spärck Jones 1972, Salton & Buckley 1988).

BM25 is one of the weightings (Robertson & Zaragoza 2009).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.documents.document_matrix import SparseModel, WeightOptions, fit_sparse


@dataclass(frozen=True, kw_only=True)
class TfIdf(WeightOptions):
    """The weights tf(word, document) · idf(word), with each document normalized to length 1.

    BM25: `TfIdf(tf="bm25", idf="bm25", norm="none")`.
    """

    summary: ClassVar[str] = "document-term matrix weighted by tf-idf; also BM25"
    model: ClassVar[type[SparseModel]] = SparseModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> SparseModel:
        """Count and weight the words of a corpus (or Tokens, paths, texts)."""
        return fit_sparse(self, data, run, start)
