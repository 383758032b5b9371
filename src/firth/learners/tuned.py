"""Models that were fine-tuned: a base with one new layer, whole in one folder, under Hugging Face's names.

What is not Hugging Face's (the mean of the tokens, other columns beside the text) opens there as the bare base.
"""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Attention, Model, Parts
from firth.core.options import build_settings
from firth.core.run import Run
from firth.core.storage import read_weights
from firth.core.vectors import Matrix, Vectors
from firth.data.subword_tokenizer import SubwordTokenizer
from firth.learners import gpt2
from firth.learners.bert import BertModel
from firth.learners.gpt import GPTModel
from firth.learners.gradient import device_of
from firth.learners.transfer import TuningOptions
from firth.nets.bert import Bert
from firth.nets.transformer import Decoder
from firth.nets.tuned import Tuned

Base = BertModel | GPTModel
Kind = TypeVar("Kind", bound="TunedModel")
BATCH_TOKENS = 16384  # of texts that are read at once


class TunedModel(Model):
    """A base, the net that holds it and the new layer, and what the task needs to know (`task`, JSON)."""

    method: TuningOptions
    architecture: ClassVar[str]  # Hugging Face's class for such a head
    head: ClassVar[str]  # and its name there

    def __init__(
        self, method: TuningOptions, base: Base, net: Tuned, task: Mapping[str, Any], training: Mapping[str, Any]
    ) -> None:
        self.method, self.base, self.net, self.task, self.training = method, base, net.eval(), task, training

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

    def attention(self, text: str, other: str | None = None) -> Attention:
        return self.base.attention(text, other)

    # ---- files ----

    def parts(self) -> Parts:
        parts = self.base.parts()
        bert = isinstance(self.base, BertModel)
        arrays = {f"bert.{name}" if bert else name: array for name, array in parts.arrays.items()}
        head = self.head if bert else "score"
        arrays |= {f"{head}.{name}": part.detach().cpu().numpy() for name, part in self.net.head.named_parameters()}
        base = self.base.method
        documents = {"base": {"method": base.method_name(), "options": base.options(), "pool": self.net.pool}}
        foreign = dict(parts.foreign)
        if foreign and self.is_foreign():
            foreign |= {"architectures": [self.architecture if bert else GPT], **self.foreign_config()}
        return Parts(arrays, {**parts.documents, **documents, "task": dict(self.task)}, foreign)

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
        base_method = registry.method(facts["method"])
        rest, head = split_head(parts.arrays, cls.head)
        settings = build_settings(base_method, facts["options"])
        base: Any = base_method.model.from_parts(settings, Parts(rest, parts.documents), {})
        net = with_head(base, head, facts["pool"])
        return cls(method, base, net, parts.documents["task"], training)

    @classmethod
    def from_foreign(cls: type[Kind], folder: Path, config: Mapping[str, Any], method: type[Method]) -> Kind:
        """A network that was fine-tuned with Hugging Face's library."""
        rest, head = split_head(read_weights(folder), cls.head)
        own = method()
        assert isinstance(own, TuningOptions)
        base: Base
        if config["model_type"] == "bert":
            base = BertModel.from_foreign(folder, config, registry.method("bert"), rest)
            pool = "cls" if base.net.pooler is not None else "each"
        else:
            base, pool = gpt_of(folder, config, rest), "last"
        task = cls.foreign_task(config, len(head["weight"]))
        return cls(own, base, with_head(base, head, pool), task, {"source": config["model_type"]})

    @classmethod
    def foreign_task(cls, config: Mapping[str, Any], outputs: int) -> dict[str, Any]:
        """`task` of somebody else's folder."""
        return {}


GPT = "GPT2ForSequenceClassification"


def gpt_of(folder: Path, config: Mapping[str, Any], arrays: Mapping[str, NDArray[Any]]) -> GPTModel:
    from firth.learners.gpt import net_of

    size, _ = gpt2.size_of(config)
    options = {
        "layers": size.layers, "dim": size.dim, "heads": size.heads, "hidden": size.hidden, "context": size.places - 1,
        "dropout": size.dropout, "activation": size.activation,
    }  # fmt: skip
    net = net_of(gpt2.from_gpt2(arrays, size), size)
    return GPTModel(registry.method("gpt")(**options), net, SubwordTokenizer.load(folder), {"source": "gpt2"})


def split_head(
    arrays: Mapping[str, NDArray[Any]], name: str
) -> tuple[dict[str, NDArray[Any]], dict[str, NDArray[Any]]]:
    """The base's arrays, and those of the new layer ("score" is a GPT's)."""
    heads = {f"{head}.{part}": part for head in (name, "score") for part in ("weight", "bias")}
    head = {heads[name]: np.array(array, np.float32) for name, array in arrays.items() if name in heads}
    rest = {name: array for name, array in arrays.items() if name not in heads and not name.startswith("columns.")}
    if "weight" not in head or head["weight"].ndim != 2:
        raise FirthError(f"The model has no head: {name}.weight is not among its arrays.")
    return rest, head


def with_head(base: Base, head: Mapping[str, NDArray[np.float32]], pool: str) -> Tuned:
    """The net of a saved model."""
    outputs, width = head["weight"].shape
    extra = width - base.size.dim
    if extra < 0 or ("bias" in head and head["bias"].shape != (outputs,)):
        raise FirthError(f"The head is {outputs} × {width} and does not fit a base of {base.size.dim} dimensions.")
    net = Tuned(base.net, outputs, pool, 0.0, extra, bias="bias" in head)
    net.head.load_state_dict({name: torch.from_numpy(array) for name, array in head.items()})
    return net


def base_of(start: Model | None, method: Method, pooled: bool) -> Base:
    """A copy of the model to begin with, without the heads that its own training needed."""
    if start is None:
        raise FirthError(
            f"{type(method).__name__} needs a model to begin with: fit(data, start=firth.load(FOLDER)), such as a BERT."
        )
    model = start.base if isinstance(start, TunedModel) else start
    if not isinstance(model, BertModel | GPTModel):
        raise FirthError(f"{type(method).__name__} begins with a BERT or GPT model; got {start!r}.")
    base = copy.copy(model)
    for name in [name for name in vars(base) if isinstance(getattr(type(base), name, None), cached_property)]:
        del vars(base)[name]  # of the weights as they were
    base.net = copy.deepcopy(model.net)
    if isinstance(base.net, Bert):
        base.net.masked = base.net.following = None
        if not pooled:
            base.net.pooler = None
    return base


def new_net(
    base: Base, outputs: int, pool: str, method: TuningOptions, run: Run, extra: int = 0, bias: bool = False
) -> Tuned:
    """With a new layer, drawn by the run's seed; a GPT's has no bias unless it is asked for."""
    device_of(run)  # refuses what can't be had before anything is read
    causal = isinstance(base.net, Decoder)
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(run.seed)
        return Tuned(base.net, outputs, "last" if causal else pool, method.dropout, extra, bias or not causal)


def most_tokens(method: TuningOptions, base: Base) -> int:
    places = base.size.places
    if method.length > places:
        raise FirthError(
            f"{type(method).__name__}.length must be at most {places}, the base's places; got {method.length}."
        )
    return method.length or places


def named_labels(config: Mapping[str, Any], outputs: int) -> list[str]:
    """id2label of a config.json, or LABEL_0, LABEL_1, …"""
    told = config.get("id2label")
    names = {int(id): str(name) for id, name in told.items()} if isinstance(told, dict) else {}
    found = [names.get(id, f"LABEL_{id}") for id in range(outputs)]
    if len(set(found)) < outputs:
        raise FirthError(f"Labels must differ; config.json has {', '.join(found)}.")
    return found


def label_config(labels: Sequence[str]) -> dict[str, Any]:
    return {
        "id2label": {str(id): label for id, label in enumerate(labels)},
        "label2id": {label: id for id, label in enumerate(labels)},
    }
