"""FastText: skip-gram or CBOW with word vectors composed of character n-grams (Bojanowski et al. 2017).

The input vector of a word is the mean of its own row and the rows of its n-grams (`subword_training.Subwords`). The
objective and the update are those of skip-gram or CBOW, with the gradient applied to all of these rows:
`kernels.predict.Task(architecture="forward" or "cbow", pieces=rows of each word)`.
"""

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
from firth.words.window_training import HoldingOut, merged_vocabulary, read_sentences
from firth.words.word_model import ONE_SENSE, WORD_ORDER


@dataclass(frozen=True, kw_only=True)
class FastText(HoldingOut):
    """Skip-gram or CBOW where a word's vector is the mean of its own row and the rows of its character n-grams."""

    limits: ClassVar[tuple[str, ...]] = (
        ONE_SENSE,
        "Vectors of unseen words are composed of character n-grams: they reflect spelling, not use.",
        WORD_ORDER,
    )
    summary: ClassVar[str] = (
        "word vectors composed of subwords: for languages with rich morphology, and for unseen words"
    )
    model: ClassVar[type[FastTextModel]] = FastTextModel
    architecture: ClassVar[str] = "forward"  # for objective=skipgram; `kernel_settings` sets that of cbow

    objective: str = option(
        "skipgram", "predict context words from the word, or the word from its context", choices=tuple(OBJECTIVES)
    )
    minn: int = option(3, "minimum length of character n-grams", low=0, high=LONGEST_NGRAM)
    maxn: int = option(6, "maximum length of character n-grams; 0 = no n-grams", low=0, high=LONGEST_NGRAM)
    buckets: int = option(2_000_000, "number of hash buckets for n-grams", low=1, high=2**31 - 1)
    negative_exponent: float = option(0.5, "negative samples are drawn by count to this power", low=-2, high=2)
    subsample: float = option(1e-4, "frequency above which words are subsampled; 0 = off", low=0, high=1)
    learning_rate: float = option(0.05, "initial learning rate, decayed linearly to 0", low=1e-9, high=100)
    share_negatives: bool = option(
        False, "share negative samples between all pairs of a window: twice as fast, larger steps"
    )
    exact_gradient: bool = option(
        False, "divide the gradient by the number of rows; off: each row gets the full gradient, as in fastText"
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.minn > self.maxn > 0:
            raise FirthError(
                "invalid_value",
                "{option} must be at most maxn={maxn}; got {got}.",
                option="FastText.minn",
                maxn=self.maxn,
                got=self.minn,
            )

    def kernel_settings(self) -> dict[str, Any]:
        """Return the fields of `kernels.predict.Task` that are specific to FastText."""
        architecture = "cbow" if self.objective == "cbow" else self.architecture
        return {"architecture": architecture, "shared": self.share_negatives, "exact": self.exact_gradient}

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> FastTextModel:
        """Train on a corpus (or Tokens, paths, texts).

        With `start`, training continues from that model: its words and n-grams keep their vectors, new ones are added.
        """
        previous = self.check_start(start) if start is not None else None
        tokens, reading_seconds = read_sentences(self, data, run, previous)
        method = self.sized(tokens)
        training_class = SubwordTraining
        if run.cluster:
            from firth.words.window_replicas import ReplicatedSubwordTraining

            training_class = ReplicatedSubwordTraining
        training = training_class(method, tokens, run, previous)
        metrics = training.go() | {"reading_seconds": reading_seconds, "ngram_rows": training.subwords.rows}
        table, outputs = (np.ascontiguousarray(table[:, : self.dim]) for table in (training.inputs, training.outputs))
        vocabulary = merged_vocabulary(tokens.vocabulary, previous.vocabulary) if previous else tokens.vocabulary
        trained_method = method.as_trained(tokens.splitting, vocabulary, run, previous)
        return FastTextModel(trained_method, vocabulary, table, outputs, training.subwords, metrics, tokens.phrases)

    def check_start(self, start: Model) -> FastTextModel:
        """Return `start` if its rows can be reused, else raise an error."""
        if not isinstance(start, FastTextModel) or isinstance(start.table, ProductCodes):
            raise FirthError(
                "incompatible_start",
                "start must be a FastText model that is not quantized; got {got!r}.",
                got=start,
            )
        start_subwords, expected = start.subwords, (self.dim, self.minn, self.maxn, self.buckets)
        start_settings = (start.table.shape[1], start_subwords.minn, start_subwords.maxn, start_subwords.buckets)
        if start_settings != expected:
            raise FirthError(
                "incompatible_start",
                "start must have the same dim, minn, maxn and buckets as this method, {expected}; got {got}.",
                expected=expected,
                got=start_settings,
            )
        return start
