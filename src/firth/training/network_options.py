"""What methods of networks say without torch: their options, and where the rest of them stands.

Listing methods, their help and their pages load no network; `learner` does, and tells how to get torch where it is
missing.
"""

from __future__ import annotations

import importlib
import math
from abc import abstractmethod
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, ClassVar, TypeVar

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.method import Method
from firth.core.options import option
from firth.core.run import Run

Kind = TypeVar("Kind", bound=type)
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>")  # of translators: their ids are 0, 1, 2, 3
STEPS, LEAST_BATCH, MOST_BATCH = 1000, 512, 8192  # of a run where batch_tokens is left out
MOST_WIDE = 65536  # units of a hidden layer


def learner(name: str) -> Any:
    """The module firth.NAME, which needs torch."""
    try:
        return importlib.import_module(f"firth.{name}")
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "tokenizers"):
            raise
        raise missing_package("Networks need", str(error.name), "neural") from None


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
class LearningOptions(Method):
    """How a network learns, whatever it reads."""

    in_processes: ClassVar[bool] = True

    epochs: int = option(10, "passes over the data", low=1)
    learning_rate: float = option(1e-3, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    warmup: float = option(0.05, "share of the run in which the rate rises", low=0, high=1)
    schedule: str = option(
        "cosine", "how the rate falls after that", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.1, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.98, "memory of AdamW's second moment", low=0, high=0.99999)
    max_grad_norm: float = option(1.0, "longest gradient; 0 = any", low=0)
    dropout: float = option(0.1, "share of values left out while learning", low=0, high=0.95)

    def check_run(self, run: Run) -> None:
        learner("training.device").device_of(run)

    @property
    @abstractmethod
    def batch_units(self) -> int:
        """How much a step learns from, in what the network counts: tokens, or rows."""


Sized = TypeVar("Sized", bound="GradientOptions")


def automatic_batch(tokens: int) -> int:
    """Tokens a step of a run that reads so many in all: a power of two. With 8192 a step, ten passes over 200 documents
    would be 50 steps, in which a network learns less than how frequent each token is (benchmarks/small_data.py)."""
    return int(min(MOST_BATCH, max(LEAST_BATCH, 2 ** round(math.log2(max(1, tokens) / STEPS)))))


@dataclass(frozen=True, kw_only=True)
class GradientOptions(LearningOptions):
    """How a network of tokens learns."""

    batch_tokens: int | None = option(
        None, "tokens a step; none = 8192, fewer for a small text, so that a run has about 1,000 steps", low=1
    )

    @property
    def batch_units(self) -> int:
        return self.batch_tokens or MOST_BATCH

    def sized(self: Sized, tokens: int) -> Sized:
        """This method with the options that were left out chosen by the size of the text."""
        return self.resolved(batch_tokens=automatic_batch(tokens * self.epochs))


@dataclass(frozen=True, kw_only=True)
class RowOptions(LearningOptions):
    """How a network of rows learns: rows of a table, or users."""

    epochs: int = option(100, "passes over the data", low=1)
    batch_size: int = option(128, "rows a step", low=1)
    learning_rate: float = option(2e-3, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    dropout: float = option(0.0, "share of values left out while learning", low=0, high=0.95)
    held_out: float = option(0.1, "share of the rows kept to measure on; the best weights count", low=0, high=0.9)

    @property
    def batch_units(self) -> int:
        return self.batch_size


def hidden_sizes_of(method: Any) -> tuple[int, ...]:
    """ "128,64" -> (128, 64); "" -> ()."""
    parts = [part.strip() for part in method.hidden_sizes.split(",")] if method.hidden_sizes.strip() else []
    if not all(part.isdecimal() and 1 <= int(part) <= MOST_WIDE for part in parts):
        name = type(method).__name__
        raise FirthError(
            "invalid_value",
            "{name}.hidden_sizes must be whole numbers from 1 to {most_wide:,} with commas between them, as in 128,64; "
            "got {got!r}.",
            name=name,
            most_wide=MOST_WIDE,
            got=method.hidden_sizes,
        )
    return tuple(map(int, parts))


@dataclass(frozen=True, kw_only=True)
class CompressingOptions(RowOptions):
    """A network that squeezes the rows of a table through few numbers and rebuilds them."""

    kind: ClassVar[str] = "table"
    least_rows: ClassVar[int] = 2
    takes_gaps: ClassVar[bool] = True  # missing cells, and categories that fit did not meet

    dim: int = option(8, "numbers that a row is squeezed to: the length of its code", low=1, high=65536)
    hidden_sizes: str = option(
        "128,64", "hidden layers from the table inwards, as in 128,64; empty = none: a linear map"
    )
    activation: str = option("gelu", "of the hidden layers", choices=("gelu", "relu", "tanh"))
    numeric: str = option(
        "standardize",
        "columns of numbers: each to deviation 1, all by one scale (pixels; vectors always), or as they are",
        choices=("standardize", "common", "keep"),
    )
    categorical: str = option(
        "embedding", "columns of categories: a learned vector each, or one-hot", choices=("embedding", "onehot")
    )
    denoise: float = option(0.0, "share of cells hidden while learning, to be told from the others", low=0, high=0.95)

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden_sizes_of(self)


@dataclass(frozen=True, kw_only=True)
class UserOptions(RowOptions):
    """A network that reads what a user had and tells what the user may like."""

    kind: ClassVar[str] = "ratings"

    epochs: int = option(100, "passes over the users", low=1)
    batch_size: int = option(256, "users a step", low=1)
    learning_rate: float = option(3e-3, "the highest; it warms up to it and falls from it", low=1e-9, high=10)
    dim: int = option(200, "length of the users' vectors", low=1, high=65536)
    hidden_sizes: str = option("", "hidden layers from the items inwards, as in 600; empty = none")
    dropout: float = option(0.5, "share of a user's items that are hidden while learning", low=0, high=0.95)
    held_out: float = option(0.05, "share of users kept to measure on; the best weights count", low=0, high=0.9)

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden_sizes_of(self)


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions(GradientOptions):
    """What a translator is like."""

    architecture: str = option(
        "transformer", "transformer, or lstm with Bahdanau attention", choices=("transformer", "lstm")
    )
    layers: int = option(3, "blocks of the encoder, and of the decoder", low=1, high=128)
    dim: int = option(256, "length of the vectors", low=1, high=65536)
    heads: int = option(4, "attentions side by side; dim must be a multiple (transformer)", low=1, high=1024)
    feedforward_dim: int = option(0, "width of the feed-forward; 0 = 4 · dim (transformer)", low=0)
    context_length: int = option(256, "most tokens of a text, and of its translation", low=4, high=65536)
    tokenizer: str = option(
        "bpe", "how text of both sides is cut: pieces of words, or single characters", choices=("bpe", "characters")
    )
    vocabulary_size: int = option(8000, "tokens of bpe", low=len(SPECIAL) + 256, high=1_000_000)
    label_smoothing: float = option(0.1, "share of probability that the wrong tokens get in the truth", low=0, high=0.9)
    held_out: float = option(0.02, "share of the pairs to measure on, where no validation is given", low=0, high=0.5)
