"""A BERT-like encoder on the CPU, from token ids to one vector a text, in floats or in bytes.

In bytes, each output of a matrix has its own scale (the greatest weight is 127) and each row of inputs its own scale
and zero (the least is 0, the greatest 255), found as it comes. Sums are whole numbers; all else stays in floats.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

ACTIVATIONS = ("gelu", "gelu_tanh", "relu")
POOLS = ("mean", "cls", "max", "sum")
CHUNK = 256  # tokens that a thread takes through all layers at once: they stay in its cache

Numbers = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """Of an encoder whose norms stand behind each part."""

    layers: int
    dim: int
    heads: int
    hidden: int
    places: int
    activation: str = "gelu"
    epsilon: float = 1e-12


class Encoder:
    """`arrays`: tokens, places, segment, gain and shift of the norm, then for each layer weight and bias of
    query_key_value (queries, keys, values one below the other) and output, gain and shift of the norm, weight and bias
    of wide and of back, gain and shift of the norm."""

    def __init__(self, arrays: Sequence[Numbers], shape: Shape, bytes: bool = False) -> None:
        self.shape = shape
        given = [np.ascontiguousarray(array, dtype=np.float32) for array in arrays]
        kind = ACTIVATIONS.index(shape.activation)
        self._native = _native.Encoder(
            given, shape.layers, shape.heads, shape.dim, shape.hidden, shape.places, kind, shape.epsilon, bytes
        )

    def encode(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        weights: NDArray[np.float32],
        concat: bool = False,
        pool: str = "mean",
        threads: int = 1,
    ) -> Numbers:
        """One row a text; text t has the ids from starts[t] to starts[t + 1].

        `weights`: of each layer, the input's first, in the sum of layers whose tokens are pooled; with `concat`, layers
        that have a weight stand one behind the other, as they are.
        """
        width = self.shape.dim * (int((weights != 0).sum()) if concat else 1)
        out = np.empty((len(starts) - 1, width), dtype=np.float32)
        if len(out):
            self._native.encode(ids, starts, weights, concat, POOLS.index(pool), CHUNK, out, threads)
        return out


# ---- the same, to be read ----


def encode_twin(
    arrays: Sequence[Numbers], shape: Shape, ids: NDArray[np.int32], pool: str = "mean", bytes: bool = False
) -> Numbers:
    """The rows of all layers for one text, (layers + 1, dim), in NumPy."""
    tokens, places, segment, gain, shift, *rest = arrays
    linear = linear_in_bytes if bytes else linear_in_floats
    x = norm(tokens[ids] + places[: len(ids)] + segment, gain, shift, shape.epsilon)
    found = [x]
    for layer in range(shape.layers):
        qkv, qkv_bias, out, out_bias, gain, shift, wide, wide_bias, back, back_bias, last_gain, last_shift = rest[
            12 * layer : 12 * layer + 12
        ]
        scale = np.ones((3 * shape.dim, 1), np.float32)
        scale[: shape.dim] = 1 / math.sqrt(shape.dim // shape.heads)  # in the weights, not in the scores
        query, key, value = (
            part.reshape(len(ids), shape.heads, -1).transpose(1, 0, 2)
            for part in np.split(linear(x, qkv * scale, qkv_bias * scale[:, 0]), 3, axis=1)
        )
        scores = np.exp((scores := query @ key.transpose(0, 2, 1)) - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
        x = norm(x + linear(mixed, out, out_bias), gain, shift, shape.epsilon)
        hidden = activated(linear(x, wide, wide_bias), shape.activation)
        x = norm(x + linear(hidden, back, back_bias), last_gain, last_shift, shape.epsilon)
        found.append(x)
    pools = {"mean": lambda x: x.mean(axis=0), "cls": lambda x: x[0], "max": lambda x: x.max(axis=0)}
    pools["sum"] = lambda x: x.sum(axis=0)
    return np.stack([pools[pool](x) for x in found]).astype(np.float32)


def linear_in_floats(x: Numbers, weight: Numbers, bias: Numbers) -> Numbers:
    found: Numbers = x @ weight.T + bias
    return found


def linear_in_bytes(x: Numbers, weight: Numbers, bias: Numbers) -> Numbers:
    scales = np.abs(weight).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    whole = np.trunc(weight / scales + np.copysign(0.5, weight)).astype(np.int32)
    low, high = (np.minimum(x.min(axis=1), 0), np.maximum(x.max(axis=1), 0))
    steps = np.where(high > low, (high - low) / 255, 1).astype(np.float32)[:, None]
    zeros = np.floor(0.5 - low[:, None] / steps)
    codes = np.clip(np.floor(x / steps + zeros + 0.5), 0, 255).astype(np.int32)
    sums = codes @ whole.T - zeros * whole.sum(axis=1)
    found: Numbers = (sums * (steps * scales.T) + bias).astype(np.float32)
    return found


def norm(x: Numbers, gain: Numbers, shift: Numbers, epsilon: float) -> Numbers:
    away = x - x.mean(axis=1, keepdims=True)
    found: Numbers = away / np.sqrt((away * away).mean(axis=1, keepdims=True) + np.float32(epsilon)) * gain + shift
    return found


def activated(x: Numbers, kind: str) -> Numbers:
    if kind == "relu":
        return np.maximum(x, 0)
    if kind == "gelu":
        erf = np.vectorize(math.erf, otypes=[np.float32])
        return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))), np.float32)
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float32)
