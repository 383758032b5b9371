"""Encoders of other libraries: from config and arrays to a network, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.nets.architecture import Architecture
from firth.nets.encoder import Encoder
from firth.transformers.families.family import Family
from firth.transformers.families.weights import (
    Arrays,
    read_state,
    resolve_aliases,
    resolve_output,
    stripped,
    without_prefix,
    write_state,
)

NO_IDS: Mapping[str, int | None] = {}
HEADS = ("pooler", "masked", "next_sentence")


def read_encoder(family: Family, arrays: Arrays, size: Architecture, used_elsewhere: Collection[str] = ()) -> Encoder:
    """Return a network with these weights and the heads they have; `used_elsewhere` are arrays of the caller's head."""
    family = family.of(size)
    tokens = stripped(family, "input.tokens.weight")
    assert tokens is not None
    known = without_prefix(family, arrays)
    resolve_output(family, known)
    resolve_aliases(family, known)
    embedding = known.get(tokens.names[0])
    rows = 1 if embedding is None or not embedding.ndim else len(embedding)
    with torch.device("meta"):  # shapes without allocation
        largest = Encoder(rows, size).state_dict()
    shapes = {name: tuple(tensor.shape) for name, tensor in largest.items()}
    return encoder_of(read_state(family, known, size, shapes, HEADS, used_elsewhere), size)


def encoder_of(state: Mapping[str, Tensor], size: Architecture) -> Encoder:
    """Return a network with these weights and the heads they have."""
    heads = {head: any(name.startswith(f"{head}.") for name in state) for head in HEADS}
    with torch.device("meta"):
        net = Encoder(len(state["input.tokens.weight"]), size, **heads)
    net.load_state_dict(state, assign=True)
    return net.eval()


def write_encoder(family: Family, net: Encoder) -> dict[str, NDArray[Any]]:
    """Return the weights by the other library's names."""
    return write_state(family.of(net.size), net.state_dict(), net.size, prefixed=bool(pretraining_heads(net)))


def encoder_config(family: Family, net: Encoder, ids: Mapping[str, int | None] = NO_IDS) -> dict[str, Any]:
    """Return the other library's config.json for a network; `ids` are those of special tokens, by role."""
    return {
        "model_type": family.model_type,
        "architectures": [family.classes.get(pretraining_heads(net), family.classes[()])],
        "vocab_size": net.input.tokens.num_embeddings,
        **family.config(net.size),
        **{f"{role}_token_id": id for role, id in ids.items()},
    }


def pretraining_heads(net: Encoder) -> tuple[str, ...]:
    """Return the pre-training heads of a network."""
    return tuple(head for head in ("masked", "next_sentence") if getattr(net, head) is not None)
