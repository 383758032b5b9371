"""GPT: each token is predicted from those before it (Radford et al. 2018, 2019)."""

from __future__ import annotations

import copy
import time
from dataclasses import dataclass
from typing import Any, ClassVar

import torch

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.corpus import Corpus
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.data.subword_tokens import encode_corpus
from firth.data.subwords import BPE, Characters
from firth.learners.gpt import END, GPTModel
from firth.learners.gradient import GradientOptions
from firth.learners.language import LanguageTraining
from firth.nets.transformer import Decoder, Size

MULTIPLE = 64  # rows of the embedding: products with an even number of columns are faster


@dataclass(frozen=True, kw_only=True)
class GPT(GradientOptions):
    """Maximises Σ log p(token | tokens before it) with a causal Transformer."""

    summary: ClassVar[str] = "a language model: writes text, judges it, and gives vectors that move with their context"
    model: ClassVar[type[Model]] = GPTModel

    layers: int = option(6, "blocks above each other", low=1, high=1000)
    dim: int = option(384, "length of the vectors", low=2, high=65536)
    heads: int = option(6, "attentions side by side; must divide dim", low=1, high=1024)
    hidden: int = option(0, "width of the feed-forward; 0 = 4 × dim", low=0)
    context: int = option(256, "tokens that it looks back at", low=1, high=1_000_000)
    positions: str = option("learned", "how places are told", choices=("learned", "sinusoidal", "rotary"))
    activation: str = option("gelu_tanh", "of the feed-forward", choices=("gelu_tanh", "gelu", "relu", "swiglu"))
    tokenizer: str = option(
        "bpe", "how text is cut: pieces of words found in it, or single characters", choices=("bpe", "characters")
    )
    vocabulary: int = option(8000, "tokens of bpe", low=260, high=1_000_000)
    held_out: float = option(0.05, "share of the text, at its end, kept to measure the loss on", low=0, high=0.9)

    def size(self) -> Size:
        return Size(
            layers=self.layers,
            dim=self.dim,
            heads=self.heads,
            hidden=self.hidden,
            places=self.context + 1,
            dropout=self.dropout,
            activation=self.activation,
            positions=self.positions,
        )

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> GPTModel:
        """Learns from a corpus (or paths, texts). With `start`, goes on from that model, with its tokenizer."""
        if start is not None and not (isinstance(start, GPTModel) and start.size == self.size()):
            raise FirthError(f"start must be a GPT model of the same size; got {start!r}.")
        if self.dim % self.heads:
            raise FirthError(f"GPT.dim must be a multiple of heads; got {self.dim} and {self.heads}.")
        began = time.monotonic()
        corpus = data if isinstance(data, Corpus) else Corpus(data)
        tokenizer = start.tokenizer if start else self.train_tokenizer(corpus, run)
        tokens = encode_corpus(tokenizer, corpus, run, end=END)
        reading = time.monotonic() - began
        with torch.random.fork_rng(devices=[]):
            torch.manual_seed(run.seed)
            net = Decoder(-(-len(tokenizer) // MULTIPLE) * MULTIPLE, self.size())
        if start is not None:
            net = copy.deepcopy(start.net)
        training = LanguageTraining(self, net, tokens.ids, self.context, self.held_out, tokens.fingerprint, run)
        figures = training.go() | {
            "tokens": len(tokens.ids),
            "vocabulary": len(tokenizer),
            "documents": len(tokens),
            "reading_seconds": reading,
            "data": tokens.fingerprint,
            "seed": run.seed,
        }
        return GPTModel(self, net.cpu(), tokenizer, figures)

    def train_tokenizer(self, corpus: Corpus, run: Run) -> SubwordTokenizer:
        if self.tokenizer == "characters":
            return Characters(special_tokens=("<unk>", END)).train(corpus, run)
        return BPE(size=self.vocabulary, special_tokens=(END,)).train(corpus, run)
