"""What methods of networks say without torch: their options, and where the rest of them stands.

Listing methods, their help and their pages load no network; `learner` does, and tells how to get torch where it is
missing.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeVar

from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.options import option

Kind = TypeVar("Kind", bound=type)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")  # of translators: their ids are 0, 1, 2, 3


def learner(name: str) -> Any:
    """The module firth.learners.NAME, which needs torch."""
    try:
        return importlib.import_module(f"firth.learners.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "tokenizers"):
            raise
        raise FirthError(f'Networks need the package {error.name}: pip install "firth[neural]".') from None


class Later:
    """The class of a method's model, found when it is asked for."""

    def __init__(self, module: str, name: str) -> None:
        self.module, self.name = module, name

    def __get__(self, instance: Any, owner: Any) -> Any:
        return getattr(learner(self.module), self.name)


def model_in(module: str, name: str) -> Callable[[Kind], Kind]:
    """Tells where a method's model stands. (Said around the class: `dataclass` would ask for what it finds within.)"""

    def tell(method: Kind) -> Kind:
        method.model = Later(module, name)  # type: ignore[attr-defined]
        return method

    return tell


@dataclass(frozen=True, kw_only=True)
class GradientOptions(Method):
    """How a network learns."""

    epochs: int = option(10, "passes over the data", low=1)
    batch_tokens: int = option(8192, "tokens a step", low=1)
    learning_rate: float = option(1e-3, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    warmup: float = option(0.05, "share of the run in which the rate rises", low=0, high=1)
    decay: str = option("cosine", "how the rate falls after that", choices=("cosine", "linear", "inverse_sqrt", "none"))
    weight_decay: float = option(0.1, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.98, "memory of AdamW's second moment", low=0, high=0.99999)
    clip: float = option(1.0, "longest gradient; 0 = any", low=0)
    dropout: float = option(0.1, "share of values left out while learning", low=0, high=0.95)


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions(GradientOptions):
    """What a translator is like."""

    architecture: str = option(
        "transformer", "transformer, or lstm with Bahdanau attention", choices=("transformer", "lstm")
    )
    layers: int = option(3, "blocks of the encoder, and of the decoder", low=1, high=128)
    dim: int = option(256, "length of the vectors", low=1, high=65536)
    heads: int = option(4, "attentions side by side; dim must be a multiple (transformer)", low=1, high=1024)
    hidden: int = option(0, "width of the feed-forward; 0 = 4 · dim (transformer)", low=0)
    context: int = option(256, "most tokens of a text, and of its translation", low=4, high=65536)
    tokenizer: str = option(
        "bpe", "how text of both sides is cut: pieces of words, or single characters", choices=("bpe", "characters")
    )
    vocabulary: int = option(8000, "tokens of bpe", low=len(SPECIAL) + 256, high=1_000_000)
    label_smoothing: float = option(0.1, "share of probability that the wrong tokens get in the truth", low=0, high=0.9)
    held_out: float = option(0.02, "share of the pairs to measure on, where no validation is given", low=0, high=0.5)
