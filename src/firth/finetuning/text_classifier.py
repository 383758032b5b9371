"""Classification of texts or pairs of texts by fine-tuning (Devlin et al. 2019, section 3.2)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import INHERITED, TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.text_classification", "TextClassifier")
@dataclass(frozen=True, kw_only=True)
class TextClassifier(TuningOptions):
    """Fine-tunes a BERT or GPT with a linear layer that predicts one label per text or pair of texts.

    Maximizes Σ log softmax(C Wᵀ) of the correct labels, where C are the network's vectors of the texts.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Only labels of the training data can be predicted, also for texts to which none applies.",
        "Probabilities are not calibrated.",
    )
    summary: ClassVar[str] = "labels of texts or pairs of texts, by fine-tuning a BERT or GPT"
    kind: ClassVar[str] = "examples"

    pooling: str = option(
        "base",
        "the vector of a text: the mean of its tokens, [CLS] through BERT's pooler, or as in the base",
        choices=("base", "mean", "cls"),
    )
    metric: str = option("accuracy", "dev score for model selection", choices=("accuracy", "f1", "matthews"))
    class_weights: str = option("none", "balanced gives rare labels more weight", choices=("none", "balanced"))

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Train on `Examples` (or data they can be built from), starting from the weights of `start`."""
        return torch_module("finetuning.text_classification").learn(self, data, run, start, numbers=False)
