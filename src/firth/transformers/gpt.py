"""GPT: each token is predicted from those before it (Radford et al. 2018, 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import GradientOptions, learner, model_in


@model_in("transformers.gpt_model", "GPTModel")
@dataclass(frozen=True, kw_only=True)
class GPT(GradientOptions):
    """Maximises Σ log p(token | tokens before it) with a causal Transformer."""

    summary: ClassVar[str] = "a language model: writes text, judges it, and gives vectors that move with their context"

    layers: int = option(6, "blocks above each other", low=1, high=1000)
    dim: int = option(384, "length of the vectors", low=2, high=65536)
    heads: int = option(6, "attentions side by side; must divide dim", low=1, high=1024)
    feedforward_dim: int = option(0, "width of the feed-forward; 0 = 4 × dim", low=0)
    context_length: int = option(256, "tokens that it looks back at", low=1, high=1_000_000)
    positions: str = option("learned", "how places are told", choices=("learned", "sinusoidal", "rotary"))
    activation: str = option("gelu_tanh", "of the feed-forward", choices=("gelu_tanh", "gelu", "relu", "swiglu"))
    epsilon: float = option(1e-5, "added to the variance in norms", low=0, high=1)
    tokenizer: str = option(
        "bpe", "how text is cut: pieces of words found in it, or single characters", choices=("bpe", "characters")
    )
    vocabulary_size: int = option(8000, "tokens of bpe", low=260, high=1_000_000)
    held_out: float = option(0.05, "share of the text, at its end, kept to measure the loss on", low=0, high=0.9)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a corpus (or paths, texts). With `start`, goes on from that model, with its tokenizer."""
        if self.dim % self.heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got {got} and {heads}.",
                option="GPT.dim",
                got=self.dim,
                heads=self.heads,
            )
        return learner("transformers.gpt_model").learn(self, data, run, start)
