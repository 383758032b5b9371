"""Regression on texts or pairs of texts by fine-tuning, for example similarity scores or star ratings."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.examples import Examples
from firth.finetuning.finetuning_options import INHERITED, TextHeadOptions
from firth.training.network_options import networks

if TYPE_CHECKING:
    from firth.finetuning.text_classification import TextRegressorModel


@dataclass(frozen=True, kw_only=True)
class TextRegressor(TextHeadOptions):
    """Fine-tunes a BERT or GPT with a linear layer that predicts one number per text or pair of texts.

    Minimizes Σ (C · w + b − number)², where C are the network's vectors of the texts.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Numbers outside the range of the training data are unlikely to be predicted.",
    )
    summary: ClassVar[str] = "a number per text or pair of texts, by fine-tuning a BERT or GPT"
    data = Examples

    metric: str = option("spearman", "dev score for model selection", choices=("spearman", "pearson"))

    @classmethod
    def model_class(cls) -> type[TextRegressorModel]:
        with networks():
            from firth.finetuning.text_classification import TextRegressorModel
        return TextRegressorModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> TextRegressorModel:
        """Train on `Examples` (or data they can be built from), starting from the weights of `start`."""
        with networks():
            from firth.finetuning.text_classification import train_text_head
        return train_text_head(self.model_class(), self, data, run, start)
