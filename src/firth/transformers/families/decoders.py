"""Decoders of other libraries: from config and arrays to a network, and back."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from firth.nets.architecture import Architecture
from firth.nets.transformer import Decoder
from firth.transformers.families.family import Config, Family
from firth.transformers.families.gpt2 import GPT2, fold_scales
from firth.transformers.families.weights import (
    Arrays,
    check_vocabulary,
    listed,
    read_state,
    stripped,
    warn,
    without_prefix,
    write_state,
)

EMBEDDING, OUTPUT = "embedding.tokens.weight", "output.weight"


def read_decoder(
    family: Family,
    arrays: Arrays,
    size: Architecture,
    config: Mapping[str, Any] | None = None,
    used_elsewhere: Collection[str] = (),
) -> Decoder:
    """Return a network with these weights; `used_elsewhere` are arrays of the caller's head."""
    known = without_prefix(family, arrays)
    tokens, output = (stripped(family, name) for name in (EMBEDDING, OUTPUT))
    assert tokens is not None and output is not None
    embedding = known.get(tokens.names[0])
    if size.tied and embedding is not None:
        separate = known.pop(output.names[0], None)
        if separate is not None and not np.array_equal(separate, embedding):
            warn(f"{listed([output.names[0]], 'ignored')}: config.json ties it to the embeddings.", "weights_ignored")
    rows = 1 if embedding is None or not embedding.ndim else len(embedding)
    check_vocabulary(rows, config or {})
    with torch.device("meta"):  # shapes without allocation
        shapes = {name: tuple(tensor.shape) for name, tensor in Decoder(rows, size).state_dict().items()}
    state = read_state(family, known, size, shapes, used_elsewhere=used_elsewhere)
    if family is GPT2 and config:
        fold_scales(state, size, Config(config))
    return decoder_of(state, size)


def has_output_layer(family: Family, arrays: Arrays) -> bool:
    """Return whether there is an output layer that is not tied to the embeddings."""
    output = family.source(OUTPUT)
    return output is not None and output.names[0] in arrays


def decoder_of(state: Mapping[str, Tensor], size: Architecture) -> Decoder:
    """Return a network with these weights."""
    with torch.device("meta"):
        net = Decoder(len(state[EMBEDDING]), size)
    net.load_state_dict(state, assign=True)
    return net.eval()


def write_decoder(family: Family, net: Decoder, vocabulary_size: int) -> dict[str, NDArray[Any]]:
    """Return the weights by the other library's names, without padding rows of the vocabulary."""
    state = {
        name: tensor[:vocabulary_size] if name in (EMBEDDING, OUTPUT) else tensor
        for name, tensor in net.state_dict().items()
    }
    return write_state(family, state, net.size, prefixed=True)


def decoder_config(family: Family, size: Architecture, vocabulary_size: int, ids: Mapping[str, Any]) -> dict[str, Any]:
    """Return the other library's config.json for a network; `ids` are those of special tokens, by role."""
    return {
        "model_type": family.model_type,
        "architectures": [family.classes[()]],
        "vocab_size": vocabulary_size,
        **family.config(size),
        **{f"{role}_token_id": id for role, id in ids.items()},
    }
