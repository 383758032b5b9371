"""FastText: words are made of their n-grams of characters, and predict their neighbours (Bojanowski et al. 2017)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.formats.fasttext import LONGEST_NGRAM
from firth.kernels.product import ProductCodes
from firth.words.fasttext_model import OBJECTIVES, FastTextModel
from firth.words.subword_training import SubwordTraining
from firth.words.window_training import PredictingMethod, merged_vocabulary


@dataclass(frozen=True, kw_only=True)
class FastText(PredictingMethod):
    """Skip-gram or CBOW where a word's vector is the mean of its own row and those of its n-grams."""

    summary: ClassVar[str] = "word vectors made of subwords: rich in forms, and unseen words have one too"
    model: ClassVar[type[Model]] = FastTextModel
    architecture: ClassVar[str] = "forward"  # of skipgram; `kernel_settings` says that of cbow

    objective: str = option(
        "skipgram", "the word predicts its neighbours, or they together predict the word", choices=tuple(OBJECTIVES)
    )
    minn: int = option(3, "shortest n-grams, in characters", low=0, high=LONGEST_NGRAM)
    maxn: int = option(6, "longest n-grams; 0 = none", low=0, high=LONGEST_NGRAM)
    buckets: int = option(2_000_000, "rows that n-grams share by their hash", low=1, high=2**31 - 1)
    negative_exponent: float = option(0.5, "noise words are drawn by count to this power", low=-2, high=2)
    subsample: float = option(
        1e-4, "frequent words are thinned out above this share of the text; 0 = off", low=0, high=1
    )
    learning_rate: float = option(0.05, "at the start; it falls to nothing linearly", low=1e-9, high=100)
    share_negatives: bool = option(
        False, "one draw of noise words for a whole window, each counting for every pair: half the time, longer steps"
    )
    exact_gradient: bool = option(
        False, "each row gets its share of the mean's gradient; off: all of it, as in fastText: quicker to learn"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minn > self.maxn > 0:
            raise FirthError(
                "invalid_value",
                "{option} must be at most maxn, {maxn}; got {got}.",
                option="FastText.minn",
                maxn=self.maxn,
                got=self.minn,
            )

    def kernel_settings(self) -> dict[str, Any]:
        architecture = "cbow" if self.objective == "cbow" else self.architecture
        return {"architecture": architecture, "shared": self.share_negatives, "exact": self.exact_gradient}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> FastTextModel:
        """Learns from a corpus (or Tokens, paths, texts). With `start`, goes on from that model: its words and n-grams
        keep their vectors, new ones are added."""
        previous = self.check_start(start) if start is not None else None
        tokens, reading_seconds = self.read_words(data, run, previous)
        method = self.sized(tokens)
        training = SubwordTraining(method, tokens, run, previous)
        metrics = training.go() | {"reading_seconds": reading_seconds, "ngram_rows": training.subwords.rows}
        table, outputs = (np.ascontiguousarray(table[:, : self.dim]) for table in (training.inputs, training.outputs))
        vocabulary = merged_vocabulary(tokens.vocabulary, previous.vocabulary) if previous else tokens.vocabulary
        trained_method = method.as_trained(tokens.splitting, vocabulary, run, previous)
        return FastTextModel(trained_method, vocabulary, table, outputs, training.subwords, metrics, tokens.phrases)

    def check_start(self, start: Model) -> FastTextModel:
        """Refuses a model whose rows mean something else."""
        if not isinstance(start, FastTextModel) or isinstance(start.table, ProductCodes):
            raise FirthError(
                "incompatible_start",
                "start must be a FastText model whose rows are not in codes; got {got!r}.",
                got=start,
            )
        start_subwords, expected = start.subwords, (self.dim, self.minn, self.maxn, self.buckets)
        start_settings = (start.table.shape[1], start_subwords.minn, start_subwords.maxn, start_subwords.buckets)
        if start_settings != expected:
            raise FirthError(
                "incompatible_start",
                "start must have dim, minn, maxn, buckets = {expected}, as this method; got {got}.",
                expected=expected,
                got=start_settings,
            )
        return start
