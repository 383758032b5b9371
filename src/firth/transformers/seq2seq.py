"""Seq2Seq: an encoder-decoder from text to text (Vaswani et al. 2017; lstm: Bahdanau, Cho & Bengio 2015)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.translation_pairs import TranslationPairs, as_pairs
from firth.training.network_options import TranslatorOptions, networks

if TYPE_CHECKING:
    from firth.transformers.translation_model import Translator


@dataclass(frozen=True, kw_only=True)
class Seq2Seq(TranslatorOptions):
    """Maximize Σ log p(target token | source, target tokens before it) with label smoothing."""

    limits: ClassVar[tuple[str, ...]] = (
        "Texts longer than context_length are refused; translate sentences.",
        "An output can be fluent and wrong: it may omit or add content.",
        "Only the direction and the domain of the training pairs are known.",
    )
    summary: ClassVar[str] = "an encoder-decoder for translation and summaries"
    data = TranslationPairs

    weight_decay: float = option(0.01, "of matrices, not of biases and norms", low=0, high=10)

    @classmethod
    def model_class(cls) -> type[Translator]:
        with networks():
            from firth.transformers.translation_model import Translator
        return Translator

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> Translator:
        """Train on TranslationPairs or an iterable of pairs. With `start`, continue from that model."""
        if self.architecture == "transformer" and self.dim % self.heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got dim={got} and heads={heads}.",
                option="Seq2Seq.dim",
                got=self.dim,
                heads=self.heads,
            )
        with networks():
            from firth.transformers.translation_training import train_translator
        return train_translator(self, as_pairs(data), run, start)
