"""Classification of texts or pairs of texts by fine-tuning (Devlin et al. 2019, section 3.2)."""

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
    from firth.finetuning.text_classification import TextClassifierModel


@dataclass(frozen=True, kw_only=True)
class TextClassifier(TextHeadOptions):
    """Fine-tunes a BERT or GPT with a linear layer that predicts one label per text or pair of texts.

    Maximizes Σ log softmax(C Wᵀ) of the correct labels, where C are the network's vectors of the texts.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Only labels of the training data can be predicted, also for texts to which none applies.",
        "Probabilities are not calibrated.",
    )
    summary: ClassVar[str] = "labels of texts or pairs of texts, by fine-tuning a BERT or GPT"
    data = Examples

    class_weights: str = option("none", "balanced gives rare labels more weight", choices=("none", "balanced"))

    @property
    def balanced(self) -> bool:
        return self.class_weights == "balanced"

    @classmethod
    def model_class(cls) -> type[TextClassifierModel]:
        with networks():
            from firth.finetuning.text_classification import TextClassifierModel
        return TextClassifierModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> TextClassifierModel:
        """Train on `Examples` (or data they can be built from), starting from the weights of `start`."""
        with networks():
            from firth.finetuning.text_classification import train_text_head
        return train_text_head(self.model_class(), self, data, run, start)
