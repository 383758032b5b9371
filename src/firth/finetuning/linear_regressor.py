"""Ridge regression on the vectors of any model that embeds texts."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.run import Run
from firth.data.examples import Examples
from firth.finetuning.finetuning_options import INHERITED
from firth.finetuning.linear_head import LinearRegressorModel, train_linear_head
from firth.finetuning.linear_options import LinearOptions


@dataclass(frozen=True, kw_only=True)
class LinearRegressor(LinearOptions):
    """Ridge regression on text vectors x, with standardized columns.

    Minimizes Σ (y − x·w − b)² + λ |w|², with λ selected from 0.01 to 10,000 by leave-one-out cross-validation. The
    model that embeds the texts does not change, and is saved with the regressor.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "The number is a linear function of the text vector and the other columns.",
        "What the vectors do not contain cannot be learned: the base is not trained.",
    )
    summary: ClassVar[str] = "numbers of texts, by ridge regression on the vectors of any model"
    data = Examples
    model: ClassVar[type[LinearRegressorModel]] = LinearRegressorModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> LinearRegressorModel:
        """Train on `Examples` (or data they can be built from), with the vectors of `start`."""
        return train_linear_head(LinearRegressorModel, self, data, run, start)
