"""GloVe: vectors whose products are the logarithms of how often words meet (Pennington, Socher & Manning 2014)."""

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
from firth.words.window_training import automatic_epochs, grown

LARGE_TEXT, LEAST_EPOCHS, MOST_EPOCHS = 1_000_000, 15, 50


@dataclass(frozen=True, kw_only=True)
class GloVe(PairOptions):
    """Minimises Σ f(X) (w · c + b_w + b_c − log X)² over the pairs of words that were met."""

    summary: ClassVar[str] = "word vectors: products fit the logarithm of how often words meet; quick over large texts"
    model: ClassVar[type[Model]] = GloVeModel

    dim: int = option(100, "length of the vectors", low=1, high=65536)
    window: int = option(10, "words each side", low=1, high=kernel.MAX_WINDOW)
    weighting: str | None = option(
        None,
        "a neighbour at distance d counts 1, 1/d or (window-d+1)/window; none = harmonic from a million words on, flat "
        "below",
        choices=kernel.WEIGHTINGS,
    )
    x_max: float = option(
        10.0, "pairs met this often have the full weight 1: 10 for millions of words, 100 for billions", low=1e-9
    )
    exponent: float = option(0.75, "rarer pairs have the weight (count / x_max)^exponent", low=0, high=10)
    epochs: int | None = option(
        None, "passes over the pairs; none = 15 from a million words on, more for a smaller text, up to 50", low=1
    )
    learning_rate: float = option(0.05, "of AdaGrad: steps shorten where many were taken", low=1e-9, high=100)
    add_contexts: bool = option(True, "each word's vector is word + context; off: word alone")
    unknown: bool = option(False, "a last row <unk>: the mean of the 100 rarest words, as in Stanford's program")

    def sized(self, vocabulary: Vocabulary) -> GloVe:
        """In a small text most pairs are met once: 1/d would fit the distance they were met at, not how often."""
        tokens = int(vocabulary.counts.sum())
        weighting = "harmonic" if tokens >= LARGE_TEXT else "flat"
        epochs = min(MOST_EPOCHS, automatic_epochs(tokens, LEAST_EPOCHS, LARGE_TEXT))
        return super().sized(vocabulary).resolved(weighting=weighting, epochs=epochs)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> GloVeModel:
        """Learns from a corpus (or Tokens, paths, texts; or a Cooccurrence). With `start`, goes on from that model: its
        words keep their vectors, new words are added."""
        if start is not None and not (isinstance(start, GloVeModel) and start.vectors.dim == self.dim):
            raise FirthError(
                "incompatible_start",
                "start must be a GloVe model with dim={dim}; got {got!r}.",
                dim=self.dim,
                got=start,
            )
        began = time.monotonic()
        method, pairs, phrases, figures, splitting = self.count(data, run, start)
        vocabulary = pairs.vocabulary
        if self.unknown and UNKNOWN in vocabulary:
            raise FirthError(
                "duplicate_name",
                "The text has the word {unknown}, so no row can be added for it; leave unknown out.",
                unknown=UNKNOWN,
            )
        figures["counting_seconds"] = time.monotonic() - began
        training = glove.Training(method, pairs, run, glove.start_tables(start) if start else None)
        figures |= training.go()
        figures |= {"deterministic": True, "threads": run.cores}
        tables = glove.result_tables(training.parameters, self.dim, self.add_contexts)
        if start is not None:
            vocabulary = grown(vocabulary, start.known)
        kept = method.as_trained(splitting, vocabulary, run, start)
        if self.unknown:
            vocabulary, tables = glove.with_unknown(vocabulary, tables)
        return GloVeModel(kept, vocabulary, tables, figures, phrases)
