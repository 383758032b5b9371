"""A number for each text, or pair of texts, by fine-tuning: how alike two sentences are, how many stars were given."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.text_classification", "TextRegressor")
@dataclass(frozen=True, kw_only=True)
class TextRegressor(TuningOptions):
    """Minimises Σ (C · w + b − number)², C being what a BERT or GPT makes of a text."""

    summary: ClassVar[str] = "numbers of texts or pairs, by a BERT or GPT that learns on with one new layer"
    kind: ClassVar[str] = "examples"

    pooling: str = option(
        "base",
        "what stands for a text: its tokens' mean, [CLS] through BERT's pooler, or as the base does",
        choices=("base", "mean", "cls"),
    )
    metric: str = option("spearman", "the score on dev data to choose by", choices=("spearman", "pearson"))

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from `Examples` (or what they can be made of), beginning with the weights of `start`."""
        return torch_module("finetuning.text_classification").learn(self, data, run, start, numbers=True)
