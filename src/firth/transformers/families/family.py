"""How the config and the arrays of another library map onto Firth's transformer.

A family is a table: `architecture` reads config.json, `config` writes it, and `names` gives the other library's name of
each part of the network. Adding a family is one file with such a table and one line in `families/__init__.py`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture

#: Activations by their names in other libraries.
ACTIVATIONS = {
    "gelu": "gelu",
    "gelu_new": "gelu_tanh",
    "relu": "relu",
    "silu": "silu",
    "gelu_python": "gelu",
    "gelu_pytorch_tanh": "gelu_tanh",
    "gelu_fast": "gelu_tanh",
    "swish": "silu",
}
ACTIVATION_NAMES = {"gelu": "gelu", "gelu_tanh": "gelu_new", "relu": "relu", "silu": "silu"}
MOST = 1 << 31
LOCAL, GLOBAL = "sliding_attention", "full_attention"  # entries of layer_types


@dataclass(frozen=True)
class Source:
    """The arrays of the other library that make up one array of Firth, stacked in this order."""

    names: tuple[str, ...]
    skip: int = 0  # leading rows that the other library never uses
    transposed: bool = False  # stored as inputs × outputs
    plus_one: bool = False  # stored as the difference from 1

    def stored_shape(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape of a stored array that becomes an array of this shape."""
        stored = (shape[0] + self.skip, *shape[1:])
        return stored[::-1] if self.transposed else stored

    def read(self, array: NDArray[Any]) -> NDArray[np.float32]:
        """Return Firth's form of a stored array."""
        array = (array.T if self.transposed else array)[self.skip :].astype(np.float32)
        return array + 1 if self.plus_one else array

    def write(self, array: NDArray[np.float32]) -> NDArray[np.float32]:
        """Return the stored form of an array of Firth; rows that are never used are zero."""
        if self.plus_one:
            array = array - 1
        if self.skip:
            array = np.concatenate([np.zeros((self.skip, *array.shape[1:]), np.float32), array])
        return np.ascontiguousarray(array.T if self.transposed else array)


Names = Mapping[str, Source | str | tuple[str, ...]]


#: Endings of the class names of fine-tuned networks.
SEQUENCE, TOKEN, SPAN = "ForSequenceClassification", "ForTokenClassification", "ForQuestionAnswering"


@dataclass(frozen=True)
class Head:
    """The head of a fine-tuned network: a dense layer with its activation and norm, if it has one, and the output."""

    output: str
    dense: str = ""
    activation: str = "tanh"  # empty: that of the masked-token head
    norm: str = ""
    pools: tuple[str, ...] = ("cls",)  # what the head reads, as in `nets.tuned`
    pooling_key: str = ""  # the entry of config.json that names it, if there are several

    @property
    def layers(self) -> dict[str, str]:
        """The other library's name of each layer, by Firth's name."""
        names = {"output": self.output, "dense": "" if self.dense == POOLER else self.dense, "norm": self.norm}
        return {ours: theirs for ours, theirs in names.items() if theirs}


POOLER = "pooler"  # the dense layer of a head that is part of the base
EACH = ("each",)
BERT_HEADS = {
    SEQUENCE: Head("classifier", POOLER),
    TOKEN: Head("classifier", pools=EACH),
    SPAN: Head("qa_outputs", pools=EACH),
}


@dataclass(frozen=True)
class Family:
    """A family of networks.

    Keys of the name tables are Firth's modules or arrays, values the other library's; `*` is the layer. Arrays of
    `names` have the prefix when the network has a head, those of `head_names` never have it.
    """

    model_type: str  # in config.json
    title: str
    prefix: str
    architecture: Callable[[Config], Architecture]
    config: Callable[[Architecture], dict[str, Any]]
    names: Names
    head_names: Names = field(default_factory=dict)
    classes: Mapping[tuple[str, ...], str] = field(
        default_factory=dict
    )  # pre-training heads -> the class that has just them
    heads: Mapping[str, Head] = field(default_factory=dict)  # of fine-tuned networks, by the ending of the class
    output: str = ""  # the output layer of the masked-token head, which must equal the token embeddings
    output_bias: str = ""  # a second name of the masked-token head's bias
    ignored: tuple[str, ...] = ()  # buffers
    renamed: Mapping[str, str] = field(default_factory=dict)  # modules that files may also have by another name
    aliases: Mapping[str, str] = field(default_factory=dict)  # modules that repeat the weights of another one
    generation: Mapping[str, int] = field(default_factory=dict)  # special tokens that configs may leave out
    one_tokenizer: bool = True  # the same for sources and targets
    gated_names: Names = field(default_factory=dict)  # replace those of `names` in gated networks
    modules: Names = field(default_factory=dict)  # linear layers with other names in the other library than in files

    def of(self, size: Architecture) -> Family:
        """Return the family with the names that a network of this architecture has."""
        if size.activation not in GATED_ACTIVATIONS or not self.gated_names:
            return self
        return replace(self, names={**self.names, **self.gated_names}, gated_names={})

    def tuned_class(self, kind: str) -> str:
        """Return the class of fine-tuned networks whose name ends with `kind`."""
        return self.classes[()].removesuffix("Model") + kind

    @property
    def own(self) -> tuple[str, ...]:
        """The first parts of the family's array names; other arrays are of heads that Firth does not use."""
        tables = (*self.names.values(), *self.head_names.values())
        sources = [value if isinstance(value, Source) else Source(as_tuple(value)) for value in tables]
        return tuple({f"{name.partition('.')[0]}." for source in sources for name in source.names})

    def source(self, name: str) -> Source | None:
        """Return where an array of Firth comes from; None if the family has no such part."""
        pattern = re.sub(r"\.\d+\.", ".*.", name, count=1)
        layer = "".join(re.findall(r"\.(\d+)\.", name)[:1])
        module, _, end = pattern.rpartition(".")
        for table, prefix in ((self.names, self.prefix), (self.head_names, "")):
            for key, ending in ((pattern, ""), (module, f".{end}")):
                if key in table:
                    entry = table[key]
                    source = entry if isinstance(entry, Source) else Source(as_tuple(entry))
                    names = tuple(prefix + part.replace("*", layer) + ending for part in source.names)
                    return replace(source, names=names)
        return None


def as_tuple(names: str | tuple[str, ...]) -> tuple[str, ...]:
    """Return one name or several as a tuple."""
    return (names,) if isinstance(names, str) else names


class Config:
    """Checked access to another library's config.json."""

    def __init__(self, values: Mapping[str, Any]) -> None:
        self.values = values

    def get(self, name: str, default: Any = None) -> Any:
        """Return a value; null counts as missing."""
        value = self.values.get(name)
        return default if value is None else value

    def integer(self, name: str, default: int | None = None, low: int = 1, high: int = MOST) -> int:
        """Return an integer from `low` to `high`."""
        value = self.get(name, default)
        if type(value) is not int or not low <= value <= high:
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be an integer from {low:,} to {limit:,}; got {got!r}.",
                name=name,
                low=low,
                limit=high,
                got=self.get(name),
            )
        return value

    def number(self, name: str, default: float, low: float = 0.0, high: float = float("inf")) -> float:
        """Return a number from `low` to `high`."""
        value = self.get(name, default)
        if type(value) not in (int, float) or not low <= value <= high:  # excludes NaN
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be a number from {low:g} to {limit:g}; got {got!r}.",
                name=name,
                low=low,
                limit=high,
                got=value,
            )
        return float(value)

    def share(self, name: str, default: float) -> float:
        """Return a dropout or another share of at most 0.95."""
        return self.number(name, default, high=0.95)

    def flag(self, name: str, default: bool) -> bool:
        """Return true or false."""
        value = self.get(name, default)
        if type(value) is not bool:
            raise FirthError(
                "damaged_model",
                "config.json: {name} must be true or false; got {got!r}.",
                name=name,
                got=value,
            )
        return value

    def choice(self, name: str, default: str, choices: Mapping[str, str]) -> str:
        """Return the value of `choices` for an entry; others are not supported."""
        value = self.get(name, default)
        if not isinstance(value, str) or value not in choices:
            raise FirthError(
                "unsupported_architecture",
                "config.json: {name} must be one of {choices}; got {got!r}.",
                name=name,
                choices=", ".join(choices),
                got=value,
            )
        return choices[value]

    def activation(self, name: str, default: str) -> str:
        """Return Firth's name of an activation function."""
        return self.choice(name, default, ACTIVATIONS)

    def require(self, name: str, *supported: Any) -> None:
        """Raise unsupported_architecture unless an entry is missing or one of `supported`."""
        value = self.get(name, supported[0])
        if value not in supported:
            raise FirthError(
                "unsupported_architecture",
                "config.json has {name}={got!r}; Firth supports {choices}.",
                name=name,
                got=value,
                choices=" or ".join(map(repr, supported)),
            )

    def layers(self, name: str = "num_hidden_layers", default: int | None = None) -> int:
        """Return the number of layers."""
        return self.integer(name, default, high=1000)

    def width(self, name: str = "hidden_size", default: int | None = None) -> int:
        """Return the dimension of the network."""
        return self.integer(name, default, high=65536)

    def heads(self, name: str = "num_attention_heads", default: int | None = None) -> int:
        """Return the number of heads."""
        return self.integer(name, default, high=1024)

    def local_layers(self, default: Callable[[int], bool]) -> tuple[int, ...]:
        """Return the layers with local attention; `default` says whether a layer is local if there are no types."""
        layers, types = self.layers(), self.get("layer_types")
        if types is None:
            return tuple(filter(default, range(layers)))
        if not isinstance(types, list) or len(types) != layers or not set(map(str, types)) <= {LOCAL, GLOBAL}:
            raise FirthError(
                "damaged_model",
                "config.json: {name} must have {choices} for each of {layers} layers; got {got!r}.",
                name="layer_types",
                choices=f"{LOCAL} or {GLOBAL}",
                layers=layers,
                got=types,
            )
        return tuple(layer for layer, kind in enumerate(types) if kind == LOCAL)


def layer_types(size: Architecture) -> list[str]:
    """Return whether each layer is local or global, as config.json says it."""
    return [LOCAL if layer in size.local_layers else GLOBAL for layer in range(size.layers)]
