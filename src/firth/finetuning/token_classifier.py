"""Token classification by fine-tuning (Devlin et al. 2019, section 5.3): named entities, parts of speech."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.long_texts import CHUNK, long_option
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.tagged_sentences import TaggedSentences
from firth.finetuning.finetuning_options import INHERITED, TuningOptions
from firth.training.network_options import networks

if TYPE_CHECKING:
    from firth.finetuning.token_classification import TagModel


@dataclass(frozen=True, kw_only=True)
class TokenClassifier(TuningOptions):
    """Fine-tunes a BERT with a linear layer that predicts one tag per word.

    Maximizes Σ log softmax(T Wᵀ) of the words' correct tags, where T is the BERT's vector of a word's first subword.
    """

    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Only tags of the training data can be predicted.",
    )
    summary: ClassVar[str] = "tags of words, such as named entities and parts of speech, by fine-tuning a BERT"
    data = TaggedSentences

    metric: str = option(
        "accuracy", "dev score for model selection; f1 is that of B-/I- spans", choices=("accuracy", "f1")
    )
    overlong: str = long_option(CHUNK)

    @classmethod
    def model_class(cls) -> type[TagModel]:
        with networks():
            from firth.finetuning.token_classification import TagModel
        return TagModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> TagModel:
        """Train on `TaggedSentences` (or data they can be built from), starting from the weights of `start`."""
        with networks():
            from firth.finetuning.token_classification import train_token_classifier
        return train_token_classifier(self, data, run, start)
