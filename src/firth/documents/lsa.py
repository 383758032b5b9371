"""LSA: truncated SVD of the tf-idf matrix (Deerwester et al. 1990)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.embedding import EmbeddedTexts
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_finite, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.vocabulary import Vocabulary
from firth.documents.document_matrix import (
    CorpusStatistics,
    DocumentModel,
    WeightOptions,
    as_csr,
    stored_keys,
    stored_statistics,
)
from firth.kernels.sparse import multiply
from firth.training.truncated_svd import rows_of, truncated_svd
from firth.words.word_model import Phrases, Texts


class LSAModel(DocumentModel):
    """Vectors of LSA: `words` are U Σ^p, `documents` V Σ^p, and `singular_values` the diagonal of Σ."""

    ordered = True  # dimensions are sorted by singular value

    def __init__(
        self,
        method: LSA,
        vocabulary: Vocabulary | Parts,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        words: Matrix,
        documents: Matrix,
        singular_values: NDArray[np.float64],
        statistics: CorpusStatistics,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, statistics, training, phrases)
        self.words = Vectors(self._tokens, words, missing=self._missing_reason)
        self.documents = Vectors(keys, documents)
        self.singular_values = singular_values

    @property
    def explained_variance(self) -> NDArray[np.float64]:
        """The share of the matrix's squared norm that each dimension explains."""
        shares: NDArray[np.float64] = self.singular_values**2 / self.training["norm"] ** 2
        return shares

    def embed_with_counts(self, texts: Texts) -> EmbeddedTexts:
        """Fold in new documents: d Uₖ Σ^(p − 1). A document of the corpus gets its own vector."""
        weighted = self.weighted(texts)
        folded = multiply(rows_of(weighted.matrix), self.words.matrix)
        folded /= self.singular_values.astype(np.float32)
        return EmbeddedTexts(finite_rows(folded, "Text"), weighted.known, weighted.unknown)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        shared = self.shared_parts()
        arrays: dict[str, NDArray[Any]] = {
            "words": self.words.matrix,
            "documents": self.documents.matrix,
            "singular_values": self.singular_values,
        }
        return Parts({**shared.arrays, **arrays}, shared.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> LSAModel:
        """Return the model from stored parts, after checking their shapes."""
        assert isinstance(method, LSA)
        statistics = stored_statistics(parts)
        check_arrays(
            parts.arrays,
            idf="float words",
            words="float words dim",
            documents="float documents dim",
            singular_values="float dim",
        )
        words, documents, values = (parts.arrays[name] for name in ("words", "documents", "singular_values"))
        check_finite({"singular_values": values})
        if not (values > 0).all():
            raise FirthError("damaged_model", "{name} must be positive.", name="singular_values")
        return cls(method, parts, stored_keys(parts), words, documents, np.asarray(values), statistics, training)


@dataclass(frozen=True, kw_only=True)
class LSA(WeightOptions):
    """Rank-`dim` approximation of the weighted words × documents matrix: A ≈ U Σ Vᵀ."""

    limits: ClassVar[tuple[str, ...]] = (
        "A document is a bag of words: word order is ignored.",
        "Words outside the vocabulary are ignored.",
        "A word has one vector for all its meanings.",
    )
    summary: ClassVar[str] = "dense vectors of words and documents: truncated SVD of tf-idf"
    model: ClassVar[type[LSAModel]] = LSAModel
    distributed: ClassVar[str] = "counting and weighting the documents, and the products of the SVD"

    dim: int = option(100, "vector dimension", low=1, high=5000)
    power: float = option(1.0, "power of the singular values that scale the vectors", low=0, high=2)
    oversample: int | None = option(
        None, "extra dimensions of the randomized solver; none = dim + 128", low=0, high=100_000
    )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> LSAModel:
        """Count, weight and decompose a corpus (or Tokens, paths, texts)."""
        counted = self.count(data, run, start)
        tokens, started = counted.tokens, time.monotonic()
        if not counted.rows.values.any():
            raise FirthError(
                "empty_data",
                "All weights of the {documents:,} documents are zero. With idf={idf}, a word that occurs in every "
                "document has the weight 0; use idf=smooth.",
                documents=len(tokens),
                idf=self.idf,
            )
        matrix = as_csr(counted.rows, len(tokens.vocabulary))
        svd = truncated_svd(matrix.T, self.dim, run, self.oversample)  # words × documents, so that U are the words
        scale = (svd.values**self.power).astype(np.float32)
        seconds = counted.metrics["seconds"] + time.monotonic() - started
        metrics = {
            **counted.metrics,
            "seconds": seconds,
            "words_per_second": tokens.raw_tokens / max(seconds, 1e-9),
            "seed": run.seed,
            "norm": svd.norm,
            "error": svd.error,
            "operator_error_bound": svd.bound,
            "explained_variance": float(svd.explained.sum()),
        }
        words, documents = svd.left * scale, svd.right * scale
        trained_method = self.as_trained(tokens.splitting, tokens.vocabulary, run)
        keys, phrases = tokens.keys, tokens.phrases
        return LSAModel(
            trained_method, tokens.vocabulary, keys, words, documents, svd.values, counted.statistics, metrics, phrases
        )
