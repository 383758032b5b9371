"""Encoder-decoders of other libraries: from config and arrays to a network, and back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.nets.architecture import Architecture
from firth.nets.transformer import EncoderDecoder
from firth.transformers.families.family import Family
from firth.transformers.families.weights import (
    Arrays,
    read_state,
    resolve_aliases,
    stripped,
    without_prefix,
    write_state,
)

SOURCE, TARGET, OUTPUT, BIAS = "source.tokens.weight", "target.tokens.weight", "output.weight", "output_bias"


def check_classes(family: Family, config: Mapping[str, Any]) -> None:
    """Raise unsupported_architecture if the network has a head that does not generate text."""
    classes = config.get("architectures") or [family.classes[()]]
    supported = (family.classes[()], f"{family.title}Model", "T5WithLMHeadModel")
    if isinstance(classes, list) and not any(name in supported for name in classes):
        raise FirthError(
            "unsupported_architecture",
            "config.json has {name}={got!r}; Firth supports {choices}.",
            name="architectures",
            got=classes,
            choices=" or ".join(supported[:2]),
        )


def read_encoder_decoder(family: Family, arrays: Arrays, size: Architecture) -> EncoderDecoder:
    """Return a network with these weights, which determine whether the output layer has its own weights and a bias."""
    family = family.of(size)
    known = without_prefix(family, arrays)
    names = {ours: source.names[0] for ours in (SOURCE, OUTPUT, BIAS) if (source := stripped(family, ours))}
    separate = resolve_aliases(family, known, names[OUTPUT])
    bias = known.get(names.get(BIAS, ""))
    if bias is not None and not bias.any():
        del known[names[BIAS]]
        bias = None
    size = replace(size, tied=not separate, logit_bias=bias is not None)
    embedding = known.get(names[SOURCE])
    rows = 1 if embedding is None or not embedding.ndim else len(embedding)
    with torch.device("meta"):  # shapes without allocation
        net = EncoderDecoder(rows, rows, size, tied=True)
    shapes = {name: tuple(tensor.shape) for name, tensor in net.state_dict().items()}
    state = read_state(family, known, size, shapes)
    net.load_state_dict({**state, TARGET: state[SOURCE]}, assign=True)
    return net.eval()


def write_encoder_decoder(family: Family, net: EncoderDecoder) -> dict[str, NDArray[Any]]:
    """Return the weights by the other library's names."""
    state = {name: tensor for name, tensor in net.state_dict().items() if name != TARGET}
    return write_state(family.of(net.size), state, net.size, prefixed=True)
