"""Options of network methods, usable without torch.

Listing methods and showing their help does not import torch. Functions that need torch import it in the context
`networks`, which says how to install it if it is missing.
"""

from __future__ import annotations

import contextlib
import math
from abc import abstractmethod
from collections.abc import Iterator
from dataclasses import dataclass
from typing import ClassVar, Protocol, TypeVar, runtime_checkable

from firth.core.errors import FirthError
from firth.core.extras import missing_package
from firth.core.method import Method
from firth.core.options import option
from firth.core.run import Run
from firth.data.interactions import Interactions
from firth.data.table import Table

SPECIAL_TOKENS = ("<pad>", "<s>", "</s>", "<unk>")  # of translators, with the ids 0 to 3
STEPS, MIN_BATCH, MAX_BATCH = 1000, 512, 8192  # steps per run and tokens per step, if batch_tokens is not set
MAX_HIDDEN_SIZE = 65536
#: Limits for model cards.
UNUSUAL_ROWS = "Codes are only meaningful for rows like those of the training data; others are reconstructed badly."
NEW_ITEMS = "Items unseen in training cannot be recommended (cold start)."
NEW_USERS = "Users without a history get no personal recommendations."
EXPOSURE = "Interactions reflect what users were shown, so popular items are favored."


@contextlib.contextmanager
def networks() -> Iterator[None]:
    """A context for imports of modules that need torch; if it is missing, the error says how to install it."""
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name not in ("torch", "tokenizers"):
            raise
        raise missing_package("Networks need", error.name, "neural") from None


@dataclass(frozen=True, kw_only=True)
class LearningOptions(Method):
    """Training options of all networks."""

    in_processes: ClassVar[bool] = True
    #: Whether the weights can be divided among processes (FSDP2).
    shards_weights: ClassVar[bool] = False
    #: Whether a step can be divided into several passes.
    accumulates: ClassVar[bool] = True

    epochs: int = option(10, "passes over the data", low=1)
    learning_rate: float = option(1e-3, "peak learning rate, after warmup and before decay", low=1e-9, high=10)
    warmup: float = option(0.05, "share of the run in which the learning rate rises", low=0, high=1)
    schedule: str = option(
        "cosine", "learning rate decay after the warmup", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.1, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.98, "decay rate of AdamW's second moment", low=0, high=0.99999)
    max_grad_norm: float = option(1.0, "gradients are clipped to this norm; 0 = no clipping", low=0)
    dropout: float = option(0.1, "dropout probability", low=0, high=0.95)

    def check_run(self, run: Run) -> None:
        """Refuse a device on which networks cannot be trained, and settings that this network does not have."""
        if run.shard_weights and not self.shards_weights:
            raise FirthError(
                "conflicting_options",
                "{method} does not support {option}, which is for BERT, GPT and Seq2Seq. Omit it.",
                method=type(self).__name__,
                option="shard_weights",
            )
        if run.accumulation > 1 and not self.accumulates:
            raise FirthError(
                "conflicting_options",
                "{method} does not support {option}: every text of a step is compared with all others. Use a smaller "
                "batch_size.",
                method=type(self).__name__,
                option="accumulation",
            )
        with networks():
            from firth.training.device import device_of
        device_of(run)

    @property
    @abstractmethod
    def batch_units(self) -> int:
        """The size of a training step in tokens or rows."""


Sized = TypeVar("Sized", bound="GradientOptions")


def automatic_batch(tokens: int) -> int:
    """Return the tokens per step, a power of two, for a run over `tokens` tokens in total.

    With 8192 tokens per step, ten passes over 200 documents would be 50 steps, too few to learn even the token
    frequencies (benchmarks/small_data.py).
    """
    return int(min(MAX_BATCH, max(MIN_BATCH, 2 ** round(math.log2(max(1, tokens) / STEPS)))))


@dataclass(frozen=True, kw_only=True)
class GradientOptions(LearningOptions):
    """Training options of networks over tokens."""

    shards_weights: ClassVar[bool] = True

    batch_tokens: int | None = option(
        None, "tokens per step; none = 8192, fewer for small texts (about 1,000 steps per run)", low=1
    )

    @property
    def batch_units(self) -> int:
        """The tokens per step."""
        return self.batch_tokens or MAX_BATCH

    def sized(self: Sized, tokens: int) -> Sized:
        """Return this method with unset options chosen by the size of the text."""
        return self.resolved(batch_tokens=automatic_batch(tokens * self.epochs))


@dataclass(frozen=True, kw_only=True)
class RowOptions(LearningOptions):
    """Training options of networks over rows of a table, or over users."""

    epochs: int = option(100, "passes over the data", low=1)
    batch_size: int = option(128, "rows per step", low=1)
    learning_rate: float = option(2e-3, "peak learning rate, after warmup and before decay", low=1e-9, high=10)
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    dropout: float = option(0.0, "dropout probability", low=0, high=0.95)
    held_out: float = option(0.1, "share of rows held out to select the best weights", low=0, high=0.9)

    @property
    def batch_units(self) -> int:
        """The rows per step."""
        return self.batch_size


def hidden_sizes_of(method: CompressingOptions | UserOptions) -> tuple[int, ...]:
    """Parse the option `hidden_sizes`: "128,64" -> (128, 64); "" -> ()."""
    sizes = [size.strip() for size in method.hidden_sizes.split(",")] if method.hidden_sizes.strip() else []
    if not all(size.isdecimal() and 1 <= int(size) <= MAX_HIDDEN_SIZE for size in sizes):
        name = type(method).__name__
        raise FirthError(
            "invalid_value",
            "{option} must be whole numbers from 1 to {limit:,}, separated by commas, such as 128,64; got {got!r}.",
            option=f"{name}.hidden_sizes",
            limit=MAX_HIDDEN_SIZE,
            got=method.hidden_sizes,
        )
    return tuple(map(int, sizes))


@runtime_checkable
class Variational(Protocol):
    """Options of a variational autoencoder: the weight of the KL term of its loss."""

    @property
    def beta(self) -> float:
        """The final weight."""

    @property
    def kl_annealing(self) -> float:
        """The share of the run in which the weight rises."""


@dataclass(frozen=True, kw_only=True)
class CompressingOptions(RowOptions):
    """Options of autoencoders of tables."""

    limits: ClassVar[tuple[str, ...]] = (UNUSUAL_ROWS,)
    data = Table
    min_rows: ClassVar[int] = 2
    accepts_missing: ClassVar[bool] = True

    dim: int = option(8, "length of a row's code", low=1, high=65536)
    hidden_sizes: str = option("128,64", "sizes of the encoder's hidden layers, such as 128,64; empty = a linear map")
    activation: str = option("gelu", "of the hidden layers", choices=("gelu", "relu", "tanh"))
    numeric: str = option(
        "standardize",
        "numeric columns: standardize each, scale all in common (pixels; vectors always), or keep",
        choices=("standardize", "common", "keep"),
    )
    categorical: str = option(
        "embedding", "categorical columns: learned embeddings, or one-hot", choices=("embedding", "onehot")
    )
    denoise: float = option(
        0.0, "share of cells hidden in training and reconstructed from the others", low=0, high=0.95
    )

    @property
    def tied(self) -> bool:
        """Whether the decoder uses the transposed matrices of the encoder."""
        return False

    @property
    def free_bits(self) -> float:
        """The nats per dimension of the code without a KL penalty."""
        return 0.0

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden_sizes_of(self)


@dataclass(frozen=True, kw_only=True)
class UserOptions(RowOptions):
    """Options of autoencoders of user histories."""

    limits: ClassVar[tuple[str, ...]] = (
        NEW_ITEMS,
        NEW_USERS,
        EXPOSURE,
    )
    data = Interactions

    epochs: int = option(100, "passes over the users", low=1)
    batch_size: int = option(256, "users per step", low=1)
    learning_rate: float = option(3e-3, "peak learning rate, after warmup and before decay", low=1e-9, high=10)
    dim: int = option(200, "length of the user vectors", low=1, high=65536)
    hidden_sizes: str = option("", "sizes of the encoder's hidden layers, such as 600; empty = none")
    dropout: float = option(0.5, "share of a user's items hidden in training", low=0, high=0.95)
    held_out: float = option(0.05, "share of users held out to select the best weights", low=0, high=0.9)

    def __post_init__(self) -> None:
        super().__post_init__()
        hidden_sizes_of(self)


@dataclass(frozen=True, kw_only=True)
class TranslatorOptions(GradientOptions):
    """Options of sequence-to-sequence models."""

    architecture: str = option(
        "transformer", "transformer, or lstm with Bahdanau attention", choices=("transformer", "lstm")
    )
    layers: int = option(3, "layers of the encoder, and of the decoder", low=1, high=128)
    dim: int = option(256, "length of the vectors", low=1, high=65536)
    heads: int = option(4, "attention heads; dim must be a multiple (transformer)", low=1, high=1024)
    feedforward_dim: int = option(0, "feed-forward size; 0 = 4 · dim (transformer)", low=0)
    context_length: int = option(256, "maximum tokens of a text, and of its translation", low=4, high=65536)
    tokenizer: str = option(
        "bpe", "tokenizer of both languages: subwords (BPE), or characters", choices=("bpe", "characters")
    )
    vocabulary_size: int = option(8000, "vocabulary size (bpe)", low=len(SPECIAL_TOKENS) + 256, high=1_000_000)
    label_smoothing: float = option(0.1, "target probability given to the other tokens", low=0, high=0.9)
    held_out: float = option(0.02, "share of pairs held out, if no validation pairs are given", low=0, high=0.5)
