"""GloVe: word vectors whose dot products fit log co-occurrence counts (Pennington, Socher & Manning 2014)."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.vocabulary import Vocabulary
from firth.kernels import cooccur as kernel
from firth.words import glove_training as glove
from firth.words.glove_training import UNKNOWN, GloVeModel
from firth.words.pair_counting import PairOptions
from firth.words.window_training import automatic_epochs, merged_vocabulary

LARGE_TEXT, MIN_EPOCHS, MAX_EPOCHS = 1_000_000, 15, 50


@dataclass(frozen=True, kw_only=True)
class GloVe(PairOptions):
    """Minimize Σ f(X) (w · c + b_w + b_c − log X)² over the pairs of words that co-occur (eq. 8)."""

    summary: ClassVar[str] = "word vectors: dot products fit log co-occurrence counts; fast on large corpora"
    distributed: ClassVar[str] = "reading the text, counting pairs, and training by blocks that share no row"
    model: ClassVar[type[GloVeModel]] = GloVeModel

    dim: int = option(100, "vector dimension", low=1, high=65536)
    window: int = option(10, "context words on each side", low=1, high=kernel.MAX_WINDOW)
    weighting: str | None = option(
        None,
        "weight of a context word at distance d: 1, 1/d or (window-d+1)/window; none = harmonic from a million words "
        "on, flat below",
        choices=kernel.WEIGHTINGS,
    )
    x_max: float = option(
        10.0, "count at which a pair gets the full weight 1: 10 for millions of words, 100 for billions", low=1e-9
    )
    exponent: float = option(0.75, "weight of rarer pairs: (count / x_max)^exponent", low=0, high=10)
    epochs: int | None = option(
        None, "passes over the pairs; none = 15 from a million words on, more for smaller corpora, up to 50", low=1
    )
    learning_rate: float = option(0.05, "learning rate of AdaGrad", low=1e-9, high=100)
    add_contexts: bool = option(True, "use word + context vectors as word vectors; off: word vectors only")
    unknown: bool = option(False, "add a last row <unk>, the mean of the 100 rarest words, as in Stanford's GloVe")

    def check_run(self, run: Run) -> None:
        """Refuse settings of a run that the method cannot follow."""
        super().check_run(run)
        if run.cluster:
            from firth.training.replicas import check_replicas

            check_replicas(run)

    def sized(self, vocabulary: Vocabulary) -> GloVe:
        """Return this method with its unset options chosen by corpus size.

        In a small corpus most pairs occur once, so weights of 1/d would fit distances instead of frequencies.
        """
        tokens = int(vocabulary.counts.sum())
        weighting = "harmonic" if tokens >= LARGE_TEXT else "flat"
        epochs = min(MAX_EPOCHS, automatic_epochs(tokens, MIN_EPOCHS, LARGE_TEXT))
        return super().sized(vocabulary).resolved(weighting=weighting, epochs=epochs)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> GloVeModel:
        """Train on a corpus (or Tokens, paths, texts, or a Cooccurrence).

        With `start`, training continues from that model: its words keep their vectors, new words are added.
        """
        if start is not None and not (isinstance(start, GloVeModel) and start.vectors.dim == self.dim):
            raise FirthError(
                "incompatible_start",
                "start must be a GloVe model with dim={dim}; got {got!r}.",
                dim=self.dim,
                got=start,
            )
        started = time.monotonic()
        method, (pairs, phrases, metrics, splitting) = self.count(data, run, start)
        vocabulary = pairs.vocabulary
        if self.unknown and UNKNOWN in vocabulary:
            raise FirthError(
                "duplicate_name",
                "The corpus contains the word {unknown}, so no row for unknown words can be added. Use unknown=False.",
                unknown=UNKNOWN,
            )
        metrics["counting_seconds"] = time.monotonic() - started
        training_class = glove.Training
        if run.cluster:
            from firth.words.glove_cluster import ClusterTraining

            training_class = ClusterTraining
        training = training_class(method, pairs, run, glove.start_tables(start) if start else None)
        metrics |= training.go()
        metrics |= {"deterministic": True, "threads": run.cores}
        tables = glove.result_tables(training.parameters, self.dim, self.add_contexts)
        if start is not None:
            vocabulary = merged_vocabulary(vocabulary, start.known)
        trained_method = method.as_trained(splitting, vocabulary, run, start)
        if self.unknown:
            vocabulary, tables = glove.with_unknown(vocabulary, tables)
        return GloVeModel(trained_method, vocabulary, tables, metrics, phrases)
