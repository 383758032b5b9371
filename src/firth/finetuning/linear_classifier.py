"""Logistic regression on the vectors of any model that embeds texts (a linear probe)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.examples import Examples
from firth.finetuning.finetuning_options import INHERITED
from firth.finetuning.linear_head import LinearClassifierModel, train_linear_head
from firth.finetuning.linear_options import LinearOptions


@dataclass(frozen=True, kw_only=True)
class LinearClassifier(LinearOptions):
    """Multinomial logistic regression on text vectors x, with standardized columns and an L2 penalty.

    Minimizes Σ −log softmax(x Wᵀ + b) of the correct labels + λ |W|² / 2. The model that embeds the texts does not
    change, and is saved with the classifier.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Only labels of the training data can be predicted, also for texts to which none applies.",
        "What the vectors do not contain cannot be learned: the base is not trained.",
    )
    summary: ClassVar[str] = "labels of texts, by logistic regression on the vectors of any model"
    data = Examples
    model: ClassVar[type[LinearClassifierModel]] = LinearClassifierModel

    regularization: float = option(1.0, "strength of the L2 penalty (1/C of scikit-learn)", low=1e-9, high=1e9)

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> LinearClassifierModel:
        """Train on `Examples` (or data they can be built from), with the vectors of `start`."""
        return train_linear_head(LinearClassifierModel, self, data, run, start, self.regularization)
