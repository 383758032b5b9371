"""Incremental decoding of a pre-norm causal Transformer on the CPU, one token at a time.

Every weight is read once per token, so speed is bound by memory bandwidth; one kernel avoids the overhead of many small
calls.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import erf

import numpy as np
from numpy.typing import NDArray

from firth.kernels import _native

FloatArray = NDArray[np.float32]
NO_ROTARY = np.zeros(0, np.float32)


@dataclass(frozen=True)
class Net:
    """The arrays and shape of a network.

    A layer has 12 arrays, weight and bias each of: attention norm, queries, keys and values (3 · dim × dim), attention
    output, feed-forward norm, first feed-forward layer (for swiglu: the gate, then the values), second one.
    """

    layers: Sequence[Sequence[FloatArray]]
    norm: tuple[FloatArray, FloatArray]
    outputs: FloatArray  # vocabulary × dim
    heads: int
    positions: int
    activation: str  # gelu, gelu_tanh, relu, swiglu
    epsilon: float

    @property
    def dim(self) -> int:
        """The width of the model."""
        return int(self.outputs.shape[1])

    @property
    def hidden(self) -> int:
        """The width of the feed-forward layer."""
        return int(self.layers[0][10].shape[1])


class Writer:
    """The native kernel, with its key-value cache."""

    def __init__(self, net: Net, threads: int) -> None:
        self.net, self.threads = net, threads
        arrays = [*(array for layer in net.layers for array in layer), *net.norm, net.outputs]
        self.arrays = [np.ascontiguousarray(array).ravel() for array in arrays]  # the kernel keeps pointers to them
        self.keys, self.values = (
            np.zeros((len(net.layers), net.heads, net.positions, net.dim // net.heads), np.float32) for _ in range(2)
        )
        vocabulary_size, shape = len(net.outputs), (len(net.layers), net.dim, net.heads, net.hidden, net.positions)
        self.kernel = _native.Writer(self.arrays, *shape, vocabulary_size, net.activation, net.epsilon)

    def write(self, x: FloatArray, position: int, rotary: FloatArray = NO_ROTARY) -> FloatArray:
        """Return the logits of the next token, given the input vector `x` of the token at `position`.

        `rotary` holds the cosines, then the sines, of the rotary embedding of this position.
        """
        logits = np.empty(len(self.net.outputs), np.float32)
        x = x.astype(np.float32)
        self.kernel.write(x, position, rotary, self.keys.ravel(), self.values.ravel(), logits, self.threads)
        return logits


class TwinWriter(Writer):
    """The NumPy twin of `Writer`."""

    def write(self, x: FloatArray, position: int, rotary: FloatArray = NO_ROTARY) -> FloatArray:
        """Return the logits of the next token."""
        net = self.net
        for layer, arrays in enumerate(net.layers):
            norm, norm_bias, qkv, qkv_bias, output, output_bias, feed, feed_bias, up, up_bias, down, down_bias = arrays
            parts = (qkv @ layer_norm(x, norm, norm_bias, net.epsilon) + qkv_bias).reshape(3, net.heads, -1)
            query, key, value = (rotate(parts[0], rotary), rotate(parts[1], rotary), parts[2])
            self.keys[layer, :, position], self.values[layer, :, position] = key, value
            keys, values = self.keys[layer, :, : position + 1], self.values[layer, :, : position + 1]
            scores = np.einsum("hd,hpd->hp", query, keys) / np.sqrt(query.shape[1])
            weights = np.exp(scores - scores.max(1, keepdims=True))
            weights /= weights.sum(1, keepdims=True)
            x = x + output @ np.einsum("hp,hpd->hd", weights, values).ravel() + output_bias
            inner = up @ layer_norm(x, feed, feed_bias, net.epsilon) + up_bias
            x = x + down @ activate(inner, net.activation) + down_bias
        return np.asarray(net.outputs @ layer_norm(x, *net.norm, net.epsilon))


def layer_norm(x: FloatArray, weight: FloatArray, bias: FloatArray, epsilon: float) -> FloatArray:
    """Return the layer norm of a vector."""
    return np.asarray((x - x.mean()) / np.sqrt(x.var() + epsilon) * weight + bias)


def rotate(x: FloatArray, rotary: FloatArray) -> FloatArray:
    """Return the heads of `x` with the rotary embedding applied."""
    if not len(rotary):
        return x
    (cos, sin), rotated = np.split(rotary, 2), np.empty_like(x)
    rotated[:, 0::2] = x[:, 0::2] * cos - x[:, 1::2] * sin
    rotated[:, 1::2] = x[:, 0::2] * sin + x[:, 1::2] * cos
    return rotated


def activate(x: FloatArray, activation: str) -> FloatArray:
    """Return the activation of each element; swiglu halves the width."""
    if activation == "relu":
        return np.maximum(x, 0)
    if activation == "gelu":
        return np.asarray(0.5 * x * (1 + np.array([erf(value / 2**0.5) for value in x])), np.float32)
    if activation == "gelu_tanh":
        return np.asarray(0.5 * x * (1 + np.tanh((2 / np.pi) ** 0.5 * (x + 0.044715 * x**3))))
    gate, inner = np.split(x, 2)
    return np.asarray(gate / (1 + np.exp(-gate)) * inner)
