"""Sentence embeddings by contrastive learning (Henderson et al. 2017; SimCSE, Gao et al. 2021)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from firth.core.errors import FirthError
from firth.core.model import Model
from firth.core.options import option
from firth.core.run import Run
from firth.data.similar_pairs import SimilarPairs
from firth.finetuning.finetuning_options import INHERITED, LORA_RATE, LoraOptions
from firth.training.network_options import networks

if TYPE_CHECKING:
    from firth.transformers.bert_model import BertModel


LEARNING_RATE = 3e-5


@dataclass(frozen=True, kw_only=True)
class SentenceEncoder(LoraOptions):
    """Fine-tunes a BERT so that similar texts get similar vectors.

    Maximizes Σ log softmax(cos(a, b) / temperature) of the matching b among all b of a step. Single texts are encoded
    twice with different dropout, which gives the pair (SimCSE).
    """

    shards_weights: ClassVar[bool] = False
    accumulates: ClassVar[bool] = False  # in-batch negatives need the whole batch
    limits: ClassVar[tuple[str, ...]] = (
        INHERITED,
        "Similarity means what the training pairs made similar: topic, paraphrase or answer.",
    )
    summary: ClassVar[str] = "better sentence vectors, by fine-tuning a BERT on texts, pairs or triplets"
    data = SimilarPairs
    needs_start: ClassVar[bool] = True

    epochs: int = option(1, "passes over the data", low=1)
    batch_size: int = option(64, "texts or pairs per step; the others are the in-batch negatives", low=2, high=65536)
    batch_tokens: int = option(65536, "most tokens per step; steps of long texts hold fewer texts", low=1)
    temperature: float = option(0.05, "divisor of the cosines; lower values stress hard negatives", low=1e-4)
    pooling: str = option(
        "base",
        "the vector of a text: the mean of its tokens, [CLS], or as in the base",
        choices=("base", "mean", "cls"),
    )
    matryoshka_dims: str = option(
        "", "shorter vector lengths to train as well, as in 128,64: their losses are added (Matryoshka)"
    )
    max_length: int | None = option(None, "most tokens of a text; longer ones are cut; none = as in the base", low=1)
    learning_rate: float | None = option(  # type: ignore[assignment]
        None, "peak learning rate; none = 3e-5, with lora 3e-4", low=1e-9, high=10
    )
    warmup: float = option(0.1, "share of the run in which the learning rate rises", low=0, high=1)
    schedule: str = option(
        "linear", "how the learning rate falls after warmup", choices=("cosine", "linear", "inverse_sqrt", "none")
    )
    weight_decay: float = option(0.01, "of matrices; not of biases and norms", low=0, high=10)
    beta2: float = option(0.999, "decay rate of AdamW's second moment", low=0, high=0.99999)
    held_out: float = option(
        0.1,
        "share of the pairs held out for evaluation if no dev data is given: at least 20, at most 1,000 pairs",
        low=0,
        high=0.9,
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        self.shorter_dims()

    @property
    def batch_units(self) -> int:
        return self.batch_size

    def with_learning_rate(self) -> SentenceEncoder:
        """Return these options with the automatic learning rate where it is None."""
        return self.resolved(learning_rate=LEARNING_RATE * (LORA_RATE if self.lora else 1))

    def shorter_dims(self) -> list[int]:
        """Return the vector lengths of `matryoshka_dims`."""
        parts = self.matryoshka_dims.split(",") if self.matryoshka_dims else []
        if not all(part.strip().isdecimal() and int(part) for part in parts):
            raise FirthError(
                "invalid_value",
                "{option} must be comma-separated lengths, as in 128,64; got {got!r}.",
                option="SentenceEncoder.matryoshka_dims",
                got=self.matryoshka_dims,
            )
        return [int(part) for part in parts]

    @classmethod
    def model_class(cls) -> type[BertModel]:
        with networks():
            from firth.transformers.bert_model import BertModel
        return BertModel

    def fit(self, data: Any, run: Run = Run(), start: Model | None = None) -> BertModel:
        """Train on `SimilarPairs` (or data they can be built from), starting from the weights of `start`."""
        with networks():
            from firth.finetuning.contrastive_training import train_sentence_encoder
        return train_sentence_encoder(self, data, run, start)
