"""What all methods of fine-tuning are told; no torch here, so that listing methods loads none."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar, TypeVar

from firth.core.errors import FirthError
from firth.core.options import option
from firth.training.network_options import GradientOptions

#: Chosen by benchmarks/supervised_defaults.py: few rows are read more often, narrow bases bear higher rates.
STEPS, LEAST_EPOCHS, MOST_EPOCHS = 120, 3, 20
RATE, WIDTH, MOST_RATE, HEAD_RATE = 5e-5, 768, 1e-3, 1e-2

Options = TypeVar("Options", bound="TuningOptions")


@dataclass(frozen=True, kw_only=True)
class TuningOptions(GradientOptions):
    """How a network that was trained before learns a task."""

    needs_start: ClassVar[bool] = True

    tune: str = option("all", 'what learns beside the new layer: all, a number of top layers, or "head" for nothing')
    epochs: int = option(0, "passes over the data, of each try; 0 = chosen by the number of rows (20 to 3)", low=0)
    batch_size: int = option(32, "texts a step", low=1, high=65536)
    learning_rate: float = option(
        0.0, "the highest, it warms up to it and falls from it; 0 = chosen by the base's width and tune", low=0, high=10
    )
    learning_rates: str = option("", "learning rates to try instead, as in 2e-5,5e-5; the best by score on dev is kept")
    restarts: int = option(1, "tries with other random numbers; the best by score on dev is kept", low=1, high=1000)
    patience: int = option(0, "stop a try after this many epochs without a better score; 0 = never", low=0)
    warmup: float = option(0.1, "share of a try in which the rate rises", low=0, high=1)
    schedule: str = option(
        "linear", "how the rate falls after that", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.999, "memory of AdamW's second moment", low=0, high=0.99999)
    batch_tokens: int = option(65536, "most tokens that are computed at once; a step may add several up", low=1)
    max_length: int = option(0, "most tokens of a text or pair; 0 = what the base has places for", low=0)
    overlong: str = option(
        "cut", "what is done with longer ones: cut (it is said how many) or refuse", choices=("cut", "refuse")
    )
    held_out: float = option(
        0.1, "share of the data to choose and stop by, where no dev data are given", low=0, high=0.9
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.top_layers(1 << 30)
        self.rate_list()

    def for_rows(self: Options, rows: int, dim: int) -> Options:
        """These options with a value for each that was left to be chosen, for so many rows to train on and a base of
        so many dimensions. What is given stays."""
        steps = -(-rows // self.batch_size)  # of an epoch
        epochs = min(MOST_EPOCHS, max(LEAST_EPOCHS, -(-STEPS // steps)))
        rate = min(MOST_RATE, RATE * WIDTH / dim) if self.tune != "head" else HEAD_RATE
        return replace(self, epochs=self.epochs or epochs, learning_rate=self.learning_rate or rate)

    def top_layers(self, layers: int) -> int | None:
        """How many of a net's layers learn; None = everything."""
        if self.tune == "all":
            return None
        if self.tune != "head" and not self.tune.isdecimal():
            raise self.wrong("tune", "must be all, head, or a number of layers")
        top = 0 if self.tune == "head" else int(self.tune)
        if top > layers:
            raise self.wrong("tune", f"must be at most {layers}, the base's layers")
        return top

    def rate_list(self) -> list[float]:
        """The learning rates to try."""
        if not self.learning_rates:
            return [self.learning_rate]
        try:
            found = [float(rate) for rate in self.learning_rates.split(",")]
        except ValueError:
            found = [0.0]
        if not all(1e-9 <= rate <= 10 for rate in found):
            raise self.wrong("learning_rates", "must be numbers from 1e-09 to 10 with commas between")
        return found

    def wrong(self, name: str, rule: str) -> FirthError:
        return FirthError(
            "invalid_value",
            "{method}.{name} {rule}; got {got!r}.",
            method=type(self).__name__,
            name=name,
            rule=rule,
            got=getattr(self, name),
        )
