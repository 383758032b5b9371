"""Fine-tuned models: a base with a new head, saved in one folder under Hugging Face's tensor names.

Heads that Hugging Face's library does not have (mean pooling, other columns besides the text) open there as the base
model without a head.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core import registry
from firth.core.embedding import EmbeddedTexts, EmbedsTexts, Text
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Attention, AttentionSteps, Model, Parts, Senses, WordsInContext
from firth.core.options import build_settings
from firth.core.run import Run
from firth.core.sketch import KEY, inherited
from firth.core.stored import check_finite, check_texts_of
from firth.core.vectors import Matrix, Vectors
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.finetuning.finetuning_options import TuningOptions
from firth.nets.bert import Bert
from firth.nets.transformer import Decoder, Size
from firth.nets.tuned import Tuned
from firth.transformers import huggingface_bert as bert_files
from firth.transformers import huggingface_gpt2 as gpt2
from firth.transformers.bert_model import BertModel
from firth.transformers.contextual_words import Averaged
from firth.transformers.gpt_model import GPTModel
from firth.transformers.gpt_model import net_of as decoder_of
from firth.transformers.huggingface_folder import read_weights
from firth.transformers.pooling import Pooling
from firth.transformers.text_encoder import WINDOW

Base = BertModel | GPTModel
Kind = TypeVar("Kind", bound="TunedModel")
BATCH_TOKENS = 16384  # tokens per forward pass of predictions


class TunedModel(EmbedsTexts):
    """A base model, the network of base and head, and the task's metadata (`task`, JSON)."""

    method: TuningOptions
    architecture: ClassVar[str]  # Hugging Face's class with such a head
    head: ClassVar[str]  # the head's name in that class
    head_input: ClassVar[str] = "each"  # what the head reads: `pool` of a `Tuned` network
    has_labels: ClassVar[bool] = False  # whether each output is a label
    outputs: ClassVar[int] = 1  # number of outputs, if they are not labels
    batch_texts = WINDOW

    def __init__(
        self, method: TuningOptions, base: Base, net: Tuned, task: Mapping[str, Any], training: Mapping[str, Any]
    ) -> None:
        self.method, self.base, self.net, self.task, self.training = method, base, net.eval(), task, training
        if KEY in training:  # the base's weights were trained on these labels too
            base.training = inherited({**base.training, KEY: training[KEY]}, base.training)

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer of the base."""
        return self.base.tokenizer

    @property
    def max_length(self) -> int:
        """The most tokens of a text or pair."""
        return max_length_of(self.method, self.base)

    # ---- abilities of the base ----

    @property
    def vectors(self) -> Vectors:
        """The token embeddings of the fine-tuned base."""
        return self.base.vectors

    @property
    def tables(self) -> Mapping[str, Vectors]:
        """The tables of vectors of the fine-tuned base."""
        return self.base.tables

    def embed_with_counts(self, texts: Sequence[str], *args: Any, **settings: Any) -> EmbeddedTexts:
        """Return the fine-tuned base's vectors of texts, with the numbers of known and unknown tokens."""
        return self.base.embed_with_counts(texts, *args, **settings)

    @property
    def embedding_settings(self) -> list[str]:
        """The further settings of `embed`: those of the base."""
        return self.base.embedding_settings

    def embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[EmbeddedTexts]:
        """Apply the base's `embed_with_counts` to a stream of lists of texts."""
        return self.base.embed_batches(batches, *args, **settings)

    def _embed_batches(self, batches: Iterable[Sequence[Text]], *args: Any, **settings: Any) -> Iterator[Matrix]:
        return self.base._embed_batches(batches, *args, **settings)

    def word_vectors(self, texts: Sequence[str], *settings: Any, **more: Any) -> list[WordsInContext]:
        """Return the words of each text with their contextual vectors from the fine-tuned base."""
        return self.base.word_vectors(texts, *settings, **more)

    def static(self, data: Any, words: int | Sequence[str] = 20_000, **settings: Any) -> Vectors:
        """Return one vector per word: the mean of its contextual vectors in `data`."""
        return self.base.static(data, words, **settings)

    def averaged(self, *data: Any, **settings: Any) -> Averaged:
        """Return the averaged contextual vectors of words, as the base computes them."""
        return self.base.averaged(*data, **settings)

    def senses(self, texts: Sequence[str], word: str, subword_pooling: str = "mean") -> Senses:
        """Return the occurrences of `word` in `texts`, grouped by their contextual vectors."""
        return self.base.senses(texts, word, subword_pooling)

    def attention(self, text: str, other: str | None = None) -> Attention:
        """Return the attention weights of all layers and heads for a text or a pair."""
        return self.base.attention(text, other)

    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
        """Return the intermediate results of one attention head for one query token."""
        return self.base.attention_steps(text, other, layer=layer, head=head, query=query)

    # ---- files ----

    def parts(self) -> Parts:
        parts = self.base.parts()
        bert = isinstance(self.base, BertModel)
        arrays = {f"bert.{name}" if bert else name: array for name, array in parts.arrays.items()}
        head = self.head if bert else "score"
        arrays |= {f"{head}.{name}": part.detach().cpu().numpy() for name, part in self.net.head.named_parameters()}
        base = self.base.method
        documents: dict[str, Any] = {
            "base": {"method": base.method_name(), "options": base.options(), "pool": self.net.pool}
        }
        foreign = dict(parts.foreign)
        if foreign and self.is_foreign():
            foreign |= {"architectures": [self.architecture if bert else GPT], **self.foreign_config()}
        documents |= {"task": dict(self.task)}
        return replace(parts, arrays=arrays, documents={**parts.documents, **documents}, foreign=foreign)

    def is_foreign(self) -> bool:
        """Return whether Hugging Face's library computes the same outputs from these arrays."""
        return self.net.pool != "mean" and (self.net.pool != "last" or self.net.head.bias is None)

    def foreign_config(self) -> dict[str, Any]:
        """Return the entries of config.json that describe the head."""
        return {}

    @classmethod
    def from_parts(cls: type[Kind], method: Method, parts: Parts, training: Mapping[str, Any]) -> Kind:
        assert isinstance(method, TuningOptions)
        metadata = parts.documents["base"]
        rest, head = split_head(parts.arrays, cls.head)
        base_method = registry.stored_method(metadata["method"], metadata["options"])
        base: Any = base_method.model_class().from_parts(base_method, replace(parts, arrays=rest), {})
        pools = ("last",) if isinstance(base, GPTModel) else ("each",) if cls.head_input == "each" else ("cls", "mean")
        if metadata["pool"] not in pools:
            raise FirthError(
                "damaged_model",
                "pool in base.json must be {choices}; got {got!r}.",
                choices=" or ".join(pools),
                got=metadata["pool"],
            )
        net = with_head(base, head, metadata["pool"])
        task = parts.documents["task"]
        if not isinstance(task, dict) or type(task.get("pairs", False)) is not bool:
            raise FirthError("damaged_model", "task.json must be an object that describes the task.")
        if cls.has_labels:
            check_texts_of(task["labels"], "labels of task.json", net.head.out_features)
        elif cls.outputs != net.head.out_features:
            raise FirthError(
                "damaged_model",
                "The head must have {expected} outputs; got {got}.",
                expected=cls.outputs,
                got=net.head.out_features,
            )
        return cls(method, base, net, task, training)

    @classmethod
    def from_foreign(cls: type[Kind], folder: Path, config: Mapping[str, Any], method: type[Method]) -> Kind:
        """Load a model that was fine-tuned with Hugging Face's library."""
        rest, head = split_head(read_weights(folder), cls.head)
        own = method()
        assert isinstance(own, TuningOptions)
        base: Base
        if config["model_type"] == "bert":
            base, pool = bert_of(folder, config, rest), cls.head_input
            if pool == "each" and base.net.pooler is not None:
                base.net.pooler = None  # older folders have one that the head does not use
        else:
            base, pool = gpt_of(folder, config, rest), "last"
        task = cls.foreign_task(config, len(head["weight"]))
        return cls(own, base, with_head(base, head, pool), task, {"source": config["model_type"]})

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        """Return `task` for a folder that Hugging Face's library wrote."""
        return {}


GPT = "GPT2ForSequenceClassification"


def bert_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> BertModel:
    """Build the base of a Hugging Face BERT folder."""
    size = bert_files.size_of(config)
    net = bert_files.net_of(bert_files.from_bert(arrays, size), size)
    method = build_settings(registry.method("bert"), {**options_of(size), "context_length": size.max_positions})
    return BertModel(method, net, SubwordTokenizer.load(folder), Pooling(), {"source": "bert"})


def gpt_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GPTModel:
    """Build the base of a Hugging Face GPT-2 folder."""
    size, _ = gpt2.size_of(config)
    net = decoder_of(gpt2.from_foreign(arrays, size, config), size)
    method = build_settings(registry.method("gpt"), {**options_of(size), "context_length": size.max_positions - 1})
    return GPTModel(method, net, SubwordTokenizer.load(folder), {"source": "gpt2"})


def options_of(size: Size) -> dict[str, Any]:
    """Return the method options that describe a network of this size."""
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
    return {name: getattr(size, name) for name in names}


def split_head(
    arrays: Mapping[str, NDArray[Any]], name: str
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """Split arrays into those of the base and those of the head, which is called "score" in a GPT."""
    heads = {f"{head}.{part}": part for head in (name, "score") for part in ("weight", "bias")}
    head = {heads[name]: np.array(array, np.float32) for name, array in arrays.items() if name in heads}
    rest = {name: array for name, array in arrays.items() if name not in heads and not name.startswith("columns.")}
    if "weight" not in head or head["weight"].ndim != 2:
        raise FirthError("incomplete_model", "The model has no head: the array {name}.weight is missing.", name=name)
    return rest, head


def with_head(base: Base, head: Mapping[str, NDArray[np.float32]], pool: str) -> Tuned:
    """Build the network of a saved model from its base and the head's arrays."""
    if pool == "cls" and isinstance(base.net, Bert) and base.net.pooler is None:
        raise FirthError("incomplete_model", "The model has no pooler, which its head needs.")
    check_finite({f"the head's {name}": array for name, array in head.items()})
    outputs, width = head["weight"].shape
    extra = width - base.size.dim
    if extra < 0 or ("bias" in head and head["bias"].shape != (outputs,)):
        raise FirthError(
            "damaged_model",
            "The head of {outputs} × {width} does not fit a base of {dim} dimensions.",
            outputs=outputs,
            width=width,
            dim=base.size.dim,
        )
    net = Tuned(base.net, outputs, pool, 0.0, extra, bias="bias" in head)
    net.head.load_state_dict({name: torch.from_numpy(array) for name, array in head.items()})
    return net


def base_of(start: Model | None, method: Method, pooled: bool) -> Base:
    """Copy the pretrained model without its pretraining heads; `pooled` keeps BERT's pooler."""
    if start is None:
        raise FirthError(
            "missing_start",
            "{method} needs a pretrained model such as a BERT: fit(data, start=firth.load(FOLDER)).",
            method=type(method).__name__,
        )
    model = start.base if isinstance(start, TunedModel) else start
    if not isinstance(model, BertModel | GPTModel):
        raise FirthError(
            "incompatible_start",
            "{method} fine-tunes a BERT or GPT model; start is {got!r}.",
            method=type(method).__name__,
            got=start,
        )
    training = {KEY: start.training[KEY]} if KEY in start.training else {}
    base = type(model).from_parts(model.method, model.parts(), training)  # a deep copy
    if isinstance(base.net, Bert):
        base.net.masked = base.net.next_sentence = None
        if not pooled:
            base.net.pooler = None
    return base


def pool_of(start: Model | None, pooling: str) -> str:
    """Resolve the option `pooling`, where "base" means the pooling of the base model.

    A base without its own pooling, such as a BERT that was only pretrained, uses [CLS]. Max and sum pooling, which
    fine-tuning does not have, become the mean.
    """
    model = start.base if isinstance(start, TunedModel) else start
    if pooling != "base" or not isinstance(model, BertModel):
        return "cls" if pooling == "base" else pooling
    has_pooling = model.pooling != Pooling() or type(model.method).method_name() == "sentence_encoder"
    return "mean" if has_pooling and model.pooling.how != "cls" else "cls"


def new_net(
    base: Base, outputs: int, pool: str, method: TuningOptions, run: Run, extra: int = 0, bias: bool = False
) -> Tuned:
    """Put a new head on the base, initialized with the run's seed. A GPT's head has no bias unless `bias` is set."""
    causal = isinstance(base.net, Decoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return Tuned(base.net, outputs, "last" if causal else pool, method.dropout, extra, bias or not causal)


def max_length_of(method: TuningOptions, base: Base) -> int:
    """Return the most tokens of a text: `max_length`, or the number of positions of the base."""
    positions = base.size.max_positions
    if method.max_length is not None and method.max_length > positions:
        raise FirthError(
            "invalid_value",
            "{option} must be at most {limit}, the number of positions of the base; got {got}.",
            option=f"{type(method).__name__}.max_length",
            limit=positions,
            got=method.max_length,
        )
    return method.max_length or positions


def named_labels(config: Mapping[str, Any], outputs: int) -> list[str]:
    """Return the labels of id2label in a config.json; unnamed ones are called LABEL_0, LABEL_1, …"""
    id2label = config.get("id2label")
    names = {int(id): str(name) for id, name in id2label.items()} if isinstance(id2label, dict) else {}
    labels = [names.get(id, f"LABEL_{id}") for id in range(outputs)]
    if len(set(labels)) < outputs:
        raise FirthError("damaged_model", "Labels in config.json must be unique; got {got}.", got=", ".join(labels))
    return labels


def label_config(labels: Sequence[str]) -> dict[str, Any]:
    """Return the label entries of Hugging Face's config.json."""
    return {
        "id2label": {str(id): label for id, label in enumerate(labels)},
        "label2id": {label: id for id, label in enumerate(labels)},
    }
