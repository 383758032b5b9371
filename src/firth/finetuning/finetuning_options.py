"""Options that all fine-tuning methods share. This module does not import torch, so that listing methods stays fast."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, TypeVar

from firth.core.errors import FirthError
from firth.core.long_texts import REFUSE, TRUNCATE, long_option
from firth.core.options import option
from firth.training.network_options import GradientOptions

#: Automatic epochs and learning rates, measured by benchmarks/supervised_defaults.py: small data sets need more epochs,
#: and base models with shorter vectors tolerate higher learning rates.
STEPS, MIN_EPOCHS, MAX_EPOCHS = 120, 3, 20
LEARNING_RATE, BERT_BASE_DIM, MAX_LEARNING_RATE, HEAD_LEARNING_RATE = 5e-5, 768, 1e-3, 1e-2

#: Adapters need larger steps than the weights that they add to.
LORA_RATE, MAX_LORA_RATE = 10, 3e-3

Options = TypeVar("Options", bound="TuningOptions")

INHERITED = "Languages, biases and the length limit are those of the base model."


@dataclass(frozen=True, kw_only=True)
class LoraOptions(GradientOptions):
    """Options for training low-rank adapters of a frozen network (Hu et al. 2021)."""

    lora: int = option(0, "rank of low-rank adapters that are trained instead of the base; 0 = none", low=0, high=4096)
    lora_alpha: float = option(16.0, "the adapters are multiplied by lora_alpha / lora", low=1e-3, high=1e6)
    lora_layers: str = option(
        "all", "the linear layers with adapters: all of every block, or its attention", choices=("all", "attention")
    )


@dataclass(frozen=True, kw_only=True)
class TuningOptions(LoraOptions):
    """Options for training a pretrained network on a task."""

    shards_weights: ClassVar[bool] = False
    limits: ClassVar[tuple[str, ...]] = (INHERITED,)
    needs_start: ClassVar[bool] = True

    tune: str = option("all", 'which base layers are trained with the new head: all, a number of top layers, or "head"')
    epochs: int | None = option(  # type: ignore[assignment]
        None, "passes over the data in each trial; none = 3 to 20, by the number of rows", low=1
    )
    batch_size: int = option(32, "texts per step", low=1, high=65536)
    learning_rate: float | None = option(  # type: ignore[assignment]
        None, "peak learning rate; none = automatic, by the base's vector length and tune", low=1e-9, high=10
    )
    learning_rates: str = option("", "learning rates to try instead, as in 2e-5,5e-5; the best dev score wins")
    restarts: int = option(1, "trials with different random seeds; the best dev score wins", low=1, high=1000)
    patience: int = option(0, "stop a trial after this many epochs without a better score; 0 = never", low=0)
    warmup: float = option(0.1, "share of a trial in which the learning rate rises", low=0, high=1)
    schedule: str = option(
        "linear", "how the learning rate falls after warmup", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.999, "decay rate of AdamW's second moment", low=0, high=0.99999)
    batch_tokens: int = option(65536, "most tokens per forward pass; gradients of a step are accumulated", low=1)
    max_length: int | None = option(None, "most tokens of a text or pair; none = the base's positions", low=1)
    overlong: str = long_option(TRUNCATE, REFUSE)
    held_out: float = option(
        0.1, "share of the data held out for model selection if no dev data is given", low=0, high=0.9
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.top_layers(1 << 30)
        if self.lora and self.tune != "all":
            raise FirthError(
                "conflicting_options",
                "lora trains adapters in all layers of the base, so it cannot be combined with tune={tune}.",
                tune=self.tune,
            )
        self.rate_list()

    def for_rows(self: Options, rows: int, dim: int) -> Options:
        """Return these options with automatic values for the epochs and the learning rate where they are None.

        `rows` is the number of training rows, `dim` the length of the base's vectors.
        """
        steps_per_epoch = -(-rows // self.batch_size)
        epochs = min(MAX_EPOCHS, max(MIN_EPOCHS, -(-STEPS // steps_per_epoch)))
        scaled = LEARNING_RATE * BERT_BASE_DIM / dim
        learning_rate = min(MAX_LORA_RATE, LORA_RATE * scaled) if self.lora else min(MAX_LEARNING_RATE, scaled)
        return self.resolved(epochs=epochs, learning_rate=HEAD_LEARNING_RATE if self.tune == "head" else learning_rate)

    def top_layers(self, layers: int) -> int | None:
        """Return how many of the base's top layers are trained without adapters; None means the whole base."""
        if self.tune == "all":
            return 0 if self.lora else None
        if self.tune != "head" and not self.tune.isdecimal():
            raise FirthError(
                "invalid_value",
                "{option} must be all, head, or a number of layers; got {got!r}.",
                option=f"{type(self).__name__}.tune",
                got=self.tune,
            )
        top = 0 if self.tune == "head" else int(self.tune)
        if top > layers:
            raise FirthError(
                "invalid_value",
                "{option} must be at most {limit}, the number of layers of the base; got {got!r}.",
                option=f"{type(self).__name__}.tune",
                limit=layers,
                got=self.tune,
            )
        return top

    def rate_list(self) -> list[float]:
        """Return the learning rates to try; empty if there is one and it is not yet resolved."""
        if not self.learning_rates:
            return [] if self.learning_rate is None else [self.learning_rate]
        try:
            rates = [float(rate) for rate in self.learning_rates.split(",")]
        except ValueError:
            rates = [0.0]
        if not all(1e-9 <= rate <= 10 for rate in rates):
            raise FirthError(
                "invalid_value",
                "{option} must be comma-separated numbers from 1e-09 to 10; got {got!r}.",
                option=f"{type(self).__name__}.learning_rates",
                got=self.learning_rates,
            )
        return rates


@dataclass(frozen=True, kw_only=True)
class TextHeadOptions(TuningOptions):
    """Options for predicting a label or a number per text or pair of texts."""

    pooling: str = option(
        "base",
        "the vector of a text: the mean of its tokens, [CLS] through BERT's pooler, or as in the base",
        choices=("base", "mean", "cls"),
    )
    metric: str = option("accuracy", "dev score for model selection", choices=("accuracy", "f1", "matthews"))

    @property
    def balanced(self) -> bool:
        """Whether rare labels get more weight."""
        return False
