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
from firth.core.model import Attention, AttentionSteps, Model, Parts, Senses, WordsInContext, merged
from firth.core.options import build_settings
from firth.core.sketch import KEY, inherited
from firth.core.storage import read_arrays
from firth.core.stored import check_texts_of
from firth.core.vectors import Matrix, Vectors
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.finetuning.finetuning_options import LoraOptions, TuningOptions
from firth.finetuning.heads import GPT_HEAD, Base, head_arrays, head_of, split_head, with_head
from firth.nets.architecture import Architecture
from firth.nets.encoder import Encoder
from firth.nets.transformer import Decoder
from firth.nets.tuned import Tuned
from firth.transformers.adapters import (
    Adapter,
    TakesAdapters,
    adapter_arrays,
    adapter_parts,
    apply_adapter,
    base_folder,
    family_of,
    merged_adapter,
    open_base,
    stored_adapter,
)
from firth.transformers.bert_files import shape_options, stored_architecture
from firth.transformers.bert_model import BertModel
from firth.transformers.contextual_words import Averaged
from firth.transformers.families import ENCODERS
from firth.transformers.families.decoders import read_decoder
from firth.transformers.families.encoders import read_encoder
from firth.transformers.families.family import SEQUENCE, SPAN, TOKEN, Config, Head
from firth.transformers.families.gpt2 import GPT2
from firth.transformers.gpt_model import GPTModel
from firth.transformers.huggingface_folder import ADAPTER_WEIGHTS, read_weights
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_transformers_folder import check_truncation_side
from firth.transformers.text_encoder import WINDOW

Kind = TypeVar("Kind", bound="TunedModel")
PEFT_TASKS = {SEQUENCE: "SEQ_CLS", TOKEN: "TOKEN_CLS", SPAN: "QUESTION_ANS"}  # peft's names of the tasks
BATCH_TOKENS = 16384  # tokens per forward pass of predictions


class TunedModel(TakesAdapters, EmbedsTexts):
    """A base model, the network of base and head, and the task's metadata (`task`, JSON)."""

    method: TuningOptions
    kind: ClassVar[str]  # how the names of Hugging Face's classes with such a head end
    pools: ClassVar[tuple[str, ...]] = ("each",)  # what the head may read: `pool` of a `Tuned` network
    has_labels: ClassVar[bool] = False  # whether each output is a label
    outputs: ClassVar[int] = 1  # number of outputs, if they are not labels
    batch_texts = WINDOW

    def __init__(
        self, method: TuningOptions, base: Base, net: Tuned, task: Mapping[str, Any], training: Mapping[str, Any]
    ) -> None:
        self.method, self.base, self.net, self.task, self.training = method, base, net.eval(), task, training
        if KEY in training:  # the base's weights were trained on these labels too
            base.training = inherited({**base.training, KEY: training[KEY]}, base.training)

    @classmethod
    def trained(
        cls: type[Kind], method: TuningOptions, base: Base, net: Tuned, task: Mapping[str, Any], training: Any
    ) -> Kind:
        """Return the model of a trained network; adapters are merged into its base."""
        adapter = merged_adapter(net.base, str(base.folder)) if method.lora else None
        model = cls(method, base, net.cpu(), task, training)
        model.adapter = adapter
        return model

    @property
    def tokenizer(self) -> SubwordTokenizer:
        """The tokenizer of the base."""
        return self.base.tokenizer

    @property
    def max_length(self) -> int:
        """The most tokens of a text or pair."""
        return max_length_of(self.method, self.base)

    @property
    def engine_description(self) -> str:
        """Which engine computes predictions and vectors, and why."""
        return f"torch for predictions; for vectors, {self.base.engine_description}"

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

    @property
    def head(self) -> Head:
        """The layout of the head."""
        return head_of(self.base.size, self.kind, self.net.pool)

    def parts(self) -> Parts:
        if self.adapter is not None:
            return self.parts_beside_base(self.adapter)
        parts = self.base.parts()
        family = ENCODERS.get(self.base.size.family)
        prefix = "" if family is None else family.prefix
        arrays = {prefix + name: array for name, array in parts.arrays.items()} | head_arrays(self.net, self.head)
        documents: dict[str, Any] = {"base": self.description()}
        foreign = dict(parts.foreign)
        if foreign and self.is_foreign():
            pooling = {self.head.pooling_key: self.net.pool} if self.head.pooling_key else {}
            foreign |= {"architectures": [family.tuned_class(self.kind) if family else f"GPT2{self.kind}"]}
            foreign |= {**pooling, **self.foreign_config()}
        documents |= {"task": dict(self.task)}
        return replace(parts, arrays=arrays, documents={**parts.documents, **documents}, foreign=foreign)

    def description(self) -> dict[str, Any]:
        """Return what is stored of the base besides its weights."""
        base = self.base.method
        return {"method": base.method_name(), "options": base.options(), "pool": self.net.pool}

    def parts_beside_base(self, adapter: Adapter) -> Parts:
        """Return the stored form of the adapter and the head, without the base."""
        own = dict(head_arrays(self.net, self.head))
        saved = self.is_foreign()
        task = PEFT_TASKS[self.kind] if saved else "FEATURE_EXTRACTION"
        if saved and self.net.pooler and isinstance(self.base.net, Encoder) and self.base.net.pooler is not None:
            names = pooler_names(self.base.size)
            own |= {names[end]: part.detach().numpy() for end, part in self.base.net.pooler.named_parameters()}
        parts = adapter_parts(adapter, self.base.net, self.base.size, task, own if saved else {}, saved)
        documents = {**parts.documents, "base": {**parts.documents["base"], **self.description()}}
        return replace(parts, arrays={} if saved else own, documents={**documents, "task": dict(self.task)})

    def is_foreign(self) -> bool:
        """Return whether Hugging Face's library computes the same outputs from these arrays."""
        return bool(self.head.pools) and (self.net.pool != "last" or self.net.head.bias is None)

    def foreign_config(self) -> dict[str, Any]:
        """Return the entries of config.json that describe the head."""
        return {}

    @classmethod
    def from_parts(cls: type[Kind], method: Method, parts: Parts, training: Mapping[str, Any]) -> Kind:
        assert isinstance(method, TuningOptions)
        metadata = parts.documents["base"]
        base_method = registry.stored_method(metadata["method"], metadata["options"])
        causal = issubclass(base_method.model_class(), GPTModel)
        pools, pool = ("last",) if causal else cls.pools, metadata["pool"]
        if pool not in pools:
            raise FirthError(
                "damaged_model",
                "pool in base.json must be {choices}; got {got!r}.",
                choices=" or ".join(pools),
                got=pool,
            )
        base: Any
        adapter, config = None, stored_adapter(parts)
        if config is not None:
            stored = adapter_arrays(parts)
            base, adapter, others = adapted_base(parts.folder, config, stored, metadata.get("sha256", ""))
            head = GPT_HEAD if causal else head_of(base.size, cls.kind, pool)
            rest, arrays = split_head({**others, **parts.arrays}, head)
            take_pooler(base, rest)
        else:
            head = GPT_HEAD if causal else head_of(stored_architecture(base_method, parts), cls.kind, pool)
            rest, arrays = split_head(parts.arrays, head)
            base = base_method.model_class().from_parts(base_method, replace(parts, arrays=rest), {})
        net = with_head(base, arrays, head, pool)
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
        model = cls(method, base, net, task, training)
        model.adapter = adapter
        return model

    @classmethod
    def from_foreign(cls: type[Kind], folder: Path, config: Mapping[str, Any], method: type[Method]) -> Kind:
        """Load a model that was fine-tuned with Hugging Face's library."""
        own = method()
        assert isinstance(own, TuningOptions)
        base: Base
        if config["model_type"] in ENCODERS:
            size = ENCODERS[config["model_type"]].architecture(Config(config))
            head, pool = foreign_head(size, cls.kind, config)
            rest, arrays = split_head(read_weights(folder), head)
            base = encoder_of(folder, size, rest)
        else:
            head, pool = GPT_HEAD, "last"
            rest, arrays = split_head(read_weights(folder), head)
            base = gpt_of(folder, config, rest)
        net = with_head(base, arrays, head, pool)
        return cls(own, base, net, cls.foreign_task(config, net.head.out_features), {"source": config["model_type"]})

    @classmethod
    def from_adapter(cls: type[Kind], folder: Path, config: Mapping[str, Any], method: type[Method]) -> Kind:
        """Load an adapter that peft wrote, with its base."""
        own = method()
        assert isinstance(own, TuningOptions)
        base, adapter, arrays = adapted_base(folder, config, read_arrays(folder / ADAPTER_WEIGHTS))
        if isinstance(base.net, Decoder):
            head, pool = GPT_HEAD, "last"
        else:
            head, pool = foreign_head(base.size, cls.kind, {})
        rest, own_arrays = split_head(arrays, head)
        take_pooler(base, rest)
        net = with_head(base, own_arrays, head, pool)
        task = cls.foreign_task({}, net.head.out_features)
        opened = cls(own, base, net, task, {"source": f"peft {base.size.family}"})
        opened.adapter = adapter
        return opened

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        """Return `task` for a folder that Hugging Face's library wrote."""
        return {}


def foreign_head(size: Architecture, kind: str, config: Mapping[str, Any]) -> tuple[Head, str]:
    """Return the head of a folder that Hugging Face's library wrote, and what it reads."""
    family = ENCODERS[size.family]
    head = family.heads.get(kind)
    if head is None:
        raise FirthError(
            "unsupported_architecture",
            "{family} models have no class {name}, so there is no such head to load.",
            family=family.title,
            name=family.tuned_class(kind),
        )
    pools = {pool: pool for pool in head.pools}
    return head, Config(config).choice(head.pooling_key, head.pools[0], pools) if head.pooling_key else head.pools[0]


def encoder_of(folder: Path, size: Architecture, arrays: Mapping[str, NDArray[Any]]) -> BertModel:
    """Build the base of a Hugging Face folder of an encoder."""
    check_truncation_side(folder)
    method = build_settings(registry.method("bert"), shape_options(size))
    net = read_encoder(ENCODERS[size.family], arrays, size)
    return BertModel(method, net, SubwordTokenizer.load(folder), Pooling(), {"source": size.family})


def gpt_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GPTModel:
    """Build the base of a Hugging Face GPT-2 folder."""
    size = GPT2.architecture(Config(config))
    net = read_decoder(GPT2, arrays, size, config)
    method = build_settings(registry.method("gpt"), {**options_of(size), "context_length": size.max_positions - 1})
    return GPTModel(method, net, SubwordTokenizer.load(folder), {"source": "gpt2"})


def options_of(size: Architecture) -> dict[str, Any]:
    """Return the method options that describe a network of this size."""
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "epsilon")
    return {name: getattr(size, name) for name in names}


def base_of(start: Model | None, method: Method) -> Base:
    """Copy the pretrained model without the pretraining heads that fine-tuning does not start from."""
    if start is None:
        raise FirthError(
            "missing_start",
            "{method} needs a pretrained model such as a BERT: fit(data, start=firth.load(FOLDER)).",
            method=type(method).__name__,
        )
    model = merged(start.base if isinstance(start, TunedModel) else start)
    if not isinstance(model, BertModel | GPTModel):
        raise FirthError(
            "incompatible_start",
            "{method} fine-tunes a BERT or GPT model; start is {got!r}.",
            method=type(method).__name__,
            got=start,
        )
    folder = base_folder(start, type(method).__name__) if isinstance(method, LoraOptions) and method.lora else None
    training = {KEY: start.training[KEY]} if KEY in start.training else {}
    base = type(model).from_parts(model.method, model.parts(), training)  # a deep copy
    base.folder = folder
    if isinstance(base.net, Encoder):
        base.net.next_sentence = None
    return base


def bert_of(start: Model | None, method: Method) -> BertModel:
    """Return `base_of`; raise incompatible_start unless it is a BERT."""
    base = base_of(start, method)
    if not isinstance(base, BertModel):
        raise FirthError(
            "incompatible_start",
            "{method} needs a BERT, whose tokens attend to both sides, not a GPT; start is {got!r}.",
            method=type(method).__name__,
            got=start,
        )
    return base


def adapted_base(
    folder: Path | None, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]], fingerprint: str = ""
) -> tuple[Base, Adapter, dict[str, NDArray[Any]]]:
    """Open the base of an adapter and merge the adapter into it; return also the arrays of other parts."""
    start, name = open_base(config, folder)
    base = start.base if isinstance(start, TunedModel) else start
    if not isinstance(base, BertModel | GPTModel):
        raise FirthError(
            "unsupported_model", "The base of an adapter must be a BERT or GPT; {base} is {got!r}.", base=name, got=base
        )
    base.adapter = None
    if isinstance(base.net, Encoder):
        base.net.next_sentence = None
    adapter, others = apply_adapter(base.net, base.size, config, arrays, name, fingerprint)
    return base, adapter, others


def pooler_names(size: Architecture) -> dict[str, str]:
    """Return the other library's names of the weight and the bias of the pooler, if the family has one."""
    sources = {end: family_of(size).source(f"pooler.{end}") for end in ("weight", "bias")}
    return {end: source.names[0] for end, source in sources.items() if source is not None}


def take_pooler(base: Base, arrays: Mapping[str, NDArray[Any]]) -> None:
    """Give the base the pooler that was trained with an adapter; other arrays are refused."""
    prefix, names = family_of(base.size).prefix, pooler_names(base.size)
    known = {f"{prefix}{name.removeprefix(prefix)}": array for name, array in arrays.items()}
    unknown = sorted(known.keys() - set(names.values()))
    if unknown:
        raise FirthError(
            "unsupported_architecture",
            "The adapter has weights of modules other than its layers and head: {name}.",
            name=", ".join(unknown[:3]),
        )
    pooler = {end: known[name] for end, name in names.items() if name in known}
    if not pooler:
        return
    dim = base.size.dim
    if not isinstance(base.net, Encoder) or {end: array.shape for end, array in pooler.items()} != {
        "weight": (dim, dim),
        "bias": (dim,),
    }:
        raise FirthError("damaged_model", "The pooler of the adapter does not fit a base of {dim} dimensions.", dim=dim)
    base.net.pooler = torch.nn.Linear(dim, dim)
    base.net.pooler.load_state_dict({end: torch.from_numpy(array.astype(np.float32)) for end, array in pooler.items()})


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
