"""A tag for each word, by fine-tuning (Devlin et al. 2019, 5.3): names, parts of speech."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.finetuning.finetuning_options import TuningOptions
from firth.training.network_options import model_in, torch_module


@model_in("finetuning.token_classification", "TagModel")
@dataclass(frozen=True, kw_only=True)
class TokenClassifier(TuningOptions):
    """Maximises Σ log softmax(T Wᵀ) of the words' right tags, T being what a BERT makes of a word's first piece."""

    summary: ClassVar[str] = "tags of words, such as names and parts of speech, by a BERT that learns on"
    kind: ClassVar[str] = "tagged words"

    metric: str = option(
        "accuracy", "the score on dev data to choose by; f1 is of the stretches that B- and I- mark",
        choices=("accuracy", "f1"),
    )  # fmt: skip
    overlong: str = option(
        "parts", "texts longer than `length` are read in parts, cut between words", choices=("parts",)
    )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from `TaggedSentences` (or what they can be made of), beginning with the weights of `start`."""
        return torch_module("finetuning.token_classification").learn(self, data, run, start)
