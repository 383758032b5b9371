"""BERT: masked tokens are predicted from both sides (Devlin et al. 2019)."""

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
    from firth.transformers.bert_model import BertModel

#: Layers, dim, heads (Turc et al. 2019; base: Devlin et al. 2019).
SIZES = {"tiny": (2, 128, 2), "mini": (4, 256, 4), "small": (4, 512, 8), "base": (12, 768, 12)}


@dataclass(frozen=True, kw_only=True)
class BERT(GradientOptions):
    """Maximize Σ log p(masked token | all other tokens), and predict whether a sentence follows another."""

    limits: ClassVar[tuple[str, ...]] = (
        "Texts beyond context_length tokens are truncated or read in chunks (pooling).",
        "Languages are those of the training corpus.",
        "Without fine-tuning, text vectors are rough measures of similarity (see SentenceEncoder).",
    )
    summary: ClassVar[str] = "a bidirectional encoder: contextual vectors of words and sentences"
    data = Corpus

    size: str = option("mini", "2 layers × 128, 4 × 256, 4 × 512 or 12 × 768", choices=tuple(SIZES))
    layers: int = option(0, "number of blocks; 0 = as in the option size", low=0, high=1000)
    dim: int = option(0, "vector dimension; 0 = as in the option size", low=0, high=65536)
    heads: int = option(0, "attention heads; must divide dim; 0 = as in the option size", low=0, high=1024)
    feedforward_dim: int = option(0, "width of the feed-forward layer; 0 = 4 × dim", low=0)
    context_length: int = option(128, "maximum number of tokens of a text or pair of texts", low=8, high=1_000_000)
    activation: str = option("gelu", "of the feed-forward layer", choices=("gelu", "gelu_tanh", "relu"))
    epsilon: float = option(1e-12, "added to the variance in layer norms", low=0, high=1)
    vocabulary_size: int = option(
        30_000, "number of subwords of the tokenizer trained on the text", low=6, high=1_000_000
    )
    lowercase: bool = option(True, "lowercase and strip accents")
    tokenizer: str = option(
        "", "existing tokenizer: a folder, tokenizer.json or vocab.txt; empty = train one on the text", path=True
    )
    next_sentence: bool = option(True, "also train next-sentence prediction")
    mask_rate: float = option(0.15, "share of the tokens to predict", low=0.001, high=0.9)
    mask_share: float = option(
        0.8,
        "share of these replaced by [MASK]; half of the rest get a random token, half stay unchanged",
        low=0,
        high=1,
    )
    whole_words: bool = option(False, "mask all subwords of a word together")
    short_first: float = option(
        0.9, "share of the run on sequences of 128 tokens, if context_length is longer", low=0, high=1
    )
    held_out: float = option(0.05, "share of the text, its last documents, held out for evaluation", low=0, high=0.9)
    learning_rate: float = option(5e-4, "peak learning rate, after warmup and before decay", low=1e-9, high=10)

    @property
    def shape(self) -> tuple[int, int, int]:
        """Return the layers, dim and heads that the options give."""
        layers, dim, heads = SIZES[self.size]
        return self.layers or layers, self.dim or dim, self.heads or heads

    @classmethod
    def model_class(cls) -> type[BertModel]:
        with networks():
            from firth.transformers.bert_model import BertModel
        return BertModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> BertModel:
        """Train on a corpus, paths or texts. With `start`, continue from that model and its tokenizer."""
        _, dim, heads = self.shape
        if dim % heads:
            raise FirthError(
                "invalid_value",
                "{option} must be a multiple of heads; got dim={got} and heads={heads}.",
                option="BERT.dim",
                got=dim,
                heads=heads,
            )
        with networks():
            from firth.transformers.bert_pretraining import pretrain_bert
        return pretrain_bert(self, data, run, start)
