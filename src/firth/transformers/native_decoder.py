"""The native engine of decoders: which networks it computes, and their weights in its form."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, Protocol

import numpy as np
import torch
from numpy.typing import NDArray

from firth.core.errors import FirthError
from firth.kernels.blocks import STORAGES, quantize
from firth.kernels.decoder import NOTHING, FloatArray, Layer, Linear, Net, Norm
from firth.kernels.decoder import Decoder as NativeDecoder
from firth.nets.architecture import GATED_ACTIVATIONS, Architecture
from firth.nets.positions import rotary_frequencies
from firth.nets.transformer import Decoder

#: Storage of the weights by precision.
PRECISIONS = {"float32": "F32", "int8": "Q8_0", "int4": "Q4_1"}


def checked_precision(precision: str) -> str:
    """Return the precision, or raise invalid_value."""
    if precision not in PRECISIONS:
        raise FirthError(
            "invalid_value",
            "{option} must be one of {choices}; got {got!r}.",
            option="precision",
            choices=", ".join(("auto", *PRECISIONS)),
            got=precision,
        )
    return precision


def native_problem(size: Architecture) -> str | None:
    """Return why the native engine does not compute a network; None if it does."""
    problems = {
        "it attends to both sides": size.bidirectional,
        "its norms come after the residual sums": not size.pre_norm,
        "its embeddings are normalized or projected": size.embedding_norm or bool(size.embedding_dim + size.segments),
        f"its scores have a {size.score_bias} bias": size.score_bias != "none",
        "its first block has no norm": not size.first_norm,
    }
    return next((problem for problem, holds in problems.items() if holds), None)


def native_decoder(net: Decoder, vocabulary_size: int, precision: str = "float32") -> NativeDecoder | None:
    """Return the native engine for a float32 network on a CPU; None in other cases.

    In float32 it uses the weights in place. Logits are of the first `vocabulary_size` tokens.
    """
    weight = net.embedding.tokens.weight
    if weight.device.type != "cpu" or weight.dtype != torch.float32 or native_problem(net.size):
        return None
    state = {name: tensor.detach().numpy() for name, tensor in net.state_dict().items()}
    positions = net.embedding.positions
    if positions is not None:
        state["embedding.positions.weight"] = positions(torch.arange(net.size.max_positions)).detach().numpy()
    native = native_net(ArraySource(state), net.size, vocabulary_size)
    native = replace(native, embedding_scale=net.embedding.scale)
    return NativeDecoder(quantized(native, PRECISIONS[precision]), torch.get_num_threads())


class WeightSource(Protocol):
    """The weights of a network by Firth's names."""

    def linears(self, name: str, rows: list[int]) -> list[Linear]:
        """Return a layer, split into layers of these numbers of rows; a single one has all rows."""

    def array(self, name: str) -> FloatArray | None:
        """Return an array as float32; None if there is none."""


class ArraySource:
    """The state of a torch network."""

    def __init__(self, state: Mapping[str, NDArray[np.float32]]) -> None:
        self.state = state

    def linears(self, name: str, rows: list[int]) -> list[Linear]:
        """Return a layer, split into layers of these numbers of rows."""
        return split_rows(Linear(self.state[f"{name}.weight"], bias=self.state.get(f"{name}.bias")), rows)

    def array(self, name: str) -> FloatArray | None:
        """Return an array; None if there is none."""
        return self.state.get(name)


def split_rows(linear: Linear, rows: list[int]) -> list[Linear]:
    """Return a layer as layers of these numbers of rows."""
    ends = np.cumsum(rows)[:-1]
    biases = [None] * len(rows) if linear.bias is None else np.split(linear.bias, ends)
    parts = zip(np.split(linear.rows, ends), biases, strict=True)
    return [Linear(part, linear.storage, bias) for part, bias in parts]


def native_net(source: WeightSource, size: Architecture, vocabulary_size: int) -> Net:
    """Return a network in the form of the kernel."""
    (embedding,) = source.linears("embedding.tokens", [0])
    outputs = embedding if size.tied else source.linears("output", [0])[0]
    if len(outputs.rows) > vocabulary_size:
        outputs = replace(outputs, rows=outputs.rows[:vocabulary_size])
    norm = norm_of(source, "stack.norm")
    assert norm is not None
    return Net(
        embedding=embedding,
        layers=[native_layer(source, size, layer) for layer in range(size.layers)],
        norm=norm,
        outputs=outputs
        if len(outputs.rows) == vocabulary_size
        else replace(outputs, rows=outputs.rows[:vocabulary_size]),
        heads=size.heads,
        kv_heads=size.key_value_heads or size.heads,
        head_dim=size.width_of_head,
        max_positions=size.max_positions,
        activation=GATED_ACTIVATIONS.get(size.activation, size.activation),
        epsilon=size.epsilon,
        rms=size.norm == "rms",
        rotary=frequencies(size),
        interleaved=not size.rotary_halves,
        attention_scale=size.score_scale or None,
        score_cap=size.score_cap,
        logit_cap=size.logit_cap,
        embedding_scale=size.embedding_scale or 1.0,
        position_vectors=source.array("embedding.positions.weight"),
    )


def frequencies(size: Architecture) -> FloatArray:
    """Return the angles per position of the rotary tables: of global and, if they differ, of local layers."""
    if size.positions != "rotary":
        return NOTHING.reshape(0, 0)
    dim = size.rotary_dim or size.width_of_head
    tables = [rotary_frequencies(dim, size.rotary_base, size.rotary_scaling)]
    if size.rotary_local_base:
        tables.append(rotary_frequencies(dim, size.rotary_local_base))
    return torch.stack(tables).numpy()


def native_layer(source: WeightSource, size: Architecture, layer: int) -> Layer:
    """Return a block in the form of the kernel."""
    block = f"stack.blocks.{0 if size.shared_layers else layer}."
    heads, groups = size.heads * size.width_of_head, (size.key_value_heads or size.heads) * size.width_of_head
    query, key, value = source.linears(f"{block}attention.query_key_value", [heads, groups, groups])
    width, gated = size.width_of_feedforward, size.activation in GATED_ACTIVATIONS
    *gate, up = source.linears(f"{block}feed.wide", [width, width] if gated else [width])
    local = layer in size.local_layers
    names = ("attention_norm", "feed_norm", "attention.query_norm", "attention.key_norm")
    attention_norm, feed_norm, query_norm, key_norm = (norm_of(source, block + name) for name in names)
    return Layer(
        query=query,
        key=key,
        value=value,
        output=source.linears(f"{block}attention.output", [0])[0],
        gate=gate[0] if gate else None,
        up=up,
        down=source.linears(f"{block}feed.back", [0])[0],
        attention_norm=attention_norm,
        attention_post_norm=norm_of(source, f"{block}attention_output_norm"),
        feed_norm=feed_norm,
        feed_post_norm=norm_of(source, f"{block}feed_output_norm"),
        query_norm=query_norm,
        key_norm=key_norm,
        window=size.window + 1 if local else 0,  # the kernel counts the token itself
        rotary=-1 if size.positions != "rotary" else int(local and size.rotary_local_base > 0),
    )


def norm_of(source: WeightSource, name: str) -> Norm | None:
    """Return the weights of a norm; None where there is none."""
    weight = source.array(f"{name}.weight")
    return None if weight is None else Norm(weight, source.array(f"{name}.bias"))


def quantized(net: Net, storage: str) -> Net:
    """Return a network with its matrices in another storage, as far as their rows can be divided into blocks."""

    def converted(linear: Linear | None) -> Any:
        if linear is None or linear.storage == storage or linear.columns % STORAGES[storage].width:
            return linear
        return Linear(quantize(linear.floats(), storage), storage, linear.bias)

    if storage == "F32" and all(linear is None or linear.storage == "F32" for linear in net.layers[0].linears):
        return net
    names = ("query", "key", "value", "output", "gate", "up", "down")
    layers = [replace(layer, **{name: converted(getattr(layer, name)) for name in names}) for layer in net.layers]
    # A word vector is one row, so it is read from where it is; only the output layer reads all of them.
    return replace(net, layers=layers, outputs=converted(net.output_layer), half_cache=storage != "F32")
