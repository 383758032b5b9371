"""Vectors of sentences by contrast: texts that are alike come near, others go away (Henderson et al. 2017; SimCSE, Gao
et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import GradientOptions, model_in, torch_module


@model_in("transformers.bert_model", "BertModel")
@dataclass(frozen=True, kw_only=True)
class SentenceEncoder(GradientOptions):
    """Maximises Σ log softmax(cos(a, b) / temperature) of the right b among all b of a step; a text alone is read
    twice, other values left out each time."""

    summary: ClassVar[str] = "better vectors of sentences, by a BERT that learns on from texts, pairs or triplets"
    kind: ClassVar[str] = "alike"
    needs_start: ClassVar[bool] = True

    epochs: int = option(1, "passes over the data", low=1)
    batch_size: int = option(64, "texts, or pairs, a step: each is told apart from the others", low=2, high=65536)
    batch_tokens: int = option(65536, "most tokens a step: of long texts it has fewer", low=1)
    temperature: float = option(0.05, "by which cosines are divided; the lower, the more the nearest count", low=1e-4)
    pooling: str = option(
        "base", "what stands for a text: its tokens' mean, [CLS], or as the base does", choices=("base", "mean", "cls")
    )
    matryoshka_dims: str = option(
        "", "shorter lengths that shall do too, as in 128,64: their losses are added (Matryoshka)"
    )
    max_length: int = option(0, "most tokens of a text, longer ones are cut; 0 = as the base does", low=0)
    learning_rate: float = option(3e-5, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    warmup: float = option(0.1, "share of the run in which the rate rises", low=0, high=1)
    schedule: str = option(
        "linear", "how the rate falls after that", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.999, "memory of AdamW's second moment", low=0, high=0.99999)

    def __post_init__(self) -> None:
        super().__post_init__()
        self.lengths()

    @property
    def batch_units(self) -> int:
        return self.batch_size

    def lengths(self) -> list[int]:
        """The shorter lengths."""
        parts = self.matryoshka_dims.split(",") if self.matryoshka_dims else []
        if not all(part.strip().isdecimal() and int(part) for part in parts):
            raise FirthError(
                "invalid_value",
                "{option} must be lengths with commas between, as in 128,64; got {got!r}.",
                option="SentenceEncoder.matryoshka_dims",
                got=self.matryoshka_dims,
            )
        return [int(part) for part in parts]

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from `SimilarPairs` (or what they can be made of), beginning with the weights of `start`."""
        return torch_module("finetuning.contrastive_training").learn(self, data, run, start)
