"""Fitting vectors to the logarithm of co-occurrence (GloVe): records, epochs, checkpoints and the model.

The arithmetic stands in `kernels/glove.py`; Pennington et al. 2014 describe it.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.run import Run
from firth.core.storage import saying_where
from firth.core.vectors import Matrix
from firth.data import cache
from firth.data.cooccurrence import Cooccurrence, create_file, map_array
from firth.data.vocabulary import Vocabulary
from firth.kernels import glove as kernel
from firth.training.epoch_loop import Loop, Progress, Slice
from firth.words.word_model import Phrases, WordModel, WordOptions

UNKNOWN = "<unk>"
RARE = 100  # the rarest words, whose mean is the vector of the unknown word, as in Stanford's program
CACHE = 1 << 20  # bytes that the rows of a block may take: a core's own cache
FEWEST_PARTS, MOST_PARTS = 16, 128  # so that threads find blocks side by side, and blocks hold records enough
PIECE = 1 << 20  # records of a diagonal trained in one go


class GloVeModel(WordModel):
    """Words with their vectors; `tables["contexts"]` are the context vectors, `biases` those of words and contexts."""

    def __init__(
        self,
        method: WordOptions,
        vocabulary: Vocabulary | Parts,
        tables: tuple[Matrix, Matrix, Matrix],
        training: Mapping[str, Any],
        phrases: Phrases = (),
    ) -> None:
        words, contexts, self.biases = tables
        super().__init__(method, vocabulary, words, contexts, training, phrases)

    @property
    def known(self) -> Vocabulary:
        """Without a last row <unk>, which stands for no word."""
        vocabulary = self.vocabulary
        if not len(vocabulary) or vocabulary.tokens[-1] != UNKNOWN:
            return vocabulary
        dropped = {"dropped_types": vocabulary.dropped_types, "dropped_tokens": vocabulary.dropped_tokens}
        return Vocabulary(vocabulary.tokens[:-1], vocabulary.counts[:-1], min_count=vocabulary.min_count, **dropped)

    def parts(self) -> Parts:
        parts = super().parts()
        return Parts({**parts.arrays, "biases": self.biases}, parts.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> GloVeModel:
        words, contexts, biases = (parts.arrays[name] for name in ("words", "outputs", "biases"))
        if words.ndim != 2 or words.shape != contexts.shape or biases.shape != (len(words), 2):
            raise FirthError(
                "damaged_model", "A GloVe model needs words and contexts of one shape, and two biases a word."
            )
        assert isinstance(method, WordOptions)
        return cls(method, parts, (words, contexts, biases), training)


@dataclass
class Place(Progress):
    """Where in an epoch a run stands."""

    step: int = 0  # pieces of diagonals done


class Training(Loop):
    """The records in blocks, the tables and the loop over them."""

    unit: ClassVar[str] = "pairs"
    progress: Place

    def __init__(self, method: Any, pairs: Cooccurrence, run: Run, start: kernel.Tables | None) -> None:
        super().__init__(method, pairs.fingerprint, run, len(pairs))
        words, self.continued = len(pairs.vocabulary), start is not None
        self.mean_loss = mean_loss(pairs, method.x_max, method.exponent)
        self.parameters = kernel.new_tables(words, method.dim, run.seed)
        if start is not None:
            for table, old in zip(self.parameters.arrays().values(), start.arrays().values(), strict=True):
                table[: len(old)] = old
        self.strata = arranged(pairs, parts_for(words, self.parameters.stride), method.x_max, method.exponent, run)
        self.trainer = kernel.native_trainer(self.strata, self.parameters)
        starts, parts = self.strata.starts, self.strata.parts
        block = np.arange(parts)
        sizes = [
            int((starts[block * parts + (block + d) % parts + 1] - starts[block * parts + (block + d) % parts]).sum())
            for d in range(parts)
        ]
        self.pieces = -(-max(sizes) // PIECE)
        self.progress = Place()
        if run.budget and run.deterministic:
            run.report.note("A budget of seconds ends a run at another pair each time: it can't be deterministic.")

    @property
    def tables(self) -> dict[str, kernel.Table]:
        return self.parameters.arrays()

    def position(self) -> int:
        return self.size * self.progress.step // (self.strata.parts * self.pieces)

    def train(self, units: float, seed: int) -> Slice:
        """Whole pieces of diagonals; their order is drawn anew in each epoch."""
        parts, first = self.strata.parts, self.progress.step
        order = np.random.default_rng(seed).permutation(parts)
        steps = max(1, int(units / self.size * parts * self.pieces))
        last = min(first + steps, parts * self.pieces)
        before, loss = self.position(), 0.0
        for step in range(first, last):
            diagonal, piece = divmod(step, self.pieces)
            rate = self.method.learning_rate
            loss += self.trainer.diagonal(int(order[diagonal]), piece, self.pieces, rate, self.run.cores)
        self.progress.step = last
        return Slice(loss, self.position() - before, last == parts * self.pieces)

    def probe_loss(self) -> float | None:
        """Before the first step the loss of predicting the mean logarithm for every pair, which needs no vectors."""
        if self.progress.words:
            return self.loss()
        return None if self.continued else self.mean_loss

    def end_epoch(self) -> dict[str, float]:
        self.progress.step = 0
        return {}

    def figures(self) -> dict[str, Any]:
        progress = self.progress
        speed = progress.words / progress.seconds if progress.seconds else 0.0
        return super().figures() | {"pairs_per_second": speed}


def parts_for(words: int, stride: int) -> int:
    """Into how many parts words and contexts are dealt: a block's rows fit the cache. Threads have no say in it, so
    that any number of them gives the same result."""
    wanted = -(-words * stride * 16 // CACHE)
    return max(1, min(words, MOST_PARTS, max(FEWEST_PARTS, wanted)))


def mean_loss(pairs: Cooccurrence, x_max: float, exponent: float) -> float:
    """½ f(X) (log X − mean)², averaged over the pairs; the mean is weighted by f."""
    weights = np.minimum(1.0, (np.asarray(pairs.weights, np.float64) / x_max) ** exponent)
    logs = np.log(np.asarray(pairs.weights, np.float64))
    off = logs - (weights @ logs) / weights.sum()
    return float(0.5 * (weights @ off**2) / len(off))


def arranged(pairs: Cooccurrence, parts: int, x_max: float, exponent: float, run: Run) -> kernel.Strata:
    """The pairs as records in blocks, on disk."""
    with cache.working_folder() as (folder, _), saying_where(folder):
        with create_file(folder / "records") as file:
            starts = kernel.write_strata(
                pairs.indptr,
                pairs.indices,
                pairs.weights,
                x_max=x_max,
                exponent=exponent,
                parts=parts,
                seed=run.seed,
                threads=run.cores,
                file=file,
            )
        return kernel.Strata(map_array(folder / "records", kernel.RECORD), starts, parts)


def result_tables(parameters: kernel.Tables, dim: int, add_contexts: bool) -> tuple[Matrix, Matrix, Matrix]:
    """Words (plus contexts where asked), contexts, and both biases."""
    words, contexts = (np.ascontiguousarray(table[:, :dim]) for table in (parameters.words, parameters.contexts))
    biases = np.stack([parameters.word_biases[:, 0], parameters.context_biases[:, 0]], axis=1)
    return words + contexts if add_contexts else words, contexts, biases


def start_tables(model: GloVeModel) -> kernel.Tables:
    """The parameters that a model came from; AdaGrad's sums begin anew."""
    rows, dim = len(model.known), model.vectors.dim
    tables = kernel.new_tables(rows, dim, 0)
    tables.words[:, :dim], tables.contexts[:, :dim] = model.vectors.matrix[:rows], model.outputs[:rows]
    if model.method.options()["add_contexts"]:
        tables.words[:, :dim] -= model.outputs[:rows]
    tables.word_biases[:, 0], tables.context_biases[:, 0] = model.biases[:rows].T
    return tables


def with_unknown(
    vocabulary: Vocabulary, tables: tuple[Matrix, Matrix, Matrix]
) -> tuple[Vocabulary, tuple[Matrix, Matrix, Matrix]]:
    """A last row <unk>: the mean of the rarest words."""
    rare = np.argsort(-vocabulary.counts, kind="stable")[-RARE:]
    words, contexts, biases = (np.vstack([table, table[rare].mean(axis=0)]) for table in tables)
    tokens, counts = [*vocabulary.tokens, UNKNOWN], [*vocabulary.counts.tolist(), 0]
    dropped = {"dropped_types": vocabulary.dropped_types, "dropped_tokens": vocabulary.dropped_tokens}
    grown = Vocabulary(tokens, counts, min_count=vocabulary.min_count, **dropped)
    return grown, (words, contexts, biases)
