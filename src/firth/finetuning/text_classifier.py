"""Labels of texts, or of pairs of texts, by fine-tuning (Devlin et al. 2019, 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.text_classification", "TextClassifier")
@dataclass(frozen=True, kw_only=True)
class TextClassifier(TuningOptions):
    """Maximises Σ log softmax(C Wᵀ) of the right labels, C being what a BERT or GPT makes of a text."""

    summary: ClassVar[str] = "labels of texts or pairs, by a BERT or GPT that learns on with one new layer"
    kind: ClassVar[str] = "examples"

    pooling: str = option(
        "base",
        "what stands for a text: its tokens' mean, [CLS] through BERT's pooler, or as the base does",
        choices=("base", "mean", "cls"),
    )
    metric: str = option("accuracy", "the score on dev data to choose by", choices=("accuracy", "f1", "matthews"))
    class_weights: str = option("none", "balanced makes rare labels weigh more", choices=("none", "balanced"))

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from `Examples` (or what they can be made of), beginning with the weights of `start`."""
        return torch_module("finetuning.text_classification").learn(self, data, run, start, numbers=False)
