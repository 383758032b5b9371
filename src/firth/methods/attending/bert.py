"""BERT: words are predicted from both sides of them (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.learners.network import GradientOptions, learner, model_in


@model_in("bert", "BertModel")
@dataclass(frozen=True, kw_only=True)
class BERT(GradientOptions):
    """Maximises Σ log p(masked token | all other tokens), and tells whether a sentence follows another."""

    summary: ClassVar[str] = "reads text from both sides: vectors of words and sentences that know their context"

    layers: int = option(4, "blocks above each other", low=1, high=1000)
    dim: int = option(256, "length of the vectors", low=2, high=65536)
    heads: int = option(4, "attentions side by side; must divide dim", low=1, high=1024)
    hidden: int = option(0, "width of the feed-forward; 0 = 4 × dim", low=0)
    context: int = option(128, "most tokens of a text, or pair of texts", low=8, high=1_000_000)
    activation: str = option("gelu", "of the feed-forward", choices=("gelu", "gelu_tanh", "relu"))
    epsilon: float = option(1e-12, "added to the variance in norms", low=0, high=1)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a corpus (or paths, texts). With `start`, goes on from that model, with its tokenizer."""
        if self.dim % self.heads:
            raise FirthError(f"BERT.dim must be a multiple of heads; got {self.dim} and {self.heads}.")
        return learner("pretrain").learn(self, data, run, start)
