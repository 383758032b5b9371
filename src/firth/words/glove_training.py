"""GloVe training (records, epochs, checkpoints) and model.

The update is implemented in `kernels/glove.py` (Pennington et al. 2014).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

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
from firth.training.epoch_loop import Loop, Progress, SliceResult
from firth.words.word_model import Phrases, WordModel, WordOptions

if TYPE_CHECKING:
    from firth.words.glove import GloVe

UNKNOWN = "<unk>"
N_RAREST = 100  # words averaged to the vector of <unk>, as in Stanford's GloVe
CACHE_BYTES = 1 << 20  # the rows of a block fit into the cache of a core
MIN_PARTS, MAX_PARTS = 16, 128  # enough blocks for all threads, and enough records per block
CHUNK_RECORDS = 1 << 20  # records of a diagonal trained per kernel call


class GloVeModel(WordModel):
    """Word vectors of GloVe; `tables["contexts"]` are the context vectors, `biases` those of words and contexts."""

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
        """The vocabulary without the row <unk>, which is not a word of the corpus."""
        vocabulary = self.vocabulary
        if not len(vocabulary) or vocabulary.tokens[-1] != UNKNOWN:
            return vocabulary
        dropped = {"dropped_types": vocabulary.dropped_types, "dropped_tokens": vocabulary.dropped_tokens}
        return Vocabulary(vocabulary.tokens[:-1], vocabulary.counts[:-1], min_count=vocabulary.min_count, **dropped)

    def parts(self) -> Parts:
        """Return the arrays and documents to store."""
        parts = super().parts()
        return Parts({**parts.arrays, "biases": self.biases}, parts.documents)

    @classmethod
    def from_parts(cls, method: Method, parts: Parts, training: Mapping[str, Any]) -> GloVeModel:
        """Return the model from stored parts, after checking their shapes."""
        words, contexts, biases = (parts.arrays[name] for name in ("words", "outputs", "biases"))
        if words.ndim != 2 or words.shape != contexts.shape or biases.shape != (len(words), 2):
            raise FirthError(
                "damaged_model",
                "words and outputs must have the same shape, and biases two columns per word; got shapes {words}, "
                "{outputs} and {biases}.",
                words=words.shape,
                outputs=contexts.shape,
                biases=biases.shape,
            )
        assert isinstance(method, WordOptions)
        return cls(method, parts, (words, contexts, biases), training)


@dataclass
class GloVeProgress(Progress):
    """Progress of a run, with the position within the epoch."""

    step: int = 0  # chunks of diagonals trained in this epoch


class Training(Loop):
    """Training loop over the records, which are stored in blocks."""

    unit: ClassVar[str] = "pairs"
    baseline: ClassVar[str] = "that of predicting the mean log count"
    progress: GloVeProgress
    method: GloVe

    def __init__(self, method: GloVe, pairs: Cooccurrence, run: Run, start: kernel.Tables | None) -> None:
        super().__init__(method, pairs.fingerprint, run, len(pairs))
        words, self.continued = len(pairs.vocabulary), start is not None
        self.mean_loss = mean_loss(pairs, method.x_max, method.exponent)
        self.parameters = kernel.new_tables(words, method.dim, run.seed)
        if start is not None:
            for table, old in zip(self.parameters.arrays().values(), start.arrays().values(), strict=True):
                table[: len(old)] = old
        self.strata = write_records(pairs, parts_for(words, self.parameters.stride), method.x_max, method.exponent, run)
        self.trainer = kernel.native_trainer(self.strata, self.parameters)
        starts, parts = self.strata.starts, self.strata.parts
        block = np.arange(parts)
        sizes = [
            int((starts[block * parts + (block + d) % parts + 1] - starts[block * parts + (block + d) % parts]).sum())
            for d in range(parts)
        ]
        self.chunks_per_diagonal = -(-max(sizes) // CHUNK_RECORDS)
        self.progress = GloVeProgress()
        if run.budget and run.deterministic:
            run.report.note(
                "A run with a time budget is not deterministic: the pair at which it stops varies.",
                code="nondeterministic_budget",
            )

    @property
    def tables(self) -> dict[str, kernel.Table]:
        """The trained arrays by name, as checkpoints store them."""
        return self.parameters.arrays()

    def position(self) -> int:
        """Return the number of pairs trained in this epoch, estimated from the steps."""
        return self.size * self.progress.step // (self.strata.parts * self.chunks_per_diagonal)

    def train(self, units: float, seed: int) -> SliceResult:
        """Train whole chunks of diagonals; each epoch visits the diagonals in a new random order."""
        parts, first = self.strata.parts, self.progress.step
        order = np.random.default_rng(seed).permutation(parts)
        steps = max(1, int(units / self.size * parts * self.chunks_per_diagonal))
        last = min(first + steps, parts * self.chunks_per_diagonal)
        position_before, loss = self.position(), 0.0
        for step in range(first, last):
            diagonal, chunk = divmod(step, self.chunks_per_diagonal)
            rate = self.method.learning_rate
            loss += self.trainer.diagonal(int(order[diagonal]), chunk, self.chunks_per_diagonal, rate, self.run.cores)
        self.progress.step = last
        return SliceResult(loss, self.position() - position_before, last == parts * self.chunks_per_diagonal)

    def probe_loss(self) -> float | None:
        """Return the current loss; before training, the loss of predicting the mean log count for every pair."""
        if self.progress.words:
            return self.loss()
        return None if self.continued else self.mean_loss

    def end_epoch(self) -> dict[str, float]:
        """Reset the position."""
        self.progress.step = 0
        return {}

    def metrics(self) -> dict[str, Any]:
        """Return the metrics of the run."""
        progress = self.progress
        speed = progress.words / progress.seconds if progress.seconds else 0.0
        return super().metrics() | {"pairs_per_second": speed}


def parts_for(words: int, stride: int) -> int:
    """Return the number of parts into which words and contexts are divided, such that a block's rows fit the cache.

    It does not depend on the number of threads, so that any number of threads gives the same result.
    """
    parts = -(-words * stride * 16 // CACHE_BYTES)
    return max(1, min(words, MAX_PARTS, max(MIN_PARTS, parts)))


def mean_loss(pairs: Cooccurrence, x_max: float, exponent: float) -> float:
    """Return the mean of ½ f(X) (log X − m)² over all pairs, where m is the mean of log X weighted by f."""
    weights = np.minimum(1.0, (np.asarray(pairs.weights, np.float64) / x_max) ** exponent)
    logs = np.log(np.asarray(pairs.weights, np.float64))
    residuals = logs - (weights @ logs) / weights.sum()
    return float(0.5 * (weights @ residuals**2) / len(residuals))


def write_records(pairs: Cooccurrence, parts: int, x_max: float, exponent: float, run: Run) -> kernel.Strata:
    """Write the pairs to disk as records grouped into blocks."""
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
    """Return word vectors (plus context vectors with `add_contexts`), context vectors, and both biases."""
    words, contexts = (np.ascontiguousarray(table[:, :dim]) for table in (parameters.words, parameters.contexts))
    biases = np.stack([parameters.word_biases[:, 0], parameters.context_biases[:, 0]], axis=1)
    return words + contexts if add_contexts else words, contexts, biases


def start_tables(model: GloVeModel) -> kernel.Tables:
    """Return the trained parameters of a model; AdaGrad's accumulators are reset."""
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
    """Append a row <unk>, the mean of the rarest words."""
    rarest = np.argsort(-vocabulary.counts, kind="stable")[-N_RAREST:]
    words, contexts, biases = (np.vstack([table, table[rarest].mean(axis=0)]) for table in tables)
    tokens, counts = [*vocabulary.tokens, UNKNOWN], [*vocabulary.counts.tolist(), 0]
    dropped = {"dropped_types": vocabulary.dropped_types, "dropped_tokens": vocabulary.dropped_tokens}
    extended = Vocabulary(tokens, counts, min_count=vocabulary.min_count, **dropped)
    return extended, (words, contexts, biases)
