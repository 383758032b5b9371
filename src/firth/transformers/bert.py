"""BERT: words are predicted from both sides of them (Devlin et al. 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.training.network_options import GradientOptions, learner, model_in

#: Layers, dim, heads (Turc et al. 2019; base: Devlin et al. 2019).
SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (4, 512, 8), "base": (12, 768, 12)}


@model_in("transformers.bert_model", "BertModel")
@dataclass(frozen=True, kw_only=True)
class BERT(GradientOptions):
    """Maximises Σ log p(masked token | all other tokens), and tells whether a sentence follows another."""

    summary: ClassVar[str] = "reads text from both sides: vectors of words and sentences that know their context"

    size: str = option("mini", "2 layers × 128, 4 × 256, 4 × 512 or 12 × 768", choices=tuple(SIZES))
    layers: int = option(0, "blocks above each other; 0 = as the size says", low=0, high=1000)
    dim: int = option(0, "length of the vectors; 0 = as the size says", low=0, high=65536)
    heads: int = option(0, "attentions side by side; must divide dim; 0 = as the size says", low=0, high=1024)
    feedforward_dim: int = option(0, "width of the feed-forward; 0 = 4 × dim", low=0)
    context_length: int = option(128, "most tokens of a text, or pair of texts", low=8, high=1_000_000)
    activation: str = option("gelu", "of the feed-forward", choices=("gelu", "gelu_tanh", "relu"))
    epsilon: float = option(1e-12, "added to the variance in norms", low=0, high=1)
    vocabulary_size: int = option(30_000, "pieces of words, found in the text", low=6, high=1_000_000)
    lowercase: bool = option(True, "fold case and accents")
    tokenizer: str = option(
        "", "tokens given: a folder, tokenizer.json or vocab.txt; empty = found in the text", path=True
    )
    next_sentence: bool = option(True, "learn too whether a sentence follows another")
    mask_rate: float = option(0.15, "share of the tokens that are to be predicted", low=0.001, high=0.9)
    mask_share: float = option(
        0.8, "of them become [MASK]; half of the rest another token, half stay as they are", low=0, high=1
    )
    whole_words: bool = option(False, "the pieces of a word are masked together")
    short_first: float = option(0.9, "share of the run on 128 tokens a text, if context is longer", low=0, high=1)
    held_out: float = option(0.05, "share of the text, its last documents, kept to measure on", low=0, high=0.9)
    learning_rate: float = option(5e-4, "the highest; it warms up to it and falls from it", low=1e-9, high=10)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Layers, dim, heads."""
        layers, dim, heads = SIZES[self.size]
        return self.layers or layers, self.dim or dim, self.heads or heads

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Any:
        """Learns from a corpus (or paths, texts). With `start`, goes on from that model, with its tokenizer."""
        _, dim, heads = self.shape
        if dim % heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got {got} and {heads}.",
                option="BERT.dim",
                got=dim,
                heads=heads,
            )
        return learner("transformers.bert_pretraining").learn(self, data, run, start)
