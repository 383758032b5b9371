"""Models that were fine-tuned: a base with one new layer, whole in one folder, under Hugging Face's names.

What is not Hugging Face's (the mean of the tokens, other columns beside the text) opens there as the bare base.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.foreign import read_weights
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
from firth.transformers.pooling import Pooling
from firth.words.word_model import Pooled

Base = BertModel | GPTModel
Kind = TypeVar("Kind", bound="TunedModel")
BATCH_TOKENS = 16384  # of texts that are read at once


class TunedModel(Model):
    """A base, the net that holds it and the new layer, and what the task needs to know (`task`, JSON)."""

    method: TuningOptions
    architecture: ClassVar[str]  # Hugging Face's class for such a head
    head: ClassVar[str]  # and its name there
    given: ClassVar[str] = "each"  # what of the base it is given: a `Tuned` net's pool
    has_labels: ClassVar[bool] = False  # one for each output
    outputs: ClassVar[int] = 1  # of the head, where they are no labels

    def __init__(
        self, method: TuningOptions, base: Base, net: Tuned, task: Mapping[str, Any], training: Mapping[str, Any]
    ) -> None:
        self.method, self.base, self.net, self.task, self.training = method, base, net.eval(), task, training
        if KEY in training:  # the base was trained with these labels too
            base.training = inherited({**base.training, KEY: training[KEY]}, base.training)

    @property
    def tokenizer(self) -> SubwordTokenizer:
        return self.base.tokenizer

    @property
    def most(self) -> int:
        """Tokens of a text, or pair."""
        return most_tokens(self.method, self.base)

    # ---- what the base can do ----

    @property
    def vectors(self) -> Vectors:
        return self.base.vectors

    @property
    def tables(self) -> Mapping[str, Vectors]:
        return self.base.tables

    def embed(self, inputs: Sequence[str]) -> Matrix:
        """The tuned base's vectors of texts."""
        return self.base.embed(inputs)

    def pool(self, texts: Sequence[str]) -> Pooled:
        """`embed`, with how many tokens of each text are known."""
        unknown = self.tokenizer.ids.get("[UNK]", -1)
        ids = self.tokenizer.ids_batch(list(texts), special=False)
        lost = np.array([each.count(unknown) for each in ids], np.int64)
        return Pooled(self.embed(texts), np.array([len(each) for each in ids], np.int64) - lost, lost)

    def word_vectors(self, texts: Sequence[str], *settings: Any, **more: Any) -> list[WordsInContext]:
        """Words with the vectors that the tuned base gives them."""
        return self.base.word_vectors(texts, *settings, **more)

    def static(self, data: Any, words: int | Sequence[str] = 20_000, **settings: Any) -> Vectors:
        return self.base.static(data, words, **settings)

    def averaged(self, *given: Any, **settings: Any) -> Averaged:
        return self.base.averaged(*given, **settings)

    def senses(self, texts: Sequence[str], word: str, subword_pooling: str = "mean") -> Senses:
        return self.base.senses(texts, word, subword_pooling)

    def attention(self, text: str, other: str | None = None) -> Attention:
        return self.base.attention(text, other)

    def attention_steps(
        self, text: str, other: str | None = None, *, layer: int, head: int, query: int
    ) -> AttentionSteps:
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
        """Whether Hugging Face computes the same from these arrays."""
        return self.net.pool != "mean" and (self.net.pool != "last" or self.net.head.bias is None)

    def foreign_config(self) -> dict[str, Any]:
        """What config.json says of the head."""
        return {}

    @classmethod
    def from_parts(cls: type[Kind], method: Method, parts: Parts, training: Mapping[str, Any]) -> Kind:
        assert isinstance(method, TuningOptions)
        facts = parts.documents["base"]
        rest, head = split_head(parts.arrays, cls.head)
        base_method = registry.stored_method(facts["method"], facts["options"])
        base: Any = base_method.model.from_parts(base_method, replace(parts, arrays=rest), {})
        pools = ("last",) if isinstance(base, GPTModel) else ("each",) if cls.given == "each" else ("cls", "mean")
        if facts["pool"] not in pools:
            raise FirthError(
                "damaged_model",
                "pool of base.json must be {choices}; got {got!r}.",
                choices=" or ".join(pools),
                got=facts["pool"],
            )
        net = with_head(base, head, facts["pool"])
        task = parts.documents["task"]
        if not isinstance(task, dict) or type(task.get("pairs", False)) is not bool:
            raise FirthError("damaged_model", "task.json must say what the model was taught: an object.")
        if cls.has_labels:
            check_texts_of(task["labels"], "labels of task.json", net.head.out_features)
        elif cls.outputs != net.head.out_features:
            raise FirthError(
                "damaged_model",
                "The head must have {expected} outputs; it has {got}.",
                expected=cls.outputs,
                got=net.head.out_features,
            )
        return cls(method, base, net, task, training)

    @classmethod
    def from_foreign(cls: type[Kind], folder: Path, config: Mapping[str, Any], method: type[Method]) -> Kind:
        """A network that was fine-tuned with Hugging Face's library."""
        rest, head = split_head(read_weights(folder), cls.head)
        own = method()
        assert isinstance(own, TuningOptions)
        base: Base
        if config["model_type"] == "bert":
            base, pool = bert_of(folder, config, rest), cls.given
            if pool == "each" and base.net.pooler is not None:
                base.net.pooler = None  # older folders have one that nobody asks
        else:
            base, pool = gpt_of(folder, config, rest), "last"
        task = cls.foreign_task(config, len(head["weight"]))
        return cls(own, base, with_head(base, head, pool), task, {"source": config["model_type"]})

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        """`task` of somebody else's folder."""
        return {}


GPT = "GPT2ForSequenceClassification"


def bert_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> BertModel:
    size = bert_files.size_of(config)
    net = bert_files.net_of(bert_files.from_bert(arrays, size), size)
    method = build_settings(registry.method("bert"), {**options_of(size), "context_length": size.max_positions})
    return BertModel(method, net, SubwordTokenizer.load(folder), Pooling(), {"source": "bert"})


def gpt_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GPTModel:
    size, _ = gpt2.size_of(config)
    net = decoder_of(gpt2.from_foreign(arrays, size, config), size)
    method = build_settings(registry.method("gpt"), {**options_of(size), "context_length": size.max_positions - 1})
    return GPTModel(method, net, SubwordTokenizer.load(folder), {"source": "gpt2"})


def options_of(size: Size) -> dict[str, Any]:
    """A method's options for a net of this size."""
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
    return {name: getattr(size, name) for name in names}


def split_head(
    arrays: Mapping[str, NDArray[Any]], name: str
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The base's arrays, and those of the new layer ("score" is a GPT's)."""
    heads = {f"{head}.{part}": part for head in (name, "score") for part in ("weight", "bias")}
    head = {heads[name]: np.array(array, np.float32) for name, array in arrays.items() if name in heads}
    rest = {name: array for name, array in arrays.items() if name not in heads and not name.startswith("columns.")}
    if "weight" not in head or head["weight"].ndim != 2:
        raise FirthError("incomplete_model", "The model has no head: {name}.weight is not among its arrays.", name=name)
    return rest, head


def with_head(base: Base, head: Mapping[str, NDArray[np.float32]], pool: str) -> Tuned:
    """The net of a saved model."""
    if pool == "cls" and isinstance(base.net, Bert) and base.net.pooler is None:
        raise FirthError("incomplete_model", "The model has no pooler, which its head reads from.")
    check_finite({f"the head's {name}": array for name, array in head.items()})
    outputs, width = head["weight"].shape
    extra = width - base.size.dim
    if extra < 0 or ("bias" in head and head["bias"].shape != (outputs,)):
        raise FirthError(
            "damaged_model",
            "The head is {outputs} × {width} and does not fit a base of {dim} dimensions.",
            outputs=outputs,
            width=width,
            dim=base.size.dim,
        )
    net = Tuned(base.net, outputs, pool, 0.0, extra, bias="bias" in head)
    net.head.load_state_dict({name: torch.from_numpy(array) for name, array in head.items()})
    return net


def base_of(start: Model | None, method: Method, pooled: bool) -> Base:
    """A copy of the model to begin with, without the heads that its own training needed."""
    if start is None:
        raise FirthError(
            "missing_start",
            "{method} needs a model to begin with: fit(data, start=firth.load(FOLDER)), such as a BERT.",
            method=type(method).__name__,
        )
    model = start.base if isinstance(start, TunedModel) else start
    if not isinstance(model, BertModel | GPTModel):
        raise FirthError(
            "incompatible_start",
            "{method} begins with a BERT or GPT model; got {got!r}.",
            method=type(method).__name__,
            got=start,
        )
    before = {KEY: start.training[KEY]} if KEY in start.training else {}
    base = type(model).from_parts(model.method, model.parts(), before)  # a copy that shares nothing
    if isinstance(base.net, Bert):
        base.net.masked = base.net.next_sentence = None
        if not pooled:
            base.net.pooler = None
    return base


def pool_of(start: Model | None, asked: str) -> str:
    """How a text becomes one vector: as asked, or as the base does. One without a pooling of its own, such as a BERT
    that was only pre-trained, gives [CLS]; greatest values and sums, which fine-tuning lacks, become the mean."""
    model = start.base if isinstance(start, TunedModel) else start
    if asked != "base" or not isinstance(model, BertModel):
        return "cls" if asked == "base" else asked
    own = model.pooling != Pooling() or type(model.method).method_name() == "sentence_encoder"
    return "mean" if own and model.pooling.how != "cls" else "cls"


def new_net(
    base: Base, outputs: int, pool: str, method: TuningOptions, run: Run, extra: int = 0, bias: bool = False
) -> Tuned:
    """With a new layer, drawn by the run's seed; a GPT's has no bias unless it is asked for."""
    causal = isinstance(base.net, Decoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return Tuned(base.net, outputs, "last" if causal else pool, method.dropout, extra, bias or not causal)


def most_tokens(method: TuningOptions, base: Base) -> int:
    places = base.size.max_positions
    if method.max_length > places:
        raise FirthError(
            "invalid_value",
            "{method}.length must be at most {places}, the base's places; got {got}.",
            method=type(method).__name__,
            places=places,
            got=method.max_length,
        )
    return method.max_length or places


def named_labels(config: Mapping[str, Any], outputs: int) -> list[str]:
    """id2label of a config.json, or LABEL_0, LABEL_1, …"""
    told = config.get("id2label")
    names = {int(id): str(name) for id, name in told.items()} if isinstance(told, dict) else {}
    found = [names.get(id, f"LABEL_{id}") for id in range(outputs)]
    if len(set(found)) < outputs:
        raise FirthError("damaged_model", "Labels must differ; config.json has {got}.", got=", ".join(found))
    return found


def label_config(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(id): label for id, label in enumerate(labels)},
        "label2id": {label: id for id, label in enumerate(labels)},
    }
