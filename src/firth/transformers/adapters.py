"""Low-rank adapters (LoRA) in the layout of the package peft: adapter_config.json and adapter_model.safetensors.

A model with an adapter computes with merged weights. Its folder holds the adapter and names the folder of its base.
"""

from __future__ import annotations

import copy
import hashlib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Protocol, runtime_checkable

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from firth.core.errors import FirthError
from firth.core.model import Adapted, Model, Parts, base_model
from firth.core.saved import load
from firth.core.stored import check_finite
from firth.nets.architecture import Architecture
from firth.nets.lora import ADAPTERS, EVERY, adapted_layers, add_adapters, layers_to_adapt, merge_adapters
from firth.transformers.families import DECODERS, ENCODERS
from firth.transformers.families.family import Config, Family, Source
from firth.transformers.families.gpt2 import GPT2
from firth.transformers.families.weights import listed, rows_of_parts
from firth.transformers.huggingface_folder import ADAPTER_CONFIG, ADAPTER_WEIGHTS

Arrays = Mapping[str, NDArray[Any]]
PREFIX = "base_model.model."  # of peft's names
PEFT_ENDS = dict(zip(ADAPTERS, ("lora_A", "lora_B"), strict=True))
HEADS = ("pooler.", "masked.", "next_sentence.")
#: Options of peft that change the computation; others than these values are not supported.
FIXED = {
    "peft_type": ("LORA",),
    "bias": ("none",),
    "use_dora": (False,),
    "lora_bias": (False,),
    "rank_pattern": ({}, None),
    "alpha_pattern": ({}, None),
    "trainable_token_indices": (None,),
}


@dataclass(frozen=True)
class Adapter:
    """A low-rank adapter of a network, by Firth's names of its layers."""

    base: str  # the folder of the base model
    fingerprint: str  # of the base's weights; empty if it is not known
    rank: int
    scale: float  # α/r
    arrays: Mapping[str, Tensor]  # A ("….down") and B ("….up") of each layer


class TakesAdapters:
    """A model whose adapter, if it has one, is stored without the base."""

    adapter: Adapter | None = None  # already merged into the weights

    def merged(self) -> Any:
        """Return the same model without adapter: it is stored with all its weights."""
        model = copy.copy(self)
        model.adapter = None
        return model


@runtime_checkable
class HasNetwork(Protocol):
    """A model of one network."""

    net: nn.Module
    adapter: Adapter | None

    @property
    def size(self) -> Architecture:
        """The dimensions of the network."""


# ---- the layers of a family ----


def family_of(size: Architecture) -> Family:
    """Return the family with the names of the layers in the other library's network."""
    family = (ENCODERS | DECODERS).get(size.family, GPT2).of(size)
    return replace(family, names={**family.names, **family.modules})


def sources_of(net: nn.Module, size: Architecture, which: str = EVERY) -> dict[str, Source]:
    """Return the other library's layers of each layer that can have an adapter."""
    family = family_of(size)
    sources = {name: family.source(f"{name}.weight") for name in layers_to_adapt(net, which)}
    return {name: strip_end(source) for name, source in sources.items() if source is not None}


def strip_end(source: Source) -> Source:
    """Return the source of a layer instead of its weight."""
    return replace(source, names=tuple(name.removesuffix(".weight") for name in source.names))


def rows_of(net: nn.Module, sources: Mapping[str, Source], size: Architecture) -> dict[str, list[int]]:
    """Return how many rows of each layer belong to each layer of the other library."""
    rows = dict[str, list[int]]()
    for name, source in sources.items():
        weight = net.get_submodule(name).weight
        assert isinstance(weight, Tensor)
        rows[name] = rows_of_parts(f"{name}.weight", source, tuple(weight.shape), size)
    return rows


def base_fingerprint(net: nn.Module) -> str:
    """Return a hash of the weights of a network without its heads and adapters."""
    digest = hashlib.sha256()
    for name, tensor in sorted(net.state_dict().items()):
        if not name.startswith(HEADS) and name.rpartition(".")[2] not in ADAPTERS:
            digest.update(name.encode())
            digest.update(tensor.detach().cpu().float().contiguous().numpy().data)
    return digest.hexdigest()


# ---- training ----


def base_folder(start: Model, method: str) -> Path:
    """Return the folder of the base model of new adapters; raise incompatible_start if it has none."""
    if start.folder is None or (isinstance(start, Adapted) and start.adapter is not None):
        raise FirthError(
            "incompatible_start",
            "{method}.lora: adapters are stored without their base, so start must be a model in a folder of its own, "
            "{problem}. Use firth.load(FOLDER){advice}.",
            method=method,
            problem="and this one is in memory only" if start.folder is None else "and this one is itself an adapter",
            advice="" if start.folder is None else " after `firth convert ADAPTER FOLDER`, which merges it",
        )
    return start.folder.absolute()


def new_adapters(net: nn.Module, size: Architecture, rank: int, alpha: float, which: str) -> None:
    """Freeze a network and add adapters to its linear layers: all in the blocks, or those of the attention."""
    net.requires_grad_(False)
    add_adapters(net, rows_of(net, sources_of(net, size, which), size), rank, alpha / rank)
    for layer in adapted_layers(net).values():
        layer.requires_grad_adapter()


def merged_adapter(net: nn.Module, base: str) -> Adapter | None:
    """Merge the adapters of a trained network into its weights and return them; None if it has none."""
    layer = next(iter(adapted_layers(net).values()), None)
    if layer is None:
        return None
    fingerprint = base_fingerprint(net)
    return Adapter(base, fingerprint, layer.rank, layer.scale, merge_adapters(net))


# ---- files ----


def adapter_parts(
    adapter: Adapter, net: nn.Module, size: Architecture, task: str | None, head: Arrays, prefixed: bool
) -> Parts:
    """Return the stored form of an adapter; `head` are arrays of a head that the other library has, by its names."""
    sources = {name: source for name, source in sources_of(net, size).items() if f"{name}.down" in adapter.arrays}
    rows, prefix = rows_of(net, sources, size), "" if prefixed else family_of(size).prefix
    arrays, targets = {f"{PREFIX}{name}": array for name, array in head.items()}, list[str]()
    for name, source in sources.items():
        down, up = (adapter.arrays[f"{name}.{end}"] for end in ADAPTERS)
        parts = zip(source.names, torch.split(down, adapter.rank), torch.split(up, rows[name]), strict=True)
        for theirs, *pair in parts:
            targets.append(re.sub(r"^.*?\.\d+\.", "", theirs))
            for peft, tensor in zip(PEFT_ENDS.values(), pair, strict=True):
                key = f"{PREFIX}{theirs.removeprefix(prefix)}.{peft}.weight"
                arrays[key] = np.ascontiguousarray(tensor.cpu().numpy())
    alpha = adapter.scale * adapter.rank
    config = {
        "peft_type": "LORA",
        "task_type": task,
        "base_model_name_or_path": adapter.base,
        "r": adapter.rank,
        "lora_alpha": int(alpha) if alpha.is_integer() else alpha,
        "lora_dropout": 0.0,
        "target_modules": list(dict.fromkeys(targets)),
        "modules_to_save": list(dict.fromkeys(saved_module(name) for name in head)) or None,
        "bias": "none",
        "fan_in_fan_out": any(source.transposed for source in sources.values()),
        "inference_mode": True,
    }
    documents = {ADAPTER_CONFIG.removesuffix(".json"): config, "base": {"sha256": adapter.fingerprint}}
    return Parts({}, documents, more={ADAPTER_WEIGHTS.removesuffix(".safetensors"): arrays})


def saved_module(name: str) -> str:
    """Return the module of a head that peft saves with an adapter: pooler of bert.pooler.dense.weight."""
    modules = name.split(".")
    return "pooler" if "pooler" in modules else modules[0]


def stored_adapter(parts: Parts) -> Mapping[str, Any] | None:
    """Return the config of the adapter in the folder of a saved model; None if it holds all weights."""
    config = parts.documents.get(ADAPTER_CONFIG.removesuffix(".json"))
    if config is not None and not isinstance(config, dict):
        raise FirthError("damaged_model", "{name} must be a JSON object.", name=ADAPTER_CONFIG)
    return config


def open_base(config: Mapping[str, Any], folder: Path | None) -> tuple[Model, str]:
    """Open the base model that adapter_config.json names, or the folder of that name beside the adapter."""
    name = Config(config).get("base_model_name_or_path")
    named = Path(name) if isinstance(name, str) and name else None
    if named is not None and not named.is_dir() and folder is not None:
        named = folder.absolute().parent / named.name
    if named is None or not named.is_dir():
        raise FirthError(
            "incomplete_model",
            "{config} names the base model {name!r}, which is not a folder here. Put the folder of the base model "
            "beside that of the adapter, under the name {expected}.",
            config=ADAPTER_CONFIG,
            name=name,
            expected="BASE" if named is None else named.name,
        )
    return load(named), str(named)


def adapter_arrays(parts: Parts) -> Arrays:
    """Return the arrays of a saved adapter and of the head beside it."""
    return parts.more.get(ADAPTER_WEIGHTS.removesuffix(".safetensors"), {})


def adapted_model(folder: Path | None, config: Mapping[str, Any], arrays: Arrays, fingerprint: str = "") -> Model:
    """Open the base of an adapter without head, and merge the adapter into it."""
    base, name = open_base(config, folder)
    model = base_model(base)
    if not isinstance(model, HasNetwork):
        raise FirthError(
            "unsupported_model", "The base of an adapter must be a BERT or GPT; {base} is {got!r}.", base=name, got=base
        )
    model.adapter, others = apply_adapter(model.net, model.size, config, arrays, name, fingerprint)
    if others:
        raise FirthError(
            "unsupported_architecture",
            "The adapter has weights of modules other than the blocks: {name}.",
            name=", ".join(sorted(others)[:3]),
        )
    return model


def apply_adapter(
    net: nn.Module, size: Architecture, config: Mapping[str, Any], arrays: Arrays, base: str, fingerprint: str = ""
) -> tuple[Adapter, dict[str, NDArray[Any]]]:
    """Merge a stored adapter into the network of its base; return it, and the arrays of other parts.

    `fingerprint` is that of the base it was trained on, if that is known.
    """
    rank, scale = checked_config(Config(config))
    if fingerprint and base_fingerprint(net) != fingerprint:
        raise FirthError(
            "hash_mismatch",
            "The weights in {base} are not those that the adapter was trained on. Use the original base.",
            base=base,
        )
    check_finite(dict(arrays))
    known = {name.removeprefix(PREFIX): array for name, array in arrays.items()}
    sources, prefix = sources_of(net, size), family_of(size).prefix
    rows = rows_of(net, sources, size)
    stored, used = dict[str, list[tuple[NDArray[Any], NDArray[Any]] | None]](), set[str]()
    for name, source in sources.items():
        pairs: list[tuple[NDArray[Any], NDArray[Any]] | None] = []
        for theirs, count in zip(source.names, rows[name], strict=True):
            layers = [each for each in (theirs, theirs.removeprefix(prefix)) if f"{each}.lora_A.weight" in known]
            if not layers:
                pairs.append(None)
                continue
            keys = [f"{layers[0]}.{peft}.weight" for peft in PEFT_ENDS.values()]
            used |= set(keys)
            pairs.append(checked_pair(known, keys, rank, count, net.get_submodule(name)))
        if any(pair is not None for pair in pairs):
            stored[name] = pairs
    others = {name: array for name, array in known.items() if name not in used}
    unknown = sorted(name for name in others if ".lora_" in name)
    if unknown or not stored:
        raise FirthError(
            "unsupported_architecture",
            "The adapter does not fit the network: {name}.",
            name=listed(unknown, "are not layers of a block") if unknown else "it has no lora_A for any of its layers",
        )
    add_adapters(net, {name: rows[name] for name in stored}, rank, scale)
    for name, layer in adapted_layers(net).items():
        fill_adapter(layer.down.data, layer.up.data, stored[name], rows[name], rank)
    return Adapter(base, fingerprint or base_fingerprint(net), rank, scale, merge_adapters(net)), others


def fill_adapter(
    down: Tensor,
    up: Tensor,
    pairs: Sequence[tuple[NDArray[Any], NDArray[Any]] | None],
    rows: Sequence[int],
    rank: int,
) -> None:
    """Copy the matrices of the blocks of a layer; blocks without an adapter get zeros."""
    down.zero_(), up.zero_()
    for a, b, pair in zip(torch.split(down, rank), torch.split(up, list(rows)), pairs, strict=True):
        if pair is not None:
            a.copy_(torch.from_numpy(pair[0].astype(np.float32)))
            b.copy_(torch.from_numpy(pair[1].astype(np.float32)))


def checked_config(config: Config) -> tuple[int, float]:
    """Return the rank and the scale of an adapter; raise unsupported_architecture for another kind."""
    for name, values in FIXED.items():
        config.require(name, *values)
    rank = config.integer("r", high=65536)
    alpha = config.number("lora_alpha", 8.0, low=1e-9)
    return rank, alpha / (rank**0.5 if config.flag("use_rslora", False) else rank)


def checked_pair(
    known: Arrays, keys: Sequence[str], rank: int, rows: int, layer: nn.Module
) -> tuple[NDArray[Any], NDArray[Any]]:
    """Return A and B of a layer after checking their shapes."""
    assert isinstance(layer, nn.Linear)
    shapes = (rank, layer.in_features), (rows, rank)
    for key, shape in zip(keys, shapes, strict=True):
        if key not in known:
            raise FirthError("incomplete_model", "{file} lacks {name}.", file=ADAPTER_WEIGHTS, name=key)
        if known[key].shape != shape or known[key].dtype.kind != "f":
            raise FirthError(
                "damaged_model",
                "{file}: {name} has shape {got} and dtype {dtype}; expected {expected} and floating point.",
                file=ADAPTER_WEIGHTS,
                name=key,
                got=known[key].shape,
                dtype=known[key].dtype,
                expected=shape,
            )
    return known[keys[0]], known[keys[1]]
