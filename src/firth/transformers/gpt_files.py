"""A GPT in files: its architecture, as options of the method and as the config of its family, and its documents."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch

from firth.core import registry
from firth.core.errors import FirthError
from firth.core.method import Method
from firth.core.model import Parts
from firth.core.options import build_settings
from firth.core.storage import read_json
from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.training.weight_files import with_weights
from firth.transformers.families import DECODERS
from firth.transformers.families.family import Config, Family
from firth.transformers.families.gpt2 import GPT2, is_gpt2
from firth.transformers.pooling import Pooling
from firth.transformers.sentence_transformers_folder import SentenceFiles, stored_projection, stored_settings

NETWORK = "network"  # document with the config of a network that the method's options do not describe


@dataclass(frozen=True)
class TextSettings:
    """What other libraries store beside the weights of a network."""

    chat_template: str | None = None
    ends: tuple[int, ...] = ()  # tokens at which generation stops, besides eos
    has_output: bool = True  # a network without output layer embeds texts and generates none


def size_of(method: Method) -> Architecture:
    """Return the network size that a method's options give."""
    options = method.options()
    return Architecture(
        layers=options["layers"],
        dim=options["dim"],
        heads=options["heads"],
        feedforward_dim=options["feedforward_dim"],
        max_positions=options["context_length"] + 1,  # one more for the begin token
        dropout=options["dropout"],
        activation=options["activation"],
        positions=options["positions"],
        epsilon=options["epsilon"],
    )


def options_of(size: Architecture) -> dict[str, Any]:
    """Return the options of the method that describe a network, as far as they can."""
    names = ("layers", "dim", "heads", "feedforward_dim", "dropout", "activation", "positions", "epsilon")
    return {name: getattr(size, name) for name in names} | {"context_length": max(1, size.max_positions - 1)}


def stored_architecture(network: Any) -> Architecture:
    """Return the architecture of a saved network from its config."""
    if not isinstance(network, dict) or network.get("model_type") not in DECODERS:
        raise FirthError("damaged_model", "{name}.json must have a model_type that Firth opens.", name=NETWORK)
    size = DECODERS[network["model_type"]].architecture(Config(network))
    build_settings(registry.method("gpt"), options_of(size))  # checks the ranges
    return size


def layout_of(size: Architecture) -> Family | None:
    """Return the family in whose format a network is stored; None if only Firth has such networks."""
    return DECODERS[size.family] if size.family else GPT2 if is_gpt2(size) else None


def net_of(state: Mapping[str, torch.Tensor], size: Architecture) -> Decoder:
    """Return a network with these weights."""
    vocabulary_size = len(state["embedding.tokens.weight"])
    return with_weights(lambda: Decoder(vocabulary_size, size), state).eval()


def is_base(config: Mapping[str, Any]) -> bool:
    """Return whether config.json is of a network without output layer."""
    return all(str(name).endswith("Model") and "LMHead" not in name for name in config.get("architectures") or ())


def stored_sentence(parts: Parts, size: Architecture) -> SentenceFiles:
    """Return how a saved model pools texts."""
    stored = dict(parts.documents["pooling"])
    pooling = Pooling(**stored | {"layers": tuple(stored["layers"])})
    projection = stored_projection(parts.documents, parts.more, pooling.dim(size.dim))
    return SentenceFiles(pooling, projection, stored_settings(parts.documents))


def end_ids(folder: Path, config: Mapping[str, Any]) -> tuple[int, ...]:
    """Return the tokens at which generation stops, from generation_config.json or config.json."""
    path = folder / "generation_config.json"
    generation = read_json(path) if path.is_file() else {}
    ids = generation.get("eos_token_id") if isinstance(generation, dict) else None
    ids = config.get("eos_token_id") if ids is None else ids
    return tuple(id for id in (ids if isinstance(ids, list) else [ids]) if type(id) is int)
