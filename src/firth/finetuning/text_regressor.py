"""Regression on texts or pairs of texts by fine-tuning, for example similarity scores or star ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import INHERITED, TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.text_classification", "TextRegressor")
@dataclass(frozen=True, kw_only=True)
class TextRegressor(TuningOptions):
    """Fine-tunes a BERT or GPT with a linear layer that predicts one number per text or pair of texts.

    Minimizes Σ (C · w + b − number)², where C are the network's vectors of the texts.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Numbers outside the range of the training data are unlikely to be predicted.",
    )
    summary: ClassVar[str] = "a number per text or pair of texts, by fine-tuning a BERT or GPT"
    kind: ClassVar[str] = "examples"

    pooling: str = option(
        "base",
        "the vector of a text: the mean of its tokens, [CLS] through BERT's pooler, or as in the base",
        choices=("base", "mean", "cls"),
    )
    metric: str = option("spearman", "dev score for model selection", choices=("spearman", "pearson"))

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Train on `Examples` (or data they can be built from), starting from the weights of `start`."""
        return torch_module("finetuning.text_classification").learn(self, data, run, start, numbers=True)
