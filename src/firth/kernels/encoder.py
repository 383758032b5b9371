"""A BERT-style encoder on the CPU, from token ids to one vector per text, in float32 or int8.

In int8, each output of a weight matrix has its own scale (the largest weight becomes 127), and each input row has its
own scale and zero point (the smallest value becomes 0, the largest 255), computed on the fly. Products are summed as
integers; everything else stays in float32.
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
CHUNK = 256  # tokens that a thread takes through all layers at once, so that activations stay in its cache

FloatArray = NDArray[np.float32]


@dataclass(frozen=True)
class Shape:
    """The shape of a post-norm encoder."""

    layers: int
    dim: int
    heads: int
    hidden: int
    positions: int
    activation: str = "gelu"
    epsilon: float = 1e-12


class Encoder:
    """The native encoder.

    `arrays` holds the token, position and segment embeddings and the gain and bias of the embedding norm. For each
    layer follow: weight and bias of query_key_value (queries, keys and values stacked) and of the attention output,
    gain and bias of the attention norm, weight and bias of the feed-forward's two linear layers, gain and bias of the
    feed-forward norm.
    """

    def __init__(self, arrays: Sequence[FloatArray], shape: Shape, quantized: bool = False) -> None:
        self.shape = shape
        contiguous = [np.ascontiguousarray(array, dtype=np.float32) for array in arrays]
        self._native = _native.Encoder(
            contiguous,
            shape.layers,
            shape.heads,
            shape.dim,
            shape.hidden,
            shape.positions,
            ACTIVATIONS.index(shape.activation),
            shape.epsilon,
            quantized,
        )

    def encode(
        self,
        ids: NDArray[np.int32],
        starts: NDArray[np.int64],
        weights: NDArray[np.float32],
        concat: bool = False,
        pool: str = "mean",
        threads: int = 1,
    ) -> FloatArray:
        """Return one row per text; text t has the ids from starts[t] to starts[t + 1].

        `weights` has one entry per layer, the embeddings first. The pooled vector is the weighted sum of the layers;
        with `concat`, the layers with a nonzero weight are concatenated unweighted.
        """
        width = self.shape.dim * (int((weights != 0).sum()) if concat else 1)
        out = np.empty((len(starts) - 1, width), dtype=np.float32)
        if len(out):
            self._native.encode(ids, starts, weights, concat, POOLS.index(pool), CHUNK, out, threads)
        return out


# ---- NumPy reference implementation ----


def encode_twin(
    arrays: Sequence[FloatArray], shape: Shape, ids: NDArray[np.int32], pool: str = "mean", quantized: bool = False
) -> FloatArray:
    """Return the pooled vectors of all layers for one text, (layers + 1, dim)."""
    tokens, positions, segment, gain, bias, *rest = arrays
    linear = int8_linear if quantized else float_linear
    x = layer_norm(tokens[ids] + positions[: len(ids)] + segment, gain, bias, shape.epsilon)
    layers = [x]
    for layer in range(shape.layers):
        qkv, qkv_bias, out, out_bias, gain, bias, up, up_bias, down, down_bias, last_gain, last_bias = rest[
            12 * layer : 12 * layer + 12
        ]
        scale = np.ones((3 * shape.dim, 1), np.float32)
        scale[: shape.dim] = 1 / math.sqrt(shape.dim // shape.heads)  # applied to the weights, not to the scores
        query, key, value = (
            part.reshape(len(ids), shape.heads, -1).transpose(1, 0, 2)
            for part in np.split(linear(x, qkv * scale, qkv_bias * scale[:, 0]), 3, axis=1)
        )
        scores = np.exp((scores := query @ key.transpose(0, 2, 1)) - scores.max(axis=-1, keepdims=True))
        mixed = (scores / scores.sum(axis=-1, keepdims=True)) @ value
        mixed = mixed.transpose(1, 0, 2).reshape(len(ids), -1)
        x = layer_norm(x + linear(mixed, out, out_bias), gain, bias, shape.epsilon)
        hidden = activate(linear(x, up, up_bias), shape.activation)
        x = layer_norm(x + linear(hidden, down, down_bias), last_gain, last_bias, shape.epsilon)
        layers.append(x)
    pools = {"mean": lambda x: x.mean(axis=0), "cls": lambda x: x[0], "max": lambda x: x.max(axis=0)}
    pools["sum"] = lambda x: x.sum(axis=0)
    return np.stack([pools[pool](x) for x in layers]).astype(np.float32)


def float_linear(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return x · weightᵀ + bias in float32."""
    return np.asarray(x @ weight.T + bias, np.float32)


def int8_linear(x: FloatArray, weight: FloatArray, bias: FloatArray) -> FloatArray:
    """Return x · weightᵀ + bias with 8-bit weights and inputs."""
    scales = np.abs(weight).max(axis=1, keepdims=True) / 127
    scales[scales == 0] = 1
    weight_codes = np.trunc(weight / scales + np.copysign(0.5, weight)).astype(np.int32)
    low, high = (np.minimum(x.min(axis=1), 0), np.maximum(x.max(axis=1), 0))
    steps = np.where(high > low, (high - low) / 255, 1).astype(np.float32)[:, None]
    zeros = np.floor(0.5 - low[:, None] / steps)
    codes = np.clip(np.floor(x / steps + zeros + 0.5), 0, 255).astype(np.int32)
    sums = codes @ weight_codes.T - zeros * weight_codes.sum(axis=1)
    return np.asarray(sums * (steps * scales.T) + bias, np.float32)


def layer_norm(x: FloatArray, gain: FloatArray, bias: FloatArray, epsilon: float) -> FloatArray:
    """Return the layer norm of each row."""
    centered = x - x.mean(axis=1, keepdims=True)
    deviation = np.sqrt((centered * centered).mean(axis=1, keepdims=True) + np.float32(epsilon))
    return np.asarray(centered / deviation * gain + bias)


def activate(x: FloatArray, activation: str) -> FloatArray:
    """Return the activation of each element."""
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        erf = np.vectorize(math.erf, otypes=[np.float32])
        return np.asarray(0.5 * x * (1 + erf(x / math.sqrt(2))), np.float32)
    return np.asarray(0.5 * x * (1 + np.tanh(math.sqrt(2 / math.pi) * (x + 0.044715 * x**3))), np.float32)
