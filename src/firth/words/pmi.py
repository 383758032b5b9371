"""PMI: pointwise mutual information of words and contexts, factorized by a truncated SVD.

Church & Hanks 1990 (PMI), Bullinaria & Levy 2007 (PPMI), Levy, Goldberg & Dagan 2015 (shift, smoothing, eigenvalue
weighting, word + context).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from firth.core.arguments import check_choice
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Model, Parts
from firth.core.options import option
from firth.core.run import Run
from firth.core.stored import check_arrays, check_finite
from firth.core.vectors import Matrix
from firth.data.vocabulary import Vocabulary
from firth.words.association_measures import (
    VARIANTS,
    FloatArray,
    MarginalCounts,
    association_matrix,
    drop_rare_pairs,
    factorize,
    marginal_counts,
    pair_scores,
)
from firth.words.pair_counting import PairOptions
from firth.words.word_model import Phrases, WordModel

if TYPE_CHECKING:
    from scipy.sparse import csr_matrix


ORDERS = ("npmi", "pmi", "count")


@dataclass(frozen=True)
class Association:
    """A context of a word: PMI in bits, NPMI from −1 to 1, and the co-occurrence count."""

    context: str
    pmi: float
    npmi: float
    count: float


class Associations(list[Association]):
    """Contexts of a word, most strongly associated first."""

    def __repr__(self) -> str:
        width = max([len(row.context) for row in self] + [7])
        rows = [f"{row.context:<{width}}  {row.pmi:6.2f}  {row.npmi:6.3f}  {row.count:>10,.10g}" for row in self]
        return "\n".join([f"{'context':<{width}}  {'PMI':>6}  {'NPMI':>6}  {'count':>10}", *rows])


class PMIModel(WordModel):
    """Dense word vectors (`vectors`, `tables["contexts"]`) and the counts behind them (`matrix`, `associations`)."""

    method: PMI

    def __init__(
        self,
        method: PMI,
        vocabulary: Vocabulary | Parts,
        tables: tuple[Matrix, Matrix, FloatArray],
        counts: csr_matrix,
        sums: MarginalCounts,
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        words, contexts, self.singular_values = tables
        super().__init__(method, vocabulary, words, contexts, training, phrases)
        self._counts, self._checked, self.sums = counts, False, sums

    @property
    def counts(self) -> csr_matrix:
        """Co-occurrence counts, words × contexts. Validated at the first use, so that opening a model is fast."""
        if not self._checked:
            try:
                self._counts.check_format(full_check=True)
                if not np.isfinite(self._counts.data).all() or (self._counts.data < 0).any():
                    raise ValueError("a count is negative or not finite")
            except (ValueError, IndexError) as error:
                raise FirthError(
                    "damaged_model",
                    "The {name} of this PMI model are invalid: {reason}.",
                    name="counts",
                    reason=str(error),
                ) from None
            self._checked = True
        return self._counts

    @property
    def matrix(self) -> csr_matrix:
        """Association of each observed pair by the method's variant, words × contexts."""
        method = self.method
        return association_matrix(self.counts, self.sums, method.variant, method.smoothing, method.shift)

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        """Keys of the rows and columns of `matrix`."""
        return self.vectors.keys, self.vectors.keys

    def associations(self, word: str, k: int = 10, *, by: str = "npmi", min_count: float = 0) -> Associations:
        """Return the `k` contexts most strongly associated with `word`, by NPMI, PMI or count.

        Scores are plain PMI and NPMI for every variant. PMI favors rare pairs; `min_count` excludes pairs that occur
        less often.
        """
        check_choice("by", by, ORDERS)
        if k < 1:
            raise FirthError("invalid_value", "{option} must be at least 1; got {got}.", option="k", got=k)
        row = self.vectors.row(word)
        row_slice = slice(self.counts.indptr[row], self.counts.indptr[row + 1])
        contexts, counts = self.counts.indices[row_slice], np.asarray(self.counts.data[row_slice])
        frequent = counts >= min_count
        contexts, counts = contexts[frequent], counts[frequent]
        words = np.full(len(counts), self.sums.words[row])
        pmi, npmi = pair_scores(counts, words, self.sums.contexts[contexts], self.sums.total)
        sort_keys = {"pmi": pmi, "npmi": npmi, "count": counts}
        order = np.lexsort((contexts, -counts, -sort_keys[by]))[:k]
        names = self.vectors.keys
        return Associations(
            Association(names[contexts[i]], float(pmi[i]), float(npmi[i]), float(counts[i])) for i in order
        )

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        parts = super().parts()
        arrays = {
            "singular_values": self.singular_values,
            "indptr": self.counts.indptr.astype(np.int64),
            "indices": self.counts.indices,
            "counts": self.counts.data,
            "word_sums": self.sums.words,
            "context_sums": self.sums.contexts,
        }
        return Parts({**parts.arrays, **arrays}, parts.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> PMIModel:
        """Return the model from stored parts, after checking their shapes."""
        from scipy.sparse import csr_matrix

        arrays = parts.arrays
        check_arrays(
            arrays,
            words="float words dim",
            outputs="float words dim",
            singular_values="float values",
            word_sums="float words",
            context_sums="float words",
            counts="float entries",
        )
        words, contexts, values = (arrays[name] for name in ("words", "outputs", "singular_values"))
        sums = (arrays["word_sums"], arrays["context_sums"])
        check_finite({"word_sums": sums[0], "context_sums": sums[1]})
        csr_arrays = arrays["counts"], arrays["indices"], arrays["indptr"]
        try:
            counts = csr_matrix(csr_arrays, shape=(len(words), len(words)))
        except (ValueError, TypeError, IndexError) as error:
            raise FirthError(
                "damaged_model", "The {name} of this PMI model are invalid: {reason}.", name="counts", reason=str(error)
            ) from None
        assert isinstance(method, PMI)
        return cls(
            method, parts, (words, contexts, values), counts, MarginalCounts(*sums, float(sums[0].sum())), training
        )


@dataclass(frozen=True, kw_only=True)
class PMI(PairOptions):
    """Truncated SVD of rank `dim` of the association matrix log₂ p(w, c) / (p(w) p(c))."""

    summary: ClassVar[str] = "word vectors: association with context words (PPMI, NPMI), reduced by SVD"
    model: ClassVar[type[PMIModel]] = PMIModel
    distributed: ClassVar[str] = "reading the text, counting pairs, and the products of the SVD"

    variant: str = option("ppmi", "plain, positive, normalized, or shifted positive PMI", choices=VARIANTS)
    smoothing: float = option(0.75, "power of context counts in p(c); 1 = none; not used by npmi", low=0, high=1)
    shift: float = option(5.0, "subtract log2 of this from PMI (variant=shifted)", low=1)
    min_pair: float = option(0.0, "minimum count of a pair to enter the matrix", low=0)
    dim: int = option(100, "vector dimension", low=1, high=5000)
    power: float = option(0.5, "power of the singular values that scale the dimensions; 0 = no scaling", low=0, high=1)
    add_contexts: bool = option(False, "use word + context vectors as word vectors")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> PMIModel:
        """Count the pairs of a corpus (or Tokens, paths, texts, or a Cooccurrence) and factorize their associations."""
        if start is not None:
            raise FirthError(
                "unsupported_start",
                "{method} cannot continue from a model. Leave out start and train on the whole corpus.",
                method="PMI",
            )
        began = time.monotonic()
        method, (pairs, phrases, metrics, splitting) = self.count(data, run)
        counts = pairs.matrix
        sums = marginal_counts(counts)
        counts = drop_rare_pairs(counts, self.min_pair)
        if not counts.nnz:
            raise FirthError(
                "empty_data",
                "No pair occurs min_pair={min_pair:g} times. Lower min_pair.",
                min_pair=self.min_pair,
            )
        counting_seconds = time.monotonic() - began
        matrix = association_matrix(counts, sums, self.variant, self.smoothing, self.shift)
        words, contexts, values = factorize(matrix, self.dim, self.power, run)
        tables = words + contexts if self.add_contexts else words, contexts, values
        metrics |= {
            "kept_pairs": matrix.nnz,
            "counting_seconds": counting_seconds,
            "seconds": time.monotonic() - began,
        }
        method = method.as_trained(splitting, pairs.vocabulary, run)
        return PMIModel(method, pairs.vocabulary, tables, counts, sums, metrics, phrases)
