"""Token classification by fine-tuning (Devlin et al. 2019, section 5.3): named entities, parts of speech."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import INHERITED, TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.token_classification", "TagModel")
@dataclass(frozen=True, kw_only=True)
class TokenClassifier(TuningOptions):
    """Fine-tunes a BERT with a linear layer that predicts one tag per word.

    Maximizes Σ log softmax(T Wᵀ) of the words' correct tags, where T is the BERT's vector of a word's first subword.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Only tags of the training data can be predicted.",
    )
    summary: ClassVar[str] = "tags of words, such as named entities and parts of speech, by fine-tuning a BERT"
    kind: ClassVar[str] = "tagged words"

    metric: str = option(
        "accuracy", "dev score for model selection; f1 is that of B-/I- spans", choices=("accuracy", "f1")
    )
    overlong: str = option(
        "parts", "texts longer than max_length are split between words and read in parts", choices=("parts",)
    )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Train on `TaggedSentences` (or data they can be built from), starting from the weights of `start`."""
        return torch_module("finetuning.token_classification").learn(self, data, run, start)
