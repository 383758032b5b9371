"""GPT: each token is predicted from the tokens before it (Radford et al. 2018, 2019)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.training.network_options import GradientOptions, networks

if TYPE_CHECKING:
    from firth.transformers.gpt_model import GPTModel


@dataclass(frozen=True, kw_only=True)
class GPT(GradientOptions):
    """Maximize Σ log p(token | tokens before it) with a causal Transformer."""

    limits: ClassVar[tuple[str, ...]] = (
        "Generated text is plausible, not checked; it may be false or repeat training texts.",
        "Only the last context_length tokens are seen.",
        "Text vectors are means over tokens that see only what precedes them; encoders are usually better.",
    )
    summary: ClassVar[str] = "a language model: generated text, perplexity and contextual vectors"
    data = Corpus

    layers: int = option(6, "number of blocks", low=1, high=1000)
    dim: int = option(384, "vector dimension", low=2, high=65536)
    heads: int = option(6, "attention heads; must divide dim", low=1, high=1024)
    feedforward_dim: int = option(0, "width of the feed-forward layer; 0 = 4 × dim", low=0)
    context_length: int = option(256, "maximum number of tokens in the context", low=1, high=1_000_000)
    positions: str = option(
        "learned",
        "position encoding; none: only the causal mask tells earlier from later tokens",
        choices=("learned", "sinusoidal", "rotary", "none"),
    )
    activation: str = option(
        "gelu_tanh",
        "of the feed-forward layer",
        choices=("gelu_tanh", "gelu", "relu", "swiglu", "geglu_tanh", "geglu", "reglu", "silu"),
    )
    epsilon: float = option(1e-5, "added to the variance in layer norms", low=0, high=1)
    tokenizer: str = option(
        "bpe", "byte-pair encoding trained on the text, or single characters", choices=("bpe", "characters")
    )
    vocabulary_size: int = option(8000, "number of BPE tokens", low=260, high=1_000_000)
    held_out: float = option(0.05, "share of the text, at its end, held out for evaluation", low=0, high=0.9)

    @classmethod
    def model_class(cls) -> type[GPTModel]:
        with networks():
            from firth.transformers.gpt_model import GPTModel
        return GPTModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> GPTModel:
        """Train on a corpus, paths or texts. With `start`, continue from that model and its tokenizer."""
        if self.dim % self.heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got dim={got} and heads={heads}.",
                option="GPT.dim",
                got=self.dim,
                heads=self.heads,
            )
        with networks():
            from firth.transformers.gpt_training import train_gpt
        return train_gpt(self, data, run, start)
