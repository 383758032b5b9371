"""LSA: the weighed counts of words in documents, cut down to their first singular vectors (Deerwester et al. 1990)."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_finite, finite_rows
from firth.core.vectors import Matrix, Vectors
from firth.data.vocabulary import Vocabulary
from firth.documents.document_matrix import DocumentModel, Scale, WeightOptions, as_csr, stored_keys, stored_scale
from firth.kernels.sparse import multiply
from firth.training.truncated_svd import rows_of, truncated_svd
from firth.words.word_model import Phrases, Pooled, Texts


class LSAModel(DocumentModel):
    """`words` are U Σ^p, `documents` V Σ^p; `singular_values` the diagonal of Σ."""

    ordered = True  # by singular value

    def __init__(
        self,
        method: LSA,
        vocabulary: Vocabulary | Parts,
        keys: Sequence[str] | Callable[[], Sequence[str]],
        words: Matrix,
        documents: Matrix,
        singular_values: NDArray[np.float64],
        scale: Scale,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        super().__init__(method, vocabulary, scale, training, phrases)
        self.words = Vectors(self._tokens, words, missing=self._why_missing)
        self.documents = Vectors(keys, documents)
        self.singular_values = singular_values

    @property
    def explained_variance(self) -> NDArray[np.float64]:
        """The share of the matrix's sum of squares that each dimension accounts for."""
        shares: NDArray[np.float64] = self.singular_values**2 / self.training["norm"] ** 2
        return shares

    def pool(self, texts: Texts) -> Pooled:
        """New documents folded in: d Uₖ Σ^(p − 1), which for a document of the corpus is its own vector."""
        found = self.weighed(texts)
        folded = multiply(rows_of(found.matrix), self.words.matrix)
        folded /= self.singular_values.astype(np.float32)
        return Pooled(finite_rows(folded, "Text"), found.known, found.unknown)

    def parts(self) -> Parts:
        shared = self.shared_parts()
        arrays: dict[str, NDArray[Any]] = {
            "words": self.words.matrix,
            "documents": self.documents.matrix,
            "singular_values": self.singular_values,
        }
        return Parts({**shared.arrays, **arrays}, shared.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> LSAModel:
        assert isinstance(method, LSA)
        scale = stored_scale(parts)
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
            raise FirthError("damaged_model", "Singular values must be above 0.")
        return cls(method, parts, stored_keys(parts), words, documents, np.asarray(values), scale, training)


@dataclass(frozen=True, kw_only=True)
class LSA(WeightOptions):
    """The best approximation of rank `dim` to the words × documents matrix: A ≈ U Σ Vᵀ."""

    summary: ClassVar[str] = "short vectors for words and documents: tf-idf cut down by a singular value decomposition"
    model: ClassVar[type[Model]] = LSAModel

    dim: int = option(100, "length of the vectors", low=1, high=5000)
    power: float = option(1.0, "singular values are raised to this before they scale the vectors", low=0, high=2)
    oversample: int | None = option(
        None, "dimensions beyond dim that the random solver works in; none = dim + 128", low=0, high=100_000
    )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> LSAModel:
        """Counts, weighs and decomposes a corpus (or Tokens, paths, texts)."""
        counted = self.count(data, run, start)
        tokens, began = counted.tokens, time.monotonic()
        if not counted.rows.values.any():
            raise FirthError(
                "empty_data",
                "All weights of the {n_tokens:,} documents are zero: there is nothing to decompose. With "
                "idf={idf} a word that every document holds weighs nothing; idf=smooth keeps it.",
                n_tokens=len(tokens),
                idf=self.idf,
            )
        matrix = as_csr(counted.rows, len(tokens.vocabulary))
        found = truncated_svd(matrix.T, self.dim, run, self.oversample)  # words × documents: U are the words
        weights = (found.values**self.power).astype(np.float32)
        seconds = counted.figures["seconds"] + time.monotonic() - began
        figures = {
            **counted.figures,
            "seconds": seconds,
            "words_per_second": tokens.raw_tokens / max(seconds, 1e-9),
            "seed": run.seed,
            "norm": found.norm,
            "error": found.error,
            "operator_error_bound": found.bound,
            "explained_variance": float(found.explained.sum()),
        }
        words, documents = found.left * weights, found.right * weights
        kept = self.as_trained(tokens.splitting, tokens.vocabulary, run)
        keys, phrases = tokens.keys, tokens.phrases
        return LSAModel(kept, tokens.vocabulary, keys, words, documents, found.values, counted.scale, figures, phrases)
