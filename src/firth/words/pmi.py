"""PMI: words by what goes with them more than chance would have it, made dense by a truncated SVD.

Church & Hanks 1990 (PMI), Bullinaria & Levy 2007 (PPMI), Levy, Goldberg & Dagan 2015 (shift, smoothing, eigenvalue
weighting, word + context).
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

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
    """A context of a word: PMI in bits, NPMI from −1 to 1, and how often the two were met."""

    context: str
    pmi: float
    npmi: float
    count: float


class Associations(list[Association]):
    """Contexts, strongest first."""

    def __repr__(self) -> str:
        width = max([len(row.context) for row in self] + [7])
        rows = [f"{row.context:<{width}}  {row.pmi:6.2f}  {row.npmi:6.3f}  {row.count:>10,.10g}" for row in self]
        return "\n".join([f"{'context':<{width}}  {'PMI':>6}  {'NPMI':>6}  {'count':>10}", *rows])


class PMIModel(WordModel):
    """Words with dense vectors (`vectors`, `tables["contexts"]`) and the counts they come from (`matrix`,
    `associations`)."""

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
        """Words × contexts: how often each pair was met. Checked at the first use, so that a model opens at once."""
        if not self._checked:
            try:
                self._counts.check_format(full_check=True)
                if not np.isfinite(self._counts.data).all() or (self._counts.data < 0).any():
                    raise ValueError("a count is negative or not finite")
            except (ValueError, IndexError) as error:
                raise FirthError(
                    "damaged_model", "The counts of this PMI model don't fit together ({reason}).", reason=str(error)
                ) from None
            self._checked = True
        return self._counts

    @property
    def matrix(self) -> csr_matrix:
        """Words × contexts: the association of each pair that was met, as the method's variant has it."""
        method = self.method
        return association_matrix(self.counts, self.sums, method.variant, method.smoothing, method.shift)

    @property
    def matrix_keys(self) -> tuple[Sequence[str], Sequence[str]]:
        return self.vectors.keys, self.vectors.keys

    def associations(self, word: str, k: int = 10, *, by: str = "npmi", min_count: float = 0) -> Associations:
        """What goes with `word`: its `k` strongest contexts by NPMI or PMI (plain, whatever the variant) or count.

        PMI prefers rare pairs; `min_count` leaves out those met less often.
        """
        if by not in ORDERS:
            raise FirthError(
                "invalid_value",
                "{option} must be one of {choices}; got {got!r}.",
                option="by",
                choices=", ".join(ORDERS),
                got=by,
            )
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
                "damaged_model", "The counts of this PMI model don't fit together ({reason}).", reason=str(error)
            ) from None
        assert isinstance(method, PMI)
        return cls(
            method, parts, (words, contexts, values), counts, MarginalCounts(*sums, float(sums[0].sum())), training
        )


@dataclass(frozen=True, kw_only=True)
class PMI(PairOptions):
    """Association of words and contexts, log₂ p(w, c) / (p(w) p(c)), and its best approximation of rank `dim`."""

    summary: ClassVar[str] = "word vectors: what goes with a word more than by chance (PPMI, NPMI), made dense by SVD"
    model: ClassVar[type[Model]] = PMIModel

    variant: str = option(
        "ppmi", "pmi as it is, its positive part, normalised, or positive after a shift", choices=VARIANTS
    )
    smoothing: float = option(0.75, "contexts' counts to this power in p(c); 1 = plain (npmi is always)", low=0, high=1)
    shift: float = option(5.0, "log2 of this is taken off (variant=shifted)", low=1)
    min_pair: float = option(0.0, "pairs counted less are left out of the matrix", low=0)
    dim: int = option(100, "length of the dense vectors", low=1, high=5000)
    power: float = option(0.5, "singular values to this power scale the dimensions; 0 = all alike", low=0, high=1)
    add_contexts: bool = option(False, "each word's vector is word + context")

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> PMIModel:
        """Counts a corpus (or Tokens, paths, texts; or takes a Cooccurrence) and factorises its associations."""
        if start is not None:
            raise FirthError(
                "unsupported_start",
                "PMI counts a text from its beginning; it can't go on from a model. Leave start out.",
            )
        began = time.monotonic()
        method, pairs, phrases, metrics, splitting = self.count(data, run)
        counts = pairs.matrix
        sums = marginal_counts(counts)
        counts = drop_rare_pairs(counts, self.min_pair)
        if not counts.nnz:
            raise FirthError(
                "empty_data",
                "No pair was counted min_pair={min_pair:g} times; a smaller one keeps more.",
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
